//! `Samovar\publish()` and `Samovar\published()`: reads values of the region, and sends values to
//! the server.

use super::state::{act, with};
use crate::bytes::slice;
use samovar_published::{Found, Outgoing, SendError, ask};
use std::ffi::{c_char, c_int};
use std::os::fd::AsFd;

/// Returns 1 if `found` holds the value, 0 if there is none, -1 on failure.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_published_find(
    name: *const c_char,
    len: usize,
    hash: u64,
    found: *mut Found,
) -> c_int {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    let looked = with(|place| place.published.reader.find(&place.client, name, hash));
    match looked {
        Some(Ok(Some(value))) => {
            // SAFETY: shared.h: `found` has room for one value.
            unsafe { found.write(value) };
            1
        }
        Some(Ok(None)) => 0,
        Some(Err(error)) => {
            with(|place| place.note(error.into()));
            -1
        }
        None => -1,
    }
}

/// Returns memory for the encoding of a value, `bytes` long. Null: there is no memory.
#[unsafe(no_mangle)]
extern "C" fn samovar_publish_room(bytes: usize) -> *mut u8 {
    let room = act(|place| {
        let outgoing = Outgoing::new(bytes).map_err(SendError::from)?;
        Ok(place.published.outgoing.insert(outgoing).at())
    });
    room.unwrap_or(std::ptr::null_mut())
}

/// Publishes the value that was written into that memory. If there is none, removes the value of
/// that name. Returns false on failure.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_publish_send(name: *const c_char, len: usize) -> bool {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    let sent = act(|place| {
        let value = place.published.outgoing.take();
        ask(place.published.socket.as_fd(), name, value.as_ref())?;
        place.published.reader.look_again();
        Ok(())
    });
    sent.is_some()
}
