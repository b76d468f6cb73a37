//! Processes in which an application boots, before its first request. They have no cell in the
//! ring; the template's channel reports them.

use super::worker::{Eyes, Watched};
use std::time::{Duration, Instant};

/// Interval between two samples.
pub(super) const EVERY: Duration = Duration::from_millis(2);
/// Maximum number of intervals that a late sample represents.
const LATE_MAX: u32 = 10;

struct Boot {
    pid: i32,
    generation: u64,
    watched: Watched,
    looked: Instant,
}

/// The booting processes of all generations: at most two, and the one for the rehearsal before
/// each.
#[derive(Default)]
pub(super) struct Boots(Vec<Boot>);

impl Boots {
    /// Sets the processes that are booting now.
    pub(super) fn know(&mut self, now: &[(i32, u64)]) {
        self.0.retain(|boot| now.contains(&(boot.pid, boot.generation)));
        for (pid, generation) in now {
            if !self.0.iter().any(|boot| (boot.pid, boot.generation) == (*pid, *generation)) {
                let watched = Watched::of_boot(*pid, *generation);
                let (pid, generation, looked) = (*pid, *generation, Instant::now());
                self.0.push(Boot { pid, generation, watched, looked });
            }
        }
    }

    /// Whether no process is booting.
    pub(super) fn are_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a process of that generation is booting.
    pub(super) fn are_of(&self, generation: u64) -> bool {
        self.0.iter().any(|boot| boot.generation == generation)
    }

    /// Samples each process.
    pub(super) fn look(&mut self, eyes: &mut Eyes<'_>) {
        for boot in &mut self.0 {
            let wall = boot.looked.elapsed().min(EVERY * LATE_MAX);
            boot.looked = Instant::now();
            boot.watched.look_at_boot(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), eyes);
        }
    }
}
