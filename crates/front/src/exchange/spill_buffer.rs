//! deliver: buffers response bytes for a client that reads more slowly than the worker writes, and
//! keeps their order.
//!
//! Memory is used first, then an unlinked spill file, then one chunk for bytes that a full disk
//! rejected. While the file holds bytes, memory accepts no new ones. Pure except for [`write`]: the
//! caller does the reads and writes and reports their results.

use super::budget::Charges;
use crate::runtime::disk::{DiskJob, DiskThreads};
use crate::runtime::disk_jobs::JobTarget;
use bytes::Bytes;
use samovar_config::{Limits, Settings};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes read back from the file at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Response bytes that the client has not read yet.
#[derive(Debug, Default)]
pub(crate) struct SpillBuffer {
    /// Parts of the budgets; only tests have none.
    charges: Option<Charges>,
    memory: VecDeque<Bytes>,
    memory_bytes: u64,
    file: Option<Spooled>,
    /// Bytes that the disk rejected; sent after the file's contents.
    untaken: Option<Bytes>,
    /// A write of this response to the disk has failed; the disk is not used for it again.
    is_diskless: bool,
}

#[derive(Debug)]
struct Spooled {
    file: Arc<File>,
    written: u64,
    read: u64,
    /// Size of the file.
    size: u64,
}

/// Place that has room for more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Memory,
    File,
}

/// Next step of the reader.
#[derive(Debug)]
pub(crate) enum Next {
    Bytes(Bytes),
    /// File, offset and number of bytes to read. The caller returns the bytes with
    /// [`SpillBuffer::has_read`], or reports a failure with [`SpillBuffer::has_lost`].
    OfFile(Arc<File>, u64, usize),
    Nothing,
}

/// Result of a write. Contains the bytes, in case the disk rejected them.
#[derive(Debug)]
pub(crate) struct Written {
    file: Option<Arc<File>>,
    bytes: Bytes,
    result: io::Result<()>,
}

impl SpillBuffer {
    pub(crate) fn new(charges: Charges) -> SpillBuffer {
        SpillBuffer { charges: Some(charges), ..SpillBuffer::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.is_file_empty() && self.untaken.is_none()
    }

    fn is_file_empty(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.read == file.written)
    }

    /// Returns the place for more bytes. Must not be called while a write is pending.
    pub(crate) fn room(&mut self, limits: &Limits) -> Option<Room> {
        let is_file_empty = self.is_file_empty();
        if let Some(file) = self.file.as_mut().filter(|_| is_file_empty) {
            (file.read, file.written) = (0, 0);
        }
        let is_memory_last = is_file_empty && self.untaken.is_none();
        let is_allowed = || self.charges.as_ref().is_none_or(|charges| charges.memory.has_room());
        if is_memory_last && self.memory_bytes < limits.response_memory_bytes_max && is_allowed() {
            return Some(Room::Memory);
        }
        let written = self.file.as_ref().map_or(0, |file| file.written);
        let has_file = !self.is_diskless && written < limits.response_spill_bytes_max;
        has_file.then_some(Room::File)
    }

    /// Appends bytes to the bytes in memory.
    pub(crate) fn put(&mut self, bytes: Bytes) {
        self.memory_bytes += bytes.len() as u64;
        self.memory.push_back(bytes);
        self.account();
    }

    /// Records the result of a write. Returns the disk's error if it wrote nothing.
    pub(crate) fn has_written(&mut self, written: Written) -> io::Result<()> {
        let Written { file, bytes, result } = written;
        match (result, file) {
            (Ok(()), Some(file)) => {
                let new = Spooled { file, written: 0, read: 0, size: 0 };
                let spooled = self.file.get_or_insert(new);
                spooled.written += bytes.len() as u64;
                spooled.size = spooled.size.max(spooled.written);
                if let Some(charges) = &self.charges {
                    charges.spool.set(spooled.size);
                }
                Ok(())
            }
            (result, _) => {
                self.is_diskless = true;
                self.untaken = Some(bytes);
                result
            }
        }
    }

    /// Removes and returns the first bytes, or says where to read them.
    pub(crate) fn next(&mut self) -> Next {
        if let Some(bytes) = self.memory.pop_front() {
            self.memory_bytes -= bytes.len() as u64;
            self.account();
            return Next::Bytes(bytes);
        }
        if let Some(file) = self.file.as_ref().filter(|file| file.read < file.written) {
            let len = (file.written - file.read).min(CHUNK_BYTES as u64) as usize;
            return Next::OfFile(Arc::clone(&file.file), file.read, len);
        }
        self.untaken.take().map_or(Next::Nothing, Next::Bytes)
    }

    /// Records that these bytes were read from the file.
    pub(crate) fn has_read(&mut self, bytes: Bytes) {
        if let Some(file) = &mut self.file {
            file.read += bytes.len() as u64;
        }
        self.put(bytes);
    }

    /// Records that a read from the file failed. Drops everything: bytes after a gap are not part
    /// of the response.
    pub(crate) fn has_lost(&mut self) {
        let charges = self.charges.take();
        *self = SpillBuffer { is_diskless: true, charges, ..SpillBuffer::default() };
        self.account();
    }

    /// Updates the part of the memory's budget.
    fn account(&self) {
        if let Some(charges) = &self.charges {
            charges.memory.set(self.memory_bytes);
        }
    }
}

/// Starts a job that appends bytes to the file; creates the file if there is none.
pub(crate) fn write(
    disk: &DiskThreads,
    settings: &Settings,
    kept: &SpillBuffer,
    bytes: Bytes,
) -> DiskJob<Written> {
    let spooled = kept.file.as_ref().map(|spooled| (Arc::clone(&spooled.file), spooled.written));
    let folder = settings.temp_dir.clone();
    disk.run(JobTarget::Path(folder.clone()), move || {
        let opened = match spooled {
            Some(spooled) => Ok(spooled),
            None => tempfile::tempfile_in(folder).map(|file| (Arc::new(file), 0)),
        };
        let result = opened.as_ref().map(|(file, at)| file.write_all_at(&bytes, *at));
        let result = result.unwrap_or_else(|error| Err(error.kind().into()));
        Ok(Written { file: opened.ok().map(|(file, _)| file), bytes, result })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(memory: u64, file: u64) -> Limits {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = Settings::defaults(folder.path()).expect("defaults").limits;
        Limits { response_memory_bytes_max: memory, response_spill_bytes_max: file, ..limits }
    }

    /// Bytes whose values show their offset.
    fn piece(from: usize, len: usize) -> Bytes {
        (from..from + len).map(|at| (at % 251) as u8).collect()
    }

    /// Reads the next bytes, as a disk thread would.
    fn take(kept: &mut SpillBuffer) -> Option<Bytes> {
        loop {
            match kept.next() {
                Next::Bytes(bytes) => return Some(bytes),
                Next::OfFile(file, at, len) => {
                    let mut bytes = vec![0; len];
                    file.read_exact_at(&mut bytes, at).expect("it was written");
                    kept.has_read(bytes.into());
                }
                Next::Nothing => return None,
            }
        }
    }

    proptest! {
        /// Bytes come out in the order in which they were put. This holds for any sequence of puts
        /// and takes, and for a full disk at any write.
        #[test]
        fn put_bytes_come_out_in_order(
            steps in proptest::collection::vec((any::<bool>(), 1usize..400), 1..60),
            memory in 0u64..1000,
            full_at in 0usize..40,
        ) {
            let limits = limits(memory, 4000);
            let mut kept = SpillBuffer::default();
            let (mut put, mut taken, mut writes) = (0, 0, 0);
            for (takes, len) in steps {
                if takes {
                    if let Some(bytes) = take(&mut kept) {
                        prop_assert_eq!(&bytes, &piece(taken, bytes.len()));
                        taken += bytes.len();
                    }
                    continue;
                }
                let bytes = piece(put, len);
                match kept.room(&limits) {
                    None => continue,
                    Some(Room::Memory) => kept.put(bytes),
                    Some(Room::File) => {
                        writes += 1;
                        let spooled = kept.file.as_ref().map(|s| (Arc::clone(&s.file), s.written));
                        let (file, at) = spooled.unwrap_or_else(|| {
                            (Arc::new(tempfile::tempfile().expect("a file")), 0)
                        });
                        let is_full = writes == full_at;
                        let result = if is_full {
                            Err(io::ErrorKind::StorageFull.into())
                        } else {
                            file.write_all_at(&bytes, at)
                        };
                        let written = Written { file: Some(file), bytes, result };
                        prop_assert_eq!(kept.has_written(written).is_err(), is_full);
                    }
                }
                put += len;
            }
            while let Some(bytes) = take(&mut kept) {
                prop_assert_eq!(&bytes, &piece(taken, bytes.len()));
                taken += bytes.len();
            }
            prop_assert_eq!(taken, put);
            prop_assert!(kept.is_empty());
        }
    }

    #[test]
    fn memory_is_read_before_file_and_both_are_limited() {
        let limits = limits(10, 20);
        let mut kept = SpillBuffer::default();
        assert_eq!(kept.room(&limits), Some(Room::Memory));
        kept.put(piece(0, 10));
        assert_eq!(kept.room(&limits), Some(Room::File));
        let file = Arc::new(tempfile::tempfile().expect("a file"));
        let written =
            |len| Written { file: Some(Arc::clone(&file)), bytes: piece(0, len), result: Ok(()) };
        kept.has_written(written(20)).expect("there was room");
        assert_eq!(kept.room(&limits), None);
        assert!(matches!(kept.next(), Next::Bytes(_)));
        assert_eq!(kept.room(&limits), None, "memory has room, and the file's bytes come before");
        kept.has_lost();
        assert!(kept.is_empty() && matches!(kept.next(), Next::Nothing));
    }
}
