//! Processes in which an application boots, ahead of its requests: no cell of the ring says so, the template's channel does.

use super::worker::{Eyes, Watched};
use std::time::{Duration, Instant};

/// Between two looks.
pub(super) const EVERY: Duration = Duration::from_millis(2);
/// A look that comes late stands for no more than so many.
const LATE_MAX: u32 = 10;

struct Boot {
    pid: i32,
    generation: u64,
    watched: Watched,
    looked: Instant,
}

/// Those of all generations: two at most, and the rehearsal before each.
#[derive(Default)]
pub(super) struct Boots(Vec<Boot>);

impl Boots {
    /// These boot now.
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

    /// Whether none boots.
    pub(super) fn are_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of that generation boots.
    pub(super) fn are_of(&self, generation: u64) -> bool {
        self.0.iter().any(|boot| boot.generation == generation)
    }

    /// Looks at each.
    pub(super) fn look(&mut self, eyes: &mut Eyes<'_>) {
        for boot in &mut self.0 {
            let wall = boot.looked.elapsed().min(EVERY * LATE_MAX);
            boot.looked = Instant::now();
            boot.watched.look_at_boot(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), eyes);
        }
    }
}
