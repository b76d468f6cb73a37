//! A million URLs, ten thousand sets of tags, a thousand peers: memory stays within its limit, and
//! the sums are correct.
//!
//! This test binary has only one test, because the test measures the memory of the whole process.

use samovar_insight::{Aggregate, Batch, Entry, Finished, Limits, Numbers, OTHER, Wait, WaitKind};

const URLS: u64 = 1_000_000;
const TAG_SETS: u64 = 10_000;
const PEERS: u64 = 1_000;
const ROUTES_MAX: usize = 1_000;
/// Maximum memory for the figures of 1,000 routes and a day.
const BYTES_MAX: u64 = 30 << 20;
const BATCH: u64 = 250;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("pages");
    pages * 4_096
}

/// Returns a request whose times vary widely; each thousand requests are a minute.
fn numbers(n: u64) -> Numbers {
    Numbers {
        status: 200,
        worker: 7,
        wall_ns: 50_000 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 2_000_000_000,
        cpu_ns: 20_000 + n.wrapping_mul(0xbf58_476d_1ce4_e5b9) % 50_000_000,
        queue_ns: n % 10_000_000,
        ..Numbers::default()
    }
}

#[test]
fn invented_names_keep_memory_within_limit() {
    let limits = Limits { routes_max: ROUTES_MAX, slow_ns: u64::MAX };
    let mut figures = Aggregate::new(limits);
    let before = resident_bytes();
    let mut batch = Batch::default();
    let mut minutes = 0;
    for first in (0..URLS).step_by(BATCH as usize) {
        batch = Batch::default();
        for n in first..first + BATCH {
            let path = format!("/shop/a{n}b/item");
            let mut report = Vec::new();
            let tag = format!("set-{}", n % TAG_SETS);
            if n % 10 == 0 {
                let tags = vec![("group", tag.as_str())];
                let timer = Entry::Timer { hits: 1, wall_ns: 5, user_ns: 1, system_ns: 0, tags };
                report.extend(timer.encode());
                let peer = format!("10.0.0.1:{}", n % PEERS);
                let wait = Wait { kind: WaitKind::Tcp, peer: &peer, times: 1, ns: 7 };
                report.extend(Entry::Wait(wait).encode());
            }
            let finished = Finished { numbers: numbers(n), path: &path, ..Finished::default() };
            batch.put(&Finished { report: &report, ..finished });
        }
        let now = 60 * (first / 1_000);
        minutes += u64::from(figures.close_minute(now).is_some());
        figures.take(&batch, now);
    }
    drop(batch);
    let (routes, beyond) = figures.routes_used();
    assert_eq!((routes, beyond), (ROUTES_MAX, URLS - ROUTES_MAX as u64));
    assert_eq!(minutes, URLS / 1_000 - 1);
    let total = figures.total();
    assert_eq!((total.requests, total.waiting_ns), (URLS, 7 * URLS / 10));
    let other = figures.route(OTHER).expect("all others");
    assert!(other.timers().count() <= 65 && other.waits().count() <= 33);
    let hits: u64 = figures.routes().flat_map(|(_, r)| r.timers()).map(|(_, t)| t.hits).sum();
    assert_eq!(hits, URLS / 10, "none is lost");
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < BYTES_MAX, "{taken} bytes");
}
