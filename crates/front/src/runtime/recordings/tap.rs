//! Reads a response while it is passed to the client.

use super::recorded::{RECORDED_BODY_BYTES_MAX, RecordedResponse};
use super::secret_names::SecretNames;
use samovar_insight::BLOT;
use std::cell::RefCell;
use std::rc::Rc;

/// Reads a response while it is passed to the client.
#[derive(Clone, Debug)]
pub(crate) struct ResponseTap {
    tapped: Rc<RefCell<Option<Tapped>>>,
    names: Rc<SecretNames>,
}

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
    pub(crate) fn new(names: Rc<SecretNames>) -> ResponseTap {
        ResponseTap { tapped: Rc::default(), names }
    }

    /// Takes the head and the start of the body.
    pub(crate) fn begin(&self, status: u16, head: &[u8], body: &[u8]) {
        let hash = ring::digest::Context::new(&ring::digest::SHA256);
        let head = without_secrets(head, &self.names);
        let response = RecordedResponse { status, head, ..RecordedResponse::default() };
        self.tapped.replace(Some(Tapped { response, hash }));
        self.add(body);
    }

    /// Takes the next bytes of the body.
    pub(crate) fn add(&self, bytes: &[u8]) {
        if let Some(Tapped { response, hash }) = &mut *self.tapped.borrow_mut() {
            let room = RECORDED_BODY_BYTES_MAX.saturating_sub(response.body.len());
            response.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            response.bytes += bytes.len() as u64;
            hash.update(bytes);
        }
    }

    /// The body is complete.
    pub(crate) fn complete(&self) {
        if let Some(tapped) = &mut *self.tapped.borrow_mut() {
            tapped.response.is_complete = true;
        }
    }

    /// Returns the response, if there is one.
    pub(crate) fn take(&self) -> Option<RecordedResponse> {
        let Tapped { mut response, hash } = self.tapped.take()?;
        response.hash.copy_from_slice(hash.finish().as_ref());
        Some(response)
    }
}

/// Replaces values in the lines of a response's head: of cookies, which differ in each response, of
/// headers with secret names, and those that contain a secret value, such as URLs.
fn without_secrets(head: &[u8], names: &SecretNames) -> Vec<u8> {
    let mut all = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let kept = if name.eq_ignore_ascii_case(b"set-cookie") {
            memchr::memchr(b'=', line).map(|equals| &line[..=equals])
        } else if names.has(name) || names.are_in(value.strip_prefix(b":").unwrap_or(value)) {
            line.get(..=colon)
        } else {
            None
        };
        match kept {
            Some(kept) => {
                all.extend_from_slice(kept);
                if kept.ends_with(b":") {
                    all.push(b' ');
                }
                all.extend_from_slice(BLOT.as_bytes());
                all.push(b'\n');
            }
            None => all.extend_from_slice(line),
        }
    }
    all
}
