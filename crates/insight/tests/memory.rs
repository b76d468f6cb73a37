//! Measures the memory for the figures of a thousand routes and a day.
//!
//! This test binary has only one test, because the test measures the memory of the whole process.

use samovar_insight::{Aggregate, Batch, Entry, Finished, Limits, Numbers, Wait, WaitKind};

const ROUTES: u64 = 1_000;
const MINUTES: u64 = 24 * 60;
/// Number of requests of each route: enough for many different buckets.
const OF_ROUTE: u64 = 360;
/// Number of requests of each route in the current minute.
const OF_LAST_MINUTE: u64 = 200;
/// 30 MB of sums, and the figures of the last minutes (`RECENT_BYTES_MAX`).
const BYTES_MAX: u64 = 52 << 20;
const MS: u64 = 1_000_000;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("pages");
    pages * 4_096
}

/// Returns a time of at least `least`, with each doubling equally likely.
fn spread(seed: u64, least: u64, doublings: u64) -> u64 {
    let noise = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ seed;
    let noise = noise.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let base = least << ((noise >> 32) % doublings);
    base + base * (noise % 1_000) / 1_000
}

/// Returns the nth request to a route: 2 ms to 2 s, half of it waiting.
fn numbers(seed: u64) -> Numbers {
    let wall_ns = spread(seed, 2 * MS, 10);
    Numbers {
        status: 200,
        worker: 7,
        wall_ns,
        run_ns: wall_ns,
        cpu_ns: spread(seed + 1, MS, 8),
        queue_ns: spread(seed + 2, 50_000, 10),
        ..Numbers::default()
    }
}

#[test]
fn figures_of_thousand_routes_and_a_day_take_at_most_52_mb() {
    let mut figures = Aggregate::new(Limits { routes_max: ROUTES as usize, slow_ns: u64::MAX });
    let mut batch = Batch::default();
    let before = resident_bytes();
    // Each round has a request to every route. Rounds are four minutes apart, except the last ones.
    for round in 0..OF_ROUTE + OF_LAST_MINUTE {
        let now = 60 * (MINUTES * round.min(OF_ROUTE) / OF_ROUTE);
        figures.close_minute(now);
        for route in 0..ROUTES {
            let seed = round * ROUTES + route;
            let path = format!("/shop/page-{route}x");
            let peer = ["10.0.0.5:5432", "10.0.0.6:6379", "10.0.0.7:443"][route as usize % 3];
            let numbers = numbers(seed);
            let wait = Wait { kind: WaitKind::Tcp, peer, times: 3, ns: numbers.wall_ns / 2 };
            let report = Entry::Wait(wait).encode();
            batch.put(&Finished { numbers, path: &path, report: &report, ..Finished::default() });
            if route % 200 == 199 {
                figures.take(&batch, now);
                batch = Batch::default();
            }
        }
    }
    for _ in 0..3 {
        figures.minutes().iter().for_each(drop);
    }
    assert_eq!(figures.total().requests, ROUTES * (OF_ROUTE + OF_LAST_MINUTE));
    assert_eq!(figures.minutes().iter().count() as u64, OF_ROUTE + 1);
    let taken = resident_bytes().saturating_sub(before);
    println!("{} kB", taken / 1_000);
    assert!(taken < BYTES_MAX, "{taken} bytes");
}
