//! Reasons why TLS cannot be set up, with hints.

use std::io;
use std::path::PathBuf;

/// Reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file in the settings cannot be read.
    #[error("cannot read `{path}`: {cause}\nhint: {hint}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error. It is not a `source`, which would be printed again after the hint.
        cause: io::Error,
        /// Action to take.
        hint: &'static str,
    },
    /// The contents of a file are not valid.
    #[error("cannot use `{path}`: {reason}\nhint: {hint}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        reason: String,
        /// Action to take.
        hint: &'static str,
    },
    /// The library rejects the configuration.
    #[error("cannot set up TLS: {0}")]
    Refused(String),
}

impl TlsError {
    /// Whether only the permission to read the file is missing. A server that has given up root may
    /// lack it.
    pub fn is_for_want_of_rights(&self) -> bool {
        matches!(self, TlsError::Unreadable { cause, .. }
            if cause.kind() == io::ErrorKind::PermissionDenied)
    }
}
