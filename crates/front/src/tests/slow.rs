//! Tests of clients that read a response more slowly than the worker writes it.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than the kernel buffers for a connection whose client reads nothing.
const LONG: usize = 24_000_000;

/// A server whose only worker writes [`LONG`] bytes for `/long` and responds `ok` to all other
/// requests. Also returns the number of bytes written and the number of completed runs.
fn server(
    change: impl FnOnce(&mut Settings),
    end: fn(&mut Job<'_>) -> After,
) -> (Server, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (given, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&given), Arc::clone(&ends));
    let body = pattern(LONG);
    let server = Server::with(4, change).work(move |job| {
        if job.field("target") != "/long" {
            return job.respond("ok");
        }
        job.head(200, "");
        for piece in body.chunks(50_000) {
            if !job.write(piece) {
                break;
            }
            counts.0.fetch_add(piece.len(), Ordering::SeqCst);
        }
        counts.1.fetch_add(1, Ordering::SeqCst);
        end(job)
    });
    (server, given, ends)
}

fn ask_long(server: &Server) -> Client {
    let mut slow = server.client();
    slow.send(b"GET /long HTTP/1.1\r\nHost: t\r\n\r\nGET /next HTTP/1.1\r\nHost: t\r\n\r\n");
    slow
}

#[test]
fn worker_finishes_before_slow_client_reads() {
    let (server, _, ends) = server(|_| {}, |_| After::Finish);
    let mut slow: Vec<_> = (0..3).map(|_| ask_long(&server)).collect();
    until("three answers are given", || ends.load(Ordering::SeqCst) == 3);
    assert_eq!(server.get("/").text(), "ok", "others have the worker");
    assert_eq!(server.handle.counters().pool.in_flight, 3);
    for client in &mut slow {
        let reply = client.reply(false);
        assert!(reply.is_complete && reply.body == pattern(LONG), "{} bytes", reply.body.len());
        assert_eq!(client.reply(false).text(), "ok", "what was asked behind it");
    }
}

#[test]
fn worker_waits_when_memory_and_file_limits_are_reached() {
    for (memory, file) in [(0, 0), (300_000, 0), (0, 2_000_000), (100_000, 1_000_000)] {
        let change = move |o: &mut Settings| {
            o.limits.response_memory_bytes_max = memory;
            o.limits.response_spill_bytes_max = file;
        };
        let (server, given, ends) = server(change, |_| After::Finish);
        let mut slow = ask_long(&server);
        let before = AtomicUsize::new(0);
        // Until no more bytes are written.
        until("the worker is held up", || {
            std::thread::sleep(Duration::from_millis(100));
            let now = given.load(Ordering::SeqCst);
            now > 0 && before.swap(now, Ordering::SeqCst) == now
        });
        assert_eq!(ends.load(Ordering::SeqCst), 0, "{memory} {file}");
        let reply = slow.reply(false);
        assert!(reply.is_complete && reply.body == pattern(LONG), "{memory} {file}");
        assert_eq!(slow.reply(false).text(), "ok");
    }
}

#[test]
fn unusable_temp_dir_loses_no_bytes() {
    let gone = |o: &mut Settings| o.temp_dir = "/nonexistent/samovar".into();
    let (server, _, ends) = server(gone, |_| After::Finish);
    let mut slow = ask_long(&server);
    let reply = slow.reply(false);
    assert!(reply.is_complete && reply.body == pattern(LONG), "{} bytes", reply.body.len());
    assert_eq!(slow.reply(false).text(), "ok");
    assert_eq!(ends.load(Ordering::SeqCst), 1);
}

#[test]
fn buffered_bytes_of_incomplete_response_are_sent() {
    let (server, _, ends) = server(
        |_| {},
        |job| {
            job.flush();
            After::Die
        },
    );
    let mut slow = ask_long(&server);
    until("the worker is dead", || ends.load(Ordering::SeqCst) == 1);
    let reply = slow.reply(false);
    assert!(!reply.is_complete, "half an answer must not look whole");
    assert!(pattern(LONG).starts_with(&reply.body));
}

#[test]
fn disconnect_discards_buffered_response() {
    let (server, _, ends) = server(|_| {}, |_| After::Finish);
    for round in 1..=3 {
        let slow = ask_long(&server);
        until("the answer is given", || ends.load(Ordering::SeqCst) == round);
        drop(slow);
    }
    until("nothing in flight", || server.handle.counters().pool.in_flight == 0);
    assert_eq!(server.get("/").text(), "ok");
}

#[test]
fn write_timeout_frees_worker_of_stalled_client() {
    let change = |o: &mut Settings| {
        o.limits.response_memory_bytes_max = 0;
        o.limits.response_spill_bytes_max = 0;
        o.timeouts.write = Duration::from_millis(300);
    };
    let (server, _, ends) = server(change, |_| After::Finish);
    let _stuck = ask_long(&server);
    until("the connection is cut", || ends.load(Ordering::SeqCst) == 1);
    assert_eq!(server.get("/").text(), "ok");
}
