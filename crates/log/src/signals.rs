//! Signals and the threads that write: none of their business.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// A thread that no signal is delivered to: those of the process are for threads that wait for them, and writing to a
/// terminal from the background stops nobody.
pub(crate) fn spawn_deaf(
    name: &str,
    mut run: impl FnMut() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // It inherits the mask, so there is no moment without it.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        // A panic costs what was in hand: without its thread a log would take nothing any more.
        while catch_unwind(AssertUnwindSafe(&mut run)).is_err() {}
    });
    before.thread_set_mask()?;
    thread
}

/// A write beyond the limit of a file's size (`ulimit -f`) is an error from now on; else SIGXFSZ ends the process.
pub fn survive_file_limits() {
    // SAFETY: no handler is installed, the signal is ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
