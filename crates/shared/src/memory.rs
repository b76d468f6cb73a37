//! The memory file as processes share it: where everything lies, and the only place that turns it into words.

use crate::directory::{self, OBJECTS_MAX};
use crate::os::{self, Mapping};
use crate::seats::{SEAT_WORDS, SEATS};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the file begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"samovshr");
/// Of the layout: both programs must be of one build.
pub(crate) const VERSION: u64 = 3;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 1;
const AT_WORDS: usize = 2;
/// What keys are hashed with: nobody outside can choose keys that fall into one bucket.
pub(crate) const AT_SEED: usize = 3;
/// The lock of the directory.
pub(crate) const AT_LOCK: usize = 4;
/// Entries of the directory that have ever been used.
pub(crate) const AT_ENTRIES: usize = 5;
/// Seats that have ever been used.
pub(crate) const AT_SEATS: usize = 6;
/// End of what was ever handed out, in words: beyond it all is zero.
pub(crate) const AT_TOP: usize = 7;
/// Templates that have started with this memory.
const AT_GENERATION: usize = 9;
/// What could not be made because there was no room.
pub(crate) const AT_REFUSED: usize = 8;

pub(crate) const PAGE_WORDS: usize = 512;
/// Published values whose reads are counted.
pub const PUBLISHED_MAX: usize = 1024;
const READS_AT: usize = PAGE_WORDS;
const SEATS_AT: usize = READS_AT + PUBLISHED_MAX;
const ENTRIES_AT: usize = SEATS_AT + SEATS * SEAT_WORDS;
/// Where objects begin.
pub(crate) const HEAP_AT: usize = ENTRIES_AT + OBJECTS_MAX * directory::ENTRY_WORDS;

/// Why a memory file is refused.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The system said no.
    #[error("cannot map the shared memory: {0}")]
    Io(#[from] io::Error),
    /// It was not made by this program, or of another version.
    #[error(
        "the file descriptor holds no shared memory of this version ({magic:#x}, version {version})\n\
         hint: use the samovar and samovar-php of one release"
    )]
    Foreign {
        /// What it begins with.
        magic: u64,
        /// What its header says.
        version: u64,
    },
    /// Its size is not sealed, or not what its header says.
    #[error("the shared memory's file has another size than its header says, or can change it")]
    Size,
}

/// The mapped memory, of which each process has one.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    memory: Mapping,
    words: usize,
    file: OwnedFd,
}

impl Shared {
    /// New memory in which objects of `bytes` together have room.
    pub fn create(bytes: u64) -> io::Result<Shared> {
        let heap = usize::try_from(bytes / 8).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let words = HEAP_AT + heap.next_multiple_of(PAGE_WORDS);
        let file = os::sealed_memory_file("samovar-shared", words * 8)?;
        let shared = Shared::map(file, words)?;
        let mut seed = [0; 8];
        // As much as the kernel has at once: it is no secret that anything else hangs on.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let all = shared.words();
        all[AT_SEED].store(u64::from_ne_bytes(seed), Ordering::Relaxed);
        all[AT_TOP].store(HEAP_AT as u64, Ordering::Relaxed);
        all[AT_WORDS].store(words as u64, Ordering::Relaxed);
        all[AT_VERSION].store(VERSION, Ordering::Relaxed);
        all[AT_MAGIC].store(MAGIC, Ordering::Release);
        Ok(shared)
    }

    /// Maps the memory in `file`.
    pub fn attach(file: OwnedFd) -> Result<Shared, AttachError> {
        let bytes = os::sealed_size(file.as_fd())?.ok_or(AttachError::Size)?;
        let words = usize::try_from(bytes / 8).map_err(|_| AttachError::Size)?;
        if words < HEAP_AT {
            return Err(AttachError::Size);
        }
        let shared = Shared::map(file, words)?;
        let word = |at: usize| shared.words()[at].load(Ordering::Acquire);
        let (magic, version) = (word(AT_MAGIC), word(AT_VERSION));
        if (magic, version) != (MAGIC, VERSION) {
            return Err(AttachError::Foreign { magic, version });
        }
        if word(AT_WORDS) != words as u64 {
            return Err(AttachError::Size);
        }
        Ok(shared)
    }

    /// `file` has so many words, and is sealed.
    fn map(file: OwnedFd, words: usize) -> io::Result<Shared> {
        let memory = Mapping::new(file.as_fd(), words * 8)?;
        Ok(Shared(Arc::new(Mapped { memory, words, file })))
    }

    /// The memory file, to hand on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// A new start of the application's processes, whose code may have changed: its number, which is larger than all before.
    pub fn begin_generation(&self) -> u64 {
        self.words()[AT_GENERATION].fetch_add(1, Ordering::AcqRel) + 1
    }

    /// All of it.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let base = self.0.memory.base().cast::<AtomicU64>();
        // SAFETY: the mapping is page-aligned and has so many words; all processes reach them as atomics, every bit
        // pattern of which is valid; it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(base.as_ptr(), self.0.words) }
    }

    /// Words for objects.
    pub(crate) fn heap_words(&self) -> usize {
        self.0.words - HEAP_AT
    }

    /// How often each published value was read.
    pub(crate) fn read_counts(&self) -> &[AtomicU64] {
        &self.words()[READS_AT..READS_AT + PUBLISHED_MAX]
    }

    pub(crate) fn seat(&self, seat: usize) -> &[AtomicU64] {
        let at = SEATS_AT + seat * SEAT_WORDS;
        &self.words()[at..at + SEAT_WORDS]
    }

    pub(crate) fn entry(&self, index: usize) -> &[AtomicU64] {
        let at = ENTRIES_AT + index * directory::ENTRY_WORDS;
        &self.words()[at..at + directory::ENTRY_WORDS]
    }

    /// Makes whole pages zero, and gives their memory back.
    pub(crate) fn clear(&self, from: usize, words: usize) -> io::Result<()> {
        let mode = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self.file(), mode, from as u64 * 8, words as u64 * 8)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn only_sealed_memory_of_this_version_is_attached() {
        let shared = Shared::create(1 << 20).expect("memory");
        let file = || shared.file().try_clone_to_owned().expect("a descriptor");
        assert!(File::from(file()).set_len(0).is_err());
        assert!(Shared::attach(file()).is_ok());
        shared.words()[AT_VERSION].store(VERSION + 1, Ordering::SeqCst);
        assert!(matches!(Shared::attach(file()), Err(AttachError::Foreign { .. })));
        shared.words()[AT_VERSION].store(VERSION, Ordering::SeqCst);
        shared.words()[AT_WORDS].store(7, Ordering::SeqCst);
        assert!(matches!(Shared::attach(file()), Err(AttachError::Size)));
        let open = rustix::fs::memfd_create("open", rustix::fs::MemfdFlags::CLOEXEC);
        assert!(matches!(Shared::attach(open.expect("memory")), Err(AttachError::Size)));
    }
}
