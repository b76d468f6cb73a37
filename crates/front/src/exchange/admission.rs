//! Whether one more request is taken in while others wait: pure.
//!
//! Who comes when there is no room is refused at once, rather than one that has waited: so whoever was taken in is
//! answered. Room ends in three ways: places (`limits.queue_max`), time (by the rate at which requests are finished its
//! turn would come after `timeouts.queue`), and the client's share of the places. Of the first two the priority paths
//! feel nothing before all others do.

use crate::runtime::shed::Shed;
use std::time::Duration;

/// After so long, full or not, what was measured before counts half.
const HALF_LIFE: Duration = Duration::from_secs(5);
/// Requests finished, of late, from which on there is a rate.
const FINISHED_MIN: f64 = 8.0;
/// Of the time that a request may wait, what is given away: rates change.
const MARGIN: f64 = 0.9;
/// Of all places, what the priority paths have for themselves, where there are any.
const RESERVED_PERCENT: usize = 10;
/// A refused client is told to come again after this at most.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// The limits that a newcomer meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Requests that may wait.
    pub(crate) queue_max: usize,
    /// How many can be answered in time.
    pub(crate) in_time_max: usize,
    /// Of the places, for one client, percent; 100: nobody counts.
    pub(crate) share_percent: usize,
    /// Some paths have priority: a part of the places is theirs.
    pub(crate) has_priority: bool,
    /// The newcomer asks for one of them.
    pub(crate) is_priority: bool,
}

impl Places {
    /// Whether there is room for sure: all requests inside, those that workers run too, are fewer than may wait.
    pub(crate) fn is_calm(&self, inside: usize) -> bool {
        inside < self.open().min(self.in_time_max).min(self.share())
    }

    /// Whether there is room, for one of a client that has `own` inside.
    pub(crate) fn admit(&self, waiting: usize, own: usize) -> Result<(), Shed> {
        if waiting == 0 {
            return Ok(());
        }
        if waiting >= self.open() {
            return Err(Shed::Full);
        }
        if own >= self.share() {
            return Err(Shed::Share);
        }
        if !self.is_priority && waiting >= self.in_time_max {
            return Err(Shed::Late);
        }
        Ok(())
    }

    /// Places for this newcomer.
    fn open(&self) -> usize {
        let is_for_others = self.has_priority && !self.is_priority;
        let reserved =
            if is_for_others { (self.queue_max * RESERVED_PERCENT / 100).max(1) } else { 0 };
        (self.queue_max - reserved.min(self.queue_max)).max(1)
    }

    /// Whether it matters how many places a client has.
    pub(crate) fn are_shared_out(&self) -> bool {
        self.share_percent < 100
    }

    fn share(&self) -> usize {
        if !self.are_shared_out() {
            return usize::MAX;
        }
        (self.queue_max * self.share_percent / 100).max(1)
    }
}

/// How fast requests are finished while others wait for their turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    finished: f64,
    span_s: f64,
    /// How long nothing was finished although requests wait.
    stuck: Duration,
}

impl Rate {
    #[allow(clippy::cast_precision_loss)] // Counts of a few seconds are small.
    /// A look after `span`, in which so many were finished. `is_full`: requests have waited all the time.
    ///
    /// Who is not full could do more than it does. That it is slower says nothing; that it is faster than what is known does.
    /// Meanwhile what is known grows old, until there is no rate.
    pub(crate) fn look(&mut self, finished: u64, span: Duration, is_full: bool) {
        self.stuck = if is_full && finished == 0 { self.stuck + span } else { Duration::ZERO };
        let (finished, span_s) = (finished as f64, span.as_secs_f64());
        let is_faster = self.interval_s().is_some_and(|interval_s| finished * interval_s > span_s);
        let kept = 0.5f64.powf(span_s / HALF_LIFE.as_secs_f64());
        self.finished *= kept;
        self.span_s *= kept;
        if is_full || is_faster {
            self.finished += finished;
            self.span_s += span_s;
        }
    }

    #[allow(clippy::cast_precision_loss)] // No queue has 2⁵² places.
    /// How long `waiting` requests have to wait, as far as that is known.
    pub(crate) fn wait(&self, waiting: usize) -> Duration {
        let interval_s = self.interval_s().unwrap_or(0.0);
        Duration::try_from_secs_f64(interval_s * waiting as f64).unwrap_or(Duration::MAX)
    }

    #[allow(clippy::cast_sign_loss)] // Neither of the two is negative.
    /// How many may wait for all of them to have their turn within `limit`; at least 1.
    pub(crate) fn in_time_max(&self, limit: Duration) -> usize {
        if limit.is_zero() {
            return usize::MAX;
        }
        if self.stuck >= limit {
            return 1;
        }
        let limit_s = limit.as_secs_f64() * MARGIN;
        let most = self.interval_s().map(|interval_s| limit_s / interval_s);
        most.map_or(usize::MAX, |most| most as usize).max(1)
    }

    /// After which time a refused client may come again, whole seconds.
    pub(crate) fn retry_after_s(&self, waiting: usize) -> u64 {
        self.wait(waiting).min(RETRY_AFTER_MAX).as_secs().max(1)
    }

    fn interval_s(&self) -> Option<f64> {
        (self.finished >= FINISHED_MIN).then(|| self.span_s / self.finished)
    }
}

#[cfg(test)]
mod tests;
