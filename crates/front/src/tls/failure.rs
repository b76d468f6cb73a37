//! Why TLS cannot be spoken, and what to do.

use std::io;
use std::path::PathBuf;

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is named cannot be read.
    #[error("cannot read `{path}`: {cause}\nhint: {hint}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said. No `source`: it would be told once more, behind the hint.
        cause: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// A file holds something else than it should.
    #[error("cannot use `{path}`: {what}\nhint: {hint}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The library refuses the whole.
    #[error("cannot set up TLS: {0}")]
    Refused(String),
}

impl TlsError {
    /// Whether only the rights to read the file are missing: a server that has given up root may not have them.
    pub fn is_for_want_of_rights(&self) -> bool {
        matches!(self, TlsError::Unreadable { cause, .. }
            if cause.kind() == io::ErrorKind::PermissionDenied)
    }
}
