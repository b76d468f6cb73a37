//! Another process's memory, copied in pieces of sizes chosen here. All other files read through
//! this one.
//!
//! Another process wrote the copied bytes, and may change them during the copy: the caller checks
//! them.

use crate::error::Error;
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;

/// Maximum number of pieces per system call; the kernel's own limit is 1024.
const PIECES_MAX: usize = 512;

/// A piece of the process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

/// Memory of a process, or simulated memory of a test.
pub(crate) trait Memory {
    /// Copies the pieces in order, one after the other, until one cannot be read. Returns the
    /// number of copied bytes.
    fn copy(&self, pieces: &[Piece], into: &mut [u8]) -> Result<usize, Error>;

    /// Copies one piece completely. Returns false if not all of it exists.
    fn fill(&self, address: u64, into: &mut [u8]) -> Result<bool, Error> {
        let piece = Piece { address, bytes: into.len() };
        Ok(self.copy(&[piece], into)? == piece.bytes)
    }

    /// A word; `None` if it cannot be read.
    fn word(&self, address: u64) -> Result<Option<u64>, Error> {
        let mut bytes = [0; 8];
        Ok(self.fill(address, &mut bytes)?.then(|| u64::from_ne_bytes(bytes)))
    }

    /// Copies each readable piece to its place in `into`, and returns which pieces were readable.
    fn copy_each(&self, pieces: &[Piece], into: &mut Vec<u8>) -> Result<Vec<bool>, Error> {
        into.clear();
        into.resize(pieces.iter().map(|piece| piece.bytes).sum(), 0);
        let mut came = vec![false; pieces.len()];
        let (mut first, mut offset) = (0, 0);
        // Ends, because each round passes at least one piece.
        while first < pieces.len() {
            let last = pieces.len().min(first + PIECES_MAX);
            let mut left = self.copy(&pieces[first..last], &mut into[offset..])?;
            while first < last && left >= pieces[first].bytes {
                left -= pieces[first].bytes;
                offset += pieces[first].bytes;
                came[first] = true;
                first += 1;
            }
            if first < last {
                offset += pieces[first].bytes;
                first += 1;
            }
        }
        Ok(came)
    }
}

/// The memory of a running process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pid: i32,
}

impl Process {
    pub(crate) fn new(pid: u32) -> Result<Self, Error> {
        // 0, and numbers that are negative to the kernel, do not denote a process.
        let known = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        Ok(Self { pid: known.ok_or(Error::Gone { pid })? })
    }
}

impl Memory for Process {
    fn copy(&self, pieces: &[Piece], into: &mut [u8]) -> Result<usize, Error> {
        let remote: Vec<_> = pieces
            .iter()
            .filter_map(|p| {
                Some(RemoteIoVec { base: usize::try_from(p.address).ok()?, len: p.bytes })
            })
            .collect();
        let bytes = remote.iter().map(|r| r.len).sum::<usize>().min(into.len());
        let mut local = [IoSliceMut::new(&mut into[..bytes])];
        match process_vm_readv(Pid::from_raw(self.pid), &mut local, &remote) {
            Ok(bytes) => Ok(bytes),
            // Not mapped, not readable, or not an address.
            Err(Errno::EFAULT | Errno::EINVAL | Errno::ENOMEM) => Ok(0),
            Err(errno) => Err(Error::of_errno(self.pid.unsigned_abs(), errno)),
        }
    }
}

/// A word at an offset of bytes that were copied.
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> u64 {
    let found = bytes.get(offset..offset + 8).and_then(|b| b.try_into().ok());
    found.map_or(0, u64::from_ne_bytes)
}

/// Half a word at an offset of bytes that were copied.
pub(crate) fn half_at(bytes: &[u8], offset: usize) -> u32 {
    let found = bytes.get(offset..offset + 4).and_then(|b| b.try_into().ok());
    found.map_or(0, u32::from_ne_bytes)
}
