//! Bytes that C passes as a pointer and a length.

use std::ffi::c_char;

/// Returns the bytes as a slice.
///
/// # Safety
/// `at` must have `len` readable bytes while the result is used.
pub(crate) unsafe fn slice<'a>(at: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}
