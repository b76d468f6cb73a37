//! Cases of one newcomer, and whole floods, simulated.

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
fn newcomers() {
    let mixed = Places { has_priority: true, ..CALM };
    let first = Places { is_priority: true, ..mixed };
    let fair = Places { share_percent: 25, ..CALM };
    let slow = Places { in_time_max: 40, ..CALM };
    for (places, waiting, own, expected) in [
        (CALM, 0, 1000, Ok(())),
        (CALM, 99, 99, Ok(())),
        (CALM, 100, 0, Err(Shed::Full)),
        (mixed, 89, 0, Ok(())),
        (mixed, 90, 0, Err(Shed::Full)),
        (first, 99, 0, Ok(())),
        (first, 100, 0, Err(Shed::Full)),
        (fair, 1, 24, Ok(())),
        (fair, 1, 25, Err(Shed::Share)),
        (fair, 99, 24, Ok(())),
        (fair, 0, 99, Ok(())),
        (slow, 39, 0, Ok(())),
        (slow, 40, 0, Err(Shed::Late)),
        (Places { has_priority: true, is_priority: true, ..slow }, 40, 0, Ok(())),
        (Places { queue_max: 1, has_priority: true, ..CALM }, 0, 0, Ok(())),
        (Places { queue_max: 1, share_percent: 1, ..CALM }, 0, 0, Ok(())),
    ] {
        assert_eq!(places.admit(waiting, own), expected, "{places:?} {waiting} {own}");
        // What is calm is admitted whatever the details are.
        for inside in [waiting, waiting + 7] {
            assert!(!places.is_calm(inside) || places.admit(waiting, own.min(inside)).is_ok());
        }
    }
}

const LOOK: Duration = Duration::from_millis(100);

#[test]
fn a_rate_is_what_was_measured_of_late() {
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
fn an_old_rate_refuses_nobody_for_long() {
    let limit = Duration::from_secs(5);
    let slow = || {
        let mut rate = Rate::default();
        (0..200).for_each(|n| rate.look(u64::from(n % 8 == 0), LOOK, true));
        assert!((4..=7).contains(&rate.in_time_max(limit)), "{rate:?}");
        assert!(rate.retry_after_s(10) >= 7, "{rate:?}");
        rate
    };
    // Bursts that are over before the second look.
    let mut rate = slow();
    (0..10).for_each(|_| rate.look(500, LOOK, false));
    assert!(rate.in_time_max(limit) > 2_000, "it is known to be faster: {rate:?}");
    assert_eq!(rate.retry_after_s(100), 1);
    // A quiet time says nothing of how fast it is.
    let mut rate = slow();
    (0..50).for_each(|_| rate.look(0, LOOK, false));
    assert_eq!(rate.in_time_max(limit), usize::MAX, "nothing is known any more: {rate:?}");
    let mut rate = slow();
    rate.look(0, Duration::from_hours(1), false);
    assert_eq!(rate.in_time_max(limit), usize::MAX, "nobody has looked for an hour: {rate:?}");
}

/// A server of a few workers under an even flood.
struct Flood {
    workers: usize,
    /// How long each request takes, one after another, looks.
    service: fn(u64) -> u64,
    arrivals_per_look: u64,
    queue_timeout: Duration,
    sheds: bool,
}

#[derive(Debug, Default)]
struct Outcome {
    answered: u64,
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
            outcome.answered += finished;
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
fn a_flood_is_refused_at_once_and_who_was_taken_in_is_answered() {
    // Half a second each, but every tenth takes four: 1.18 per look at most with ten workers.
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
    assert!(outcome.answered * 100 >= capacity * 95, "no worker is idle: {outcome:?}");
    assert!(outcome.expired * 50 <= outcome.answered, "hardly any waits in vain: {outcome:?}");
    let blind = Flood { sheds: false, ..flood }.run(6000);
    assert!(blind.expired > 10 * outcome.expired.max(1), "as all would: {blind:?}");
}

#[test]
fn a_server_that_can_do_it_refuses_nobody() {
    // It waits now and then, and for seconds, but for less than the limit.
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
fn who_comes_while_nothing_moves_is_refused_and_not_for_longer() {
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
    assert!(outcome.answered > 2700, "all since it moves again: {outcome:?}");
}
