//! Times at which something runs.

use crate::expression::Cron;
use crate::zone::Zone;
use std::time::Duration;

/// Times at which something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Times {
    /// Times of a cron expression in a time zone.
    Cron(Cron, Zone),
    /// At this interval.
    Every(Duration),
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Times::Cron(cron, _) => write!(f, "{cron}"),
            Times::Every(interval) => write!(f, "every {interval:?}"),
        }
    }
}
