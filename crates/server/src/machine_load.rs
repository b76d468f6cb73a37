//! Share of the machine's CPU time that other work than idle jobs uses.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time over which the CPU time is measured.
const SAMPLE: Duration = Duration::from_millis(100);

/// CPU time of the machine, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Ticks {
    /// Parses the first line of `/proc/stat`.
    fn parse(stat: &str) -> Option<Ticks> {
        let fields: Option<Vec<u64>> = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .map(|n| n.parse().ok())
            .collect();
        // The time of guests is contained in that of user and nice.
        let [user, nice, system, idle, wait, irq, soft, stolen, ..] = fields?[..] else {
            return None;
        };
        let busy = user + system + irq + soft + stolen;
        Some(Ticks { busy, all: busy + nice + idle + wait })
    }
}

struct Sample {
    /// `None` before the first one.
    at: Option<Instant>,
    ticks: Ticks,
    percent: u64,
}

/// The load between two queries.
pub(crate) struct MachineLoad(Mutex<Sample>);

impl Default for MachineLoad {
    fn default() -> MachineLoad {
        MachineLoad(Mutex::new(Sample { at: None, ticks: Ticks::default(), percent: 0 }))
    }
}

impl MachineLoad {
    /// Returns the percentage of the time since the previous query, or of the previous query if
    /// that was just now. The first one is the mean since the start of the machine. Without
    /// `/proc/stat` it is 0.
    pub(crate) fn busy_percent(&self) -> u64 {
        let mut sample = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sample.at.is_none_or(|at| at.elapsed() >= SAMPLE) {
            let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
            let ticks = Ticks::parse(&stat).unwrap_or_default();
            let busy = ticks.busy.saturating_sub(sample.ticks.busy);
            let all = ticks.all.saturating_sub(sample.ticks.all);
            *sample = Sample { at: Some(Instant::now()), ticks, percent: busy * 100 / all.max(1) };
        }
        sample.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_idle_jobs_are_not_busy() {
        let stat = "cpu  100 700 50 1000 20 3 4 5 0 0\ncpu0 1 2 3\n";
        assert_eq!(Ticks::parse(stat), Some(Ticks { busy: 162, all: 1882 }));
        for text in ["", "cpu 1 2\n", "cpu  a b c d e f g h\n"] {
            assert_eq!(Ticks::parse(text), None, "{text}");
        }
    }
}
