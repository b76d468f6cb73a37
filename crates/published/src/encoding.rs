//! How a value is sent to the server: a tag, then what belongs to it, numbers as this machine has them.
//!
//! | tag | then |
//! |---|---|
//! | `NULL`, `FALSE`, `TRUE` | |
//! | `INT`, `FLOAT` | 8 bytes |
//! | `STRING` | its length (4 bytes), its bytes |
//! | `LIST` | how many (4), the next index (8), so many values |
//! | `MAP` | how many (4), the next index (8), so many keys, each with its value; a key is an `INT` or a `STRING` |
//!
//! csrc/functions/published.c writes it, and knows these numbers.

/// Deepest nesting of arrays.
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

/// What was sent is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was sent is no value: byte {0} of it")]
pub struct Garbled(pub usize);

/// What is still to be read of a value.
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

    /// A number of things that follow, each of which has a byte at least.
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
