//! The image process: boots the front controller down to its checkpoint once, and forks the workers there.
//!
//! It is a child of the template, which passes on what the supervisor asks for. What it has to tell (`forked`,
//! `died`, `image`, `finding`) it tells the supervisor itself, on the template's channel.

use crate::boundary::{self, Outcome, Place};
use crate::life;
use crate::log;
use crate::os;
use crate::warmup;
use samovar_ring::{Incarnation, Lane, LeaveReason, Ring, WorkerEnd};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

/// What the image process says of itself to the template, in one word each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays, and forks booted workers.
    Ready,
    /// Each worker must boot by itself.
    BootPerWorker,
    /// Nothing can be rolled back: each request runs the whole script.
    Script,
    /// The boot ended without asking for requests.
    Failed,
}

impl Verdict {
    const ALL: [(Verdict, &'static str); 4] = [
        (Verdict::Ready, "ready"),
        (Verdict::BootPerWorker, "worker"),
        (Verdict::Script, "script"),
        (Verdict::Failed, "failed"),
    ];

    fn word(self) -> &'static str {
        Verdict::ALL.iter().find(|(v, _)| *v == self).map_or("", |(_, word)| word)
    }

    pub(crate) fn parse(text: &str) -> Option<Verdict> {
        Verdict::ALL.iter().find(|(_, word)| *word == text).map(|(v, _)| *v)
    }
}

/// What the image process holds.
pub(crate) struct ImageProcess {
    /// To the template: its orders, our verdict.
    pub(crate) template: OwnedFd,
    /// To the supervisor; only written to.
    pub(crate) supervisor: OwnedFd,
    pub(crate) ring: Ring,
}

/// Longest texts of a finding, bytes, so that it fits one message.
const TEXT_BYTES_MAX: usize = 400;

struct Global(UnsafeCell<Option<(ImageProcess, Instant)>>);
// SAFETY: the process has one thread; no reference is held while PHP or this module is called.
unsafe impl Sync for Global {}
static HERE: Global = Global(UnsafeCell::new(None));

fn here() -> Option<&'static mut (ImageProcess, Instant)> {
    // SAFETY: see `Global`.
    unsafe { (*HERE.0.get()).as_mut() }
}

/// Boots; never returns. A worker that is forked below ends here too.
pub(crate) fn run(process: ImageProcess, rehearsed: bool) -> ! {
    os::unblock_signals();
    if rehearsed {
        rehearse();
    }
    // SAFETY: see `Global`; nothing else has run in this process yet.
    unsafe { *HERE.0.get() = Some((process, Instant::now())) };
    let outcome = boundary::php_boot(Place::Image);
    if let Some((process, _)) = here() {
        process.say(Verdict::Failed);
    } else {
        match outcome {
            Outcome::Restart => boundary::leave(LeaveReason::Fatal),
            Outcome::Ended => boundary::leave(LeaveReason::End),
            Outcome::Stop | Outcome::Done => boundary::php_shutdown(),
        }
    }
    // SAFETY: ends the process; the template's copies must not be dropped here.
    unsafe { libc::_exit(0) }
}

/// Boots once in a child, which ends where the image would be taken: what it compiles is in opcache then, and what the
/// application caches is in its files. The boot that follows finds all that, and leaves less behind in memory: requests
/// change half as many pages of an image that was booted with cold caches. Says nothing; the real boot says it again.
fn rehearse() {
    // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
    match unsafe { libc::fork() } {
        0 => {
            os::die_with_parent();
            log::silence();
            boundary::php_boot(Place::Rehearsal);
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        -1 => {}
        // SAFETY: waits for the child; the status has no reader.
        pid => while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0 && interrupted() {},
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

impl ImageProcess {
    fn say(&self, verdict: Verdict) {
        // A template that has gone takes us with it.
        let _ = os::send(self.template.as_raw_fd(), verdict.word());
    }

    fn report(&self, text: &str) {
        let _ = os::send(self.supervisor.as_raw_fd(), text);
    }

    /// Forks as ordered until the template closes; comes back in each worker.
    fn serve(&self) -> io::Result<()> {
        let children = os::block_sigchld()?;
        let mut workers = HashMap::new();
        loop {
            let [order, child] =
                os::wait_for_any([self.template.as_raw_fd(), children.as_raw_fd()])?;
            if child {
                os::drain(children.as_raw_fd());
                while let Some((pid, status)) = os::reap() {
                    if let Some((index, me)) = workers.remove(&pid) {
                        self.report(&died(index, me, pid, status));
                    }
                }
            }
            if !order {
                continue;
            }
            let Some(text) = os::receive(self.template.as_raw_fd())? else {
                // SAFETY: the template has gone.
                unsafe { libc::_exit(0) }
            };
            let Some((index, me, _)) = life::parse_fork(&text) else { continue };
            // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
            match unsafe { libc::fork() } {
                -1 => {
                    let error = io::Error::last_os_error();
                    self.report(&format!("failed {index} {} {error}", me.get()));
                }
                0 => {
                    drop(children);
                    self.become_worker(index, me);
                    return Ok(());
                }
                pid => {
                    workers.insert(pid, (index, me));
                    self.report(&format!("forked {index} {} {pid}", me.get()));
                }
            }
        }
    }

    fn become_worker(&self, index: usize, me: Incarnation) {
        os::die_with_parent();
        for fd in [&self.template, &self.supervisor] {
            os::close(fd.as_raw_fd());
        }
        os::unblock_signals();
        boundary::install(WorkerEnd::new(self.ring.clone(), index, me), &[Lane::App]);
    }
}

/// The message about a worker's end.
pub(crate) fn died(index: usize, me: Incarnation, pid: i32, status: i32) -> String {
    format!("died {index} {} {pid} {status}", me.get())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_image_is(mode: *const c_char, bytes: usize, regions: usize) {
    let Some((process, since)) = here() else { return };
    // SAFETY: boundary.h: NUL-terminated.
    let mode = unsafe { CStr::from_ptr(mode) }.to_string_lossy();
    let boot_us = since.elapsed().as_micros();
    process.report(&format!("image {mode} {bytes} {regions} {boot_us}"));
    let verdict = match &*mode {
        "shared" | "resident" => Verdict::Ready,
        "worker" => Verdict::BootPerWorker,
        _ => Verdict::Script,
    };
    process.say(verdict);
    if verdict != Verdict::Ready || process.serve().is_err() {
        // SAFETY: ends the process; the template goes on without it.
        unsafe { libc::_exit(0) }
    }
    // A worker from here on. Its descriptors of the template are closed: nobody drops their owners.
    // SAFETY: see `Global`; the reference above is not used any more.
    let _closed = ManuallyDrop::new(unsafe { (*HERE.0.get()).take() });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_finding(
    kind: *const c_char,
    action: *const c_char,
    what: *const c_char,
    place: *const c_char,
    advice: *const c_char,
) {
    let Some((process, _)) = here() else { return };
    let fields = [kind, action, what, place, advice].map(|field| {
        // SAFETY: boundary.h: NUL-terminated.
        let text = unsafe { CStr::from_ptr(field) }.to_string_lossy();
        let cut = text.floor_char_boundary(text.len().min(TEXT_BYTES_MAX));
        text[..cut].replace(['\t', '\n'], " ")
    });
    process.report(&format!("finding {}", fields.join("\t")));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_next_warmup() -> *const boundary::Head {
    warmup::next()
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn verdicts_come_back_as_they_went() {
        for (verdict, word) in Verdict::ALL {
            assert_eq!(verdict.word(), word);
            assert_eq!(Verdict::parse(word), Some(verdict));
        }
        assert_eq!(Verdict::parse("dance"), None);
    }
}
