//! Keeps signals away from the threads that write logs.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Starts a thread with all signals blocked. Signals to the process are for the threads that wait
/// for them. A write to a terminal from the background must not stop the process.
pub(crate) fn spawn_deaf(
    name: &str,
    mut run: impl FnMut() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // The new thread inherits the mask, so there is no moment without it.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        // A panic loses only the data in hand. The loop restarts: without its thread, a log would
        // accept no more lines.
        while catch_unwind(AssertUnwindSafe(&mut run)).is_err() {}
    });
    before.thread_set_mask()?;
    thread
}

/// Makes a write beyond the file size limit (`ulimit -f`) an error. Without this, SIGXFSZ ends the
/// process.
pub fn survive_file_limits() {
    // SAFETY: the signal is ignored; no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
