//! The image process: boots the front controller once down to its checkpoint, and forks the workers
//! there.
//!
//! It is a child of the template, which passes on the orders of the supervisor. Events of its
//! workers and of the boot go from the image process straight to the supervisor, on the template's
//! channel.

use crate::boundary::{self, BootPlace, Outcome};
use crate::life;
use crate::log;
use crate::os::{self, BlockedSignals};
use crate::request_head::Head;
use crate::shared;
use crate::tracing;
use crate::warmup;
use samovar_channel::{
    Event, Finding, Heard, Image, ImageEnd, ImageMode, ImageOrder, ImageWord, TemplateEnd, WorkerId,
};
use samovar_ring::{Lane, LeaveReason, Ring, WorkerEnd};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

/// Channels and ring of the image process.
pub(crate) struct ImageProcess {
    /// To the template: receives its orders, sends our messages.
    pub(crate) template: ImageEnd,
    /// To the supervisor, on the template's channel. Only written to.
    pub(crate) supervisor: TemplateEnd,
    pub(crate) ring: Ring,
}

struct Global(UnsafeCell<Option<(ImageProcess, Instant)>>);
// SAFETY: the process has one thread; no reference is held while PHP or this module is called.
unsafe impl Sync for Global {}
static HERE: Global = Global(UnsafeCell::new(None));

fn here() -> Option<&'static mut (ImageProcess, Instant)> {
    // SAFETY: see `Global`.
    unsafe { (*HERE.0.get()).as_mut() }
}

/// Boots the application. Never returns. A worker forked below it ends here, too.
pub(crate) fn run(process: ImageProcess, rehearsed: bool) -> ! {
    os::unblock_signals();
    if rehearsed {
        prewarm_boot(&process);
    }
    process.report(&Event::Booting { pid: os::own_pid() });
    // SAFETY: see `Global`; nothing else has run in this process yet.
    unsafe { *HERE.0.get() = Some((process, Instant::now())) };
    tracing::install();
    tracing::open();
    let outcome = boundary::php_boot(BootPlace::Image);
    if let Some((process, _)) = here() {
        process.say(ImageWord::Failed);
    } else {
        match outcome {
            Outcome::Restart => boundary::leave(LeaveReason::Fatal),
            Outcome::Ended => life::leave_after_serving(),
            Outcome::Stop | Outcome::Done => boundary::php_shutdown(),
        }
    }
    // SAFETY: ends the process; the template's copies must not be dropped here.
    unsafe { libc::_exit(0) }
}

/// Boots once in a child, which ends where the image would be taken. Afterwards the compiled code
/// is in opcache, and the application's caches are in its files. The boot that follows uses these
/// and leaves less data in memory: requests change half as many pages as with an image that was
/// booted with cold caches. Logs nothing, because the real boot logs the same again.
fn prewarm_boot(process: &ImageProcess) {
    let parent = os::own_pid();
    // SAFETY: the process has one thread, so the child may continue as an ordinary process.
    match unsafe { libc::fork() } {
        0 => {
            os::die_with_parent(parent);
            log::silence();
            boundary::php_boot(BootPlace::Rehearsal);
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        -1 => {}
        pid => {
            process.report(&Event::Booting { pid });
            // SAFETY: waits for the child; the status has no reader.
            while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0 && interrupted() {}
        }
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

impl ImageProcess {
    fn say(&self, word: ImageWord) {
        // If the template has died, this process is killed, too.
        let _ = self.template.send(&word);
    }

    fn report(&self, event: &Event) {
        let _ = self.supervisor.send(event);
    }

    /// Forks as ordered until the template closes the channel. Returns in each worker.
    fn serve(&self) -> io::Result<()> {
        let signals = os::blocked_signals();
        let children = os::block_sigchld()?;
        let mut workers = HashMap::new();
        let parent = os::own_pid();
        loop {
            let [order, child] =
                os::wait_for_any([self.template.as_fd(), children.as_fd()].map(Some))?;
            if child {
                os::drain(&children);
                while let Some((pid, status)) = os::reap() {
                    if let Some(worker) = workers.remove(&pid) {
                        self.report(&Event::Died { worker, pid, status });
                    }
                }
            }
            if !order {
                continue;
            }
            let (worker, output) = match self.template.hear()? {
                Heard::Message(ImageOrder::Fork { worker }, output) => (worker, output),
                Heard::Message(ImageOrder::Ping, _) => {
                    self.say(ImageWord::Pong);
                    continue;
                }
                Heard::Garbled(_) => continue,
                // SAFETY: ends the process, because the template has closed the channel.
                Heard::End => unsafe { libc::_exit(0) },
            };
            // SAFETY: the process has one thread, so the child may continue as an ordinary process.
            match unsafe { libc::fork() } {
                -1 => {
                    let why = io::Error::last_os_error().to_string();
                    self.report(&Event::Failed { worker, why });
                }
                0 => {
                    drop(children);
                    os::print_there(output);
                    self.become_worker(parent, worker, &signals);
                    return Ok(());
                }
                pid => {
                    workers.insert(pid, worker);
                    self.report(&Event::Forked { worker, pid });
                }
            }
            self.say(ImageWord::Done);
        }
    }

    /// `signals`: the mask that the application has set during its boot.
    fn become_worker(&self, parent: i32, me: WorkerId, signals: &BlockedSignals) {
        os::die_with_parent(parent);
        os::close(self.template.as_raw_fd());
        os::close(self.supervisor.as_raw_fd());
        os::block_signals(signals);
        let lanes = tracing::lanes(&[Lane::App]);
        boundary::install(WorkerEnd::new(self.ring.clone(), me.cell, me.life), lanes);
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_boot_over() {
    if here().is_some() {
        tracing::close(std::ptr::null(), 0);
        tracing::forked();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_image_is(mode: *const c_char, bytes: usize, regions: usize) {
    let Some((process, since)) = here() else { return };
    shared::image_taken();
    // Releases locks and values of the boot: processes that are forked here could not release them.
    shared::let_go();
    // SAFETY: boundary.h: NUL-terminated.
    let mode = ImageMode::of(&unsafe { CStr::from_ptr(mode) }.to_string_lossy());
    let (bytes, regions, boot) = (bytes as u64, regions as u64, since.elapsed());
    process.report(&Event::Image(Image { mode, bytes, regions, boot }));
    let word = match mode {
        ImageMode::Shared | ImageMode::Resident => ImageWord::Ready,
        ImageMode::Worker => ImageWord::BootPerWorker,
        ImageMode::Script => ImageWord::Script,
    };
    process.say(word);
    if word != ImageWord::Ready || process.serve().is_err() {
        // SAFETY: ends the process; the template continues without it.
        unsafe { libc::_exit(0) }
    }
    // This is a worker from here on. Its copies of the template's descriptors are already closed,
    // so their owners are not dropped.
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
    let [kind, action, what, place, advice] = [kind, action, what, place, advice].map(|text| {
        // SAFETY: boundary.h: NUL-terminated.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    });
    process.report(&Event::Finding(Finding { kind, action, what, place, advice }));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_next_warmup() -> *const Head {
    warmup::next()
}
