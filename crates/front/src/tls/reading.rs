//! A file of TLS's, read whole; what is wrong with it names the file and what to do.

use super::failure::TlsError;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of one file that are read: room for a list of some 400,000 revoked certificates.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

const RIGHTS_HINT: &str =
    "the user that the server becomes must be able to read it, if it is to be read again";

/// All of it.
pub(super) fn contents(path: &Path, hint: &'static str) -> Result<Vec<u8>, TlsError> {
    let failed = |cause: io::Error| {
        let is_right = cause.kind() == io::ErrorKind::PermissionDenied;
        let hint = if is_right { RIGHTS_HINT } else { hint };
        TlsError::Unreadable { path: path.to_owned(), cause, hint }
    };
    let found = fs::metadata(path).map_err(failed)?;
    // A pipe would be waited for.
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(unusable(path, "it is no file, or a very large one", hint));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// `None`: there is no such file, or an empty one.
pub(super) fn optional(path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    match contents(path, "remove it, or make it readable") {
        Ok(bytes) => Ok((!bytes.is_empty()).then_some(bytes)),
        Err(TlsError::Unreadable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What the file holds is no good.
pub(super) fn unusable(path: &Path, what: impl std::fmt::Display, hint: &'static str) -> TlsError {
    TlsError::Unusable { path: path.to_owned(), what: what.to_string(), hint }
}
