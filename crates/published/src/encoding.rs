//! Encoding of a value on its way to the server: a tag, then its data, with numbers in this
//! machine's byte order.
//!
//! | tag | data |
//! |---|---|
//! | `NULL`, `FALSE`, `TRUE` | |
//! | `INT`, `FLOAT` | 8 bytes |
//! | `STRING` | its length (4 bytes), its bytes |
//! | `LIST` | number of values (4), the next index (8), the values |
//! | `MAP` | number of entries (4), the next index (8), the entries |
//!
//! An entry of a `MAP` is a key and its value; a key is an `INT` or a `STRING`.
//!
//! csrc/functions/published.c writes this encoding and knows these numbers.

/// Maximum nesting depth of arrays.
pub const DEPTH_MAX: usize = 128;

/// `null`.
pub const NULL: u8 = 0;
/// `false`.
pub const FALSE: u8 = 1;
/// `true`.
pub const TRUE: u8 = 2;
/// An integer.
pub const INT: u8 = 3;
/// A floating-point number.
pub const FLOAT: u8 = 4;
/// Bytes.
pub const STRING: u8 = 5;
/// An array with the keys 0, 1, 2 …
pub const LIST: u8 = 6;
/// Any other array.
pub const MAP: u8 = 7;

/// The bytes are not an encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value: unexpected byte at offset {0}")]
pub struct Garbled(pub usize);

/// The unread rest of an encoded value.
pub(crate) struct Encoded<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Encoded<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Encoded<'a> {
        Encoded { bytes, at: 0 }
    }

    pub(crate) fn garbled(&self) -> Garbled {
        Garbled(self.at)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Garbled> {
        let taken = self.bytes[self.at..].first_chunk().ok_or(Garbled(self.at))?;
        self.at += N;
        Ok(*taken)
    }

    pub(crate) fn tag(&mut self) -> Result<u8, Garbled> {
        self.take::<1>().map(|[tag]| tag)
    }

    pub(crate) fn word(&mut self) -> Result<u64, Garbled> {
        self.take().map(u64::from_ne_bytes)
    }

    /// A number of items that follow, each of which has at least one byte.
    pub(crate) fn count(&mut self) -> Result<usize, Garbled> {
        let count = u32::from_ne_bytes(self.take()?) as usize;
        if count > self.bytes.len() - self.at { Err(Garbled(self.at)) } else { Ok(count) }
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], Garbled> {
        let len = self.count()?;
        let text = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(text)
    }
}
