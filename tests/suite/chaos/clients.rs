//! Clients that read or send one byte at a time, stop sending, or disconnect in the middle.

use crate::chaos::load::PATIENCE;
use crate::chaos::stage::{Stage, WORKERS};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::kernel;
use samovar_testkit::order::Order;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const MEANWHILE: u64 = 60;

/// Number of slow readers: three per worker. They must not occupy the workers, so that even the
/// last one is served immediately.
const READERS: usize = 3 * WORKERS;

/// Bytes that a slow client reads at a time, and the pause between its reads or writes.
const SIP_BYTES: usize = 1024;
const SIP_PAUSE: Duration = Duration::from_millis(100);

/// Number of slow writers, and of half-open connections.
const WRITERS: usize = 40;

/// Reads 20 MB at 10 KB/s, with more clients than there are workers.
pub(crate) fn slow_readers(stage: &Stage, order: &mut Order) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..READERS {
            let target = if order.next(4) == 0 { "/large.bin" } else { "/big?nonce=slow" };
            let stop = &stop;
            scope.spawn(move || sip(stage, &format!("{target}?reader={number}"), stop));
        }
        stage.did(&format!("{READERS} slow readers"));
        // All readers have started before progress is measured.
        std::thread::sleep(Duration::from_millis(300));
        stage.progress(MEANWHILE, "while slow readers read");
        stop.store(true, Ordering::SeqCst);
    });
}

fn sip(stage: &Stage, target: &str, stop: &AtomicBool) {
    let Ok(mut client) = Client::try_connect(stage.address(), PATIENCE) else { return };
    kernel::receive_buffer(client.stream(), 4096);
    let target = target.replacen("?reader", "&reader", usize::from(target.contains("nonce")));
    if client.try_send(&Request::get(&target).bytes()).is_err() {
        return;
    }
    let mut buffer = [0; SIP_BYTES];
    let _ = client.stream().set_read_timeout(Some(SIP_PAUSE));
    while !stop.load(Ordering::SeqCst) {
        // A read may time out: the server may have no worker for this request yet.
        let _ = client.stream().read(&mut buffer);
        std::thread::sleep(SIP_PAUSE);
    }
}

/// Sends heads and bodies one byte at a time.
pub(crate) fn slow_writers(stage: &Stage, order: &mut Order) {
    const HEAD: &[u8] = b"GET /hello HTTP/1.1\r\nHost: slow\r\nX-Slow: ";
    const BODY: &[u8] = b"POST /echo HTTP/1.1\r\nHost: slow\r\nContent-Length: 100000\r\n\r\n";
    const CHUNKS: &[u8] =
        b"POST /echo HTTP/1.1\r\nHost: slow\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n";
    let mut writers: Vec<_> = (0..WRITERS)
        .filter_map(|_| {
            let mut client = Client::try_connect(stage.address(), PATIENCE).ok()?;
            client.try_send([HEAD, BODY, CHUNKS][order.next(3)]).ok()?;
            Some(client)
        })
        .collect();
    stage.did(&format!("{} slow writers", writers.len()));
    for _ in 0..10 {
        for writer in &mut writers {
            // The server may have closed the connection.
            let _ = writer.try_send(b"a");
        }
        std::thread::sleep(SIP_PAUSE);
    }
    stage.progress(MEANWHILE, "while slow writers write");
    assert!(!writers.is_empty(), "somebody connected");
}

/// Opens connections that send nothing or half a request. Others are closed or reset, before or in
/// the middle of a response.
pub(crate) fn half_open(stage: &Stage, order: &mut Order) {
    let mut open = Vec::new();
    for _ in 0..WRITERS {
        let Ok(mut client) = Client::try_connect(stage.address(), PATIENCE) else { continue };
        let sent: &[u8] = match order.next(6) {
            0 => b"",
            1 => b"GET /hel",
            2 => b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\nhalf",
            3 => b"GET /slow?ms=50 HTTP/1.1\r\nHost: a\r\n\r\n",
            4 => b"GET /medium?nonce=gone HTTP/1.1\r\nHost: a\r\n\r\n",
            _ => b"GET /big?nonce=gone HTTP/1.1\r\nHost: a\r\n\r\n",
        };
        let _ = client.try_send(sent);
        match order.next(4) {
            0 => client.finish_sending(),
            1 => kernel::reset_on_close(client.stream()),
            2 => {
                // Reset in the middle of the response.
                let _ = client.stream().set_read_timeout(Some(SIP_PAUSE));
                let _ = client.stream().read(&mut [0; SIP_BYTES]);
                kernel::reset_on_close(client.stream());
            }
            _ => {}
        }
        if order.next(2) == 0 {
            open.push(client);
        }
    }
    stage.did(&format!("{} half-open connections, others gone", open.len()));
    // Open connections may hold workers with a response that is never read. That is not the subject
    // of this kind.
    open.retain(|client| client.stream().peer_addr().is_ok());
    drop(open);
    stage.progress(MEANWHILE, "after clients went away");
}
