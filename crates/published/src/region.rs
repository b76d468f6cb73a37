//! The region: a memory file at the same address in all processes, which only the server can write.
//!
//! The server maps it writable and then seals it against all later mappings for writing and all
//! later writes. A process that inherits the descriptor can only read it. The address is one that
//! the kernel does not assign on its own. The server takes the first that is free for it, and all
//! other processes need the same.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"samovpub");
/// Version of the layout: both programs must be of one build.
const VERSION: u64 = 1;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 1;
const AT_BYTES: usize = 2;
const AT_BASE: usize = 3;
/// Epoch and position of the list of names: [`root_of`].
const AT_ROOT: usize = 4;
/// No process reads epochs before this one. On a cache line of its own, because it changes while
/// others read the root.
const AT_FLOOR: usize = 16;
/// Start of the values.
pub(crate) const HEADER_BYTES: u64 = 4096;

/// First addresses, and the distances between the regions of a server, which has one per pool. The
/// addresses are far from where the kernel places programs, libraries, stacks and the shadows of
/// sanitizers: 32 TiB, and 64 GiB for a processor with fewer addresses.
const BASES: [(usize, usize); 2] = [(1 << 45, 1 << 38), (1 << 36, 1 << 32)];
/// Maximum number of regions of a server.
const REGIONS_MAX: usize = 32;

/// The possible addresses of a region, in the order of the attempts.
fn bases() -> impl Iterator<Item = usize> {
    BASES.into_iter().flat_map(|(first, step)| (0..REGIONS_MAX).map(move |at| first + at * step))
}

const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE).union(SealFlags::SEAL);

/// Positions in a root are multiples of this.
const PLACE_GRAIN: u64 = 64;
/// The first epoch, without any value.
pub(crate) const FIRST_EPOCH: u64 = 1;

/// Why a region cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// A system call failed.
    #[error("cannot map the region of published values: {0}")]
    Io(#[from] io::Error),
    /// Its address is in use.
    #[error("cannot map the region of published values at {0:#x}: the address is in use")]
    Taken(usize),
    /// It was not created by this program, or has another version.
    #[error(
        "the file descriptor holds no published values of this version\n\
         hint: use samovar and samovar-php of the same release"
    )]
    Foreign,
}

/// The epoch of a root.
pub(crate) const fn epoch_of_root(root: u64) -> u64 {
    root >> 32
}

/// The start of a root's list; 0: it is empty.
pub(crate) const fn place_of_root(root: u64) -> u64 {
    (root & u32::MAX as u64) * PLACE_GRAIN
}

/// A root; `None` if the epoch or the position is too large for one.
pub(crate) fn root_of(epoch: u64, place: u64) -> Option<u64> {
    let place = u32::try_from(place / PLACE_GRAIN).ok()?;
    Some(u64::from(u32::try_from(epoch).ok()?) << 32 | u64::from(place))
}

/// The mapped region.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
    file: OwnedFd,
}

// SAFETY: only the server writes, under its publisher's lock; readers see only finished values.
unsafe impl Send for Region {}
// SAFETY: as for Send.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region with `bytes` for values.
    pub fn create(bytes: u64) -> Result<Region, RegionError> {
        let all =
            bytes.checked_next_multiple_of(HEADER_BYTES).and_then(|b| b.checked_add(HEADER_BYTES));
        let all = all
            .and_then(|all| usize::try_from(all).ok())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("samovar-published", flags).map_err(io::Error::from)?;
        rustix::fs::ftruncate(&file, all as u64).map_err(io::Error::from)?;
        let base = bases().find_map(|base| map(file.as_fd(), base, all, true).ok());
        let base = base.ok_or(RegionError::Taken(BASES[0].0))?;
        let region = Region { base, bytes: all, is_writable: true, file };
        for (at, value) in [
            (AT_FLOOR, FIRST_EPOCH),
            (AT_ROOT, FIRST_EPOCH << 32),
            (AT_BASE, region.base()),
            (AT_BYTES, all as u64),
            (AT_VERSION, VERSION),
            (AT_MAGIC, MAGIC),
        ] {
            region.word(at).store(value, Ordering::SeqCst);
        }
        rustix::fs::fcntl_add_seals(&region.file, SEALS).map_err(io::Error::from)?;
        Ok(region)
    }

    /// Maps the region that the server has created, for reading.
    pub fn attach(file: OwnedFd) -> Result<Region, RegionError> {
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(io::Error::from)?;
        let bytes = rustix::fs::fstat(&file).map_err(io::Error::from)?.st_size;
        let mut header = [0; 64];
        let got = rustix::io::pread(&file, &mut header, 0).map_err(io::Error::from)?;
        let word = |at: usize| {
            u64::from_ne_bytes(header[at * 8..at * 8 + 8].try_into().unwrap_or_default())
        };
        let is_ours = got == header.len()
            && seals.contains(SEALS)
            && (word(AT_MAGIC), word(AT_VERSION)) == (MAGIC, VERSION)
            && word(AT_BYTES) == bytes.cast_unsigned();
        let (base, bytes) = (word(AT_BASE) as usize, bytes.cast_unsigned() as usize);
        if !is_ours || !bases().any(|known| known == base) {
            return Err(RegionError::Foreign);
        }
        let base = map(file.as_fd(), base, bytes, false).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RegionError::Taken(base),
            _ => error.into(),
        })?;
        Ok(Region { base, bytes, is_writable: false, file })
    }

    /// The memory file, to pass on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its address in all processes.
    pub(crate) fn base(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// Its size, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// A word of the header.
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the header's page.
        let word = unsafe { self.base.cast::<AtomicU64>().add(at) };
        // SAFETY: aligned, and accessed only as an atomic. Readers, whose mapping is not writable,
        // only load.
        unsafe { word.as_ref() }
    }

    pub(crate) fn root(&self) -> &AtomicU64 {
        self.word(AT_ROOT)
    }

    pub(crate) fn floor(&self) -> &AtomicU64 {
        self.word(AT_FLOOR)
    }

    /// Writes to a piece that no reader can see. Panics if the piece is outside the region: that
    /// would be a bug of the publisher.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = at.checked_add(bytes.len() as u64);
        assert!(
            self.is_writable && at >= HEADER_BYTES && end.is_some_and(|end| end <= self.bytes())
        );
        if bytes.is_empty() {
            return Ok(());
        }
        // Reports a lack of memory as an error; during the copy the process could only be killed.
        rustix::fs::fallocate(
            &self.file,
            rustix::fs::FallocateFlags::KEEP_SIZE,
            at,
            bytes.len() as u64,
        )?;
        // SAFETY: within the mapping, as was just checked.
        let to = unsafe { self.base.as_ptr().add(at as usize) };
        // SAFETY: the mapping is writable, and no other code reads or writes this piece: the
        // publisher has taken it from the free space. The bytes come from another allocation.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the address that mmap returned and the length that it got; all borrowers are
        // gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn map(file: BorrowedFd<'_>, base: usize, bytes: usize, writes: bool) -> io::Result<NonNull<u8>> {
    let protection = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
    let wanted = std::ptr::without_provenance_mut(base);
    // SAFETY: a new mapping, which replaces none.
    let at = unsafe { mmap(wanted, bytes, protection, flags, file, 0) }?;
    if at == wanted {
        return NonNull::new(at.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into());
    }
    // Kernels before 4.17 treat the address as a hint. SAFETY: unmaps only the mapping made above.
    let _ = unsafe { munmap(at, bytes) };
    Err(io::ErrorKind::AlreadyExists.into())
}
