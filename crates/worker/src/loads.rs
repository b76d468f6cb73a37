//! Sends reports of the code that a boot and its requests have loaded (`csrc/loads`) to the server,
//! which explains them.

use crate::{os, sealed};
use samovar_channel::{LoadsEnd, LoadsNote};
use std::ffi::c_char;
use std::sync::OnceLock;

/// Socket for the reports, and the template's process number. Empty if there is no reader. Set
/// before the first fork.
static LISTENER: OnceLock<(LoadsEnd, u64)> = OnceLock::new();

/// Sets the socket of the reader.
pub(crate) fn begin(listener: LoadsEnd) {
    // Set once per process.
    let _ = LISTENER.set((listener, os::own_pid().unsigned_abs().into()));
}

/// Returns the socket for the reports.
pub(crate) fn socket() -> Option<&'static LoadsEnd> {
    LISTENER.get().map(|(listener, _)| listener)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_loads_wanted() -> u64 {
    LISTENER.get().map_or(0, |(_, template)| *template)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_loads_send(report: *const c_char, len: usize) {
    let Some(listener) = socket() else { return };
    // SAFETY: boundary.h: `len` bytes, which stay valid until this returns.
    let report = unsafe { std::slice::from_raw_parts(report.cast::<u8>(), len) };
    sealed::lend(c"samovar-loads", report, |file| {
        // The reader's queue may be full. Workers do not wait for it.
        let _ = listener.send_now(&LoadsNote { bytes: len as u64 }, Some(file));
    });
}
