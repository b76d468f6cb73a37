//! plan: capacity planning. History in; the requests that machines carry, and the date on which
//! that is not enough, out. Reads given readers, the history file of a server, and this machine's
//! cores.
//!
//! | file | content |
//! |---|---|
//! | `problem.rs` | an input that cannot be used |
//! | `calendar.rs` | dates and times |
//! | `numbers.rs` | medians, lines, random numbers |
//! | `machine.rs` | cores, hyper-threading, limits |
//! | `queue.rs` | mean CPU use and slow-down at a demand |
//! | `samples.rs` | history in bins, with bounded memory |
//! | `lines.rs`, `csv.rs`, `sar.rs`, `prometheus.rs`, `fleet.rs` | inputs |
//! | `topology.rs` | cores of this machine, and the stored speed-up of hyper-threading |
//! | `server.rs` | a running server as an input |
//! | `cost.rs` | CPU time per request |
//! | `capacity.rs` | limits of one machine |
//! | `steps.rs` | a line with steps |
//! | `trend.rs` | forecast |
//! | `plan.rs` | the plan for a fleet, and what-if |
//! | `weights.rs` | weights for load balancers |
//! | `verify.rs` | measured ceiling, compared with the predicted one |
//! | `experiment.rs` | effect of one change, from interleaved measurements |
//! | `text.rs`, `page.rs` | output for a terminal and as HTML |

// Counts and times stay far below 2⁵², so they are exact as floats.
#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss, clippy::type_complexity)]
#![allow(clippy::similar_names, clippy::many_single_char_names, clippy::too_many_lines)]
#![allow(clippy::too_many_arguments, clippy::format_push_string, clippy::float_cmp)]

pub mod calendar;
mod capacity;
mod cost;
pub mod csv;
pub mod experiment;
pub mod fleet;
mod lines;
mod machine;
mod numbers;
mod page;
mod plan;
mod problem;
pub mod prometheus;
mod queue;
mod samples;
pub mod sar;
pub mod server;
mod steps;
mod text;
mod topology;
mod trend;
pub mod verify;
mod weights;

pub use capacity::{Input, Limit, Resource};
pub use cost::{Contention, Cost, RouteCost};
pub use machine::{LIMIT_DISPLAYED, Machine, SPEEDUP_DEFAULT, SpeedupSource, limit_without_smt};
pub use numbers::Random;
pub use page::page;
pub use plan::{
    Drawn, MachinePlan, Options, Outlook, Plan, Price, Scenario, TREND_DAYS, Trend, holidays, plan,
};
pub use problem::Problem;
pub use queue::Curve;
pub use samples::{Collector, History, Record, RouteTotal, STEP, Sample};
pub use text::{answer, details, rate, text};
pub use topology::{Calibration, Topology, cpu_model};
pub use trend::{BAND, Crossing, Forecast, Peak};
pub use weights::{Balancer, weights};
