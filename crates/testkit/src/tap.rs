//! A pipe that a server writes into, whose reader can be stopped or taken away.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How soon a reader obeys.
const OBEYS_MS: i32 = 20;

/// What is kept of a server that floods its log; the rest is read and forgotten.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What the other end of the pipe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reader {
    /// Reads all that comes.
    Reads = 0,
    /// Keeps the pipe open and reads nothing.
    Stopped,
    /// Has closed the pipe. It does not come back.
    Gone,
}

/// The reader of one pipe, and all that it has read.
#[derive(Clone, Debug, Default)]
pub struct Tap(Arc<State>);

#[derive(Debug, Default)]
struct State {
    text: Mutex<Vec<u8>>,
    mode: AtomicU8,
    closed: AtomicU8,
}

impl Tap {
    /// Reads `pipe` on a thread of its own until it ends.
    pub(crate) fn start(pipe: File) -> Tap {
        let tap = Tap::default();
        let reader = tap.clone();
        std::thread::spawn(move || reader.read(pipe));
        tap
    }

    /// What a child prints.
    pub fn of_child(pipe: std::process::ChildStdout) -> Tap {
        Tap::start(std::os::fd::OwnedFd::from(pipe).into())
    }

    /// Of no pipe: nothing comes.
    pub(crate) fn none() -> Tap {
        let tap = Tap::default();
        tap.0.closed.store(1, Ordering::SeqCst);
        tap
    }

    /// Tells the reader what to do; a reader that is gone stays so.
    pub fn set(&self, mode: Reader) {
        let change = |now| (now != Reader::Gone as u8).then_some(mode as u8);
        // Err: it is on its way out, which somebody may wait for.
        let _ = self.0.mode.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
    }

    /// Whether the pipe is closed at this end.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst) == 1
    }

    /// All whole lines that were read so far; of a pipe that has ended, what came after the last one, too.
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

    /// All that was read so far: a screen has no lines.
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
