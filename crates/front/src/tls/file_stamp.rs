//! Decides whether files must be read again: because they have changed, or could not be read.

use super::failure::TlsError;
use super::files::{key_places, with_extension};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Data that shows whether files have changed: the inode, the size, and the times of the last
/// change of contents and permissions of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<(u64, u64, [i64; 4])>>);

impl Stamp {
    pub(super) fn of(settings: &samovar_config::Tls) -> Stamp {
        let of = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
            Some((found.ino(), found.size(), times))
        };
        let clients = settings.client_ca.iter().chain(&settings.client_crls);
        let mut stamps: Vec<_> = clients.map(|path| of(path)).collect();
        for (index, path) in settings.certificates.iter().enumerate() {
            stamps.push(of(path));
            stamps.push(of(&with_extension(path, "ocsp")));
            match settings.keys.get(index) {
                Some(key) => stamps.push(of(key)),
                None => stamps.extend(key_places(path).map(|path| of(&path))),
            }
        }
        Stamp(stamps)
    }
}

/// Changed files that were rejected, and the error.
#[derive(Debug)]
pub(super) struct Refused {
    stamp: Stamp,
    said: String,
    is_settled: bool,
}

impl Refused {
    pub(super) fn new(stamp: Stamp, error: &TlsError) -> Refused {
        // Permissions of a folder may change, and file descriptors may become available. A stamp
        // does not show this.
        let is_settled = matches!(error, TlsError::Unusable { .. });
        Refused { stamp, said: error.to_string(), is_settled }
    }

    /// Whether the files would be rejected again.
    pub(super) fn is_settled(&self, stamp: &Stamp) -> bool {
        self.is_settled && self.stamp == *stamp
    }

    /// Whether the same error was already reported by `before`.
    pub(super) fn is_known(&self, before: Option<&Refused>) -> bool {
        before.is_some_and(|before| before.stamp == self.stamp && before.said == self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;

    fn unreadable(kind: io::ErrorKind) -> TlsError {
        TlsError::Unreadable { path: PathBuf::from("a.pem"), cause: kind.into(), hint: "wait" }
    }

    fn unusable() -> TlsError {
        TlsError::Unusable {
            path: PathBuf::from("a.pem"),
            reason: "it is empty".into(),
            hint: "fill it",
        }
    }

    #[test]
    fn unreadable_file_is_retried_and_reported_once() {
        let stamps = [1, 2].map(|inode| Stamp(vec![Some((inode, 0, [0; 4]))]));
        let refused = |index: usize, error: &TlsError| Refused::new(stamps[index].clone(), error);
        let first = refused(0, &unreadable(io::ErrorKind::PermissionDenied));
        assert!(!first.is_settled(&stamps[0]) && !first.is_known(None));
        let again = refused(0, &unreadable(io::ErrorKind::PermissionDenied));
        assert!(!again.is_settled(&stamps[0]) && again.is_known(Some(&first)));
        let other = refused(0, &unreadable(io::ErrorKind::StorageFull));
        assert!(!other.is_known(Some(&again)), "something else is wrong");
        let useless = refused(0, &unusable());
        assert!(useless.is_settled(&stamps[0]) && !useless.is_settled(&stamps[1]));
        assert!(!useless.is_known(Some(&other)));
        assert!(!refused(1, &unusable()).is_known(Some(&useless)), "another file");
    }
}
