//! A generation on its way: how far a reload has come.

use crate::handle::{Gate, Probe, ReloadDone};
use std::time::Instant;

/// A new generation on its way.
pub(crate) struct Coming {
    /// Counts the attempts: one that was given up may still be answered.
    pub(crate) attempt: u64,
    pub(crate) may_change_model: bool,
    pub(crate) step: Step,
    pub(crate) gate: Option<Gate>,
    pub(crate) done: ReloadDone,
}

/// How far it has come.
pub(crate) enum Step {
    /// The generation's workers boot.
    Boots(Option<Probe>),
    /// Its workers are asked by the probe.
    Probed,
    /// They have answered; `by_app`: the front controller has.
    Passed { since: Instant, by_app: bool },
    /// It could take over, and waits until it may.
    AtGate,
}
