//! Latency of good requests while others crash: measured in alternating calm and crash periods, and
//! compared.

use crate::chaos::run::say;
use crate::chaos::stage::{Model, Stage, Surroundings};
use samovar_testkit::http::Request;
use samovar_testkit::order;
use std::time::{Duration, Instant};

/// Calm and crash periods alternate, so that a machine that slows down affects both.
const ROUNDS: usize = 4;

/// Length of a period without `CHAOS_SECONDS`.
const ROUND_SECONDS: u64 = 5;

/// Interval between crashes: ten a second.
const EVERY: Duration = Duration::from_millis(100);

/// The desired ratio, and the ratio that fails the test. The second is higher because the machine
/// may have other load.
const RATIO_WISHED: f64 = 3.0;
const RATIO_MAX: f64 = 10.0;

/// Quantile in milliseconds.
fn quantile(sorted: &[u64], per_mille: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let taken = sorted.get(last * per_mille / 1000);
    taken.map_or(f64::NAN, |us| Duration::from_micros(*us).as_secs_f64() * 1000.0)
}

/// Latencies of good requests within `time`, in µs, sorted; with `storm`, while other requests
/// crash.
fn measure(stage: &Stage, storm: bool, time: Duration) -> Vec<u64> {
    let _ = stage.load.shared.latencies_us();
    let granted = stage.load.shared.pardons.begin(crate::chaos::pardon::Pardon::LostWork);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let mut count = 0;
        while start.elapsed() < time {
            if storm {
                let how = ["segv", "abort", "stack"][count % 3];
                scope.spawn(move || {
                    // The response is not measured.
                    let _ = stage.poke(&Request::get(&format!("/crash?how={how}&n={count}")));
                });
            }
            count += 1;
            std::thread::sleep(EVERY);
        }
    });
    stage.load.shared.pardons.end(granted);
    let taken = stage.load.shared.latencies_us();
    stage.settled();
    taken
}

#[test]
#[ignore = "a measurement: make chaos-rates"]
fn good_request_latency_during_crashes_stays_near_calm_latency() {
    let seconds = order::number_of("CHAOS_SECONDS").unwrap_or(ROUND_SECONDS);
    let mut slow = Vec::new();
    for model in Model::ALL {
        // Without files and uploads, so that the clients' own work does not count.
        let around = Surroundings { files_later: true, ..Surroundings::default() };
        let stage = Stage::set(model, around, false);
        let (mut calm, mut storm) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            calm.extend(measure(&stage, false, Duration::from_secs(seconds)));
            storm.extend(measure(&stage, true, Duration::from_secs(seconds)));
        }
        let (_, found) = stage.end();
        calm.sort_unstable();
        storm.sort_unstable();
        let ratio = quantile(&storm, 990) / quantile(&calm, 990);
        for (name, all) in [("calm", &calm), ("storm", &storm)] {
            say(&format!(
                "{:10} {name:5}: {:6} good answers, \
                 p50 {:8.2} ms, p99 {:8.2} ms, longest {:8.2} ms",
                model.name(),
                all.len(),
                quantile(all, 500),
                quantile(all, 990),
                quantile(all, 1000),
            ));
        }
        let wished = if ratio <= RATIO_WISHED { "within" } else { "NOT within" };
        say(&format!("{:10} p99 × {ratio:.1}: {wished} {RATIO_WISHED} ×", model.name()));
        assert!(found.is_empty(), "{}", found.join("\n"));
        if storm.is_empty() || ratio > RATIO_MAX {
            slow.push(format!("{}: p99 × {ratio:.1}", model.name()));
        }
    }
    assert!(slow.is_empty(), "more than {RATIO_MAX} × the calm p99: {slow:?}");
}
