//! Tests of the limits on all bytes that the front holds for clients.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const MEGABYTE: u64 = 1 << 20;
/// Size of a response that is complete in memory.
const PAGE: usize = 60_000;
/// More than the kernel buffers for a connection whose client reads nothing.
const LONG: usize = 24_000_000;

/// A server with workers that write a page or a long response. Also returns the number of long
/// responses that workers have finished.
fn server(change: impl FnOnce(&mut Settings)) -> (Server, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let mut server = Server::with(64, change);
    for _ in 0..2 {
        let (page, long, count) = (pattern(PAGE), pattern(LONG), Arc::clone(&ends));
        server = server.work(move |job| {
            if job.body().is_some_and(|body| !body.is_empty()) {
                return job.respond("received");
            }
            let is_long = job.field("target") == "/long";
            job.head(200, "");
            let body = if is_long { &long } else { &page };
            for piece in body.chunks(50_000) {
                if !job.write(piece) {
                    break;
                }
            }
            count.fetch_add(usize::from(is_long), Ordering::SeqCst);
            After::Finish
        });
    }
    (server, ends)
}

/// A client at another address of this host.
fn client_at(server: &Server, last: u8) -> Client {
    Client::connect_from([127, 0, 0, last], server.address)
}

/// Asks for `count` pages over HTTP/2 with windows of zero.
fn leave_unread(server: &Server, last: u8, count: u32) -> Client {
    let mut client = client_at(server, last);
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0");
    for stream in 0..count {
        let head = b"\x82\x86\x84\x41\x01t";
        let id = (2 * stream + 1).to_be_bytes();
        client.send(&[&[0, 0, 6, 1, 5][..], &id, head].concat());
    }
    client
}

fn is_page(client: &mut Client) -> bool {
    client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    let reply = client.reply(false);
    reply.status == 200 && reply.body == pattern(PAGE)
}

fn rejected(server: &Server, reason: crate::Rejection) -> u64 {
    server.handle.counters().rejected_totals[reason as usize]
}

#[test]
fn client_that_reads_no_responses_gets_503_beyond_its_share() {
    let (server, _) = server(|settings| {
        settings.limits.buffered_bytes_max = 2 * MEGABYTE;
        settings.limits.buffer_share = 25;
    });
    let mut unread = vec![leave_unread(&server, 2, 20)];
    // All that were admitted before the share was used up. The gauge follows with the next sweep.
    let all = 20 * PAGE as u64;
    until("all are unread", || server.handle.counters().server.buffered_bytes >= all);
    unread.push(leave_unread(&server, 2, 90));
    until("all are refused", || rejected(&server, crate::Rejection::Unread) == 90);
    assert!(is_page(&mut client_at(&server, 3)), "others are served");
    let counters = server.handle.counters().server;
    assert!(counters.buffered_bytes < 2 * MEGABYTE, "{counters:?}");
    assert_eq!(counters.buffers_cut_total, 0);
    drop(unread);
    until("it is given back", || server.handle.counters().server.buffered_bytes == 0);
    assert!(is_page(&mut client_at(&server, 2)), "and so is this client");
}

#[test]
fn full_memory_resets_streams_of_client_that_holds_most() {
    let (server, _) = server(|settings| {
        settings.limits.buffered_bytes_max = 2 * MEGABYTE;
        settings.limits.buffer_share = 100;
    });
    let _few = leave_unread(&server, 3, 5);
    let _many: Vec<_> = (0..3).map(|_| leave_unread(&server, 2, 90)).collect();
    until("some are cut", || server.handle.counters().server.buffers_cut_total > 100);
    until("no request runs", || server.handle.counters().pool.slots_in_use == 0);
    // The gauge follows with the next sweep.
    let most = 3 * MEGABYTE;
    until("memory is given back", || server.handle.counters().server.buffered_bytes <= most);
    assert!(is_page(&mut client_at(&server, 4)));
}

#[test]
fn client_over_its_share_of_files_holds_no_worker() {
    let (server, ends) = server(|settings| {
        settings.limits.spooled_bytes_max = 64 * MEGABYTE;
        settings.limits.buffer_share = 50;
    });
    let ask = |last| {
        let mut client = client_at(&server, last);
        client.send(b"GET /long HTTP/1.1\r\nHost: t\r\n\r\n");
        client
    };
    let mut other = ask(3);
    until("it is buffered", || ends.load(Ordering::SeqCst) == 1);
    let mut greedy: Vec<_> = (0..4).map(|_| ask(2)).collect();
    until("workers are free", || server.handle.counters().pool.slots_in_use == 0);
    until("some are cut", || server.handle.counters().server.buffers_cut_total >= 2);
    assert!(is_page(&mut client_at(&server, 4)));
    let complete = greedy.iter_mut().filter_map(|client| {
        // A connection that is cut before its response began has no head.
        client.line_end(b"\r\n\r\n")?;
        Some(client.reply(false))
    });
    let complete = complete.filter(|reply| reply.is_complete).count();
    assert!((1..=2).contains(&complete), "{complete} of 4");
    let reply = other.reply(false);
    assert!(reply.is_complete && reply.body == pattern(LONG), "{} bytes", reply.body.len());
    drop(greedy);
    until("all is given back", || server.handle.counters().server.spooled_bytes == 0);
}

#[test]
fn body_beyond_clients_share_of_files_gets_503() {
    let (server, _) = server(|settings| {
        settings.limits.spooled_bytes_max = 4 * MEGABYTE;
        settings.limits.buffer_share = 25;
    });
    let post = |last: u8, bytes: usize| {
        let mut client = client_at(&server, last);
        let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {bytes}\r\n\r\n");
        client.send(head.as_bytes());
        // The connection may be closed before all of it is sent.
        let _ = client.stream.write_all(&pattern(bytes));
        client.reply(false)
    };
    assert_eq!(post(2, 900_000).text(), "received");
    let refused = post(2, 1_500_000);
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(refused.text().contains("no room"), "{refused:?}");
    assert_eq!(rejected(&server, crate::Rejection::Spool), 1);
    assert_eq!(post(2, 900_000).text(), "received", "the rejected body holds nothing");
    assert_eq!(post(3, 900_000).text(), "received");
    until("all is given back", || server.handle.counters().server.spooled_bytes == 0);
}

#[test]
fn unfinished_bodies_of_one_client_do_not_fill_the_files() {
    let (server, _) = server(|settings| {
        settings.limits.spooled_bytes_max = 4 * MEGABYTE;
        settings.limits.buffer_share = 100;
    });
    let start = |last: u8| {
        let mut client = client_at(&server, last);
        client.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
        client.send(&pattern(800_000));
        client
    };
    let mut greedy: Vec<_> = (0..5).map(|_| start(2)).collect();
    until("they are stored", || server.handle.counters().server.spooled_bytes > 3_500_000);
    let mut other = start(3);
    other.send(&pattern(1_000_000)[800_000..]);
    assert_eq!(other.reply(false).text(), "received");
    until("one is cut", || server.handle.counters().server.buffers_cut_total >= 1);
    let is_refused = |client: &mut Client| {
        let _ = client.stream.write_all(&pattern(1_000_000)[800_000..]);
        client.line_end(b"\r\n\r\n").is_none() || client.reply(false).status != 200
    };
    let refused = greedy.iter_mut().map(is_refused).filter(|is_refused| *is_refused);
    assert!((1..=2).contains(&refused.count()));
}
