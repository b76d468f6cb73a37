//! Search of the ceiling: the rate grows by a factor until the goal is missed, then the interval
//! between the last good and the first bad rate is halved. Each miss is measured twice, because a
//! single stall of the machine would end the search too low.

use super::judge::{ClientLimit, Verdict};
use serde::Serialize;

/// Lowest rate, requests/s: below, a step of seconds has too few requests for a percentile.
const RATE_MIN: f64 = 1.0;
/// Maximum number of steps of one search.
const STEPS_MAX: usize = 60;

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// First rate, requests/s.
    pub start: f64,
    /// Factor from one step to the next, above 1.
    pub growth: f64,
    /// The search ends when good and bad rate differ by less than this share.
    pub precision: f64,
    /// Highest rate, requests/s; never exceeded.
    pub rate_max: f64,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Ceiling {
    /// The goal is met at `good`, and missed at `bad`.
    Between {
        /// Requests/s.
        good: f64,
        /// Requests/s.
        bad: f64,
    },
    /// The same, but the search had to end before both rates are close.
    Within {
        /// Requests/s.
        good: f64,
        /// Requests/s.
        bad: f64,
        /// Reason for the end.
        end: End,
    },
    /// The goal is met at the highest rate, or at the last one before the search had to end.
    AtLeast {
        /// Requests/s.
        good: f64,
        /// Reason for the end.
        end: End,
    },
    /// No rate met the goal.
    Unknown {
        /// Reason for the end.
        end: End,
    },
}

/// Reason why a search ended without an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "end", content = "limit")]
pub enum End {
    /// The highest allowed rate.
    RateMax,
    /// The lowest possible rate already misses the goal.
    RateMin,
    /// The client could not send more.
    Client(ClientLimit),
    /// The server accepts no connections.
    Dead,
    /// The server sent no response in two steps.
    Silent,
    /// Ctrl-C.
    Interrupted,
    /// The time is over.
    Time,
    /// The number of steps.
    Steps,
}

/// Next action of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Measure this rate, requests/s.
    Measure(f64),
    /// The search has ended.
    Done(Ceiling),
}

/// A search.
#[derive(Clone, Debug)]
pub struct Search {
    bounds: Bounds,
    good: Option<f64>,
    bad: Option<f64>,
    /// A rate that missed the goal once.
    doubtful: Option<f64>,
    next: f64,
    steps: usize,
    end: Option<End>,
}

impl Search {
    /// Creates a search.
    pub fn new(bounds: Bounds) -> Search {
        let next = bounds.start.max(RATE_MIN).min(bounds.rate_max);
        Search { bounds, good: None, bad: None, doubtful: None, next, steps: 0, end: None }
    }

    /// Ends the search before its next step, because the time is over.
    pub fn stop(&mut self) {
        self.end.get_or_insert(End::Time);
    }

    /// Returns the next action.
    pub fn next(&self) -> Next {
        match (self.good, self.bad, self.end) {
            (Some(good), Some(bad), _) if self.is_precise(good, bad) => {
                Next::Done(Ceiling::Between { good, bad })
            }
            (Some(good), Some(bad), Some(end)) => Next::Done(Ceiling::Within { good, bad, end }),
            (Some(good), None, Some(end)) => Next::Done(Ceiling::AtLeast { good, end }),
            (None, _, Some(end)) => Next::Done(Ceiling::Unknown { end }),
            _ => Next::Measure(self.next),
        }
    }

    fn is_precise(&self, good: f64, bad: f64) -> bool {
        bad - good <= self.bounds.precision * good
    }

    /// Takes the verdict about the rate of `next`.
    pub fn take(&mut self, verdict: Verdict) {
        let rate = self.next;
        self.steps += 1;
        match verdict {
            Verdict::Met => {
                self.doubtful = None;
                self.good = Some(self.good.map_or(rate, |good| good.max(rate)));
                if rate >= self.bounds.rate_max {
                    self.end = Some(End::RateMax);
                }
            }
            Verdict::Missed(_) | Verdict::Silent
                if verdict.is_doubtful() && self.doubtful != Some(rate) =>
            {
                self.doubtful = Some(rate);
                self.end_of_steps();
                return;
            }
            Verdict::Missed(_) => {
                self.doubtful = None;
                self.bad = Some(self.bad.map_or(rate, |bad| bad.min(rate)));
                if self.good.is_none() && rate <= RATE_MIN {
                    self.end = Some(End::RateMin);
                }
            }
            Verdict::ClientLimited(limit) => self.end = Some(End::Client(limit)),
            Verdict::Silent => self.end = Some(End::Silent),
            Verdict::Dead => self.end = Some(End::Dead),
            Verdict::Interrupted => self.end = Some(End::Interrupted),
        }
        self.end_of_steps();
        self.next = match (self.good, self.bad) {
            (Some(good), Some(bad)) => f64::midpoint(good, bad),
            (Some(good), None) => (good * self.bounds.growth).min(self.bounds.rate_max),
            (None, Some(bad)) => (bad / 2.0).max(RATE_MIN),
            (None, None) => rate,
        };
    }

    fn end_of_steps(&mut self) {
        if self.steps >= STEPS_MAX {
            self.end.get_or_insert(End::Steps);
        }
    }

    /// Reason for the end, if it was not the precision.
    pub fn end(&self) -> Option<End> {
        self.end
    }
}

impl Ceiling {
    /// Highest rate at which the goal was met.
    pub fn good(self) -> Option<f64> {
        match self {
            Ceiling::Between { good, .. }
            | Ceiling::Within { good, .. }
            | Ceiling::AtLeast { good, .. } => Some(good),
            Ceiling::Unknown { .. } => None,
        }
    }

    /// Reason why there is no exact ceiling.
    pub fn end(self) -> Option<End> {
        match self {
            Ceiling::Between { .. } => None,
            Ceiling::Within { end, .. }
            | Ceiling::AtLeast { end, .. }
            | Ceiling::Unknown { end } => Some(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::{Client, EarlyEnd, Goal, Measured, Miss, judge};
    use super::*;
    use crate::Random;

    const BOUNDS: Bounds =
        Bounds { start: 50.0, growth: 1.25, precision: 0.05, rate_max: 100_000.0 };

    fn search(bounds: Bounds, verdict: impl Fn(f64, usize) -> Verdict) -> (Ceiling, Vec<f64>) {
        let (mut search, mut rates) = (Search::new(bounds), Vec::new());
        loop {
            match search.next() {
                Next::Done(ceiling) => return (ceiling, rates),
                Next::Measure(rate) => {
                    assert!(rate <= bounds.rate_max && rate >= RATE_MIN, "{rate}");
                    rates.push(rate);
                    search.take(verdict(rate, rates.len()));
                }
            }
        }
    }

    fn at_most(limit: f64) -> impl Fn(f64, usize) -> Verdict {
        move |rate, _| {
            if rate <= limit { Verdict::Met } else { Verdict::Missed(Miss::Latency) }
        }
    }

    #[test]
    fn search_ends_at_the_limit_of_the_server() {
        for limit in [1.5, 7.0, 49.0, 50.0, 51.0, 400.0, 9_999.0] {
            let (found, rates) = search(BOUNDS, at_most(limit));
            let Ceiling::Between { good, bad } = found else { panic!("{limit}: {found:?}") };
            assert!(good <= limit && limit < bad && bad <= good * 1.051, "{limit}: {found:?}");
            assert!(rates.len() < 45, "{limit}: {rates:?}");
        }
    }

    #[test]
    fn rate_never_exceeds_its_maximum() {
        let (found, rates) = search(Bounds { rate_max: 120.0, ..BOUNDS }, at_most(1e9));
        assert_eq!(found, Ceiling::AtLeast { good: 120.0, end: End::RateMax });
        assert_eq!(rates, [50.0, 62.5, 78.125, 97.656_25, 120.0]);
        let (found, rates) = search(Bounds { rate_max: 20.0, ..BOUNDS }, at_most(1e9));
        assert_eq!((found.good(), rates), (Some(20.0), vec![20.0]));
    }

    #[test]
    fn single_stall_does_not_end_the_search() {
        let stall = |rate: f64, n: usize| {
            if n == 3 { Verdict::Missed(Miss::Latency) } else { at_most(400.0)(rate, n) }
        };
        let (found, rates) = search(BOUNDS, stall);
        assert!(found.good().is_some_and(|good| (380.0..=400.0).contains(&good)), "{found:?}");
        assert!((rates[2] - rates[3]).abs() < 1e-9, "the missed rate is repeated: {rates:?}");
    }

    #[test]
    fn limits_of_the_client_and_dead_servers_are_no_ceiling() {
        let limited = Verdict::ClientLimited(ClientLimit::Late);
        for (verdict, end) in [
            (limited, End::Client(ClientLimit::Late)),
            (Verdict::Dead, End::Dead),
            (Verdict::Silent, End::Silent),
            (Verdict::Interrupted, End::Interrupted),
        ] {
            let above = |rate, _| if rate > 70.0 { verdict } else { Verdict::Met };
            let (found, _) = search(BOUNDS, above);
            assert_eq!(found, Ceiling::AtLeast { good: 62.5, end });
            let (found, _) = search(BOUNDS, |_, _| verdict);
            assert_eq!(found, Ceiling::Unknown { end });
        }
    }

    /// The goal is met at 50 and missed twice at 62.5: the search is between both when it has to
    /// end.
    #[test]
    fn unfinished_bisection_is_no_ceiling() {
        let begun = || {
            let mut search = Search::new(BOUNDS);
            search.take(Verdict::Met);
            search.take(Verdict::Missed(Miss::Latency));
            search.take(Verdict::Missed(Miss::Latency));
            search
        };
        let limited = Verdict::ClientLimited(ClientLimit::Cpu);
        for (verdict, end) in [
            (Some(limited), End::Client(ClientLimit::Cpu)),
            (Some(Verdict::Dead), End::Dead),
            (Some(Verdict::Interrupted), End::Interrupted),
            (None, End::Time),
        ] {
            let mut search = begun();
            assert_eq!(search.next(), Next::Measure(56.25));
            match verdict {
                Some(verdict) => search.take(verdict),
                None => search.stop(),
            }
            let expected = Ceiling::Within { good: 50.0, bad: 62.5, end };
            assert_eq!(search.next(), Next::Done(expected));
        }
        // The time ends a search whose rates are already close: that is a ceiling.
        let mut search = Search::new(Bounds { precision: 0.3, ..BOUNDS });
        search.take(Verdict::Met);
        search.take(Verdict::Missed(Miss::Backlog));
        search.stop();
        assert_eq!(search.next(), Next::Done(Ceiling::Between { good: 50.0, bad: 62.5 }));
    }

    #[test]
    fn server_that_never_meets_the_goal_ends_the_search() {
        let (found, rates) = search(BOUNDS, |_, _| Verdict::Missed(Miss::Errors));
        assert_eq!(found, Ceiling::Unknown { end: End::RateMin });
        assert!(rates.len() < 20, "{rates:?}");
    }

    #[test]
    fn time_ends_the_search_with_the_known_part() {
        let mut search = Search::new(BOUNDS);
        search.take(Verdict::Met);
        search.stop();
        let expected = Ceiling::AtLeast { good: 50.0, end: End::Time };
        assert_eq!(search.next(), Next::Done(expected));
    }

    /// Simulates a queue with Poisson arrivals and workers that each take a fixed time, on a clock
    /// of its own. Returns the figures that a client would have measured.
    fn simulated(rate: f64, workers: usize, service: f64, seconds: f64, seed: u64) -> Measured {
        let mut random = Random::new(seed);
        let mut free = vec![0.0_f64; workers];
        let (mut now, mut latencies) = (0.0, Vec::new());
        loop {
            now -= (1.0 - random.unit()).ln() / rate;
            if now > seconds {
                break;
            }
            let worker = (0..workers).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap_or(0);
            free[worker] = free[worker].max(now) + service;
            latencies.push(free[worker] - now);
        }
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| latencies.get((share * latencies.len() as f64) as usize).copied();
        let overdue = latencies.iter().filter(|latency| **latency > 5.0).count();
        Measured {
            rate,
            responses: latencies.len() as u64,
            p50: at(0.5),
            latency: at(0.99),
            on_connection: at(0.99),
            client: Client { connections: 10_000, ..Client::default() },
            ended: (overdue > 0).then_some(EarlyEnd::Backlog),
            ..Measured::default()
        }
    }

    /// Four workers of 10 ms carry 400 requests/s. With random arrivals, p99 is within 250 ms
    /// up to a little below that; a queue of evenly spaced requests would not show it.
    #[test]
    fn ceiling_of_a_known_queue_is_found() {
        let goal = Goal { quantile: 0.99, latency: 0.25, errors: 0.0 };
        for (workers, service, capacity) in [(4, 0.01, 400.0), (1, 0.005, 200.0), (16, 0.04, 400.0)]
        {
            let (found, _) = search(BOUNDS, |rate, n| {
                judge(&simulated(rate, workers, service, 60.0, n as u64), &goal, None)
            });
            let good = found.good().unwrap_or(0.0);
            assert!(good > 0.9 * capacity && good <= 1.03 * capacity, "{capacity}: {found:?}");
        }
    }
}
