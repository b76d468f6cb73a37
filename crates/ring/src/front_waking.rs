//! The front's view of the protocol: chooses the workers to wake and those to leave asleep.

use crate::front_end::{FrontEnd, Progress, Shadow};
use crate::layout::Lane;
use crate::limits::{SlotIndex, WORKERS_MAX};
use crate::os::monotonic_ns;
use std::time::Duration;

impl FrontEnd {
    /// Wakes one sleeping worker for each lane that got requests since the last call. That worker
    /// wakes the next.
    ///
    /// Returns true if the front relies on another process: an awake worker that is about to take
    /// the request, or the chain of wake-ups. If one request is delayed, the next would be too:
    /// call [`Self::ring_withheld`] a moment later.
    pub fn ring_workers(&mut self) -> bool {
        let mut withheld = false;
        for &lane in Lane::ALL {
            if std::mem::take(&mut self.unrung[lane as usize]) {
                withheld |= self.ring.control().wake_for(lane);
            }
        }
        withheld
    }

    /// Whether requests are so short that waking a worker for a few of them is not worth its cost.
    pub fn is_brisk(&self) -> bool {
        self.ring.control().pace.0.is_brisk(1)
    }

    /// Whether a worker that takes requests is awake. It looks for more requests before it sleeps.
    /// A hint.
    pub fn has_awake(&self) -> bool {
        let control = self.ring.control();
        Lane::SERVING.iter().any(|lane| control.workers_of(*lane).has_awake(control.words()))
    }

    /// Whether a worker of that lane is idle and no request waits for it. A hint.
    pub fn has_idle(&self, lane: Lane) -> bool {
        let control = self.ring.control();
        control.queue(lane).pending() == 0 && control.workers_of(lane).has_sleeper(control.words())
    }

    /// Wakes a worker for each lane that still has waiting requests. Returns true if a wake-up was
    /// withheld because the maximum number of woken workers is on its way. Then call it again a
    /// moment later.
    #[must_use]
    pub fn ring_withheld(&self) -> bool {
        self.ring.control().wake_waiting()
    }

    /// If a request has waited longer than `wait`, wakes all sleeping workers of its lane. The
    /// worker that was woken for the request may be stopped.
    pub fn ring_overdue(&self, wait: Duration) {
        let control = self.ring.control();
        for &lane in Lane::SERVING {
            if control.queue(lane).pending() == 0 {
                continue;
            }
            if !self.has_overdue(lane, wait) {
                continue;
            }
            control.release_unused_permits();
            // Bounded, because the woken workers fall asleep again.
            let mut most = WORKERS_MAX;
            // If the maximum number of workers runs, the request waits for a run permit.
            while most > 0 && control.has_permit() && control.wake_worker(lane) {
                most -= 1;
            }
        }
    }

    fn has_overdue(&self, lane: Lane, wait: Duration) -> bool {
        let before = monotonic_ns().saturating_sub(wait.as_nanos() as u64);
        let is_overdue = |(index, shadow): (usize, &Shadow)| {
            let slot = SlotIndex::new(index, self.shadows.len());
            shadow.in_use
                && shadow.lane == lane as usize
                && shadow.queued_ns < before
                && slot.is_some_and(|slot| matches!(self.progress(slot), Ok(Progress::Queued)))
        };
        self.shadows.iter().enumerate().skip(self.part.start).any(is_overdue)
    }
}
