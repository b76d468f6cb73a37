//! Log messages from PHP.

use crate::bytes::slice;
use crate::log;
use std::ffi::{CStr, c_char};
use std::mem::offset_of;

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_log(message: *const c_char, len: usize, id: *const c_char) {
    // SAFETY: boundary.h: `message` has `len` bytes.
    let message = String::from_utf8_lossy(unsafe { slice(message, len) });
    // SAFETY: boundary.h: `id` is NUL-terminated.
    let id = unsafe { CStr::from_ptr(id) }.to_string_lossy();
    log::write(&message, &id);
}

/// `samovar_event` of boundary.h, which asserts the same.
const _: () = assert!(
    offset_of!(RawEvent, message_len) == 2 * size_of::<usize>()
        && offset_of!(RawEvent, context_len) == 4 * size_of::<usize>()
        && size_of::<RawEvent>() == 6 * size_of::<usize>()
);

/// `samovar_event` of boundary.h.
#[repr(C)]
struct RawEvent {
    level: *const c_char,
    message: *const c_char,
    message_len: usize,
    context: *const c_char,
    context_len: usize,
    request_id: *const c_char,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_log_event(event: *const RawEvent) {
    // SAFETY: boundary.h: a live struct.
    let event = unsafe { &*event };
    // SAFETY: boundary.h: NUL-terminated.
    let level = unsafe { CStr::from_ptr(event.level) }.to_string_lossy();
    // SAFETY: boundary.h: NUL-terminated.
    let id = unsafe { CStr::from_ptr(event.request_id) }.to_string_lossy();
    // SAFETY: boundary.h: `message` has `message_len` bytes.
    let message = unsafe { slice(event.message, event.message_len) };
    // SAFETY: boundary.h: `context` has `context_len` bytes.
    let context = unsafe { slice(event.context, event.context_len) };
    let (message, context) = (String::from_utf8_lossy(message), String::from_utf8_lossy(context));
    log::write_event(&level, &message, &context, &id);
}
