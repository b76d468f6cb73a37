//! Sends texts that are too long for a message as sealed memory files. A file on a disk would have
//! to be cleaned up.
//!
//! Uses only system calls, which no interposed function counts as the request's.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

/// Calls `send` with a file that holds these bytes and cannot be changed. If there is no memory for
/// it, nothing is sent.
pub(crate) fn lend(name: &CStr, bytes: &[u8], send: impl FnOnce(BorrowedFd<'_>)) {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let Ok(file) = rustix::fs::memfd_create(name, flags) else { return };
    if fill(&file, bytes).is_ok() {
        send(file.as_fd());
    }
    // SAFETY: ours, and not used any more. A drop would close it through an interposed function.
    unsafe { rustix::io::close(file.into_raw_fd()) };
}

fn fill(file: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(file, rest)? {
            0 => return Err(Errno::NOSPC),
            len => rest = &rest[len..],
        }
    }
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(file, seals)
}
