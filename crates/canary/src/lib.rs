//! canary: compares the requests of a canary generation with those of the serving generation, while
//! both run. Pure: figures in, alarms and steps out.
//!
//! | file | content |
//! |---|---|
//! | `evidence.rs` | a sequential test of two rates |
//! | `quantiles.rs` | thresholds from recent values |
//! | `costs.rs` | a sequential test of two distributions |
//! | `metric.rs` | the compared figures and their tolerances |
//! | `route.rs` | the figures and tests of one route |
//! | `book.rs` | all routes and messages, and the split of the false-alarm rate |
//! | `comparison.rs` | the comparison of a whole canary run |
//! | `steps.rs` | shares and their durations |
//!
//! The test is an e-process, so a figure may be examined after each request (see
//! docs/internals/decisions/canary.md).

// Counts and times stay far below 2⁵², so they are exact as floats.
#![allow(clippy::cast_precision_loss)]

mod book;
mod comparison;
mod costs;
mod evidence;
mod metric;
mod quantiles;
mod route;
mod steps;

pub use book::{FINGERPRINTS_MAX, ROUTES_MAX};
pub use comparison::{Alarm, Comparison, MessageAlarm, RouteSummary, Settings};
pub use metric::{Arm, Costs, Metric, Observation};
pub use steps::{Advice, BLOCKS_MIN, Progress, REQUESTS_MIN, Steps, share_text};
