//! A listener that accepts no connection: its queue is full, and connections are not refused.
#![allow(unsafe_code)]

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Longer than a connection over loopback takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_millis(300);
/// More connections than its queue could hold.
const QUEUE_MAX: usize = 64;

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Deaf {
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Deaf {
    /// Creates a listener with a full queue.
    pub fn at(address: SocketAddr) -> Deaf {
        let listener = TcpListener::bind(address).unwrap_or_else(|e| panic!("{address}: {e}"));
        // SAFETY: no pointers; the descriptor is that of a socket which lives.
        let status = unsafe { libc::listen(listener.as_raw_fd(), 0) };
        assert_eq!(status, 0, "{}", io::Error::last_os_error());
        let mut queue = Vec::new();
        while let Ok(one) = TcpStream::connect_timeout(&address, PATIENCE) {
            queue.push(one);
            assert!(queue.len() < QUEUE_MAX, "the queue of {address} has no end");
        }
        Deaf { _listener: listener, _queue: queue }
    }
}
