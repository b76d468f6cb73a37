//! Cache of files that existed a moment ago, by the names that web servers send. Frequently
//! requested files cost no system call.

use crate::runtime::disk::DiskThreads;
use bytes::Bytes;
use foldhash::quality::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Time for which a file is assumed to exist, in ms; the same as for a route.
const KNOWN_MS: u64 = 1_000;
/// Maximum number of files; when it is reached, all are dropped.
const ENTRIES_MAX: usize = 1_024;
/// Linux does not accept paths of this length (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// Names of files, with the time in ms at which they were seen.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles(RefCell<HashMap<Bytes, u64, RandomState>>);

impl KnownFiles {
    /// Whether a file of this name existed a moment ago.
    pub(crate) fn has(&self, path: &[u8], now_ms: u64) -> bool {
        let known = self.0.borrow();
        known.get(path).is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) < KNOWN_MS)
    }

    /// Returns the first of `paths` that is a file. Uses a disk thread if a file system may hang.
    pub(crate) async fn first(
        &self,
        disk: &DiskThreads,
        paths: Vec<Bytes>,
        now_ms: u64,
    ) -> io::Result<Option<Bytes>> {
        let Some(longest) = paths.first() else { return Ok(None) };
        let place = PathBuf::from(OsStr::from_bytes(longest));
        let look = move || paths.into_iter().find(|path| is_file(path));
        let found =
            if disk.are_spared() { look() } else { disk.ask(place, move || Ok(look())).await? };
        if let Some(path) = &found {
            let mut known = self.0.borrow_mut();
            if known.len() >= ENTRIES_MAX {
                known.clear();
            }
            // Copied, because a slice would keep the larger received buffer alive.
            known.insert(Bytes::copy_from_slice(path), now_ms);
        }
        Ok(found)
    }
}

fn is_file(path: &[u8]) -> bool {
    path.len() < PATH_BYTES_MAX && Path::new(OsStr::from_bytes(path)).is_file()
}
