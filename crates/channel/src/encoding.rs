//! Messages as bytes and back. What cannot be read is an error that names it, never a panic.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use thiserror::Error;

/// Longest message on a channel, bytes: a console worker's command of 4 KiB, of which each character may have to be
/// escaped.
pub const MESSAGE_BYTES_MAX: usize = 8192;

/// Longest text of an event, bytes. The event with the most texts fits a message, however they are escaped.
pub const LINE_BYTES_MAX: usize = 400;

/// Texts of a [`Finding`](crate::Finding).
const LINES_MAX: usize = 5;
/// Names and punctuation of any event.
const FRAME_BYTES_MAX: usize = 200;
// Control characters are gone from a line, so that JSON escapes its quotes and backslashes at most.
const _: () = assert!(LINES_MAX * 2 * LINE_BYTES_MAX + FRAME_BYTES_MAX <= MESSAGE_BYTES_MAX);

/// What stands where a text was cut.
const CUT: &str = "…";

/// Most of what is shown of a message that is not understood, bytes.
const EXCERPT_BYTES_MAX: usize = 200;

/// A message that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a message of {bytes} bytes does not fit; at most {MESSAGE_BYTES_MAX} do")]
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

/// A message as it is sent.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, TooLong> {
    // Only maps whose keys are no strings, and values that refuse, have no JSON; no message has either.
    let bytes = serde_json::to_vec(message).unwrap_or_default();
    if bytes.len() > MESSAGE_BYTES_MAX { Err(TooLong { bytes: bytes.len() }) } else { Ok(bytes) }
}

/// A message as it was sent.
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, Garbled> {
    serde_json::from_slice(bytes).map_err(|error| Garbled::new(&error, bytes))
}

/// One line of at most [`LINE_BYTES_MAX`] bytes: no control characters, and cut where it is longer.
fn line(text: &str) -> Cow<'_, str> {
    let clean: Cow<'_, str> = if text.contains(char::is_control) {
        text.replace(char::is_control, " ").into()
    } else {
        text.into()
    };
    if clean.len() <= LINE_BYTES_MAX {
        return clean;
    }
    let kept = &clean[..clean.floor_char_boundary(LINE_BYTES_MAX - CUT.len())];
    format!("{kept}{CUT}").into()
}

/// The field as [`line()`] has it.
pub(crate) fn one_line<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&line(text))
}

/// Lives as their numbers.
pub(crate) mod incarnation {
    use samovar_ring::Incarnation;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
    pub(crate) fn serialize<S: Serializer>(life: &Incarnation, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(life.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Incarnation, D::Error> {
        let number = u32::deserialize(from)?;
        let refused = || serde::de::Error::custom(format_args!("{number} numbers no worker"));
        Incarnation::new(number).ok_or_else(refused)
    }
}

/// What the system calls a string: text, or else the bytes as they are.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OsText {
    Text(String),
    Bytes(Vec<u8>),
}

impl OsText {
    fn of(name: &OsStr) -> OsText {
        match name.to_str() {
            Some(text) => OsText::Text(text.to_owned()),
            None => OsText::Bytes(name.as_bytes().to_vec()),
        }
    }

    fn into_os(self) -> OsString {
        match self {
            OsText::Text(text) => text.into(),
            OsText::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// What holds names of files, which need not be text.
pub(crate) trait Names: Sized {
    type Form: Serialize + DeserializeOwned;
    fn pack(&self) -> Self::Form;
    fn unpack(form: Self::Form) -> Self;
}

impl Names for PathBuf {
    type Form = OsText;
    fn pack(&self) -> OsText {
        OsText::of(self.as_os_str())
    }
    fn unpack(form: OsText) -> PathBuf {
        form.into_os().into()
    }
}

impl Names for Option<PathBuf> {
    type Form = Option<OsText>;
    fn pack(&self) -> Option<OsText> {
        self.as_ref().map(PathBuf::pack)
    }
    fn unpack(form: Option<OsText>) -> Option<PathBuf> {
        form.map(PathBuf::unpack)
    }
}

impl Names for Vec<OsString> {
    type Form = Vec<OsText>;
    fn pack(&self) -> Vec<OsText> {
        self.iter().map(|name| OsText::of(name)).collect()
    }
    fn unpack(form: Vec<OsText>) -> Vec<OsString> {
        form.into_iter().map(OsText::into_os).collect()
    }
}

/// For fields that hold [`Names`]: nothing of them is lost.
pub(crate) mod lossless {
    use super::Names;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Names, S: Serializer>(names: &T, to: S) -> Result<S::Ok, S::Error> {
        names.pack().serialize(to)
    }

    pub(crate) fn deserialize<'de, T: Names, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::Form::deserialize(from).map(T::unpack)
    }
}
