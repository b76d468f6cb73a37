//! Reads a whole TLS file. Errors contain the file and a hint.

use super::failure::TlsError;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a file: enough for a list of about 400,000 revoked certificates.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

const RIGHTS_HINT: &str =
    "make it readable for the user set in `user`; otherwise, the server cannot reload it";

/// Returns the whole contents of a file.
pub(super) fn contents(path: &Path, hint: &'static str) -> Result<Vec<u8>, TlsError> {
    let failed = |cause: io::Error| {
        let is_right = cause.kind() == io::ErrorKind::PermissionDenied;
        let hint = if is_right { RIGHTS_HINT } else { hint };
        TlsError::Unreadable { path: path.to_owned(), cause, hint }
    };
    let found = fs::metadata(path).map_err(failed)?;
    // Reading from a pipe would block.
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(unusable(path, "not a regular file, or larger than 16 MiB", hint));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns the contents of an optional file. `None`: there is no such file, or it is empty.
pub(super) fn optional(path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    match contents(path, "remove it, or make it readable") {
        Ok(bytes) => Ok((!bytes.is_empty()).then_some(bytes)),
        Err(TlsError::Unreadable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Builds the error for a file with invalid contents.
pub(super) fn unusable(path: &Path, what: impl std::fmt::Display, hint: &'static str) -> TlsError {
    TlsError::Unusable { path: path.to_owned(), reason: what.to_string(), hint }
}
