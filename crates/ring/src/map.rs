//! The memory file that the processes share. This is the only place that turns offsets into
//! pointers.

use crate::cells::SlotCell;
use crate::layout::{Control, MAGIC, Parts, VERSION};
use crate::limits::{
    AREA_BYTES, BODY_BYTES, HEAD_BYTES, REPORT_BYTES, REQUEST_BYTES, RESPONSE_BYTES, SLOTS_MAX,
    SlotIndex,
};
use crate::os::{self, Mapping};
use crate::stream::Window;
use crate::sync::Ordering;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

const PAGE: usize = 4096;
const CONTROL_BYTES: usize = size_of::<Control>().div_ceil(PAGE) * PAGE;

/// Why a memory file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// A system call failed.
    #[error("cannot map the ring: {0}")]
    Io(#[from] io::Error),
    /// The file is not a ring.
    #[error("the file descriptor is not a ring (magic {0:#x})")]
    Magic(u64),
    /// A ring of another build.
    #[error(
        "the ring has version {found}, but this worker needs {VERSION}\nhint: use samovar and \
         samovar-php of the same release"
    )]
    Version {
        /// Version in the header.
        found: u32,
    },
    /// The size is not sealed. Another process could shorten the file, and every access beyond its
    /// end is a SIGBUS.
    #[error("the ring's file can still change its size (seals {found:#x})")]
    Unsealed {
        /// Its seals, as `F_GET_SEALS` returns them.
        found: u32,
    },
    /// The slots cannot be partitioned among the fronts like that, or the descriptors of some
    /// fronts are missing.
    #[error(
        "the ring's header has {slots} slots for {fronts} fronts, but there are {notifiers} \
         notifiers"
    )]
    Parts {
        /// Slots in the header.
        slots: usize,
        /// Fronts in the header.
        fronts: usize,
        /// Number of eventfds passed with the file.
        notifiers: usize,
    },
    /// Header and file size disagree.
    #[error("the ring's file has {found} bytes, but {slots} slots need {needed}")]
    Size {
        /// Bytes of the file.
        found: u64,
        /// Slots in the header.
        slots: usize,
        /// Bytes needed for these slots.
        needed: usize,
    },
}

/// A mapped ring, shared by the views of one process.
#[derive(Clone, Debug)]
pub struct Ring(Arc<Shared>);

// All control words are atomics. Payload areas are accessed through `Area`: its methods copy, and
// its callers own the slot by its word.
#[derive(Debug)]
struct Shared {
    memory: Mapping,
    parts: Parts,
    file: OwnedFd,
    /// One per front.
    notifiers: Vec<OwnedFd>,
}

/// Part of a slot's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Request,
    Body,
    Head,
    Response,
    Report,
}

impl Part {
    const fn range(self) -> (usize, usize) {
        match self {
            Part::Request => (0, REQUEST_BYTES),
            Part::Body => (REQUEST_BYTES, BODY_BYTES),
            Part::Head => (REQUEST_BYTES + BODY_BYTES, HEAD_BYTES),
            Part::Response => (REQUEST_BYTES + BODY_BYTES + HEAD_BYTES, RESPONSE_BYTES),
            Part::Report => (AREA_BYTES - REPORT_BYTES, REPORT_BYTES),
        }
    }
}

const fn bytes_of(slots: usize) -> usize {
    CONTROL_BYTES + slots * AREA_BYTES
}

impl Ring {
    /// Creates a ring for `slots` requests queued or in flight (at most [`SLOTS_MAX`]), with one
    /// front.
    pub fn create(slots: usize) -> io::Result<Ring> {
        Ring::shared_by(1, slots)
    }

    /// Creates a ring with `fronts` fronts, 1 to [`FRONTS_MAX`](crate::FRONTS_MAX). Each has room
    /// for `slots` requests, or for its share of [`SLOTS_MAX`] if that is less.
    pub fn shared_by(fronts: usize, slots: usize) -> io::Result<Ring> {
        let parts = Parts::of(slots, fronts);
        let file = os::sealed_memory_file("samovar-ring", bytes_of(parts.slots()))?;
        let notifiers = (0..parts.fronts()).map(|_| os::event()).collect::<io::Result<_>>()?;
        let ring = Ring::map(file, notifiers, parts)?;
        ring.seal();
        Ok(ring)
    }

    /// Writes the header: at creation, and again after a worker may have overwritten it.
    pub(crate) fn seal(&self) {
        let header = &self.control().header.0;
        header.version.store(VERSION, Ordering::Relaxed);
        header.slots.store(self.0.parts.slots() as u32, Ordering::Relaxed);
        header.fronts.store(self.0.parts.fronts() as u32, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Maps the ring in `file`. `notifiers` are the eventfds on which its fronts sleep, one each.
    pub fn attach(file: OwnedFd, notifiers: Vec<OwnedFd>) -> Result<Ring, AttachError> {
        let found =
            os::sealed_size(file.as_fd())?.map_err(|found| AttachError::Unsealed { found })?;
        if found < CONTROL_BYTES as u64 {
            return Err(AttachError::Size { found, slots: 0, needed: CONTROL_BYTES });
        }
        let probe = Ring::map(file.try_clone()?, Vec::new(), Parts::whole(0))?;
        let header = &probe.control().header.0;
        match (header.magic.load(Ordering::Acquire), header.version.load(Ordering::Relaxed)) {
            (MAGIC, VERSION) => {}
            (MAGIC, found) => return Err(AttachError::Version { found }),
            (found, _) => return Err(AttachError::Magic(found)),
        }
        let slots = header.slots.load(Ordering::Relaxed) as usize;
        let needed = bytes_of(slots.min(SLOTS_MAX));
        if slots == 0 || slots > SLOTS_MAX || found < needed as u64 {
            return Err(AttachError::Size { found, slots, needed });
        }
        let fronts = header.fronts.load(Ordering::Relaxed) as usize;
        let parts = Parts::said(slots, fronts).filter(|parts| parts.fronts() == notifiers.len());
        let parts =
            parts.ok_or(AttachError::Parts { slots, fronts, notifiers: notifiers.len() })?;
        Ok(Ring::map(file, notifiers, parts)?)
    }

    /// Maps the ring. `file` must have room for the slots of `parts` and must be sealed.
    fn map(file: OwnedFd, notifiers: Vec<OwnedFd>, parts: Parts) -> io::Result<Ring> {
        let memory = Mapping::new(file.as_fd(), bytes_of(parts.slots()))?;
        Ok(Ring(Arc::new(Shared { memory, parts, file, notifiers })))
    }

    /// The memory file, to hand to the worker template.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// The eventfds that wake the fronts, one each.
    pub fn notifiers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.notifiers.iter().map(AsFd::as_fd)
    }

    /// Number of slots of this ring, of all fronts.
    pub fn slots(&self) -> usize {
        self.0.parts.slots()
    }

    /// Number of fronts that fill its slots.
    pub fn fronts(&self) -> usize {
        self.0.parts.fronts()
    }

    pub(crate) fn parts(&self) -> Parts {
        self.0.parts
    }

    /// Wakes a front whether it sleeps or not.
    pub fn ring_front(&self, front: usize) {
        let Some(notifier) = self.0.notifiers.get(front).map(AsFd::as_fd) else { return };
        if !os::add_to_event(notifier, 1) {
            // Wake-ups alone never reach this count: a worker has written to the eventfd. The front
            // never reads it (its epoll is edge-triggered), so it would stay full and the front
            // would receive no more wake-ups.
            os::empty_event(notifier);
            os::add_to_event(notifier, 1);
        }
    }

    /// Wakes all fronts.
    pub fn ring_fronts(&self) {
        (0..self.fronts()).for_each(|front| self.ring_front(front));
    }

    /// Address of the mapping, for the example that counts accesses to it.
    #[cfg(counted)]
    pub fn base(&self) -> usize {
        self.0.memory.base().as_ptr() as usize
    }

    /// Length of the mapping, bytes.
    #[cfg(counted)]
    pub fn bytes(&self) -> usize {
        bytes_of(self.slots())
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: the mapping begins with CONTROL_BYTES ≥ size_of::<Control>(), page-aligned; every
        // field is an atomic, so that other processes' writes are no data race and every bit
        // pattern is valid.
        unsafe { self.0.memory.base().cast::<Control>().as_ref() }
    }

    /// The cells of the slots that have a payload area.
    pub(crate) fn cells(&self) -> &[SlotCell] {
        &self.control().slots[..self.slots()]
    }

    pub(crate) fn area(&self, slot: SlotIndex, part: Part) -> Area<'_> {
        assert!(slot.get() < self.slots(), "slot {slot:?} is of another ring");
        let (start, len) = part.range();
        // SAFETY: slot < slots (asserted), and a part is within AREA_BYTES: the address is inside
        // the mapping.
        let base =
            unsafe { self.0.memory.base().add(CONTROL_BYTES + slot.get() * AREA_BYTES + start) };
        Area { base, len, _ring: self }
    }
}

/// Bytes of one part of a slot. Another process may change them at any time, so they are only
/// copied.
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

    /// Copies `bytes` to offset `at`. Panics if they do not fit: callers compare first.
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
        // SAFETY: in bounds on both sides (asserted, reserved); private memory does not overlap the
        // mapping.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
        // SAFETY: `len` more bytes have just been initialised, within the capacity.
        unsafe { out.set_len(out.len() + len) };
    }

    /// Copies into the ring at `position`. `Stream::writable` has checked the window.
    pub(crate) fn write_at(self, position: u64, bytes: &[u8]) {
        let window = Window::new(position, bytes.len(), self.len);
        self.put(window.start, &bytes[..window.first]);
        self.put(0, &bytes[window.first..]);
    }

    /// Appends `len` ring bytes from `position`. `Stream::readable` has checked the window.
    pub(crate) fn read_at(self, position: u64, len: usize, out: &mut Vec<u8>) {
        let window = Window::new(position, len, self.len);
        self.append_to(window.start, window.first, out);
        self.append_to(0, window.second, out);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn ring_file_without_size_seals_is_rejected() {
        let ring = Ring::create(2).expect("memory");
        let file = ring.file().try_clone_to_owned().expect("a descriptor");
        assert!(File::from(file.try_clone().expect("a descriptor")).set_len(0).is_err());
        let notifier = || vec![os::event().expect("a descriptor")];
        let again = file.try_clone().expect("a descriptor");
        assert!(Ring::attach(file, notifier()).is_ok());
        let of_two = notifier().into_iter().chain(notifier()).collect();
        assert!(matches!(
            Ring::attach(again, of_two),
            Err(AttachError::Parts { notifiers: 2, .. })
        ));
        let open = os::memory_file("open", bytes_of(2)).expect("memory");
        assert!(matches!(Ring::attach(open, notifier()), Err(AttachError::Unsealed { found: 0 })));
    }

    #[test]
    fn full_eventfd_still_wakes_front() {
        let ring = Ring::create(1).expect("memory");
        let notifier = ring.notifiers().next().expect("it has a front");
        assert!(os::add_to_event(notifier, u64::MAX - 1));
        ring.ring_front(0);
        assert_eq!(os::empty_event(notifier), 1, "an edge came after the counter was full");
    }
}
