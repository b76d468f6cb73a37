//! Faulty clients of the control socket: silent, too long, or with unknown commands.

use crate::chaos::stage::Stage;
use samovar_testkit::order::Order;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const MEANWHILE: u64 = 20;

/// Number of clients that connect and send nothing or half a word.
const SILENT: usize = 8;

pub(crate) fn abuse(stage: &Stage, order: &mut Order) {
    let connect = || UnixStream::connect(stage.server.control()).ok();
    let mut silent: Vec<_> = (0..SILENT).filter_map(|_| connect()).collect();
    for stream in &mut silent {
        if order.next(2) == 0 {
            let _ = stream.write_all(b"stat");
        }
    }
    for words in [&b"\n"[..], b"no such word\n", b"\xff\xfe\0\n", b"status extra\n"] {
        if order.next(2) == 0 {
            // The response may come only after the silent clients' timeout, or never.
            let _ = stage.control(words, Duration::from_millis(100));
        }
    }
    if let Some(mut stream) = connect() {
        let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
        let _ = stream.write_all(&vec![b'x'; 1 << 20]);
    }
    if let Some(mut stream) = connect() {
        // The client disconnects before the response.
        let _ = stream.write_all(b"status\n");
    }
    stage.did(&format!("{} silent clients of the control socket", silent.len()));
    // One client waits five seconds. A server that serves the silent clients first would miss that
    // deadline.
    let response = stage.control(b"status\n", Duration::from_secs(5));
    if !response.as_ref().is_ok_and(|line| line.starts_with('{')) {
        stage.find(format!("no status beside {SILENT} silent clients: {response:?}"));
    }
    stage.progress(MEANWHILE, "while the control socket is abused");
    drop(silent);
    stage.wait_for("status after the silent clients", || stage.status().is_some());
}
