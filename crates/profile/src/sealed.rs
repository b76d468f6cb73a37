//! Texts that come as sealed memory files: what they hold cannot change, and their size is known before a byte is copied.

use rustix::fs::SealFlags;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// What the file holds; `None`: it is no such file, has not so many bytes, or more than `bytes_max`.
pub(crate) fn read(file: OwnedFd, bytes: u64, bytes_max: u64) -> Option<Vec<u8>> {
    // Only memory files have seals: reading anything else might wait, or do something.
    let seals = rustix::fs::fcntl_get_seals(&file).ok()?;
    let is_final = seals.contains(SealFlags::WRITE | SealFlags::SHRINK);
    let file = File::from(file);
    let is_whole = file.metadata().ok()?.len() == bytes;
    if !is_final || !is_whole || bytes > bytes_max {
        return None;
    }
    let mut text = vec![0; usize::try_from(bytes).ok()?];
    // At a position of its own: the writer's stands at the end, and is shared.
    file.read_exact_at(&mut text, 0).ok()?;
    Some(text)
}
