//! Values under keys in a fixed space; the oldest are evicted. This is a cache without its expiry
//! times and makers.
//!
//! Values are appended to *segments* and never changed there. The index points to them. It consists
//! of sets of seven slots. A slot is one word: some bits of the key's hash, the position of the
//! value, the segment's *generation*, and whether the value was read.
//!
//! When the last segment is full, the first is emptied. Its generation increases, which invalidates
//! all its slots at once. Values that were read since stay; they are moved together to the start of
//! the segment.
//!
//! A slot changes under the lock of its set, by one store. Readers take no lock: they copy, then
//! check the slot and the generation again. A writer holds the lock of the segments while it
//! writes. A writer that is killed leaves bytes in space that the next writer uses. A lost value is
//! made again.

use crate::lock::{ActingProcess, Busy, acquire, try_acquire};
use crate::sync::{AtomicU64, Ordering, fence, holds_bytes, load_bytes, store_bytes, words_of};

/// Segments of a cache. A value takes at most half of one.
#[cfg(not(loom))]
const SEGMENTS: usize = 16;
/// Segments in the loom model.
#[cfg(loom)]
const SEGMENTS: usize = 2;
/// Slots of a set. The first word of a set is its lock.
const SLOTS: usize = 7;
const SET_WORDS: usize = 1 + SLOTS;
/// Average bytes of a value, for the size of the index.
const VALUE_BYTES: usize = 256;
/// Words before the segments' own: their lock, and the number of the segment that is written to.
const CONTROL_WORDS: usize = 2;
/// Control words of a segment: generation and used words.
const SEGMENT_WORDS: usize = 2;
const READS_MAX: u32 = 64;

const LENGTH: usize = 0;
const HASH: usize = 1;
const SIZES: usize = 2;
const FRESH_UNTIL: usize = 3;
const STALE_UNTIL: usize = 4;
/// Words of a value before its key.
const HEAD: usize = 5;

const TOUCHED: u64 = 1 << 31;

/// Dimensions of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    sets: usize,
    segment_words: usize,
}

impl Room {
    /// Dimensions for a cache of `bytes`.
    pub(crate) fn new(bytes: usize) -> Room {
        let sets = (bytes / VALUE_BYTES / SLOTS).next_power_of_two().max(2) / 2;
        let rest =
            (bytes / 8).saturating_sub(sets * SET_WORDS + CONTROL_WORDS + SEGMENTS * SEGMENT_WORDS);
        Room { sets, segment_words: rest / SEGMENTS }
    }

    /// One set, and segments for two small values.
    #[cfg(loom)]
    pub(crate) const fn of_model() -> Room {
        Room { sets: 1, segment_words: 16 }
    }

    pub(crate) fn words(self) -> usize {
        self.sets * SET_WORDS + CONTROL_WORDS + SEGMENTS * (SEGMENT_WORDS + self.segment_words)
    }

    /// Maximum bytes of a key and its value.
    pub(crate) fn item_bytes_max(self) -> usize {
        (self.segment_words / 2).saturating_sub(HEAD + 2) * 8
    }
}

/// Expiry of a value, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) fresh_until: u64,
    /// Until then it may be used instead of waiting for a new one.
    pub(crate) stale_until: u64,
}

/// A value to be stored. Its user defines the kind.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) kind: u8,
    pub(crate) value: &'a [u8],
    pub(crate) times: Times,
}

/// A value that was found and copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: u8,
    pub(crate) times: Times,
    /// Whether it was read before.
    pub(crate) was_read: bool,
    /// Bytes that it occupies, its key and all its notes included.
    pub(crate) bytes: usize,
}

/// Result of storing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Yes,
    TooLarge,
}

/// The words of one cache.
#[derive(Clone, Copy)]
pub(crate) struct Store<'a> {
    sets: &'a [AtomicU64],
    control: &'a [AtomicU64],
    segments: &'a [AtomicU64],
    data: &'a [AtomicU64],
    is: Room,
}

/// Position that a slot points to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SlotTarget {
    at: usize,
    segment: usize,
    generation: u64,
}

impl<'a> Store<'a> {
    /// `words` must have the length [`Room::words`].
    pub(crate) fn new(words: &'a [AtomicU64], is: Room) -> Store<'a> {
        let (sets, rest) = words.split_at(is.sets * SET_WORDS);
        let (control, rest) = rest.split_at(CONTROL_WORDS);
        let (segments, data) = rest.split_at(SEGMENTS * SEGMENT_WORDS);
        Store { sets, control, segments, data: &data[..SEGMENTS * is.segment_words], is }
    }

    /// The locks of the model's only set and of its segments.
    #[cfg(loom)]
    pub(crate) fn locks_of_model(self) -> (&'a AtomicU64, &'a AtomicU64) {
        (&self.sets[0], &self.control[0])
    }

    fn set(self, hash: u64) -> (&'a AtomicU64, &'a [AtomicU64]) {
        let at = (hash as usize & (self.is.sets - 1)) * SET_WORDS;
        (&self.sets[at], &self.sets[at + 1..at + SET_WORDS])
    }

    fn generation(self, segment: usize) -> &'a AtomicU64 {
        &self.segments[segment * SEGMENT_WORDS]
    }

    fn used(self, segment: usize) -> &'a AtomicU64 {
        &self.segments[segment * SEGMENT_WORDS + 1]
    }

    fn slot_word(hash: u64, generation: u64, at: usize) -> u64 {
        // Never 0: the stored generation counts from 1.
        hash >> 48 << 48 | ((generation & 0x7fff) + 1) << 32 | at as u64
    }

    /// The position that a slot points to, if its value is still there.
    fn place(self, slot: u64) -> Option<SlotTarget> {
        let at = (slot & (TOUCHED - 1)) as usize;
        let segment = at / self.is.segment_words.max(1);
        if slot == 0 || segment >= SEGMENTS {
            return None;
        }
        let generation = self.generation(segment).load(Ordering::Acquire);
        let is_valid = slot >> 32 & 0xffff == (generation & 0x7fff) + 1;
        is_valid.then_some(SlotTarget { at, segment, generation })
    }

    /// Words of the value at `at`, with the lengths of its key and value in bytes. The lengths come
    /// from shared memory; `None` if they are impossible.
    fn item(self, at: usize) -> Option<(&'a [AtomicU64], usize, usize)> {
        let end = (at / self.is.segment_words + 1) * self.is.segment_words;
        let words = self.data.get(at..end)?;
        let sizes = words.get(SIZES)?.load(Ordering::Relaxed);
        let (key, value) = ((sizes >> 32) as usize, sizes as u32 as usize);
        let needed = HEAD + words_of(key) + words_of(value);
        Some((words.get(..needed)?, key, value))
    }

    fn is_of(words: &[AtomicU64], key_bytes: usize, hash: u64, key: &[u8]) -> bool {
        words[HASH].load(Ordering::Relaxed) == hash
            && key_bytes == key.len()
            && holds_bytes(&words[HEAD..], key)
    }

    fn times(words: &[AtomicU64]) -> Times {
        Times {
            fresh_until: words[FRESH_UNTIL].load(Ordering::Relaxed),
            stale_until: words[STALE_UNTIL].load(Ordering::Relaxed),
        }
    }

    /// Copies the value of a key to `to`. With `uses`, the value stays longer.
    pub(crate) fn read(self, hash: u64, key: &[u8], uses: bool, to: &mut Vec<u8>) -> Option<Found> {
        let (_, slots) = self.set(hash);
        for _ in 0..READS_MAX {
            let mut is_moving = false;
            for slot in slots {
                match self.read_slot(slot, (hash, key), uses, to) {
                    Ok(Some(found)) => return Some(found),
                    Ok(None) => {}
                    Err(()) => is_moving = true,
                }
            }
            if !is_moving {
                return None;
            }
        }
        None
    }

    fn read_slot(
        self,
        slot: &AtomicU64,
        (hash, key): (u64, &[u8]),
        uses: bool,
        to: &mut Vec<u8>,
    ) -> Result<Option<Found>, ()> {
        let seen = slot.load(Ordering::Acquire);
        if seen >> 48 != hash >> 48 {
            return Ok(None);
        }
        let Some(place) = self.place(seen) else { return Ok(None) };
        let found =
            self.item(place.at).filter(|(words, len, _)| Self::is_of(words, *len, hash, key));
        let found = found.map(|(words, key_bytes, value_bytes)| {
            to.clear();
            to.resize(value_bytes, 0);
            load_bytes(&words[HEAD + words_of(key_bytes)..], to);
            Self::found(words, seen)
        });
        if !self.is_still(slot, seen, place) {
            return Err(());
        }
        if uses && found.is_some() && seen & TOUCHED == 0 {
            // Stored in the slot, not with the value: a slow reader must not write where another
            // value may be by now.
            let touched = seen | TOUCHED;
            let _ = slot.compare_exchange(seen, touched, Ordering::Relaxed, Ordering::Relaxed);
        }
        Ok(found)
    }

    fn found(words: &[AtomicU64], slot: u64) -> Found {
        Found {
            kind: words[LENGTH].load(Ordering::Relaxed) as u8,
            times: Self::times(words),
            was_read: slot & TOUCHED != 0,
            bytes: words.len() * 8,
        }
    }

    /// Whether the slot still points to the value that was copied.
    fn is_still(self, slot: &AtomicU64, seen: u64, place: SlotTarget) -> bool {
        // PAIRS WITH the fence of `make_room`: a reader that sees a word of the next generation
        // also sees that this generation has begun.
        fence(Ordering::Acquire);
        slot.load(Ordering::Relaxed) & !TOUCHED == seen & !TOUCHED
            && self.generation(place.segment).load(Ordering::Relaxed) == place.generation
    }

    /// Copies the key and value of slot `number`. `Err` if there is no slot with this number or a
    /// larger one.
    pub(crate) fn at(
        self,
        number: usize,
        (key, value): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<Option<Found>, ()> {
        let at = number / SLOTS * SET_WORDS + 1 + number % SLOTS;
        let slot = self.sets.get(at).ok_or(())?;
        for _ in 0..READS_MAX {
            let seen = slot.load(Ordering::Acquire);
            let Some(place) = self.place(seen) else { return Ok(None) };
            let found = self.item(place.at).map(|(words, key_bytes, value_bytes)| {
                key.clear();
                key.resize(key_bytes, 0);
                load_bytes(&words[HEAD..], key);
                value.clear();
                value.resize(value_bytes, 0);
                load_bytes(&words[HEAD + words_of(key_bytes)..], value);
                Self::found(words, seen)
            });
            if self.is_still(slot, seen, place) {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Number of slots of the index.
    pub(crate) fn slots(self) -> usize {
        self.sets.len() / SET_WORDS * SLOTS
    }

    /// Bytes available for values.
    pub(crate) fn room(self) -> usize {
        self.data.len() * 8
    }

    /// The slot of a key. The lock of the set must be held.
    fn slot_of(self, hash: u64, key: &[u8]) -> Option<&'a AtomicU64> {
        let (_, slots) = self.set(hash);
        slots.iter().find(|slot| {
            let word = slot.load(Ordering::Relaxed);
            let place = self.place(word).filter(|_| word >> 48 == hash >> 48);
            let item = place.and_then(|place| self.item(place.at));
            item.is_some_and(|(words, len, _)| Self::is_of(words, len, hash, key))
        })
    }

    /// Changes the value of a key. `change` receives the present value, with its bytes in the
    /// buffer, and returns the new one. The returned flag is true if another value was evicted.
    pub(crate) fn change<R>(
        self,
        me: ActingProcess<'_>,
        (hash, key): (u64, &[u8]),
        (now, buffer): (u64, &mut Vec<u8>),
        change: impl FnOnce(Option<Found>, &mut Vec<u8>) -> (Option<(u8, Times)>, R),
    ) -> Result<(Stored, bool, R), Busy> {
        let (lock, slots) = self.set(hash);
        let _guard = acquire(lock, me)?;
        let mut mine = self.slot_of(hash, key);
        buffer.clear();
        let found =
            mine.and_then(|slot| self.read_slot(slot, (hash, key), true, buffer).ok().flatten());
        let (item, result) = change(found, buffer);
        let Some((kind, times)) = item else { return Ok((Stored::Yes, false, result)) };
        let item = Item { kind, value: buffer, times };
        if key.len() + item.value.len() > self.is.item_bytes_max() {
            return Ok((Stored::TooLarge, false, result));
        }
        let word = self.append(me, now, (hash, key), item)?;
        // Making room may have moved or evicted the old value.
        if let Some(slot) = self.slot_of(hash, key) {
            mine = Some(slot);
        }
        let (slot, goes) = match mine {
            Some(slot) => (slot, false),
            None => self.victim(slots, hash, now),
        };
        slot.store(word, Ordering::Release);
        Ok((Stored::Yes, goes, result))
    }

    /// Removes a key. Returns false if there was none.
    pub(crate) fn remove(self, me: ActingProcess<'_>, hash: u64, key: &[u8]) -> Result<bool, Busy> {
        let (lock, _) = self.set(hash);
        let _guard = acquire(lock, me)?;
        let slot = self.slot_of(hash, key);
        if let Some(slot) = slot {
            slot.store(0, Ordering::Release);
        }
        Ok(slot.is_some())
    }

    /// Removes all values.
    pub(crate) fn clear(self, me: ActingProcess<'_>) -> Result<(), Busy> {
        let _guard = acquire(&self.control[0], me)?;
        for segment in 0..SEGMENTS {
            self.generation(segment).fetch_add(1, Ordering::AcqRel);
            self.used(segment).store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A slot for a new key: a free one or one with an expired value; else one whose value was not
    /// read. The returned flag is true if a value is evicted.
    fn victim(self, slots: &'a [AtomicU64], hash: u64, now: u64) -> (&'a AtomicU64, bool) {
        let is_over = |word: u64| {
            let item = self.place(word).and_then(|place| self.item(place.at));
            item.is_none_or(|(words, ..)| Self::times(words).stale_until <= now)
        };
        let word = |slot: &AtomicU64| slot.load(Ordering::Relaxed);
        if let Some(slot) = slots.iter().find(|slot| is_over(word(slot))) {
            return (slot, false);
        }
        let start = (hash >> 32) as usize % SLOTS;
        let mut from_there = slots[start..].iter().chain(&slots[..start]);
        if let Some(slot) = from_there.find(|slot| word(slot) & TOUCHED == 0) {
            return (slot, true);
        }
        // All were read: from now on it counts which ones are read again.
        for slot in slots {
            slot.fetch_and(!TOUCHED, Ordering::Relaxed);
        }
        (&slots[start], true)
    }

    /// Appends a value. Returns the slot word that points to it.
    fn append(
        self,
        me: ActingProcess<'_>,
        now: u64,
        (hash, key): (u64, &[u8]),
        item: Item<'_>,
    ) -> Result<u64, Busy> {
        let needed = HEAD + words_of(key.len()) + words_of(item.value.len());
        let _guard = acquire(&self.control[0], me)?;
        let mut segment = self.control[1].load(Ordering::Relaxed) as usize % SEGMENTS;
        let mut used = self.used(segment).load(Ordering::Relaxed) as usize;
        if used.saturating_add(needed) > self.is.segment_words {
            segment = (segment + 1) % SEGMENTS;
            self.make_room((me, self.set(hash).0), segment, now);
            used = self.used(segment).load(Ordering::Relaxed) as usize;
            self.control[1].store(segment as u64, Ordering::Relaxed);
        }
        // A process that writes garbage may have written here.
        let used = used.min(self.is.segment_words - needed);
        let at = segment * self.is.segment_words + used;
        let words = &self.data[at..at + needed];
        let sizes = (key.len() as u64) << 32 | item.value.len() as u64;
        words[LENGTH].store((needed as u64) << 8 | u64::from(item.kind), Ordering::Relaxed);
        words[HASH].store(hash, Ordering::Relaxed);
        words[SIZES].store(sizes, Ordering::Relaxed);
        words[FRESH_UNTIL].store(item.times.fresh_until, Ordering::Relaxed);
        words[STALE_UNTIL].store(item.times.stale_until, Ordering::Relaxed);
        store_bytes(&words[HEAD..], key);
        store_bytes(&words[HEAD + words_of(key.len())..], item.value);
        self.used(segment).store((used + needed) as u64, Ordering::Release);
        let generation = self.generation(segment).load(Ordering::Relaxed);
        Ok(Self::slot_word(hash, generation, at))
    }

    /// Ends a segment's generation. Values that were read since stay, if they take at most half of
    /// the segment. The lock of the segments must be held, and `held`, the lock of a set.
    fn make_room(self, (me, held): (ActingProcess<'_>, &AtomicU64), segment: usize, now: u64) {
        let begin = segment * self.is.segment_words;
        let used = (self.used(segment).load(Ordering::Relaxed) as usize).min(self.is.segment_words);
        let (mut kept, mut kept_words, mut at) = (Vec::new(), 0, 0);
        while at + HEAD <= used {
            let words = &self.data[begin + at..begin + used];
            let len = (words[LENGTH].load(Ordering::Relaxed) >> 8) as usize;
            if len < HEAD || len > words.len() {
                break;
            }
            let hash = words[HASH].load(Ordering::Relaxed);
            let was_read = self.slot_at(hash, begin + at).filter(|(_, word)| word & TOUCHED != 0);
            let is_over = Self::times(words).stale_until <= now;
            if let Some((slot, word)) = was_read.filter(|_| !is_over)
                && kept_words + len <= self.is.segment_words / 2
            {
                kept.push((at, len, hash, slot, word));
                kept_words += len;
            }
            at += len;
        }
        let generation = self.generation(segment).fetch_add(1, Ordering::AcqRel) + 1;
        // PAIRS WITH the fence of `is_still`.
        fence(Ordering::Release);
        self.used(segment).store(0, Ordering::Relaxed);
        let mut to = 0;
        for (from, len, hash, slot, seen) in kept {
            for word in 0..len {
                let value = self.data[begin + from + word].load(Ordering::Relaxed);
                self.data[begin + to + word].store(value, Ordering::Relaxed);
            }
            self.used(segment).store((to + len) as u64, Ordering::Release);
            let word = Self::slot_word(hash, generation, begin + to);
            self.follow((me, held), (hash, slot, seen), word);
            to += len;
        }
    }

    /// The slot that points to `at`.
    fn slot_at(self, hash: u64, at: usize) -> Option<(&'a AtomicU64, u64)> {
        let slots = self.set(hash).1.iter().map(|slot| (slot, slot.load(Ordering::Relaxed)));
        let mut pointing =
            slots.filter(|(_, word)| self.place(*word).is_some_and(|place| place.at == at));
        pointing.next()
    }

    /// Lets a slot follow its value, unless its set is busy or the key has another value by now.
    fn follow(
        self,
        (me, held): (ActingProcess<'_>, &AtomicU64),
        (hash, slot, seen): (u64, &AtomicU64, u64),
        word: u64,
    ) {
        let (lock, slots) = self.set(hash);
        // The lock of our own set is already held, for the value that needs the room.
        let guard = (!std::ptr::eq(lock, held)).then(|| try_acquire(lock, me));
        if matches!(guard, Some(None)) {
            return;
        }
        let others = slots.iter().map(|slot| slot.load(Ordering::Relaxed));
        let has_other = others
            .filter(|other| *other >> 48 == hash >> 48)
            .any(|other| self.place(other).is_some());
        if !has_other && slot.load(Ordering::Relaxed) & !TOUCHED == seen & !TOUCHED {
            slot.store(word, Ordering::Release);
        }
    }

    /// Values in the store, expired ones included.
    pub(crate) fn count(self) -> usize {
        let sets = self.sets.chunks(SET_WORDS).flat_map(|set| &set[1..]);
        sets.filter(|slot| self.place(slot.load(Ordering::Relaxed)).is_some()).count()
    }

    /// Bytes written in all segments.
    pub(crate) fn bytes(self) -> usize {
        let used = (0..SEGMENTS).map(|segment| self.used(segment).load(Ordering::Relaxed) as usize);
        used.map(|words| words.min(self.is.segment_words) * 8).sum()
    }
}
