//! Names of the operating system in messages. They need not be text, and are kept without loss. For
//! `#[serde(with = "lossless")]`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A string of the operating system: text, or the raw bytes if it is not UTF-8.
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

/// Types that hold file names, which need not be text.
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

/// Serializes names without loss.
pub(crate) fn serialize<T: Names, S: Serializer>(names: &T, to: S) -> Result<S::Ok, S::Error> {
    names.pack().serialize(to)
}

/// Deserializes the form of [`serialize`].
pub(crate) fn deserialize<'de, T: Names, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Form::deserialize(from).map(T::unpack)
}
