//! The region: a memory file at one address in all processes, which the server alone can write.
//!
//! The server maps it writable, and then seals it against every mapping and write that comes later: what inherits its
//! descriptor has it to read, whatever it tries. The address is one that the kernel gives to nobody by itself; the server takes
//! the first that is free for it, and all others need the same.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"samovpub");
/// Of the layout: both programs must be of one build.
const VERSION: u64 = 1;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 1;
const AT_BYTES: usize = 2;
const AT_BASE: usize = 3;
/// Epoch and place of the list of names: [`root_of`].
const AT_ROOT: usize = 4;
/// Epochs before this one are nobody's any more. On a line of its own: it changes when others read the root.
const AT_FLOOR: usize = 16;
/// Where values begin.
pub(crate) const HEADER_BYTES: u64 = 4096;

/// Far from where the kernel places programs, libraries, stacks and the shadows of sanitizers: 32 TiB; and 64 GiB, where a
/// processor has fewer addresses. With each how far from one another several regions of a server lie, one for each pool.
const BASES: [(usize, usize); 2] = [(1 << 45, 1 << 38), (1 << 36, 1 << 32)];
/// Regions of a server.
const REGIONS_MAX: usize = 32;

/// The addresses that a region may have, in the order in which they are tried.
fn bases() -> impl Iterator<Item = usize> {
    BASES.into_iter().flat_map(|(first, step)| (0..REGIONS_MAX).map(move |at| first + at * step))
}

const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE).union(SealFlags::SEAL);

/// What places in a root are a multiple of.
const PLACE_GRAIN: u64 = 64;
/// The first epoch, when there is nothing.
pub(crate) const FIRST_EPOCH: u64 = 1;

/// Why there is no region.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The system said no.
    #[error("cannot map the region of published values: {0}")]
    Io(#[from] io::Error),
    /// Something lies where it must be.
    #[error("the region of published values cannot lie at {0:#x}: something else does")]
    Taken(usize),
    /// It was not made by this program, or of another version.
    #[error(
        "the file descriptor holds no published values of this version\n\
         hint: use the samovar and samovar-php of one release"
    )]
    Foreign,
}

/// The epoch of a root.
pub(crate) const fn epoch_of_root(root: u64) -> u64 {
    root >> 32
}

/// Where a root's list begins; 0: it is empty.
pub(crate) const fn place_of_root(root: u64) -> u64 {
    (root & u32::MAX as u64) * PLACE_GRAIN
}

/// A root, if the epoch and the place are not too large for one.
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

// SAFETY: what is written is the server's alone to write, under its publisher's lock; readers see only what was finished.
unsafe impl Send for Region {}
// SAFETY: as for Send.
unsafe impl Sync for Region {}

impl Region {
    /// New: `bytes` for values.
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

    /// What the server has made, to read.
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

    /// The memory file, to hand on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The address that all processes have it at.
    pub(crate) fn base(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// A word of the header.
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the header's page.
        let word = unsafe { self.base.cast::<AtomicU64>().add(at) };
        // SAFETY: aligned, and only reached as an atomic. Readers, whose mapping cannot be written, only load.
        unsafe { word.as_ref() }
    }

    pub(crate) fn root(&self) -> &AtomicU64 {
        self.word(AT_ROOT)
    }

    pub(crate) fn floor(&self) -> &AtomicU64 {
        self.word(AT_FLOOR)
    }

    /// Writes to a piece that no reader can see. Panics if it lies outside: that would be the publisher's mistake.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = at.checked_add(bytes.len() as u64);
        assert!(
            self.is_writable && at >= HEADER_BYTES && end.is_some_and(|end| end <= self.bytes())
        );
        if bytes.is_empty() {
            return Ok(());
        }
        // Where there is no memory left, this says so; the copy could only be killed.
        rustix::fs::fallocate(
            &self.file,
            rustix::fs::FallocateFlags::KEEP_SIZE,
            at,
            bytes.len() as u64,
        )?;
        // SAFETY: within the mapping, as was just compared.
        let to = unsafe { self.base.as_ptr().add(at as usize) };
        // SAFETY: the mapping is writable, and nobody else reads or writes this piece: the publisher has taken it from
        // what is free. The bytes come from another allocation.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: what mmap returned and was given; whoever borrows from it is gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn map(file: BorrowedFd<'_>, base: usize, bytes: usize, writes: bool) -> io::Result<NonNull<u8>> {
    let protection = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
    let wanted = std::ptr::without_provenance_mut(base);
    // SAFETY: a fresh mapping, which replaces none.
    let at = unsafe { mmap(wanted, bytes, protection, flags, file, 0) }?;
    if at == wanted {
        return NonNull::new(at.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into());
    }
    // Kernels before 4.17 take the address for a wish.
    // SAFETY: what was just mapped.
    let _ = unsafe { munmap(at, bytes) };
    Err(io::ErrorKind::AlreadyExists.into())
}
