//! Encodes and decodes messages. An unreadable message is an error that contains an excerpt, never
//! a panic.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use thiserror::Error;

/// Maximum length of a message on a channel, bytes: a console worker's command of 4 KiB, each
/// character of which may have to be escaped.
pub const MESSAGE_BYTES_MAX: usize = 8192;

/// Maximum length of a text in an event, bytes. The event with the most texts fits a message, even
/// with all characters escaped.
pub const LINE_BYTES_MAX: usize = 400;

/// Number of texts of a [`Finding`](crate::Finding).
const LINES_MAX: usize = 5;
/// Maximum bytes of an event's names and punctuation.
const FRAME_BYTES_MAX: usize = 200;
// A line has no control characters, so JSON escapes at most its quotes and backslashes.
const _: () = assert!(LINES_MAX * 2 * LINE_BYTES_MAX + FRAME_BYTES_MAX <= MESSAGE_BYTES_MAX);

/// Marks the end of a truncated text.
const CUT: &str = "…";

/// Maximum length of the excerpt of a message that is not understood, bytes.
const EXCERPT_BYTES_MAX: usize = 200;

/// A message that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a message of {bytes} bytes is too long; the maximum is {MESSAGE_BYTES_MAX}")]
pub struct TooLong {
    /// The message's length.
    pub bytes: usize,
}

/// A message that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}: `{excerpt}`")]
pub struct Garbled {
    why: String,
    excerpt: String,
}

impl Garbled {
    pub(crate) fn new(why: &impl ToString, bytes: &[u8]) -> Garbled {
        let shown = &bytes[..bytes.len().min(EXCERPT_BYTES_MAX)];
        let excerpt = line(&String::from_utf8_lossy(shown)).into_owned();
        Garbled { why: line(&why.to_string()).into_owned(), excerpt }
    }
}

/// Encodes a message.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, TooLong> {
    // JSON cannot represent maps whose keys are not strings, nor values that refuse; no message has
    // either.
    let bytes = serde_json::to_vec(message).unwrap_or_default();
    if bytes.len() > MESSAGE_BYTES_MAX { Err(TooLong { bytes: bytes.len() }) } else { Ok(bytes) }
}

/// Decodes a message.
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, Garbled> {
    serde_json::from_slice(bytes).map_err(|error| Garbled::new(&error, bytes))
}

/// One line of at most [`LINE_BYTES_MAX`] bytes: without control characters, and truncated if it is
/// longer.
fn line(text: &str) -> Cow<'_, str> {
    one_line_of(text, LINE_BYTES_MAX)
}

/// The same with another maximum, which is at least the length of the mark of a truncated text.
pub(crate) fn one_line_of(text: &str, bytes_max: usize) -> Cow<'_, str> {
    let clean: Cow<'_, str> = if text.contains(char::is_control) {
        text.replace(char::is_control, " ").into()
    } else {
        text.into()
    };
    if clean.len() <= bytes_max {
        return clean;
    }
    let kept = &clean[..clean.floor_char_boundary(bytes_max - CUT.len())];
    format!("{kept}{CUT}").into()
}

/// Serializes a field in the form of [`line()`].
pub(crate) fn one_line<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&line(text))
}

/// Serializes incarnations as numbers.
pub(crate) mod incarnation {
    use samovar_ring::Incarnation;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
    pub(crate) fn serialize<S: Serializer>(life: &Incarnation, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(life.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Incarnation, D::Error> {
        let number = u32::deserialize(from)?;
        let refused = || serde::de::Error::custom(format_args!("{number} is not a worker number"));
        Incarnation::new(number).ok_or_else(refused)
    }
}
