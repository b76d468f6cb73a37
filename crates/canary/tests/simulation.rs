//! Simulated releases: equal ones are not aborted, regressions are found within a number of the
//! canary's requests.

// Counts stay far below 2⁵², so they are exact as floats.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use samovar_canary::{Alarm, Arm, Comparison, Costs, Metric, Observation, Settings};
use std::time::Duration;

const ROUTES: [&str; 5] = ["GET /", "GET /shop", "GET /cart", "POST /order", "GET /search"];
/// Requests per block.
const BLOCK: usize = 20;

/// Xorshift: the same numbers in each run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-normal, with a few much larger values.
    fn cost(&mut self, median: f64, spread: f64) -> f64 {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        let tail = if self.unit() < 0.01 { 10.0 } else { 1.0 };
        median * (spread * normal).exp() * tail
    }
}

/// Difference of the canary on `GET /cart`.
#[derive(Clone, Copy)]
struct Release {
    cpu: f64,
    fatal: f64,
    failure: f64,
    grown: i64,
}

const EQUAL: Release = Release { cpu: 1.0, fatal: 0.0, failure: 0.0, grown: 0 };

/// Runs a canary over this number of requests of all routes. Returns the first alarm, and the
/// canary's requests until then.
fn run(seed: u64, share: f64, requests: usize, release: Release) -> Option<(Alarm, u64)> {
    let mut random = Random::new(seed);
    let mut comparison = Comparison::new(Settings::default());
    for n in 0..requests {
        // The load changes in the course of the day, in both generations.
        let day = 1.0 + 0.5 * (n as f64 / 5_000.0).sin();
        let route = ROUTES[(random.unit() * ROUTES.len() as f64) as usize];
        let arm = if random.unit() < share { Arm::New } else { Arm::Old };
        let is_changed = arm == Arm::New && route == ROUTES[2];
        let factor = if is_changed { release.cpu } else { 1.0 };
        let cpu = random.cost(5_000_000.0, 0.3) * factor * day;
        let is_fatal = is_changed && random.unit() < release.fatal;
        let failure = 0.01 + if is_changed { release.failure } else { 0.0 };
        let status = if is_fatal || random.unit() < failure { 500 } else { 200 };
        let grown_bytes = if is_changed { release.grown } else { 0 };
        let peak_bytes = random.cost(4e6, 0.1) as u64;
        let (cpu_ns, run_ns) = (cpu as u64, (cpu * (1.0 + random.unit())) as u64);
        comparison.add(&Observation {
            arm,
            route,
            status,
            is_fatal,
            is_failed: false,
            worker: 1 + arm as u32,
            costs: Some(Costs { cpu_ns, run_ns, peak_bytes, grown_bytes }),
        });
        if n % BLOCK == BLOCK - 1 {
            comparison.close_block(Duration::from_millis(25 * n as u64));
            if let Some(alarm) = comparison.alarm() {
                return Some((alarm, comparison.requests()[1]));
            }
        }
    }
    None
}

#[test]
fn equal_releases_are_not_aborted() {
    // With a false-alarm rate of 1 %, more than 3 alarms in 100 runs have a probability of 2 %; the
    // seeds are fixed, and the bound is conservative.
    let alarms: Vec<_> = (0..100)
        .filter_map(|seed| {
            let share = [0.01, 0.05, 0.25, 0.5][seed as usize % 4];
            run(seed, share, 20_000, EQUAL)
        })
        .collect();
    assert!(alarms.len() <= 3, "{alarms:?}");
}

#[test]
fn tolerated_difference_is_not_an_alarm() {
    let release = Release { cpu: 1.04, ..EQUAL };
    let alarms = (0..20).filter_map(|seed| run(seed, 0.25, 20_000, release)).count();
    assert_eq!(alarms, 0);
}

/// Runs the release several times: each run must find it, on the route and in one of the metrics.
fn found(share: f64, most: u64, release: Release, metrics: &[Metric]) {
    for seed in 0..10 {
        let requests = (most as f64 / share) as usize;
        let (alarm, after) =
            run(seed, share, requests, release).unwrap_or_else(|| panic!("seed {seed}: no alarm"));
        assert!(metrics.contains(&alarm.metric), "seed {seed}: {alarm:?}");
        assert_eq!(alarm.route, ROUTES[2], "seed {seed}: {alarm:?}");
        assert!(after <= most, "seed {seed}: {after}");
    }
}

#[test]
fn slower_route_is_found() {
    let release = Release { cpu: 1.1, ..EQUAL };
    found(0.25, 40_000, release, &[Metric::Cpu, Metric::Latency]);
    found(0.05, 1_500, Release { cpu: 1.5, ..EQUAL }, &[Metric::Cpu, Metric::Latency]);
}

/// Requests of 0.1 ms. A request of the canary takes 0.2 ms more, since it finds cold caches.
fn alarm_of_cold_caches(is_saturated: bool) -> Option<Alarm> {
    let mut random = Random::new(7);
    let mut comparison = Comparison::new(Settings::default());
    comparison.set_saturated(is_saturated);
    (0..10_000_usize).find_map(|n| {
        let arm = if random.unit() < 0.25 { Arm::New } else { Arm::Old };
        let extra = if arm == Arm::New { 200_000.0 } else { 0.0 };
        let cpu = random.cost(100_000.0, 0.3) + extra;
        comparison.add(&Observation {
            arm,
            route: ROUTES[0],
            status: 200,
            is_fatal: false,
            is_failed: false,
            worker: 1 + arm as u32,
            costs: Some(Costs {
                cpu_ns: cpu as u64,
                run_ns: (cpu * 2.0) as u64,
                peak_bytes: 1 << 20,
                grown_bytes: 0,
            }),
        });
        if n % BLOCK == BLOCK - 1 {
            comparison.close_block(Duration::from_millis(25 * n as u64));
        }
        comparison.alarm()
    })
}

#[test]
fn cold_caches_of_saturated_machine_are_no_alarm() {
    assert_eq!(alarm_of_cold_caches(false).map(|alarm| alarm.metric), Some(Metric::Cpu));
    assert_eq!(alarm_of_cold_caches(true), None);
}

#[test]
fn rare_fatal_error_is_found() {
    let release = Release { fatal: 0.01, ..EQUAL };
    found(0.05, 10_000, release, &[Metric::Fatal]);
}

#[test]
fn higher_error_rate_is_found() {
    let release = Release { failure: 0.05, ..EQUAL };
    found(0.25, 10_000, release, &[Metric::Failure]);
}

#[test]
fn leak_is_found() {
    found(0.05, 600, Release { grown: 65_536, ..EQUAL }, &[Metric::Growth]);
}

#[test]
fn message_of_canary_alone_is_found_and_shared_one_is_not() {
    let mut comparison = Comparison::new(Settings::default());
    let mut alarm = None;
    for n in 0..4_000_u32 {
        let arm = if n % 10 == 3 { Arm::New } else { Arm::Old };
        comparison.add(&Observation {
            arm,
            route: "GET /",
            status: 200,
            is_fatal: false,
            is_failed: false,
            worker: 1,
            costs: None,
        });
        if n % 7 == 0 {
            comparison.add_message(arm, 1);
        }
        if arm == Arm::New && n % 200 == 103 {
            comparison.add_message(arm, 2);
        }
        comparison.close_block(Duration::from_millis(u64::from(n)));
        alarm = alarm.or(comparison.message_alarm());
    }
    let alarm = alarm.expect("a message is new");
    assert_eq!((alarm.fingerprint, alarm.count[0]), (2, 0));
    assert!(alarm.count[1] <= 10, "{alarm:?}");
    assert!(comparison.occurrences(1)[0] > 100);
}

#[test]
fn late_regression_is_found_in_recent_requests() {
    let mut random = Random::new(7);
    let mut comparison = Comparison::new(Settings::default());
    let mut add = |comparison: &mut Comparison, n: u64, failure: f64| {
        let arm = if random.unit() < 0.05 { Arm::New } else { Arm::Old };
        let rate = if arm == Arm::New { failure } else { 0.01 };
        let status = if random.unit() < rate { 500 } else { 200 };
        comparison.add(&Observation {
            arm,
            route: "GET /",
            status,
            is_fatal: false,
            is_failed: false,
            worker: 1,
            costs: None,
        });
        if n.is_multiple_of(20) {
            comparison.close_block(Duration::from_millis(50 * n));
        }
    };
    (0..40_000).for_each(|n| add(&mut comparison, n, 0.01));
    assert_eq!(comparison.alarm(), None);
    (40_000..60_000).for_each(|n| add(&mut comparison, n, 0.08));
    assert_eq!(comparison.alarm().map(|alarm| alarm.metric), Some(Metric::Failure));
}

#[test]
fn invented_routes_and_messages_do_not_grow_memory() {
    let mut comparison = Comparison::new(Settings::default());
    for n in 0..5_000_u32 {
        let route = format!("GET /{n}");
        comparison.add(&Observation {
            arm: Arm::Old,
            route: &route,
            status: 500,
            is_fatal: true,
            is_failed: true,
            worker: n,
            costs: Some(Costs::default()),
        });
        comparison.add_message(Arm::Old, u64::from(n));
    }
    comparison.close_block(Duration::ZERO);
    assert_eq!(comparison.routes().count(), samovar_canary::ROUTES_MAX + 1);
    assert_eq!(comparison.requests(), [5_000, 0]);
    assert_eq!(comparison.alarm(), None);
}
