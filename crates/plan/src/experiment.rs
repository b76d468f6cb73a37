//! Experiment: two servers that differ by one change get the same requests in turn. Measurements
//! of requests in, differences with their intervals out. Pure: sends nothing.
//!
//! | file | content |
//! |---|---|
//! | `student.rs` | quantiles of Student's distribution |
//! | `round.rs` | requests of one round → differences of each route |
//! | `estimate.rs` | rounds → differences with intervals |
//! | `report.rs` | result for people, and as JSON |
//!
//! In each round both servers are started again, because two processes with the same settings
//! differ by chance for their whole life (addresses of memory, order of hash tables). Within a
//! round, blocks of requests go to the servers in the order A B B A, so that a drift of the
//! machine's speed affects both alike. A round gives one difference per route: the mean over the
//! blocks without the highest and lowest fifth. The interval is that of Student's distribution over
//! the rounds. The level is divided by the number of routes (Bonferroni), so all intervals are
//! right together.

mod estimate;
mod report;
mod round;
mod student;

pub use estimate::{Change, Difference, Experiment, Figure, ROUNDS_MIN, Subject};
pub use report::{Answers, Found, Outcome, TargetDifference};
pub use round::{Measured, Pair, Request, Side};
