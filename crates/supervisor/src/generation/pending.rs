//! The state of a reload: a new generation that has not taken over yet.

use crate::handle::{Gate, Probe, ReloadDone};
use std::time::Instant;

/// A reload in progress.
pub(crate) struct Coming {
    /// Number of the attempt: a reply for an earlier attempt may still arrive.
    pub(crate) attempt: u64,
    pub(crate) may_change_model: bool,
    pub(crate) is_canary: bool,
    pub(crate) step: Step,
    pub(crate) gate: Option<Gate>,
    pub(crate) done: ReloadDone,
}

/// Progress of a reload.
pub(crate) enum Step {
    /// The generation's workers boot.
    Boots(Option<Probe>),
    /// The probe is querying its workers.
    Probed,
    /// They have passed the probe. `by_app`: the front controller responded.
    Passed { since: Instant, by_app: bool },
    /// It is ready to take over, and waits for admission.
    AtGate,
    /// Canary: it was refused, and takes the requests that still wait for it until then.
    Leaves { by: Instant, why: String },
}

impl Coming {
    /// Whether it is a canary that serves requests of clients.
    pub(crate) fn is_running_canary(&self) -> bool {
        self.is_canary && matches!(self.step, Step::AtGate | Step::Leaves { .. })
    }
}
