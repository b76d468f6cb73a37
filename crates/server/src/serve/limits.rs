//! The server's counters → events about reached limits. The counters are checked once a second; the
//! request path has no code for this.

use samovar_front::CountersSnapshot;
use std::time::{Duration, Instant};

/// Interval between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// State at the last check.
#[derive(Debug)]
pub(super) struct Limits {
    looked: Option<Instant>,
    seen: Seen,
    connections_max: u64,
}

/// Counters of events caused by limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    rejected: u64,
    timeouts: u64,
    drain_timeouts: u64,
    lines_lost: u64,
    is_crowded: bool,
}

impl Limits {
    pub(super) fn new(connections_max: usize) -> Limits {
        Limits { looked: None, seen: Seen::default(), connections_max: connections_max as u64 }
    }

    /// Returns whether a check is due.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK);
        if is_due {
            self.looked = Some(now);
        }
        is_due
    }

    /// Returns descriptions of the limits reached since the last check.
    pub(super) fn look(&mut self, front: &CountersSnapshot, lines_lost: u64) -> Vec<String> {
        let now = Seen {
            rejected: front.pool.rejected_total,
            timeouts: front.pool.timeouts_total,
            drain_timeouts: front.pool.drain_timeouts_total,
            lines_lost: lines_lost + front.log_lines_dropped_total,
            is_crowded: front.server.connections >= self.connections_max,
        };
        let then = std::mem::replace(&mut self.seen, now);
        let mut reached = Vec::new();
        let mut more = |now: u64, then: u64, what: &str| {
            if now > then {
                reached.push(format!("{} {what}", now - then));
            }
        };
        more(
            now.rejected,
            then.rejected,
            "requests were rejected: limits.queue_max, timeouts.queue",
        );
        more(now.timeouts, then.timeouts, "requests timed out: timeouts.response");
        more(
            now.drain_timeouts,
            then.drain_timeouts,
            "scripts still ran at the end of the drain: timeouts.drain",
        );
        more(now.lines_lost, then.lines_lost, "log lines were dropped");
        if now.is_crowded && !then.is_crowded {
            reached
                .push(format!("{} connections: limits.connections_max", front.server.connections));
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;
    use samovar_front::CountersSnapshot;

    #[test]
    fn reached_limit_is_reported_once() {
        let mut limits = Limits::new(10);
        let mut front = CountersSnapshot::default();
        assert!(limits.look(&front, 0).is_empty());
        (front.pool.rejected_total, front.server.connections) = (3, 10);
        let reached = limits.look(&front, 2);
        assert_eq!(reached.len(), 3, "{reached:?}");
        assert!(reached[0].starts_with("3 requests were rejected"), "{reached:?}");
        assert!(limits.look(&front, 2).is_empty(), "once");
    }
}
