//! Errors of a deploy. Each names the failed operation and its value, and has a hint.

use std::fmt;
use std::io;
use std::path::Path;

/// A failed step. Unless it says otherwise, the old release still serves.
#[derive(Debug)]
pub struct Error {
    text: String,
    is_partial: bool,
    is_unknown: bool,
}

impl Error {
    /// Creates an error from its text, which may end with a line `hint: …`.
    pub fn new(text: impl Into<String>) -> Error {
        Error { text: text.into(), is_partial: false, is_unknown: false }
    }

    /// Marks the error of a reload after which some pools serve the new release.
    #[must_use]
    pub fn partial(mut self, is_partial: bool) -> Error {
        self.is_partial = is_partial;
        self
    }

    /// Marks the error of a reload whose result is unknown: the server has not answered.
    #[must_use]
    pub fn unknown(mut self, is_unknown: bool) -> Error {
        self.is_unknown = is_unknown;
        self
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Creates the error of an operation on a file.
    pub(crate) fn file(verb: &str, path: &Path, error: &io::Error) -> Error {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "\nhint: run the command as a user that may write to the folder"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "\nhint: free space on the disk, or keep fewer releases (--keep)"
            }
            _ => "",
        };
        Error::new(format!("cannot {verb} `{}`: {error}{hint}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
