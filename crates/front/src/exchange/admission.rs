//! Decides whether one more request is admitted while others wait. Pure.
//!
//! When there is no room, the new request is rejected immediately, not one that has already waited:
//! an admitted request gets a response. There are three limits:
//!
//! - places: `limits.queue_max`;
//! - time: at the current rate of finished requests, its turn would come after `timeouts.queue`;
//! - the client's share of the places.
//!
//! The first two limits reject requests for priority paths only when they already reject all
//! others.

use crate::runtime::rejection::Rejection;
use std::time::Duration;

/// Time after which earlier measurements have half the weight, under load or not.
const HALF_LIFE: Duration = Duration::from_secs(5);
/// Minimum number of recently finished requests for a rate.
const FINISHED_MIN: f64 = 8.0;
/// Part of the queue timeout that is used for the estimate; the rest is a reserve, because rates
/// change.
const MARGIN: f64 = 0.9;
/// Percentage of places reserved for the priority paths, if there are any.
const RESERVED_PERCENT: usize = 10;
/// Maximum `Retry-After` of a rejected client.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// Limits that apply to a new request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Maximum number of waiting requests.
    pub(crate) queue_max: usize,
    /// Number of requests that can be served in time.
    pub(crate) in_time_max: usize,
    /// Maximum share of the places for one client, in percent; 100: requests are not counted per
    /// client.
    pub(crate) share_percent: usize,
    /// Some paths have priority; a part of the places is reserved for them.
    pub(crate) has_priority: bool,
    /// The new request is for a priority path.
    pub(crate) is_priority: bool,
}

impl Places {
    /// Whether there is certainly room: all requests in progress, running ones included, are fewer
    /// than may wait.
    pub(crate) fn is_calm(&self, inside: usize) -> bool {
        inside < self.open().min(self.in_time_max).min(self.share())
    }

    /// Checks whether there is room for a request whose client has `own` requests in progress.
    pub(crate) fn admit(&self, waiting: usize, own: usize) -> Result<(), Rejection> {
        if waiting == 0 {
            return Ok(());
        }
        if waiting >= self.open() {
            return Err(Rejection::Full);
        }
        if own >= self.share() {
            return Err(Rejection::Share);
        }
        if !self.is_priority && waiting >= self.in_time_max {
            return Err(Rejection::Late);
        }
        Ok(())
    }

    /// Number of places that this request may use.
    fn open(&self) -> usize {
        let is_for_others = self.has_priority && !self.is_priority;
        let reserved =
            if is_for_others { (self.queue_max * RESERVED_PERCENT / 100).max(1) } else { 0 };
        (self.queue_max - reserved.min(self.queue_max)).max(1)
    }

    /// Whether the number of places per client is limited.
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

/// Rate at which requests are finished while others wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    finished: f64,
    span_s: f64,
    /// Time for which no request was finished although requests wait.
    stuck: Duration,
}

impl Rate {
    #[allow(clippy::cast_precision_loss)] // Counts of a few seconds are small.
    /// Adds a measurement of `span`, in which `finished` requests were finished. `is_full`:
    /// requests were waiting all the time.
    ///
    /// A server that is not full could do more than it does. A lower rate is then ignored, but a
    /// rate higher than the known one counts. Meanwhile the known rate ages until there is none.
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
    /// Expected wait of `waiting` requests, as far as it is known.
    pub(crate) fn wait(&self, waiting: usize) -> Duration {
        let interval_s = self.interval_s().unwrap_or(0.0);
        Duration::try_from_secs_f64(interval_s * waiting as f64).unwrap_or(Duration::MAX)
    }

    #[allow(clippy::cast_sign_loss)] // Neither of the two is negative.
    /// Number of requests that may wait so that all are served within `limit`; at least 1.
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

    #[allow(clippy::cast_sign_loss)] // As above.
    /// Number of requests that are finished within `span` while the server is full, rounded up, if
    /// it is known.
    pub(crate) fn finished_within(&self, span: Duration) -> Option<usize> {
        let interval_s = self.interval_s()?;
        Some((span.as_secs_f64() / interval_s).ceil() as usize)
    }

    /// Time after which a rejected client may retry, in whole seconds.
    pub(crate) fn retry_after_s(&self, waiting: usize) -> u64 {
        self.wait(waiting).min(RETRY_AFTER_MAX).as_secs().max(1)
    }

    fn interval_s(&self) -> Option<f64> {
        (self.finished >= FINISHED_MIN).then(|| self.span_s / self.finished)
    }
}

#[cfg(test)]
mod tests;
