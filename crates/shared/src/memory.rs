//! The memory file that the processes share: its layout, and the only place that turns it into
//! words.

use crate::limits::{ENTRY_WORDS, OBJECTS_MAX, SEAT_WORDS, SEATS};
use crate::os::{self, Mapping};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// First word of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"samovshr");
/// Version of the layout: both programs must be of one build.
pub(crate) const VERSION: u64 = 3;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 1;
const AT_WORDS: usize = 2;
/// Seed of the hash of keys: no client can choose keys that fall into one bucket.
pub(crate) const AT_SEED: usize = 3;
/// Lock of the directory.
pub(crate) const AT_LOCK: usize = 4;
/// Number of directory entries ever used.
pub(crate) const AT_ENTRIES: usize = 5;
/// Number of seats ever used.
pub(crate) const AT_SEATS: usize = 6;
/// End of the memory ever handed out, in words: everything beyond it is zero.
pub(crate) const AT_TOP: usize = 7;
/// Number of templates that have started with this memory.
const AT_GENERATION: usize = 9;
/// Number of objects that could not be created for lack of room.
pub(crate) const AT_REFUSED: usize = 8;

pub(crate) const PAGE_WORDS: usize = 512;
/// Maximum number of published values whose reads are counted.
pub const PUBLISHED_MAX: usize = 1024;
const READS_AT: usize = PAGE_WORDS;
const SEATS_AT: usize = READS_AT + PUBLISHED_MAX;
const ENTRIES_AT: usize = SEATS_AT + SEATS * SEAT_WORDS;
/// Start of the objects.
pub(crate) const HEAP_AT: usize = ENTRIES_AT + OBJECTS_MAX * ENTRY_WORDS;

/// Why a memory file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// A system call failed.
    #[error("cannot map the shared memory: {0}")]
    Io(#[from] io::Error),
    /// It was not created by this program, or has another version.
    #[error(
        "the file descriptor is not shared memory of this version ({magic:#x}, version {version})\n\
         hint: use samovar and samovar-php of the same release"
    )]
    Foreign {
        /// Its first word.
        magic: u64,
        /// Version in its header.
        version: u64,
    },
    /// Its size is not sealed, or is not the size in its header.
    #[error("the size of the shared memory's file differs from its header, or can change")]
    Size,
}

/// The mapped memory. Each process has its own mapping.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    memory: Mapping,
    words: usize,
    file: OwnedFd,
}

impl Shared {
    /// Creates memory with room for objects of `bytes` in total.
    pub fn create(bytes: u64) -> io::Result<Shared> {
        let heap = usize::try_from(bytes / 8).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let words = HEAP_AT + heap.next_multiple_of(PAGE_WORDS);
        let file = os::sealed_memory_file("samovar-shared", words * 8)?;
        let shared = Shared::map(file, words)?;
        let mut seed = [0; 8];
        // As many bytes as the kernel returns at once: nothing else depends on the secrecy of the
        // seed.
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

    /// Maps the memory. `file` must have `words` words and must be sealed.
    fn map(file: OwnedFd, words: usize) -> io::Result<Shared> {
        let memory = Mapping::new(file.as_fd(), words * 8)?;
        Ok(Shared(Arc::new(Mapped { memory, words, file })))
    }

    /// The memory file, to pass on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// Begins a new generation of the application's processes, whose code may have changed. Returns
    /// its number, which is larger than all before.
    pub fn begin_generation(&self) -> u64 {
        self.words()[AT_GENERATION].fetch_add(1, Ordering::AcqRel) + 1
    }

    /// All words of the memory.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let base = self.0.memory.base().cast::<AtomicU64>();
        // SAFETY: the mapping is page-aligned and has `words` words; all processes access them as
        // atomics, for which every bit pattern is valid; it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(base.as_ptr(), self.0.words) }
    }

    /// Number of words for objects.
    pub(crate) fn heap_words(&self) -> usize {
        self.0.words - HEAP_AT
    }

    /// Number of reads of each published value.
    pub(crate) fn read_counts(&self) -> &[AtomicU64] {
        &self.words()[READS_AT..READS_AT + PUBLISHED_MAX]
    }

    pub(crate) fn seat(&self, seat: usize) -> &[AtomicU64] {
        let at = SEATS_AT + seat * SEAT_WORDS;
        &self.words()[at..at + SEAT_WORDS]
    }

    pub(crate) fn entry(&self, index: usize) -> &[AtomicU64] {
        let at = ENTRIES_AT + index * ENTRY_WORDS;
        &self.words()[at..at + ENTRY_WORDS]
    }

    /// Clears whole pages and gives their memory back to the system.
    pub(crate) fn clear(&self, from: usize, words: usize) -> io::Result<()> {
        let mode = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self.file(), mode, from as u64 * 8, words as u64 * 8)?)
    }
}

#[cfg(all(test, not(loom)))]
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
