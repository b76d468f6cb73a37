//! The memory file as processes share it: the only place that turns offsets into pointers.

use crate::layout::{
    ANSWER_BYTES, AREA_BYTES, BODY_BYTES, Control, HEAD_BYTES, MAGIC, Parts, REPORT_BYTES,
    REQUEST_BYTES, SLOTS_MAX, SlotCell, SlotIndex, VERSION,
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

/// Why a memory file is refused.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The system said no.
    #[error("cannot map the ring: {0}")]
    Io(#[from] io::Error),
    /// The file is not a ring.
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
    /// Another process could shorten the file, and every access beyond its end is a SIGBUS.
    #[error("the ring's file can still change its size (seals {found:#x})")]
    Unsealed {
        /// Its seals, as `F_GET_SEALS` says them.
        found: u32,
    },
    /// Nobody shares slots out among fronts like that, or the descriptors of some are missing.
    #[error(
        "the ring's header says {slots} slots for {fronts} fronts, and {bells} of these can be woken"
    )]
    Parts {
        /// Slots in the header.
        slots: usize,
        /// Fronts in the header.
        fronts: usize,
        /// Eventfds that came along.
        bells: usize,
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
pub struct Ring(Arc<Shared>);

// All control words are atomics; payload areas are reached through `Area`, whose methods copy and whose callers own the
// slot by its word.
#[derive(Debug)]
struct Shared {
    memory: Mapping,
    parts: Parts,
    file: OwnedFd,
    /// One for each front.
    bells: Vec<OwnedFd>,
}

/// Which part of a slot's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Request,
    Body,
    Head,
    Answer,
    Report,
}

impl Part {
    const fn range(self) -> (usize, usize) {
        match self {
            Part::Request => (0, REQUEST_BYTES),
            Part::Body => (REQUEST_BYTES, BODY_BYTES),
            Part::Head => (REQUEST_BYTES + BODY_BYTES, HEAD_BYTES),
            Part::Answer => (REQUEST_BYTES + BODY_BYTES + HEAD_BYTES, ANSWER_BYTES),
            Part::Report => (AREA_BYTES - REPORT_BYTES, REPORT_BYTES),
        }
    }
}

const fn bytes_of(slots: usize) -> usize {
    CONTROL_BYTES + slots * AREA_BYTES
}

impl Ring {
    /// A new ring for `slots` requests queued or in flight (at most [`SLOTS_MAX`]), of one front.
    pub fn create(slots: usize) -> io::Result<Ring> {
        Ring::shared_by(1, slots)
    }

    /// A new ring of so many fronts, 1 to [`FRONTS_MAX`](crate::FRONTS_MAX). Each has room for `slots` requests, or for its share
    /// of [`SLOTS_MAX`] where that is less.
    pub fn shared_by(fronts: usize, slots: usize) -> io::Result<Ring> {
        let parts = Parts::of(slots, fronts);
        let file = os::sealed_memory_file("samovar-ring", bytes_of(parts.slots()))?;
        let bells = (0..parts.fronts()).map(|_| os::event()).collect::<io::Result<_>>()?;
        let ring = Ring::map(file, bells, parts)?;
        ring.seal();
        Ok(ring)
    }

    /// Writes the header: at creation, and again after a worker may have scribbled over it.
    pub(crate) fn seal(&self) {
        let header = &self.control().header.0;
        header.version.store(VERSION, Ordering::Relaxed);
        header.slots.store(self.0.parts.slots() as u32, Ordering::Relaxed);
        header.fronts.store(self.0.parts.fronts() as u32, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Maps the ring in `file`, whose fronts sleep on the eventfds `bells`, each on its own.
    pub fn attach(file: OwnedFd, bells: Vec<OwnedFd>) -> Result<Ring, AttachError> {
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
        let parts = Parts::said(slots, fronts).filter(|parts| parts.fronts() == bells.len());
        let parts = parts.ok_or(AttachError::Parts { slots, fronts, bells: bells.len() })?;
        Ok(Ring::map(file, bells, parts)?)
    }

    /// `file` has room for so many slots, and is sealed.
    fn map(file: OwnedFd, bells: Vec<OwnedFd>, parts: Parts) -> io::Result<Ring> {
        let memory = Mapping::new(file.as_fd(), bytes_of(parts.slots()))?;
        Ok(Ring(Arc::new(Shared { memory, parts, file, bells })))
    }

    /// The memory file, to hand to the worker template.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// The eventfds that wake the fronts, one for each.
    pub fn bells(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.bells.iter().map(AsFd::as_fd)
    }

    /// Slots of this ring, of all fronts.
    pub fn slots(&self) -> usize {
        self.0.parts.slots()
    }

    /// How many fronts fill its slots.
    pub fn fronts(&self) -> usize {
        self.0.parts.fronts()
    }

    pub(crate) fn parts(&self) -> Parts {
        self.0.parts
    }

    /// Wakes a front whether it sleeps or not.
    pub fn ring_front(&self, front: usize) {
        let Some(bell) = self.0.bells.get(front).map(AsFd::as_fd) else { return };
        if !os::add_to_event(bell, 1) {
            // Nobody counts so far: a worker has written there. The front never reads it (its epoll is
            // edge-triggered), so it would stay full, and the front deaf.
            os::empty_event(bell);
            os::add_to_event(bell, 1);
        }
    }

    /// Wakes all of them.
    pub fn ring_fronts(&self) {
        (0..self.fronts()).for_each(|front| self.ring_front(front));
    }

    /// Where it is mapped, for who counts what is done there.
    #[cfg(counted)]
    pub fn base(&self) -> usize {
        self.0.memory.base().as_ptr() as usize
    }

    /// How long the mapping is.
    #[cfg(counted)]
    pub fn bytes(&self) -> usize {
        bytes_of(self.slots())
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: the mapping begins with CONTROL_BYTES ≥ size_of::<Control>(), page-aligned; every field is an
        // atomic, so that other processes' writes are no data race and every bit pattern is valid.
        unsafe { self.0.memory.base().cast::<Control>().as_ref() }
    }

    /// The cells of the slots that have a payload area.
    pub(crate) fn cells(&self) -> &[SlotCell] {
        &self.control().slots[..self.slots()]
    }

    pub(crate) fn area(&self, slot: SlotIndex, part: Part) -> Area<'_> {
        assert!(slot.get() < self.slots(), "slot {slot:?} is of another ring");
        let (start, len) = part.range();
        // SAFETY: slot < slots (asserted) and a part lies within AREA_BYTES: inside the mapping.
        let base =
            unsafe { self.0.memory.base().add(CONTROL_BYTES + slot.get() * AREA_BYTES + start) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn the_size_of_a_ring_is_sealed_and_no_other_is_attached() {
        let ring = Ring::create(2).expect("memory");
        let file = ring.file().try_clone_to_owned().expect("a descriptor");
        assert!(File::from(file.try_clone().expect("a descriptor")).set_len(0).is_err());
        let bell = || vec![os::event().expect("a descriptor")];
        let again = file.try_clone().expect("a descriptor");
        assert!(Ring::attach(file, bell()).is_ok());
        let of_two = bell().into_iter().chain(bell()).collect();
        assert!(matches!(Ring::attach(again, of_two), Err(AttachError::Parts { bells: 2, .. })));
        let open = os::memory_file("open", bytes_of(2)).expect("memory");
        assert!(matches!(Ring::attach(open, bell()), Err(AttachError::Unsealed { found: 0 })));
    }

    #[test]
    fn a_bell_that_somebody_has_filled_rings_all_the_same() {
        let ring = Ring::create(1).expect("memory");
        let bell = ring.bells().next().expect("it has a front");
        assert!(os::add_to_event(bell, u64::MAX - 1));
        ring.ring_front(0);
        assert_eq!(os::empty_event(bell), 1, "an edge came after the counter was full");
    }
}
