//! The memory file and its mapping: the only place that turns offsets into pointers.

use crate::layout::{
    ANSWER_BYTES, AREA_BYTES, BODY_BYTES, Control, HEAD_BYTES, MAGIC, REQUEST_BYTES, SLOTS_MAX,
    SlotCell, SlotIndex, VERSION,
};
use crate::stream::Window;
use crate::sync::Ordering;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

const PAGE: usize = 4096;
const CONTROL_BYTES: usize = size_of::<Control>().div_ceil(PAGE) * PAGE;

/// Why a memory file is refused.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The system said no.
    #[error("cannot map the ring: {0}")]
    Io(#[from] io::Error),
    /// Not a ring.
    #[error("the file descriptor holds no ring (magic {0:#x})")]
    Magic(u64),
    /// A ring of another build.
    #[error(
        "the ring has version {found}, this worker speaks {VERSION}\nhint: use the samovar and samovar-php of one release"
    )]
    Version {
        /// What the header says.
        found: u32,
    },
    /// Header and file size disagree.
    #[error("the ring's file has {found} bytes where {slots} slots need {needed}")]
    Size {
        /// Bytes of the file.
        found: u64,
        /// Slots in the header.
        slots: usize,
        /// Bytes these need.
        needed: usize,
    },
}

/// A mapped ring, shared by the views of one process.
#[derive(Clone, Debug)]
pub struct Ring(Arc<Mapping>);

#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    slots: usize,
    file: OwnedFd,
    bell: OwnedFd,
}

// SAFETY: the mapping is shared between processes anyway. All control words are atomics; payload areas
// are reached through `Area`, whose methods copy and whose callers own the slot by its word.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `bytes` are what mmap returned and was given; the last view is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Which part of a slot's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Request,
    Body,
    Head,
    Answer,
}

impl Part {
    const fn range(self) -> (usize, usize) {
        match self {
            Part::Request => (0, REQUEST_BYTES),
            Part::Body => (REQUEST_BYTES, BODY_BYTES),
            Part::Head => (REQUEST_BYTES + BODY_BYTES, HEAD_BYTES),
            Part::Answer => (REQUEST_BYTES + BODY_BYTES + HEAD_BYTES, ANSWER_BYTES),
        }
    }
}

impl Ring {
    /// A new ring for `slots` requests queued or in flight (at most [`SLOTS_MAX`]).
    pub fn create(slots: usize) -> io::Result<Ring> {
        let slots = slots.clamp(1, SLOTS_MAX);
        let file = memfd(c"samovar-ring")?;
        let bytes = CONTROL_BYTES + slots * AREA_BYTES;
        File::from(file.try_clone()?).set_len(bytes as u64)?;
        let ring = Ring::map(file, eventfd()?, slots)?;
        ring.seal();
        Ok(ring)
    }

    /// Writes the header: at creation, and again after a worker may have scribbled over it.
    pub(crate) fn seal(&self) {
        let header = &self.control().header.0;
        header.version.store(VERSION, Ordering::Relaxed);
        header.slots.store(self.0.slots as u32, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Maps the ring in `file`, whose front sleeps on the eventfd `bell`.
    pub fn attach(file: OwnedFd, bell: OwnedFd) -> Result<Ring, AttachError> {
        let found = File::from(file.try_clone().map_err(AttachError::Io)?).metadata()?.len();
        if found < CONTROL_BYTES as u64 {
            return Err(AttachError::Size { found, slots: 0, needed: CONTROL_BYTES });
        }
        let probe = Ring::map(file.try_clone()?, bell.try_clone()?, 0)?;
        let header = &probe.control().header.0;
        match (header.magic.load(Ordering::Acquire), header.version.load(Ordering::Relaxed)) {
            (MAGIC, VERSION) => {}
            (MAGIC, found) => return Err(AttachError::Version { found }),
            (found, _) => return Err(AttachError::Magic(found)),
        }
        let slots = header.slots.load(Ordering::Relaxed) as usize;
        let needed = CONTROL_BYTES + slots.min(SLOTS_MAX) * AREA_BYTES;
        if slots == 0 || slots > SLOTS_MAX || found < needed as u64 {
            return Err(AttachError::Size { found, slots, needed });
        }
        Ok(Ring::map(file, bell, slots)?)
    }

    fn map(file: OwnedFd, bell: OwnedFd, slots: usize) -> io::Result<Ring> {
        let bytes = CONTROL_BYTES + slots * AREA_BYTES;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice; the file is at least `bytes`
        // long (create sized it, attach compared), so no access beyond its end.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring(Arc::new(Mapping { base, bytes, slots, file, bell })))
    }

    /// The memory file, to hand to the worker template.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// The eventfd that wakes the front.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }

    /// Slots of this ring.
    pub fn slots(&self) -> usize {
        self.0.slots
    }

    /// Wakes the front whether it sleeps or not.
    pub fn ring_front(&self) {
        let one = 1u64;
        // SAFETY: writes eight bytes of a local. A full counter (EAGAIN) is a front that is being woken.
        unsafe { libc::write(self.0.bell.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: the mapping begins with CONTROL_BYTES ≥ size_of::<Control>(), page-aligned; every field is an
        // atomic, so that other processes' writes are no data race and every bit pattern is valid.
        unsafe { self.0.base.cast::<Control>().as_ref() }
    }

    /// The cells of the slots that have a payload area.
    pub(crate) fn cells(&self) -> &[SlotCell] {
        &self.control().slots[..self.0.slots]
    }

    pub(crate) fn area(&self, slot: SlotIndex, part: Part) -> Area<'_> {
        assert!(slot.get() < self.0.slots, "slot {slot:?} is of another ring");
        let (start, len) = part.range();
        // SAFETY: slot < slots (asserted) and a part lies within AREA_BYTES: inside the mapping.
        let base = unsafe { self.0.base.add(CONTROL_BYTES + slot.get() * AREA_BYTES + start) };
        Area { base, len, _ring: self }
    }
}

/// Bytes of one part of a slot. The other process may change them at any time, so they are only copied.
#[derive(Clone, Copy)]
pub(crate) struct Area<'a> {
    base: NonNull<u8>,
    len: usize,
    _ring: &'a Ring,
}

impl Area<'_> {
    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Copies `bytes` to offset `at`. Panics when they do not fit: callers compare first.
    pub(crate) fn put(self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at, "write beyond the area");
        let to = self.base.as_ptr().wrapping_add(at);
        // SAFETY: in bounds (asserted); the source is a private slice, so they cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Appends the `len` bytes at offset `at` to `out`.
    pub(crate) fn append_to(self, at: usize, len: usize, out: &mut Vec<u8>) {
        assert!(at <= self.len && len <= self.len - at, "read beyond the area");
        out.reserve(len);
        let from = self.base.as_ptr().wrapping_add(at);
        let to = out.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: in bounds on both sides (asserted, reserved); private memory does not overlap the mapping.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
        // SAFETY: `len` more bytes have just been initialised, within the capacity.
        unsafe { out.set_len(out.len() + len) };
    }

    /// Copies into the ring at `position`; the window was checked by `Stream::writable`.
    pub(crate) fn write_at(self, position: u64, bytes: &[u8]) {
        let window = Window::new(position, bytes.len(), self.len);
        self.put(window.start, &bytes[..window.first]);
        self.put(0, &bytes[window.first..]);
    }

    /// Appends `len` ring bytes from `position`; the window was checked by `Stream::readable`.
    pub(crate) fn read_at(self, position: u64, len: usize, out: &mut Vec<u8>) {
        let window = Window::new(position, len, self.len);
        self.append_to(window.start, window.first, out);
        self.append_to(0, window.second, out);
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds: the same clock in every process of the machine.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn memfd(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    // SAFETY: a NUL-terminated name, no other pointers.
    owned(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })
}

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
}

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system call has just made it, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
