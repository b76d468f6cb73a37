//! Decides when workers are woken for submitted requests. A wake-up costs as much as several short
//! requests. While requests are short, the front first collects a batch, and polls the clients'
//! sockets once more before it wakes a worker.
//!
//! Pure: the caller reports submissions, turns and idle points, and gets the next action. Each
//! delay has its own limit, which does not depend on the runtime.

/// Number of submissions after which workers are woken although the runtime has not become idle.
const BATCH: u32 = 16;
/// The same limit while requests are short.
const BRISK_BATCH: u32 = 64;
/// Number of turns without an idle point after which workers are woken, while requests are short.
const BRISK_TURNS: u32 = 4;
/// Maximum number of extra polls before a worker is woken.
const LOOKS_MAX: u32 = 4;
/// Minimum number of requests in flight for an extra poll. With fewer, the worker would wait longer
/// than the poll saves.
const IN_FLIGHT_MIN: usize = 24;

/// Submissions since the last wake-up of workers.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    submitted: u32,
    /// Number of submissions at the last extra poll.
    seen: u32,
    looks: u32,
    turns: u32,
}

/// Next action of the front before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Poll for more requests without waiting for any.
    Look,
    /// Wake workers.
    Wake,
    /// No request was submitted.
    Nothing,
}

impl Gathering {
    pub(super) fn is_empty(&self) -> bool {
        self.submitted == 0
    }

    /// Counts one more request. Returns true if workers must be woken now.
    pub(super) fn submit(&mut self, is_brisk: bool) -> bool {
        self.submitted += 1;
        self.submitted >= if is_brisk { BRISK_BATCH } else { BATCH }
    }

    /// Counts a turn of the runtime without an idle point. Returns true if workers must be woken
    /// now.
    pub(super) fn turn(&mut self, is_brisk: impl Fn() -> bool) -> bool {
        // Turns without a pending submission do not count.
        self.turns += u32::from(!self.is_empty());
        !self.is_empty() && (self.turns >= BRISK_TURNS || !is_brisk())
    }

    /// Returns the action at an idle point of the runtime, with `in_flight` requests in flight.
    /// `is_worth_it`: requests are short, and all workers sleep.
    pub(super) fn rest(&mut self, in_flight: usize, is_worth_it: impl Fn() -> bool) -> Rest {
        if self.is_empty() {
            return Rest::Nothing;
        }
        let has_grown = self.submitted > self.seen;
        if has_grown && self.looks < LOOKS_MAX && in_flight >= IN_FLIGHT_MIN && is_worth_it() {
            self.seen = self.submitted;
            self.looks += 1;
            return Rest::Look;
        }
        Rest::Wake
    }

    /// Resets the counts after workers were woken, as far as that was necessary.
    pub(super) fn woken(&mut self) {
        *self = Gathering::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(requests: u32, is_brisk: bool) -> (Gathering, bool) {
        let mut gathering = Gathering::default();
        let wakes: Vec<bool> = (0..requests).map(|_| gathering.submit(is_brisk)).collect();
        (gathering, wakes.contains(&true))
    }

    #[test]
    fn batch_is_larger_while_requests_are_short() {
        assert!(!submitted(BATCH - 1, false).1);
        assert!(submitted(BATCH, false).1);
        assert!(!submitted(BRISK_BATCH - 1, true).1);
        assert!(submitted(BRISK_BATCH, true).1);
    }

    #[test]
    fn busy_runtime_wakes_workers_after_max_turns() {
        let mut gathering = Gathering::default();
        assert!((0..100).all(|_| !gathering.turn(|| true)), "for nothing");
        gathering.submit(true);
        let turns = (1..100).find(|_| gathering.turn(|| true));
        assert_eq!(turns, Some(BRISK_TURNS));
        gathering.woken();
        assert!(!gathering.turn(|| false), "for nothing");
        assert!(submitted(1, false).0.turn(|| false));
    }

    #[test]
    fn front_polls_again_while_more_requests_arrive() {
        let mut gathering = submitted(1, true).0;
        assert_eq!(gathering.rest(30, || true), Rest::Look);
        gathering.submit(true);
        assert_eq!(gathering.rest(30, || true), Rest::Look);
        assert_eq!(gathering.rest(30, || true), Rest::Wake, "no request arrived");
        gathering.woken();
        assert_eq!(gathering.rest(30, || true), Rest::Nothing);
    }

    #[test]
    fn front_polls_again_at_most_looks_max_times() {
        let mut gathering = Gathering::default();
        let mut rest = || {
            gathering.submit(true);
            gathering.rest(100, || true)
        };
        let looks = (0..100).take_while(|_| rest() == Rest::Look).count();
        assert_eq!(looks, LOOKS_MAX as usize);
    }

    #[test]
    fn extra_poll_without_benefit_is_skipped() {
        assert_eq!(submitted(1, true).0.rest(IN_FLIGHT_MIN - 1, || true), Rest::Wake);
        assert_eq!(submitted(1, true).0.rest(100, || false), Rest::Wake);
    }
}
