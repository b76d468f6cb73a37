//! Tests of single requests, and simulations of overload.

use super::*;
use std::collections::VecDeque;

const CALM: Places = Places {
    queue_max: 100,
    in_time_max: usize::MAX,
    share_percent: 100,
    has_priority: false,
    is_priority: false,
};

#[test]
fn admission_follows_queue_share_and_time_limits() {
    let mixed = Places { has_priority: true, ..CALM };
    let first = Places { is_priority: true, ..mixed };
    let fair = Places { share_percent: 25, ..CALM };
    let slow = Places { in_time_max: 40, ..CALM };
    for (places, waiting, own, expected) in [
        (CALM, 0, 1000, Ok(())),
        (CALM, 99, 99, Ok(())),
        (CALM, 100, 0, Err(Rejection::Full)),
        (mixed, 89, 0, Ok(())),
        (mixed, 90, 0, Err(Rejection::Full)),
        (first, 99, 0, Ok(())),
        (first, 100, 0, Err(Rejection::Full)),
        (fair, 1, 24, Ok(())),
        (fair, 1, 25, Err(Rejection::Share)),
        (fair, 99, 24, Ok(())),
        (fair, 0, 99, Ok(())),
        (slow, 39, 0, Ok(())),
        (slow, 40, 0, Err(Rejection::Late)),
        (Places { has_priority: true, is_priority: true, ..slow }, 40, 0, Ok(())),
        (Places { queue_max: 1, has_priority: true, ..CALM }, 0, 0, Ok(())),
        (Places { queue_max: 1, share_percent: 1, ..CALM }, 0, 0, Ok(())),
    ] {
        assert_eq!(places.admit(waiting, own), expected, "{places:?} {waiting} {own}");
        // A request that `is_calm` lets pass is always admitted.
        for inside in [waiting, waiting + 7] {
            assert!(!places.is_calm(inside) || places.admit(waiting, own.min(inside)).is_ok());
        }
    }
}

const LOOK: Duration = Duration::from_millis(100);

#[test]
fn rate_follows_recent_measurements() {
    let mut rate = Rate::default();
    let limit = Duration::from_secs(10);
    assert_eq!(rate.in_time_max(limit), usize::MAX, "nothing is known");
    rate.look(1000, LOOK, false);
    assert_eq!(rate.in_time_max(limit), usize::MAX, "it was not full");
    (0..100).for_each(|_| rate.look(1, LOOK, true));
    let near = |found: usize, expected: usize| found.abs_diff(expected) <= expected / 10;
    assert!(near(rate.in_time_max(limit), 90), "{rate:?}");
    assert_eq!(rate.retry_after_s(50), 5);
    (0..300).for_each(|_| rate.look(5, LOOK, true));
    assert!(near(rate.in_time_max(limit), 450), "it has become faster: {rate:?}");
    (0..99).for_each(|_| rate.look(0, LOOK, true));
    assert!(rate.in_time_max(limit) > 1);
    rate.look(0, LOOK, true);
    assert_eq!(rate.in_time_max(limit), 1, "nothing for as long as anybody would wait");
    rate.look(1, LOOK, true);
    assert!(rate.in_time_max(limit) > 1, "it goes on");
    assert_eq!(rate.in_time_max(Duration::ZERO), usize::MAX, "they may wait for ever");
}

#[test]
fn outdated_rate_stops_rejecting_requests() {
    let limit = Duration::from_secs(5);
    let slow = || {
        let mut rate = Rate::default();
        (0..200).for_each(|n| rate.look(u64::from(n % 8 == 0), LOOK, true));
        assert!((4..=7).contains(&rate.in_time_max(limit)), "{rate:?}");
        assert!(rate.retry_after_s(10) >= 7, "{rate:?}");
        rate
    };
    // Bursts that end before the second measurement.
    let mut rate = slow();
    (0..10).for_each(|_| rate.look(500, LOOK, false));
    assert!(rate.in_time_max(limit) > 2_000, "it is known to be faster: {rate:?}");
    assert_eq!(rate.retry_after_s(100), 1);
    // A quiet period does not show how fast the server is.
    let mut rate = slow();
    (0..50).for_each(|_| rate.look(0, LOOK, false));
    assert_eq!(rate.in_time_max(limit), usize::MAX, "nothing is known any more: {rate:?}");
    let mut rate = slow();
    rate.look(0, Duration::from_hours(1), false);
    assert_eq!(rate.in_time_max(limit), usize::MAX, "nobody has looked for an hour: {rate:?}");
}

/// A server with a few workers under a constant overload.
struct Flood {
    workers: usize,
    /// Duration of the n-th request, in looks.
    service: fn(u64) -> u64,
    arrivals_per_look: u64,
    queue_timeout: Duration,
    sheds: bool,
}

#[derive(Debug, Default)]
struct Outcome {
    responded: u64,
    expired: u64,
    shed: u64,
}

impl Flood {
    fn run(&self, looks: u64) -> Outcome {
        let (mut queue, mut busy) = (VecDeque::<u64>::new(), Vec::<u64>::new());
        let (mut rate, mut outcome, mut taken) = (Rate::default(), Outcome::default(), 0);
        let timeout = (self.queue_timeout.as_millis() / LOOK.as_millis()) as u64;
        let mut was_waiting = false;
        for now in 0..looks {
            let before = busy.len();
            busy.retain(|end| *end > now);
            let finished = (before - busy.len()) as u64;
            outcome.responded += finished;
            rate.look(finished, LOOK, was_waiting && !queue.is_empty());
            was_waiting = !queue.is_empty();
            let expired = queue.iter().take_while(|since| now - **since >= timeout).count();
            queue.drain(..expired);
            outcome.expired += expired as u64;
            for _ in 0..self.arrivals_per_look {
                let in_time_max = rate.in_time_max(self.queue_timeout);
                let places = Places { queue_max: 512, in_time_max, ..CALM };
                if self.sheds && places.admit(queue.len(), 0).is_err() {
                    outcome.shed += 1;
                } else {
                    queue.push_back(now);
                }
            }
            while busy.len() < self.workers && queue.pop_front().is_some() {
                taken += 1;
                busy.push(now + (self.service)(taken));
            }
        }
        outcome
    }
}

#[test]
fn overload_is_rejected_early_and_admitted_requests_finish() {
    // Each request takes half a second, every tenth takes four: at most 1.18 per look with ten
    // workers.
    let mixed = |n: u64| if n.is_multiple_of(10) { 40 } else { 5 };
    let flood = Flood {
        workers: 10,
        service: mixed,
        arrivals_per_look: 5,
        queue_timeout: Duration::from_secs(10),
        sheds: true,
    };
    let outcome = flood.run(6000);
    let capacity = 6000 * 10 * 10 / (9 * 5 + 40);
    assert!(outcome.responded * 100 >= capacity * 95, "no worker is idle: {outcome:?}");
    assert!(outcome.expired * 50 <= outcome.responded, "hardly any waits in vain: {outcome:?}");
    let blind = Flood { sheds: false, ..flood }.run(6000);
    assert!(blind.expired > 10 * outcome.expired.max(1), "as all would: {blind:?}");
}

#[test]
fn server_with_enough_capacity_rejects_no_request() {
    // Requests wait now and then, also for seconds, but for less than the limit.
    let bursts = |n: u64| if n % 100 < 20 { 20 } else { 3 };
    let flood = Flood {
        workers: 10,
        service: bursts,
        arrivals_per_look: 1,
        queue_timeout: Duration::from_secs(10),
        sheds: true,
    };
    let outcome = flood.run(6000);
    assert_eq!((outcome.shed, outcome.expired), (0, 0), "{outcome:?}");
}

#[test]
fn hanging_workers_cause_rejections_only_until_they_recover() {
    // All workers hang for two minutes, once.
    let hang = |n: u64| if n <= 4 { 1200 } else { 1 };
    let flood = Flood {
        workers: 4,
        service: hang,
        arrivals_per_look: 1,
        queue_timeout: Duration::from_secs(5),
        sheds: true,
    };
    let outcome = flood.run(4000);
    assert!(outcome.expired < 150 && outcome.shed > 900, "{outcome:?}");
    assert!(outcome.responded > 2700, "all since it moves again: {outcome:?}");
}
