//! What a boot and its requests have loaded (`csrc/loads`) goes to the server, which explains it.

use crate::{os, sealed};
use samovar_channel::{LoadsEnd, LoadsNote};
use std::ffi::c_char;
use std::sync::OnceLock;

/// Where it goes, and the template's process; nothing: nobody wants to hear of it. Set before the first fork.
static LISTENER: OnceLock<(LoadsEnd, u64)> = OnceLock::new();

/// Somebody listens there.
pub(crate) fn begin(listener: LoadsEnd) {
    // The only time in this process.
    let _ = LISTENER.set((listener, os::own_pid().unsigned_abs().into()));
}

/// Where it goes.
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
    // SAFETY: boundary.h: so many bytes, which stay until this returns.
    let report = unsafe { std::slice::from_raw_parts(report.cast::<u8>(), len) };
    sealed::lend(c"samovar-loads", report, |file| {
        // Whoever listens may have enough to read: nobody waits for it.
        let _ = listener.send_now(&LoadsNote { bytes: len as u64 }, Some(file));
    });
}
