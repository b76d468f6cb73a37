//! A pipe that a server writes to, whose reader can be stopped or removed.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum reaction time of a reader.
const OBEYS_MS: i32 = 20;

/// Maximum bytes kept of a server that floods its log; the rest is read and discarded.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Behaviour of the other end of the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reader {
    /// Reads everything.
    Reads = 0,
    /// Keeps the pipe open and reads nothing.
    Stopped,
    /// Has closed the pipe. It does not return.
    Gone,
}

/// The reader of one pipe, and everything that it has read.
#[derive(Clone, Debug, Default)]
pub struct Tap(Arc<State>);

#[derive(Debug, Default)]
struct State {
    text: Mutex<Vec<u8>>,
    mode: AtomicU8,
    closed: AtomicU8,
}

impl Tap {
    /// Reads `pipe` on its own thread until the pipe ends.
    pub(crate) fn start(pipe: File) -> Tap {
        let tap = Tap::default();
        let reader = tap.clone();
        std::thread::spawn(move || reader.read(pipe));
        tap
    }

    /// Reads the output of a child.
    pub fn of_child(pipe: std::process::ChildStdout) -> Tap {
        Tap::start(std::os::fd::OwnedFd::from(pipe).into())
    }

    /// A tap without a pipe: it reads nothing.
    pub(crate) fn none() -> Tap {
        let tap = Tap::default();
        tap.0.closed.store(1, Ordering::SeqCst);
        tap
    }

    /// Sets the reader's behaviour. A reader that has closed the pipe stays so.
    pub fn set(&self, mode: Reader) {
        let change = |now| (now != Reader::Gone as u8).then_some(mode as u8);
        // Err: the reader is already closing the pipe, and a caller may wait for that.
        let _ = self.0.mode.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
    }

    /// Whether the pipe is closed at this end.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst) == 1
    }

    /// All complete lines read so far; if the pipe has ended, also the bytes after the last line.
    pub fn text(&self) -> String {
        let ended = self.is_closed();
        let text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
        let end = match text.iter().rposition(|byte| *byte == b'\n') {
            _ if ended => text.len(),
            Some(newline) => newline + 1,
            None => 0,
        };
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    /// Everything read so far: the output of a screen has no lines.
    pub fn screen(&self) -> String {
        let text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn read(&self, mut pipe: File) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let mode = self.0.mode.load(Ordering::SeqCst);
            if mode == Reader::Gone as u8 {
                break;
            }
            if mode == Reader::Stopped as u8 {
                std::thread::sleep(Duration::from_millis(OBEYS_MS.unsigned_abs().into()));
                continue;
            }
            if !is_readable(&pipe) {
                continue;
            }
            match pipe.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(len) => {
                    let mut text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
                    if text.len() < KEPT_BYTES_MAX {
                        text.extend_from_slice(&buffer[..len]);
                    }
                }
            }
        }
        drop(pipe);
        self.0.closed.store(1, Ordering::SeqCst);
    }
}

/// Waits a moment for bytes or the end.
fn is_readable(pipe: &File) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, for the time of the call.
    unsafe { libc::poll(&raw mut poll, 1, OBEYS_MS) > 0 }
}
