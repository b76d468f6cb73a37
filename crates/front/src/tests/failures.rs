//! Tests of workers that die, hang or write invalid data, and of full queues.

use super::*;

#[test]
fn panic_fails_only_its_own_request() {
    let server = Server::new().work(|job| job.respond("ok"));
    let mut other = server.client();
    for round in 1..=3 {
        let reply = server.ask("GET /panic HTTP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!((reply.status, reply.header("connection")), (500, Some("close")));
        other.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!(other.reply(false).text(), "ok");
        let counters = server.handle.counters();
        assert_eq!((counters.server.panics_total, counters.pool.in_flight), (round, 0));
    }
}

use crate::KillReason;
use samovar_ring::{Overrun, offsets};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};

const POST: &str = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";

/// Dies `times` times, then responds.
fn mortal(times: usize) -> impl Fn(&mut Job<'_>) -> After + Send + Sync {
    let deaths = AtomicUsize::new(0);
    move |job| {
        if deaths.fetch_add(1, Ordering::SeqCst) < times {
            After::Die
        } else {
            job.respond("alive")
        }
    }
}

#[test]
fn get_is_retried_after_worker_death() {
    let server = Server::new().work(mortal(2));
    assert_eq!(server.get("/").text(), "alive");
    assert_eq!(server.handle.counters().pool.retries_total, 2);
}

#[test]
fn get_is_502_after_last_retry() {
    let server = Server::new().work(mortal(3));
    let reply = server.get("/");
    assert_eq!(reply.status, 502);
    assert_eq!(server.get("/").text(), "alive");
    assert_eq!(server.handle.counters().pool.responses_5xx_total, 1);
}

#[test]
fn post_is_never_retried() {
    let server = Server::new().work(mortal(1));
    assert_eq!(server.ask(POST).status, 502);
    assert_eq!(server.ask(POST).text(), "alive");
    assert_eq!(server.handle.counters().pool.retries_total, 0);
}

#[test]
fn worker_death_during_response_closes_connection() {
    let server = Server::new().work(|job| {
        job.head(200, "");
        job.write(b"half");
        job.flush();
        // More bytes than the slot holds: the worker can write all of them only after the front has
        // read the head.
        job.write(&pattern(300_000));
        After::Die
    });
    let reply = server.get("/");
    assert_eq!((reply.status, reply.is_complete), (200, false));
}

#[test]
fn aborted_response_closes_connection() {
    let server = Server::new().work(|job| {
        job.head(200, "");
        job.write(b"half");
        job.worker.abort_response(job.slot);
        After::Finish
    });
    let reply = server.get("/");
    assert_eq!((reply.status, reply.text(), reply.is_complete), (200, "half", false));
}

#[test]
fn missing_response_head_is_502() {
    let server = Server::new().work(|_| After::Finish);
    assert_eq!(server.get("/").status, 502);
}

#[test]
fn silent_worker_is_504_and_killed() {
    let short = |o: &mut Settings| {
        o.timeouts.response = Duration::from_millis(200);
        o.timeouts.grace = Duration::from_millis(200);
    };
    let server = Server::with(4, short)
        .work(|job| if job.field("target") == "/hang" { After::Hang } else { job.respond("fine") });
    assert_eq!(server.get("/hang").status, 504);
    let FrontEvent::Overrun { run, overrun, request, .. } = server.event() else {
        panic!("it is not asked")
    };
    assert_eq!((overrun, request.as_str()), (Overrun::Response, "GET /hang"));
    let FrontEvent::KillWorker { incarnation, reason } = server.event() else { panic!("no kill") };
    assert_eq!((incarnation, reason), (run.worker, KillReason::Overrun(run, Overrun::Response)));
    assert_eq!(server.get("/").text(), "fine");
    assert_eq!(server.handle.counters().pool.timeouts_total, 1);
}

#[test]
fn request_without_workers_is_503_after_queue_timeout() {
    let server = Server::with(4, |o| o.timeouts.queue = Duration::from_millis(200));
    let reply = server.get("/");
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(server.handle.counters().pool.rejected_total, 1);
}

#[test]
fn full_queue_is_503_immediately() {
    let server = Server::with(4, |o| o.limits.queue_max = 1);
    let mut first = server.client();
    first.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    until("one is queued", || server.handle.counters().pool.in_flight == 1);
    assert_eq!(server.get("/").status, 503);
    let _server = server.work(|job| job.respond("ok"));
    assert_eq!(first.reply(false).text(), "ok");
}

#[test]
fn requests_beyond_slots_wait_and_are_served() {
    let server = Server::with(2, |_| {});
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: t\r\n\r\n").as_bytes());
    }
    until("all are parsed", || server.handle.counters().pool.in_flight == 20);
    let server = server.work(|job| job.respond(&job.field("target")));
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.reply(false).text(), format!("/{number}"));
    }
    assert_eq!(server.handle.counters().pool.in_flight, 0);
}

#[test]
fn requests_waiting_for_slot_expire() {
    let server = Server::with(1, |o| o.timeouts.queue = Duration::from_millis(200));
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.reply(false).status, 503);
    }
    let server = server.work(|job| job.respond("ok"));
    assert_eq!(server.get("/").text(), "ok");
}

#[test]
fn disconnect_cancels_request() {
    let (told, heard) = channel();
    let server = Server::new().work(move |job| {
        if job.field("target") == "/" {
            return job.respond("next");
        }
        told.send(()).unwrap();
        until("cancelled", || job.worker.is_cancelled(job.slot));
        told.send(()).unwrap();
        After::Finish
    });
    let mut client = server.client();
    client.send(b"GET /slow HTTP/1.1\r\nHost: t\r\n\r\n");
    heard.recv_timeout(WATCHDOG).unwrap();
    drop(client);
    heard.recv_timeout(WATCHDOG).unwrap();
    assert_eq!(server.get("/").text(), "next");
}

#[test]
fn client_that_reads_nothing_is_closed_at_write_timeout() {
    let (told, heard) = channel();
    let server =
        Server::with(4, |o| o.timeouts.write = Duration::from_millis(300)).work(move |job| {
            job.head(200, "");
            let piece = pattern(1_000_000);
            while job.write(&piece) {}
            told.send(()).unwrap();
            After::Finish
        });
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    heard.recv_timeout(WATCHDOG).unwrap();
}

/// Clients disconnect and workers die at any moment. Afterwards every slot must be free again.
#[test]
fn random_disconnects_and_deaths_leave_all_slots_free() {
    let turn = || AtomicUsize::new(0);
    let worker = |turn: AtomicUsize| {
        move |job: &mut Job<'_>| {
            let turn = turn.fetch_add(1, Ordering::SeqCst);
            let _ = if turn.is_multiple_of(3) { job.body() } else { None };
            job.head(200, "");
            let bytes = [10, 200_000, 500_000][turn % 3];
            job.write(&pattern(bytes));
            if turn.is_multiple_of(2) {
                job.flush();
            }
            if turn % 5 == 4 { After::Die } else { After::Finish }
        }
    };
    let server = Server::with(4, |o| o.request_buffering = false)
        .work(worker(turn()))
        .work(worker(turn()))
        .work(worker(turn()));
    for round in 0..60 {
        let mut clients: Vec<_> = (0..6).map(|_| server.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let length = (round + number) % 3 * 100_000;
            let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
            client.send(head.as_bytes());
            let _ = client.stream.write_all(&pattern(length / (1 + round % 2)));
        }
        for client in clients.iter_mut().take(round % 4) {
            // Half of the bodies are never sent completely, so there may be nothing to read.
            let patience = Duration::from_millis(round as u64 % 7 + 1);
            client.stream.set_read_timeout(Some(patience)).unwrap();
            let _ = client.stream.read(&mut [0; 9_000]);
        }
    }
    let counters = || server.handle.counters();
    until("all is over", || counters().pool.in_flight == 0 && counters().server.connections == 0);
    until("all slots are free", || counters().pool.slots_in_use == 0);
}

/// Overwrites a field of the job's slot with `value`. The slot is found by its word: Taken, by this
/// worker.
fn lie(job: &Job<'_>, field: usize, value: u64) {
    let file = std::fs::File::from(job.ring.file().try_clone_to_owned().unwrap());
    let word = offsets::STATE_TAKEN | job.me.get() << 8;
    let mut found = [0; 4];
    let is_own = |slot: &usize| {
        file.read_exact_at(&mut found, (slot + offsets::WORD) as u64).unwrap();
        u32::from_ne_bytes(found) == word
    };
    let slots = (offsets::SLOTS..).step_by(offsets::SLOT_BYTES).take(job.ring.slots());
    let slot = { slots }.find(is_own).expect("the slot's word");
    file.write_all_at(&value.to_ne_bytes(), (slot + field) as u64).unwrap();
}

#[test]
fn worker_writing_invalid_data_is_killed_and_front_survives() {
    let bad_head = 200 + (1 << 52);
    for (name, field, value) in [
        ("response position", offsets::RESPONSE_STREAM, u64::MAX),
        ("response position", offsets::RESPONSE_STREAM, 1 << 40),
        ("head length", offsets::STATUS, bad_head),
        ("status", offsets::STATUS, 99_999),
        ("word", offsets::WORD, u64::MAX),
        ("word of another generation", offsets::WORD, 5),
    ] {
        let server = Server::new().work(move |job| {
            if job.field("target") == "/" {
                return job.respond("fine");
            }
            job.head(200, "");
            lie(job, field, value);
            // Notifies the front regardless of the word.
            let _ = job.worker.flush(job.slot);
            let _ = Supervision::new(job.ring.clone());
            if field == offsets::WORD {
                std::thread::sleep(Duration::from_millis(1));
                return After::Die;
            }
            After::Hang
        });
        assert_eq!(server.get("/lie").status, 502, "{name}");
        assert_eq!(server.get("/").text(), "fine", "{name}");
        if field != offsets::WORD {
            let FrontEvent::KillWorker { reason, .. } = server.event() else { panic!("no kill") };
            assert_eq!(reason, KillReason::BrokenRing, "{name}");
        }
    }
}

#[test]
fn slot_wait_counts_toward_queue_timeout() {
    let server = Server::with(1, |o| o.timeouts.queue = Duration::from_secs(2));
    let ask = || {
        let mut client = server.client();
        client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        client
    };
    let in_flight =
        |n| until("requests in flight", || server.handle.counters().pool.in_flight == n);
    let begin = Instant::now();
    let first = ask();
    in_flight(1);
    let mut second = ask();
    in_flight(2);
    let mut third = ask();
    in_flight(3);
    until("half of the time", || begin.elapsed() >= Duration::from_secs(1));
    // The second request has a slot now, and continues to wait.
    drop(first);
    in_flight(2);
    assert_eq!(third.reply(false).status, 503, "it has never had a slot");
    // So the second request's time is over, too, even if a worker starts now.
    let _server = server.work(|job| job.respond("late"));
    assert_eq!(second.reply(false).status, 503);
}
