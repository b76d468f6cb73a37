//! The canary of the server: which one runs, its comparison with the serving generation, and the
//! decisions that follow from it.
//!
//! `sink` receives each finished request, `judge` finds the reason for an abort, `report` formats
//! figures and alarms. The reload starts and ends a canary (`reload/canary.rs`).

mod judge;
mod report;
mod run;
mod sink;

pub(crate) use run::{Canaries, Start};
pub(crate) use sink::CanarySink;
