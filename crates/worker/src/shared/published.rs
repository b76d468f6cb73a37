//! `Samovar\publish()` and `Samovar\published()`: reads values of the region, and sends values to
//! the server.

use super::{Thrown, Why, act, with};
use crate::boundary::slice;
use samovar_published::{Found, Outgoing, Reader, Region, SendError, ask};
use samovar_shared::Client;
use std::ffi::{c_char, c_int};
use std::os::fd::{AsFd, OwnedFd};

/// State of this process for published values.
pub(super) struct PublishedState {
    reader: Reader,
    socket: OwnedFd,
    /// A value that is being written.
    outgoing: Option<Outgoing>,
    /// The process's memory stays after a request or is rolled back, so the end of a request
    /// releases nothing.
    stays: bool,
}

impl PublishedState {
    pub(super) fn new(region: Region, socket: OwnedFd) -> PublishedState {
        PublishedState { reader: Reader::new(region), socket, outgoing: None, stays: false }
    }

    pub(super) fn inherit(&mut self, client: &Client) -> bool {
        self.reader.inherit(client)
    }

    pub(super) fn forked(&mut self, client: &Client) -> bool {
        !self.reader.holds() || (client.begin().is_ok() && self.reader.inherit(client))
    }

    pub(super) fn end_request(&mut self, client: &Client) {
        self.reader.end_request(client, !self.stays);
    }

    pub(super) fn resident(&mut self, client: &Client, rolls_back: bool) {
        self.stays = true;
        if rolls_back {
            self.reader.keep(client);
        } else {
            self.reader.look_again();
        }
    }

    pub(super) fn scripts(&mut self) {
        self.stays = false;
    }

    pub(super) fn keep(&mut self, client: &Client) {
        self.reader.keep(client);
    }

    pub(super) fn rolled_back(&mut self, client: &Client) {
        self.reader.rolled_back(client);
    }
}

impl From<SendError> for Why {
    fn from(error: SendError) -> Why {
        let thrown = match error {
            SendError::Name(_) | SendError::Value(_) => Thrown::Value,
            SendError::NoRoom(_) | SendError::Timeout | SendError::Io(_) => Thrown::Runtime,
        };
        Why(thrown, error.to_string())
    }
}

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
        ask(place.published.socket.as_fd(), name, value)?;
        place.published.reader.look_again();
        Ok(())
    });
    sent.is_some()
}
