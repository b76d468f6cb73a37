//! Reads texts from sealed memory files: their content cannot change, and their size is known
//! before a byte is copied.

use rustix::fs::SealFlags;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// Returns the file's content. Returns `None` if the file is not sealed, does not have exactly
/// `bytes` bytes, or has more than `bytes_max`.
pub(crate) fn read(file: OwnedFd, bytes: u64, bytes_max: u64) -> Option<Vec<u8>> {
    // Only memory files have seals. Reading any other file could block or have side effects.
    let seals = rustix::fs::fcntl_get_seals(&file).ok()?;
    let is_final = seals.contains(SealFlags::WRITE | SealFlags::SHRINK);
    let file = File::from(file);
    let is_whole = file.metadata().ok()?.len() == bytes;
    if !is_final || !is_whole || bytes > bytes_max {
        return None;
    }
    let mut text = vec![0; usize::try_from(bytes).ok()?];
    // Reads at an explicit position: the file's own position is shared with the writer, and is at
    // the end.
    file.read_exact_at(&mut text, 0).ok()?;
    Some(text)
}
