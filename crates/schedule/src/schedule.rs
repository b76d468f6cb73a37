//! The settings of a schedule.

use crate::run::Work;
use samovar_cron::Times;
use std::time::Duration;

/// Treatment of a time at which the previous run is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing runs at this time.
    #[default]
    Skip,
    /// One run starts when the previous one is over.
    Queue,
    /// The previous run is stopped first.
    Kill,
}

/// A schedule.
pub struct Schedule {
    /// Name, unique in the server.
    pub name: String,
    /// Its times.
    pub times: Times,
    /// Treatment of a time at which the previous run is not over.
    pub overlap: Overlap,
    /// Maximum random delay of a run.
    pub jitter: Duration,
    /// Whether times that passed while no server ran are made up for by one run.
    pub catches_up: bool,
    /// Work that it runs.
    pub work: Box<dyn Work>,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule").field("name", &self.name).finish_non_exhaustive()
    }
}
