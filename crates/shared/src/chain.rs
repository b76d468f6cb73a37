//! Rows that all processes find by a key: a table without its columns.
//!
//! The *owner* word of a row has one of three values: free (0), in the index (`IN_USE`), or the
//! process that inserts or removes the row. A row belongs to the index if and only if it is linked
//! in the chain of its bucket. The owner word and the counted bitmap follow from that. If a process
//! dies in between, [`Chains::settle`] corrects them; the journal of the process names the row.
//!
//! - Chains change under the lock of their bucket, by one store. Its *head* word holds a version
//!   and the first row. A reader without the lock checks the head before and after.
//! - A row's data exists twice. A writer fills the copy that is not valid and makes it valid by one
//!   store to the row's *version*, whose lowest bit selects the copy. Readers copy, then check the
//!   version again.
//! - Key and hash are written only while the row is out of the index.
//! - A row that is linked in a chain changes its owner only under the lock of that bucket. The same
//!   holds for a row of a dead process. Any other row changes its owner only by its owner.
//!
//! So a process can be killed at any instruction: no reader ever waits for it, and the next writer
//! takes its lock.

use crate::lock::{ActingProcess, Busy, Patience, acquire, is_abandoned};
use crate::sync::{AtomicU64, Ordering, fence, holds_bytes, load, load_bytes, store, store_bytes};

/// Owner word of a row that is in the index. The numbers of processes are larger.
pub(crate) const IN_USE: u64 = 1;
const FREE: u64 = 0;

/// Words of a bucket: its lock and its head.
const BUCKET_WORDS: usize = 2;
/// Number of rows per word of the bitmap.
const GROUP: usize = 64;
/// Number of attempts of a reader before it takes the lock.
const READS_MAX: u32 = 64;

const OWNER: usize = 0;
const VERSION: usize = 1;
const LINK: usize = 2;
const HASH: usize = 3;
const KEY_BYTES: usize = 4;
/// Index of the first key word.
const KEY: usize = 5;

/// Sizes of the parts; the same in every process, because they derive from the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimensions {
    /// At least 1, at most `u32::MAX - 1`.
    pub(crate) rows: usize,
    pub(crate) key_words: usize,
    pub(crate) data_words: usize,
}

impl Dimensions {
    fn buckets(self) -> usize {
        self.rows.next_power_of_two()
    }

    fn groups(self) -> usize {
        self.rows.div_ceil(GROUP)
    }

    fn row_words(self) -> usize {
        KEY + self.key_words + 2 * self.data_words
    }

    /// Words of shared memory.
    pub(crate) fn words(self) -> usize {
        self.buckets() * BUCKET_WORDS + self.groups() + self.rows * self.row_words()
    }
}

/// Why a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Every row is in use.
    Full,
    /// A lock is not released.
    Busy,
}

/// Result of a search for a free row.
enum Claim {
    Row(u32),
    /// No free row, but some are being inserted or removed.
    Moving,
    Full,
}

/// Current owner of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    Nobody,
    Index,
    Process,
}

impl From<Busy> for Refused {
    fn from(_: Busy) -> Refused {
        Refused::Busy
    }
}

/// The words of one object.
#[derive(Clone, Copy)]
pub(crate) struct Chains<'a> {
    buckets: &'a [AtomicU64],
    used: &'a [AtomicU64],
    rows: &'a [AtomicU64],
    is: Dimensions,
}

#[derive(Clone, Copy)]
struct Row<'a>(&'a [AtomicU64], Dimensions);

impl<'a> Row<'a> {
    fn copy(self, version: u64) -> &'a [AtomicU64] {
        let start = KEY + self.1.key_words + (version & 1) as usize * self.1.data_words;
        &self.0[start..start + self.1.data_words]
    }

    fn key_room(self) -> &'a [AtomicU64] {
        &self.0[KEY..KEY + self.1.key_words]
    }

    fn has_key(self, hash: u64, key: &[u8]) -> bool {
        self.0[HASH].load(Ordering::Relaxed) == hash
            && self.0[KEY_BYTES].load(Ordering::Relaxed) == key.len() as u64
            && holds_bytes(self.key_room(), key)
    }

    /// Makes `data` the valid copy. The bucket's lock must be held, or the row must belong to this
    /// process.
    fn publish(self, data: &[u64]) {
        let next = self.0[VERSION].load(Ordering::Relaxed).wrapping_add(1);
        // PAIRS WITH the fence of `Chains::read`: a reader that sees a word written here also sees
        // that the version for which it read this copy is no longer the current one.
        fence(Ordering::Release);
        store(self.copy(next), data);
        self.0[VERSION].store(next, Ordering::Release);
    }
}

/// A head word: number of changes of the chain, and its first row.
fn head(version: u64, first: u32) -> u64 {
    version << 32 | u64::from(first)
}

/// Result of a search under the lock: the row, and the row that points at it (`None`: the head).
type Found = Option<(u32, Option<u32>)>;

impl<'a> Chains<'a> {
    /// `words` must have the length [`Dimensions::words`].
    pub(crate) fn new(words: &'a [AtomicU64], is: Dimensions) -> Chains<'a> {
        let (buckets, rest) = words.split_at(is.buckets() * BUCKET_WORDS);
        let (used, rows) = rest.split_at(is.groups());
        Chains { buckets, used, rows: &rows[..is.rows * is.row_words()], is }
    }

    fn row(self, index: u32) -> Option<Row<'a>> {
        let words = self.is.row_words();
        let start = index as usize * words;
        self.rows.get(start..start + words).map(|row| Row(row, self.is))
    }

    fn bucket(self, hash: u64) -> (&'a AtomicU64, &'a AtomicU64) {
        let at = (hash as usize & (self.is.buckets() - 1)) * BUCKET_WORDS;
        (&self.buckets[at], &self.buckets[at + 1])
    }

    /// The row that a link (0: none) points to, if it is valid.
    fn linked(self, link: u64) -> Option<(u32, Row<'a>)> {
        let index = (link as u32).checked_sub(1)?;
        Some((index, self.row(index)?))
    }

    /// Copies the data of `key`. `Err` if the chain has changed in the meantime.
    fn read_once(self, hash: u64, key: &[u8], to: &mut [u64]) -> Result<bool, ()> {
        let (_, head) = self.bucket(hash);
        let before = head.load(Ordering::Acquire);
        let mut link = before;
        // Bounded: a process may have written garbage that makes the chain a circle.
        for _ in 0..self.is.rows {
            let Some((_, row)) = self.linked(link) else { break };
            if row.has_key(hash, key) {
                let version = row.0[VERSION].load(Ordering::Acquire);
                load(row.copy(version), to);
                // PAIRS WITH the fences of `publish` and `claim`.
                fence(Ordering::Acquire);
                let is_same = row.0[VERSION].load(Ordering::Relaxed) == version
                    && head.load(Ordering::Relaxed) == before;
                return if is_same { Ok(true) } else { Err(()) };
            }
            link = row.0[LINK].load(Ordering::Acquire);
        }
        fence(Ordering::Acquire);
        if head.load(Ordering::Relaxed) == before { Ok(false) } else { Err(()) }
    }

    /// Copies the data of `key` to `to`. Returns false if there is none. Waits only if many writers
    /// keep changing the row.
    pub(crate) fn read(
        self,
        me: ActingProcess<'_>,
        hash: u64,
        key: &[u8],
        to: &mut [u64],
    ) -> Result<bool, Busy> {
        for _ in 0..READS_MAX {
            if let Ok(found) = self.read_once(hash, key, to) {
                return Ok(found);
            }
        }
        let _guard = acquire(self.bucket(hash).0, me)?;
        Ok(self.read_once(hash, key, to).unwrap_or(false))
    }

    /// Finds the row of a key. The bucket's lock must be held.
    fn search(self, hash: u64, key: &[u8]) -> Found {
        self.walk(hash, |_, row| row.has_key(hash, key))
    }

    fn walk(self, hash: u64, is_it: impl Fn(u32, Row<'a>) -> bool) -> Found {
        let mut link = self.bucket(hash).1.load(Ordering::Relaxed);
        let mut before = None;
        for _ in 0..self.is.rows {
            let (index, row) = self.linked(link)?;
            if is_it(index, row) {
                return Some((index, before));
            }
            before = Some(index);
            link = row.0[LINK].load(Ordering::Relaxed);
        }
        None
    }

    /// Changes the data of `key`. `change` receives the present data (zeroes and true if there is
    /// none) and returns whether to store it. `scratch` has room for a row's data.
    ///
    /// `change` may be called twice, if another process inserts the row in the meantime.
    pub(crate) fn update<R>(
        self,
        me: ActingProcess<'_>,
        (hash, key): (u64, &[u8]),
        scratch: &mut [u64],
        mut change: impl FnMut(&mut [u64], bool) -> (bool, R),
    ) -> Result<R, Refused> {
        let mut patience = Patience::default();
        let (index, result) = loop {
            if let Some(done) = self.change(me, (hash, key), scratch, &mut change)? {
                return Ok(done);
            }
            scratch.fill(0);
            let (is_kept, result) = change(scratch, true);
            if !is_kept {
                return Ok(result);
            }
            match self.claim(me, hash) {
                Claim::Row(index) => break (index, result),
                // A row may be about to enter the index with this very key, or to leave it.
                Claim::Moving => patience.wait()?,
                // Another process may have put this key into the last row.
                Claim::Full => {
                    let done = self.change(me, (hash, key), scratch, &mut change)?;
                    return done.ok_or(Refused::Full);
                }
            }
        };
        let new = self.row(index).ok_or(Refused::Full)?;
        new.0[HASH].store(hash, Ordering::Relaxed);
        new.0[KEY_BYTES].store(key.len() as u64, Ordering::Relaxed);
        store_bytes(new.key_room(), key);
        new.publish(scratch);
        let inserted = self.insert(me, (hash, key), index, new, scratch, &mut change);
        if !matches!(inserted, Ok(None)) {
            self.put_right(index, new, false);
        }
        me.note_none();
        Ok(inserted?.unwrap_or(result))
    }

    /// Changes the row of that key, if there is one.
    fn change<R>(
        self,
        me: ActingProcess<'_>,
        (hash, key): (u64, &[u8]),
        scratch: &mut [u64],
        change: &mut impl FnMut(&mut [u64], bool) -> (bool, R),
    ) -> Result<Option<R>, Busy> {
        let _guard = acquire(self.bucket(hash).0, me)?;
        let row = self.search(hash, key).and_then(|(index, _)| self.row(index));
        Ok(row.map(|row| change_row(row, scratch, change)))
    }

    /// Links a claimed row into its chain. If there is a row of that key by now, that row is
    /// changed instead.
    fn insert<R>(
        self,
        me: ActingProcess<'_>,
        (hash, key): (u64, &[u8]),
        index: u32,
        new: Row<'_>,
        scratch: &mut [u64],
        change: &mut impl FnMut(&mut [u64], bool) -> (bool, R),
    ) -> Result<Option<R>, Busy> {
        let (lock, head_word) = self.bucket(hash);
        let _guard = acquire(lock, me)?;
        if let Some(row) = self.search(hash, key).and_then(|(index, _)| self.row(index)) {
            return Ok(Some(change_row(row, scratch, change)));
        }
        let now = head_word.load(Ordering::Relaxed);
        new.0[LINK].store(now & u64::from(u32::MAX), Ordering::Relaxed);
        head_word.store(head((now >> 32) + 1, index + 1), Ordering::Release);
        // Under the lock: a process that then finds the row linked sees it owned by the index, or
        // its process dead.
        self.put_right(index, new, true);
        Ok(None)
    }

    /// Removes a key. Returns false if there was none.
    pub(crate) fn delete(self, me: ActingProcess<'_>, hash: u64, key: &[u8]) -> Result<bool, Busy> {
        let (lock, head_word) = self.bucket(hash);
        let guard = acquire(lock, me)?;
        let Some((index, before)) = self.search(hash, key) else { return Ok(false) };
        let Some(row) = self.row(index) else { return Ok(false) };
        me.note_row(index);
        row.0[OWNER].store(me.owner, Ordering::Release);
        let next = row.0[LINK].load(Ordering::Relaxed) & u64::from(u32::MAX);
        let now = head_word.load(Ordering::Relaxed);
        let mut first = now as u32;
        match before.and_then(|before| self.row(before)) {
            Some(before) => before.0[LINK].store(next, Ordering::Release),
            None => first = next as u32,
        }
        head_word.store(head((now >> 32) + 1, first), Ordering::Release);
        drop(guard);
        self.put_right(index, row, false);
        me.note_none();
        Ok(true)
    }

    /// Claims an unused row for this process.
    fn claim(self, me: ActingProcess<'_>, hash: u64) -> Claim {
        let groups = self.used.len();
        let start = (hash >> 32) as usize % groups;
        for at in 0..groups {
            let group = (start + at) % groups;
            let mut free = !self.used[group].load(Ordering::Relaxed);
            while free != 0 {
                let index = group * GROUP + free.trailing_zeros() as usize;
                free &= free - 1;
                if index < self.is.rows && self.claim_row(me, index as u32) {
                    return Claim::Row(index as u32);
                }
            }
        }
        // Journals of dead processes are read when the next process begins. This search cannot wait
        // for that.
        let mut claim = Claim::Full;
        for index in 0..self.is.rows as u32 {
            match self.settle(me, index) {
                Hand::Nobody if self.claim_row(me, index) => return Claim::Row(index),
                Hand::Nobody | Hand::Process => claim = Claim::Moving,
                Hand::Index => {}
            }
        }
        claim
    }

    fn claim_row(self, me: ActingProcess<'_>, index: u32) -> bool {
        let Some(row) = self.row(index) else { return false };
        if row.0[OWNER].load(Ordering::Relaxed) != FREE {
            return false;
        }
        // Before the row is ours: a process that finds the row in the journal checks its owner.
        me.note_row(index);
        let claimed =
            row.0[OWNER].compare_exchange(FREE, me.owner, Ordering::AcqRel, Ordering::Relaxed);
        // PAIRS WITH the fence of `read_once` and `row_at`: a reader that sees the following writes
        // also sees that the row was free.
        fence(Ordering::Release);
        claimed.is_ok()
    }

    /// Sets owner and bitmap according to whether the row is linked. The row must belong to this
    /// process, or to a dead one while the bucket is locked.
    fn put_right(self, index: u32, row: Row<'_>, is_linked: bool) {
        let bit = 1 << (index as usize % GROUP);
        let group = &self.used[index as usize / GROUP];
        if is_linked {
            group.fetch_or(bit, Ordering::Relaxed);
            row.0[OWNER].store(IN_USE, Ordering::Release);
        } else {
            group.fetch_and(!bit, Ordering::Relaxed);
            row.0[OWNER].store(FREE, Ordering::Release);
        }
    }

    /// Completes a dead process's change of a row. Returns the row's owner afterwards.
    pub(crate) fn settle(self, me: ActingProcess<'_>, index: u32) -> Hand {
        let Some(row) = self.row(index) else { return Hand::Index };
        let owner = row.0[OWNER].load(Ordering::Acquire);
        match owner {
            FREE => return Hand::Nobody,
            IN_USE => return Hand::Index,
            _ if !is_abandoned(owner, me) => return Hand::Process,
            _ => {}
        }
        // No other process writes there, so the hash stays the same until a process has settled the
        // row.
        let hash = row.0[HASH].load(Ordering::Relaxed);
        let (lock, head_word) = self.bucket(hash);
        let Ok(_guard) = acquire(lock, me) else { return Hand::Process };
        if row.0[OWNER].load(Ordering::Acquire) != owner {
            return Hand::Process;
        }
        let is_linked = self.walk(hash, |at, _| at == index).is_some();
        let now = head_word.load(Ordering::Relaxed);
        // The row may have been removed just now, unnoticed by its reader.
        head_word.store(head((now >> 32) + 1, now as u32), Ordering::Release);
        self.put_right(index, row, is_linked);
        if is_linked { Hand::Index } else { Hand::Nobody }
    }

    /// Number of keys.
    pub(crate) fn count(self) -> usize {
        self.used.iter().map(|group| group.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Copies key and data of the first row in use from `index` on. Returns its number.
    pub(crate) fn next(
        self,
        me: ActingProcess<'_>,
        mut index: u32,
        key: &mut Vec<u8>,
        data: &mut [u64],
    ) -> Result<Option<u32>, Busy> {
        while (index as usize) < self.is.rows {
            let group = self.used[index as usize / GROUP].load(Ordering::Relaxed);
            let rest = group >> (index as usize % GROUP);
            if rest == 0 {
                index = (index / GROUP as u32 + 1) * GROUP as u32;
                continue;
            }
            index += rest.trailing_zeros();
            if self.row_at(me, index, key, data)? {
                return Ok(Some(index));
            }
            index += 1;
        }
        Ok(None)
    }

    fn row_at(
        self,
        me: ActingProcess<'_>,
        index: u32,
        key: &mut Vec<u8>,
        data: &mut [u64],
    ) -> Result<bool, Busy> {
        let Some(row) = self.row(index) else { return Ok(false) };
        for _ in 0..READS_MAX {
            if let Ok(found) = self.row_once(row, key, data) {
                return Ok(found);
            }
        }
        // The row changes faster than it can be read. The lock stops that, unless the row has moved
        // to another bucket in the meantime.
        let _guard = acquire(self.bucket(row.0[HASH].load(Ordering::Relaxed)).0, me)?;
        Ok(self.row_once(row, key, data).unwrap_or(false))
    }

    fn row_once(self, row: Row<'_>, key: &mut Vec<u8>, data: &mut [u64]) -> Result<bool, ()> {
        let version = row.0[VERSION].load(Ordering::Acquire);
        if row.0[OWNER].load(Ordering::Acquire) != IN_USE {
            return Ok(false);
        }
        let len = row.0[KEY_BYTES].load(Ordering::Relaxed) as usize;
        key.clear();
        key.resize(len.min(self.is.key_words * 8), 0);
        load_bytes(row.key_room(), key);
        load(row.copy(version), data);
        fence(Ordering::Acquire);
        let is_same = row.0[VERSION].load(Ordering::Relaxed) == version
            && row.0[OWNER].load(Ordering::Relaxed) == IN_USE;
        if is_same { Ok(true) } else { Err(()) }
    }
}

fn change_row<R>(
    row: Row<'_>,
    scratch: &mut [u64],
    change: &mut impl FnMut(&mut [u64], bool) -> (bool, R),
) -> R {
    load(row.copy(row.0[VERSION].load(Ordering::Relaxed)), scratch);
    let (is_kept, result) = change(scratch, false);
    if is_kept {
        row.publish(scratch);
    }
    result
}
