//! Reads a response while it is passed to the client.

use super::recorded::{RECORDED_BODY_BYTES_MAX, RecordedResponse};
use std::cell::RefCell;
use std::rc::Rc;

/// Reads a response while it is passed to the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseTap(Rc<RefCell<Option<Tapped>>>);

struct Tapped {
    response: RecordedResponse,
    hash: ring::digest::Context,
}

impl std::fmt::Debug for Tapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tapped").field("bytes", &self.response.bytes).finish_non_exhaustive()
    }
}

impl ResponseTap {
    /// Takes the head and the start of the body.
    pub(crate) fn begin(&self, status: u16, head: &[u8], body: &[u8]) {
        let hash = ring::digest::Context::new(&ring::digest::SHA256);
        let head = head.to_vec();
        let response = RecordedResponse { status, head, ..RecordedResponse::default() };
        self.0.replace(Some(Tapped { response, hash }));
        self.add(body);
    }

    /// Takes the next bytes of the body.
    pub(crate) fn add(&self, bytes: &[u8]) {
        if let Some(Tapped { response, hash }) = &mut *self.0.borrow_mut() {
            let room = RECORDED_BODY_BYTES_MAX.saturating_sub(response.body.len());
            response.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            response.bytes += bytes.len() as u64;
            hash.update(bytes);
        }
    }

    /// The body is complete.
    pub(crate) fn complete(&self) {
        if let Some(tapped) = &mut *self.0.borrow_mut() {
            tapped.response.is_complete = true;
        }
    }

    /// Returns the response, if there is one. Its secrets are not replaced.
    pub(crate) fn take(&self) -> Option<RecordedResponse> {
        let Tapped { mut response, hash } = self.0.take()?;
        response.hash.copy_from_slice(hash.finish().as_ref());
        Some(response)
    }
}
