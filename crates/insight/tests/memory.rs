//! What the figures of a thousand routes and a day take of memory.
//!
//! A test binary of its own with one test: what a process has taken is counted.

use samovar_insight::{Aggregate, Batch, Entry, Finished, Limits, Numbers, Wait, WaitKind};

const ROUTES: u64 = 1_000;
const MINUTES: u64 = 24 * 60;
/// Requests of each route in all: enough for buckets all over.
const OF_ROUTE: u64 = 360;
/// Requests of each in the minute that is not over.
const OF_LAST_MINUTE: u64 = 200;
const BYTES_MAX: u64 = 30 << 20;
const MS: u64 = 1_000_000;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("pages");
    pages * 4_096
}

/// A time whose doublings are as likely as each other, from `least` on.
fn spread(seed: u64, least: u64, doublings: u64) -> u64 {
    let noise = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ seed;
    let noise = noise.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let base = least << ((noise >> 32) % doublings);
    base + base * (noise % 1_000) / 1_000
}

/// The nth request to a route: of 2 ms to 2 s, half of it waiting.
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
fn a_thousand_routes_and_a_day_fit_into_thirty_megabytes() {
    let mut figures = Aggregate::new(Limits { routes_max: ROUTES as usize, slow_ns: u64::MAX });
    let mut batch = Batch::default();
    let before = resident_bytes();
    // All routes in each round, rounds four minutes apart, but for the last.
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
