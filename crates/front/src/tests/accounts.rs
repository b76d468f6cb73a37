//! What is added up of a request: once, with all that its worker says of it, whenever that comes.

use super::{After, Job, Server, WATCHDOG, until};
use samovar_insight::{Aggregate, End, Entry, Limits, Numbers, Outlet, REPORT_BYTES_MAX};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The CPU time that fake workers say.
const CPU_NS: u64 = 1_500_000;

/// The next request that is added up.
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

/// Nothing is added up while `outlet` is looked at for a moment.
fn is_silent(outlet: &Outlet) -> bool {
    !outlet.take(Duration::from_millis(50), |_| ()).expect("the front runs")
}

#[test]
fn what_a_script_costs_behind_its_answer_is_counted_when_it_is_known() {
    type Answers = fn(&mut Job<'_>);
    let ends: Answers = |job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_answer(job.slot).expect("the client is there");
    };
    let promises: Answers = |job| {
        job.head(200, "Content-Length: 3\n");
        job.write(b"bye");
        assert!(job.flush());
    };
    for answers in [ends, promises] {
        let (server, outlet) = Server::measured();
        let (go, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let server = server.work(move |job| {
            answers(job);
            gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
            After::Finish
        });
        assert_eq!(server.get("/").text(), "bye");
        assert!(is_silent(&outlet), "its worker goes on");
        go.send(()).unwrap();
        let numbers = next(&outlet);
        assert_eq!((numbers.cpu_ns, numbers.status, numbers.end), (CPU_NS, 200, End::Answered));
        assert_eq!((numbers.worker, numbers.cell), (std::process::id(), 0));
    }
}

#[test]
fn who_leaves_has_cost_something_all_the_same() {
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
fn a_worker_that_dies_behind_its_answer_leaves_a_request_without_a_cost() {
    let (server, outlet) = Server::measured();
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let server = server.work(move |job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_answer(job.slot).expect("the client is there");
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        After::Die
    });
    assert_eq!(server.get("/").text(), "bye");
    go.send(()).unwrap();
    let numbers = next(&outlet);
    assert_eq!((numbers.cpu_ns, numbers.worker, numbers.status), (0, 0, 200));
}

#[test]
fn a_front_that_ends_loses_none() {
    let (server, outlet) = Server::measured();
    let mut server = server.work(|job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_answer(job.slot).expect("the client is there");
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

/// Reports as nobody writes them: noise, and true ones that are cut, repeated or changed.
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
fn a_worker_that_reports_garbage_costs_nobody_else_a_figure() {
    const ROUNDS: u64 = 200;
    let (server, outlet) = Server::measured();
    let server = server.work(|job| {
        let seed = job.field("query").parse().unwrap_or(0);
        job.worker.put_report(job.slot, &garbage(seed));
        job.answer("fine")
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
