//! Class of a file for C: the names of files are secrets, and only their class is reported.

use crate::bytes::slice;
use samovar_log::FileClass;
use std::ffi::c_char;

/// Stores the class of a path in `to`. Returns its length.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_file_class(
    path: *const c_char,
    len: usize,
    to: *mut u8,
    room: usize,
) -> usize {
    // SAFETY: insight/peer.h: `path` has `len` bytes.
    let class = FileClass::of(unsafe { slice(path, len) });
    let bytes = class.bytes();
    let len = bytes.len().min(room);
    // SAFETY: insight/peer.h: `to` has room for `room` bytes, and C does not read it meanwhile.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), len) };
    len
}
