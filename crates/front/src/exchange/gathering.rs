//! When workers are woken for what was submitted. Waking one costs as much as several short requests: while requests are short, the front
//! gathers some first, and looks once more what clients have sent before it wakes anybody.
//!
//! Pure: whoever submits, turns and rests is told what to do. Each delay has an end of its own, whatever the runtime does.

/// Submissions after which workers are woken although the runtime has not come to rest.
const BATCH: u32 = 16;
/// The same while requests are short.
const BRISK_BATCH: u32 = 64;
/// Turns of a runtime that does not come to rest which workers are not woken for, while requests are short.
const BRISK_TURNS: u32 = 4;
/// How often the front looks for more before it wakes a worker.
const LOOKS_MAX: u32 = 4;
/// Requests in flight that make it worth a look: with fewer the worker would wait longer than that saves.
const IN_FLIGHT_MIN: usize = 24;

/// What was submitted since workers were woken last.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    submitted: u32,
    /// Of them, those that were there at the last look.
    seen: u32,
    looks: u32,
    turns: u32,
}

/// What the front does before it rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It looks for more requests, without waiting for any.
    Look,
    /// It wakes workers.
    Wake,
    /// Nothing was submitted.
    Nothing,
}

impl Gathering {
    pub(super) fn is_empty(&self) -> bool {
        self.submitted == 0
    }

    /// One more request. True: workers are to be woken now.
    pub(super) fn submit(&mut self, is_brisk: bool) -> bool {
        self.submitted += 1;
        self.submitted >= if is_brisk { BRISK_BATCH } else { BATCH }
    }

    /// The runtime has had its turn, and has not come to rest. True: workers are to be woken now.
    pub(super) fn turn(&mut self, is_brisk: impl Fn() -> bool) -> bool {
        // Those in which there was nothing to wake anybody for do not count.
        self.turns += u32::from(!self.is_empty());
        !self.is_empty() && (self.turns >= BRISK_TURNS || !is_brisk())
    }

    /// The runtime has come to rest, with so many requests in flight. `is_worth_it`: they are short, and all workers sleep.
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

    /// Workers have been woken, as far as that was necessary.
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
    fn a_batch_is_large_enough_while_requests_are_short() {
        assert!(!submitted(BATCH - 1, false).1);
        assert!(submitted(BATCH, false).1);
        assert!(!submitted(BRISK_BATCH - 1, true).1);
        assert!(submitted(BRISK_BATCH, true).1);
    }

    #[test]
    fn a_runtime_without_rest_wakes_workers_all_the_same() {
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
    fn the_front_looks_as_long_as_more_comes() {
        let mut gathering = submitted(1, true).0;
        assert_eq!(gathering.rest(30, || true), Rest::Look);
        gathering.submit(true);
        assert_eq!(gathering.rest(30, || true), Rest::Look);
        assert_eq!(gathering.rest(30, || true), Rest::Wake, "nothing has come");
        gathering.woken();
        assert_eq!(gathering.rest(30, || true), Rest::Nothing);
    }

    #[test]
    fn the_front_looks_only_so_often() {
        let mut gathering = Gathering::default();
        let mut rest = || {
            gathering.submit(true);
            gathering.rest(100, || true)
        };
        let looks = (0..100).take_while(|_| rest() == Rest::Look).count();
        assert_eq!(looks, LOOKS_MAX as usize);
    }

    #[test]
    fn it_looks_for_nothing_where_that_gains_nothing() {
        assert_eq!(submitted(1, true).0.rest(IN_FLIGHT_MIN - 1, || true), Rest::Wake);
        assert_eq!(submitted(1, true).0.rest(100, || false), Rest::Wake);
    }
}
