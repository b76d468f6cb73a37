//! Clients that take an answer more slowly than the worker gives it.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than the kernel keeps for a connection whose client reads nothing.
const LONG: usize = 24_000_000;

/// A server whose only worker gives [`LONG`] bytes for `/long`, counts how many it got rid of and how often it came to the
/// end; it answers `ok` to all else.
fn server(
    change: impl FnOnce(&mut Settings),
    end: fn(&mut Job<'_>) -> After,
) -> (Server, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (given, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&given), Arc::clone(&ends));
    let body = pattern(LONG);
    let server = Server::with(4, change).work(move |job| {
        if job.field("target") != "/long" {
            return job.answer("ok");
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
fn a_worker_is_done_before_its_client_has_read_anything() {
    let (server, _, ends) = server(|_| {}, |_| After::Finish);
    let mut slow: Vec<_> = (0..3).map(|_| ask_long(&server)).collect();
    until("three answers are given", || ends.load(Ordering::SeqCst) == 3);
    assert_eq!(server.get("/").text(), "ok", "others have the worker");
    assert_eq!(server.handle.counters().in_flight, 3);
    for client in &mut slow {
        let reply = client.reply(false);
        assert!(reply.is_complete && reply.body == pattern(LONG), "{} bytes", reply.body.len());
        assert_eq!(client.reply(false).text(), "ok", "what was asked behind it");
    }
}

#[test]
fn beyond_memory_and_file_the_worker_waits() {
    for (memory, file) in [(0, 0), (300_000, 0), (0, 2_000_000), (100_000, 1_000_000)] {
        let change = move |o: &mut Settings| {
            o.limits.answer_memory_bytes_max = memory;
            o.limits.answer_file_bytes_max = file;
        };
        let (server, given, ends) = server(change, |_| After::Finish);
        let mut slow = ask_long(&server);
        let before = AtomicUsize::new(0);
        // Until nothing moves any more.
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
fn without_room_on_the_disk_nothing_is_lost() {
    let gone = |o: &mut Settings| o.temp_dir = "/nonexistent/samovar".into();
    let (server, _, ends) = server(gone, |_| After::Finish);
    let mut slow = ask_long(&server);
    let reply = slow.reply(false);
    assert!(reply.is_complete && reply.body == pattern(LONG), "{} bytes", reply.body.len());
    assert_eq!(slow.reply(false).text(), "ok");
    assert_eq!(ends.load(Ordering::SeqCst), 1);
}

#[test]
fn an_answer_that_breaks_off_is_given_as_far_as_it_came_and_cut() {
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
fn a_client_that_leaves_takes_its_answer_with_it() {
    let (server, _, ends) = server(|_| {}, |_| After::Finish);
    for round in 1..=3 {
        let slow = ask_long(&server);
        until("the answer is given", || ends.load(Ordering::SeqCst) == round);
        drop(slow);
    }
    until("nothing in flight", || server.handle.counters().in_flight == 0);
    assert_eq!(server.get("/").text(), "ok");
}

#[test]
fn a_worker_whose_client_stops_reading_is_freed_at_the_write_timeout() {
    let change = |o: &mut Settings| {
        o.limits.answer_memory_bytes_max = 0;
        o.limits.answer_file_bytes_max = 0;
        o.timeouts.write = Duration::from_millis(300);
    };
    let (server, _, ends) = server(change, |_| After::Finish);
    let _stuck = ask_long(&server);
    until("the connection is cut", || ends.load(Ordering::SeqCst) == 1);
    assert_eq!(server.get("/").text(), "ok");
}
