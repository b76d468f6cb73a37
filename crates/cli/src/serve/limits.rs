//! The server's counters → events: a limit was reached. Looked at once a second; nobody on a request's way tells of it.

use samovar_front::CountersSnapshot;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// What was known at the last look.
#[derive(Debug)]
pub(super) struct Limits {
    looked: Option<Instant>,
    seen: Seen,
    connections_max: u64,
}

/// Counters of what a limit has turned away.
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

    /// Whether it is time to look.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK);
        if is_due {
            self.looked = Some(now);
        }
        is_due
    }

    /// What has been reached since the last look.
    pub(super) fn look(&mut self, front: &CountersSnapshot, lines_lost: u64) -> Vec<String> {
        let now = Seen {
            rejected: front.rejected_total,
            timeouts: front.timeouts_total,
            drain_timeouts: front.drain_timeouts_total,
            lines_lost: lines_lost + front.log_lines_lost_total,
            is_crowded: front.connections >= self.connections_max,
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
            "requests found no worker: limits.queue_max, timeouts.queue",
        );
        more(now.timeouts, then.timeouts, "requests had no answer in time: timeouts.answer");
        more(
            now.drain_timeouts,
            then.drain_timeouts,
            "scripts went on for too long while the server stopped: timeouts.drain",
        );
        more(now.lines_lost, then.lines_lost, "lines of logs were lost");
        if now.is_crowded && !then.is_crowded {
            reached.push(format!("{} connections: limits.connections_max", front.connections));
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;
    use samovar_front::CountersSnapshot;

    #[test]
    fn each_limit_is_told_of_when_it_is_reached() {
        let mut limits = Limits::new(10);
        let mut front = CountersSnapshot::default();
        assert!(limits.look(&front, 0).is_empty());
        (front.rejected_total, front.connections) = (3, 10);
        let reached = limits.look(&front, 2);
        assert_eq!(reached.len(), 3, "{reached:?}");
        assert!(reached[0].starts_with("3 requests found no worker"), "{reached:?}");
        assert!(limits.look(&front, 2).is_empty(), "once");
    }
}
