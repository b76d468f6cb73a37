//! Verification of a plan: the search of the highest rate that a server carries, by measurements
//! of growing rate. Pure: the caller sends the requests.

mod failures;
mod judge;
mod report;
mod search;
mod words;

pub use failures::{FailureKind, Responses};
pub use judge::{Client, ClientLimit, EarlyEnd, Goal, Measured, Miss, Verdict, judge};
pub use report::{Outcome, Prediction, StepLine, Verification};
pub use search::{Bounds, Ceiling, End, Next, Search};
