//! Tests of the usage reported for requests: each request is counted once, with all data that its
//! worker reports, at any time.

use super::{After, Job, Server, WATCHDOG, until};
use samovar_insight::{Aggregate, End, Entry, Limits, Numbers, Outlet, REPORT_BYTES_MAX};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// CPU time that fake workers report.
const CPU_NS: u64 = 1_500_000;

/// Waits for the next request in the statistics.
fn next(outlet: &Outlet) -> Numbers {
    let mut found = None;
    until("a request is added up", || {
        outlet
            .take(Duration::from_millis(10), |batch| {
                assert_eq!(batch.len(), 1, "each is added up once");
                found = batch.whole().next().map(|one| one.numbers);
            })
            .expect("the front runs");
        found.is_some()
    });
    found.expect("it was there")
}

/// Whether no request is added to the statistics for a moment.
fn is_silent(outlet: &Outlet) -> bool {
    !outlet.take(Duration::from_millis(50), |_| ()).expect("the front runs")
}

#[test]
fn usage_after_response_is_counted_when_worker_finishes() {
    type Responses = fn(&mut Job<'_>);
    let ends: Responses = |job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_response(job.slot).expect("the client is there");
    };
    let promises: Responses = |job| {
        job.head(200, "Content-Length: 3\n");
        job.write(b"bye");
        assert!(job.flush());
    };
    for responses in [ends, promises] {
        let (server, outlet) = Server::measured();
        let (go, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let server = server.work(move |job| {
            responses(job);
            gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
            After::Finish
        });
        assert_eq!(server.get("/").text(), "bye");
        assert!(is_silent(&outlet), "its worker goes on");
        go.send(()).unwrap();
        let numbers = next(&outlet);
        assert_eq!((numbers.cpu_ns, numbers.status, numbers.end), (CPU_NS, 200, End::Completed));
        assert_eq!((numbers.worker, numbers.cell), (std::process::id(), 0));
    }
}

#[test]
fn usage_of_disconnected_client_is_counted() {
    let (server, outlet) = Server::measured();
    let (begun, has_begun) = channel();
    let server = server.work(move |job| {
        begun.send(()).unwrap();
        until("cancelled", || job.worker.is_cancelled(job.slot));
        After::Finish
    });
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    has_begun.recv_timeout(WATCHDOG).unwrap();
    drop(client);
    let numbers = next(&outlet);
    assert_eq!((numbers.cpu_ns, numbers.status, numbers.end), (CPU_NS, 499, End::Aborted));
}

#[test]
fn worker_death_after_response_counts_request_without_usage() {
    let (server, outlet) = Server::measured();
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let server = server.work(move |job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_response(job.slot).expect("the client is there");
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        After::Die
    });
    assert_eq!(server.get("/").text(), "bye");
    go.send(()).unwrap();
    let numbers = next(&outlet);
    assert_eq!((numbers.cpu_ns, numbers.worker, numbers.status), (0, 0, 200));
}

#[test]
fn stopped_front_loses_no_request() {
    let (server, outlet) = Server::measured();
    let mut server = server.work(|job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_response(job.slot).expect("the client is there");
        After::Finish
    });
    assert_eq!(server.get("/").text(), "bye");
    server.stop();
    let mut rows = 0;
    while outlet.take(Duration::ZERO, |batch| rows += batch.len()).is_ok_and(|taken| taken) {}
    assert_eq!(rows, 1);
}

/// Deterministic noise, the same in each run.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

/// Invalid reports: noise, and valid ones that are truncated, repeated or changed.
fn garbage(seed: u64) -> Vec<u8> {
    let tags = vec![("group", "db"), ("server", "a")];
    let timer = Entry::Timer { hits: 3, wall_ns: 5, user_ns: 2, system_ns: 1, tags };
    let honest = [timer.encode(), Entry::Route("shop").encode()].concat();
    let len = (seed as usize * 37) % (REPORT_BYTES_MAX + 1);
    match seed % 4 {
        0 => noise(seed, len),
        1 => honest[..honest.len() - 1 - seed as usize % 5].to_vec(),
        2 => honest.repeat(REPORT_BYTES_MAX / honest.len() + 2),
        _ => {
            let mut changed = honest.clone();
            let at = seed as usize % changed.len();
            changed[at] ^= noise(seed, 1)[0] | 1;
            changed
        }
    }
}

#[test]
fn invalid_reports_do_not_change_other_figures() {
    const ROUNDS: u64 = 200;
    let (server, outlet) = Server::measured();
    let server = server.work(|job| {
        let seed = job.field("query").parse().unwrap_or(0);
        job.worker.put_report(job.slot, &garbage(seed));
        job.respond("fine")
    });
    let mut figures = Aggregate::new(Limits { routes_max: 10, slow_ns: 0 });
    for seed in 0..ROUNDS {
        assert_eq!(server.get(&format!("/?{seed}")).text(), "fine");
    }
    until("all are added up", || {
        outlet
            .take(Duration::from_millis(10), |batch| figures.take(batch, 1_000))
            .expect("the front runs");
        figures.total().requests == ROUNDS
    });
    assert_eq!(figures.total().cpu.sum_ns(), ROUNDS * CPU_NS);
    assert!(figures.lost_entries().0 > ROUNDS / 4, "{:?}", figures.lost_entries());
    assert!(figures.routes_used().0 <= 10);
}
