//! The rules of a breaker, at times set by the tests.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn breaker() -> Breaker {
    let rules =
        Rules { failures: 0.5, slow: 0.8, slow_after: 1.0, calls_min: 4, window: 8.0, pause: 5.0 };
    Breaker { object: 0, rules }
}

fn own() -> Vec<AtomicU64> {
    (0..24).map(|_| AtomicU64::new(0)).collect()
}

fn granted(permission: Permission) -> Call {
    match permission {
        Permission::Granted(call) => call,
        Permission::Refused(wait) => panic!("refused for {wait:?}"),
    }
}

fn call(breaker: &Breaker, own: &[AtomicU64], now: u64, outcome: Outcome) {
    let call = granted(breaker.ask_at(own, now));
    breaker.report_at(own, call, outcome, now);
}

fn state(own: &[AtomicU64]) -> BreakerState {
    BreakerState::of(own[STATE].load(Ordering::Relaxed))
}

/// A breaker that opened at this time.
fn opened(now: u64) -> (Breaker, Vec<AtomicU64>) {
    let (breaker, own) = (breaker(), own());
    (0..4).for_each(|_| call(&breaker, &own, now, Outcome::Failed));
    assert_eq!(state(&own), BreakerState::Open);
    (breaker, own)
}

#[test]
fn breaker_opens_at_failure_share_after_minimum_calls() {
    let (breaker, own) = (breaker(), own());
    let now = 100 * SECOND;
    for outcome in [Outcome::Failed, Outcome::Failed, Outcome::Failed] {
        call(&breaker, &own, now, outcome);
        assert_eq!(state(&own), BreakerState::Closed);
    }
    call(&breaker, &own, now, Outcome::Well);
    assert_eq!(state(&own), BreakerState::Open, "three of four");
    assert_eq!(breaker.ask_at(&own, now), Permission::Refused(Duration::from_secs(5)));
    let figures = figures(&own, &breaker.rules.definition());
    assert_eq!((figures.opened, figures.refused), (1, 1));
}

#[test]
fn breaker_below_failure_share_stays_closed() {
    let (breaker, own) = (breaker(), own());
    for at in 0..10_000_u64 {
        let outcome = if at % 3 == 2 { Outcome::Failed } else { Outcome::Well };
        call(&breaker, &own, 100 * SECOND + at * 1_000_000, outcome);
        assert_eq!(state(&own), BreakerState::Closed, "call {at}");
    }
}

#[test]
fn calls_before_window_do_not_count() {
    let (breaker, own) = (breaker(), own());
    (0..3).for_each(|_| call(&breaker, &own, 100 * SECOND, Outcome::Failed));
    call(&breaker, &own, 109 * SECOND, Outcome::Failed);
    assert_eq!(state(&own), BreakerState::Closed);
    let found = counts(&own, 8 * SECOND, 109 * SECOND);
    assert_eq!(found, Counts { calls: 1, failed: 1, slow: 0 });
}

#[test]
fn slow_calls_open_breaker() {
    let (breaker, own) = (breaker(), own());
    for _ in 0..4 {
        let call = granted(breaker.ask_at(&own, 100 * SECOND));
        breaker.report_at(&own, call, Outcome::Well, 101 * SECOND);
    }
    assert_eq!(state(&own), BreakerState::Open);
}

#[test]
fn unknown_outcome_counts_as_no_call() {
    let (breaker, own) = (breaker(), own());
    (0..100).for_each(|_| call(&breaker, &own, 100 * SECOND, Outcome::Unknown));
    assert_eq!(counts(&own, 8 * SECOND, 100 * SECOND), Counts::default());
}

#[test]
fn single_probe_decides_next_state() {
    let (breaker, own) = opened(100 * SECOND);
    let probe = granted(breaker.ask_at(&own, 105 * SECOND));
    assert_eq!(state(&own), BreakerState::HalfOpen);
    assert!(matches!(breaker.ask_at(&own, 105 * SECOND), Permission::Refused(_)), "only one");
    breaker.report_at(&own, probe, Outcome::Failed, 106 * SECOND);
    assert_eq!(breaker.ask_at(&own, 107 * SECOND), Permission::Refused(Duration::from_secs(4)));

    let probe = granted(breaker.ask_at(&own, 111 * SECOND));
    breaker.report_at(&own, probe, Outcome::Well, 111 * SECOND);
    assert_eq!(state(&own), BreakerState::Closed);
    assert_eq!(counts(&own, 8 * SECOND, 111 * SECOND), Counts::default(), "a new start");
}

#[test]
fn lost_probe_is_replaced_by_next_call() {
    let (breaker, own) = opened(100 * SECOND);
    let lost = granted(breaker.ask_at(&own, 105 * SECOND));
    assert!(matches!(breaker.ask_at(&own, 109 * SECOND), Permission::Refused(_)));
    let next = granted(breaker.ask_at(&own, 110 * SECOND));
    // The first probe reports after all: too late.
    breaker.report_at(&own, lost, Outcome::Well, 111 * SECOND);
    assert_eq!(state(&own), BreakerState::HalfOpen);
    breaker.report_at(&own, next, Outcome::Unknown, 111 * SECOND);
    granted(breaker.ask_at(&own, 111 * SECOND));
}

#[test]
fn earlier_calls_do_not_change_open_breaker() {
    let (breaker, own) = (breaker(), own());
    let early = granted(breaker.ask_at(&own, 100 * SECOND));
    (0..4).for_each(|_| call(&breaker, &own, 100 * SECOND, Outcome::Failed));
    breaker.report_at(&own, early, Outcome::Well, 101 * SECOND);
    assert_eq!(state(&own), BreakerState::Open);
}

#[test]
fn full_counts_keep_their_shares() {
    let own = own();
    for at in 0..100_000 {
        count(&own, 8 * SECOND, 100 * SECOND, at % 4 == 0, at % 2 == 0);
    }
    let Counts { calls, failed, slow } = counts(&own, 8 * SECOND, 100 * SECOND);
    assert!(calls > 8_000 && calls <= COUNT_MAX, "{calls}");
    assert!(failed.abs_diff(calls / 4) < 50, "{failed} of {calls}");
    assert!(slow.abs_diff(calls / 2) < 50, "{slow} of {calls}");
}

#[test]
fn garbage_neither_panics_nor_opens_breaker_forever() {
    let breaker = breaker();
    for seed in 0..10_000_u64 {
        let own = own();
        for (at, word) in own.iter().enumerate() {
            let mixed = (seed * 24 + at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word.store(mixed ^ mixed >> 29, Ordering::Relaxed);
        }
        let mut now = 100 * SECOND;
        for _ in 0..4 {
            if let Permission::Granted(call) = breaker.ask_at(&own, now) {
                breaker.report_at(&own, call, Outcome::Well, now);
            }
            now += 9 * SECOND;
        }
        assert_eq!(state(&own), BreakerState::Closed, "seed {seed}");
    }
}

#[test]
fn invalid_rules_are_rejected() {
    let good = breaker().rules;
    assert_eq!(good.check(), Ok(()));
    let wrong = [
        Rules { failures: 0.0, ..good },
        Rules { failures: f64::NAN, ..good },
        Rules { slow: 1.5, ..good },
        Rules { slow_after: -1.0, ..good },
        Rules { slow_after: f64::INFINITY, ..good },
        Rules { calls_min: 0, ..good },
        Rules { calls_min: CALLS_MAX + 1, ..good },
        Rules { window: 0.0, ..good },
        Rules { pause: f64::NAN, ..good },
        Rules { pause: 1e9, ..good },
    ];
    for rules in wrong {
        assert!(rules.check().is_err(), "{rules:?}");
    }
}
