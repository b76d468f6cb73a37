//! Objects by name: their kinds, definitions and words.
//!
//! The first process that needs an object creates it, and it lasts until the server ends. Its
//! *definition* determines the layout of its words. The same definition means the same object; a
//! different one is an error. But in a later generation of the application, a different definition
//! creates the next version of the object, which is empty. The earlier version is removed when no
//! process of an earlier generation is left.
//!
//! The entries alone define the use of memory: words that no entry covers are free. Entries change
//! under one lock, by one store of their state.

use crate::limits::{ENTRY_WORDS, OBJECTS_MAX};
use crate::lock::{ActingProcess, Busy, Owner, acquire, is_abandoned};
use crate::memory::{AT_ENTRIES, AT_LOCK, AT_REFUSED, AT_TOP, HEAP_AT, PAGE_WORDS, Shared};
use crate::process_registry;
use crate::sync::{holds_bytes, load_bytes, store_bytes, words_of};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum length of an object's name, bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Maximum length of a definition, bytes.
pub const DEFINITION_BYTES_MAX: usize = (ENTRY_WORDS - DEFINITION) * 8;

const STATE: usize = 0;
const KIND: usize = 1;
const START: usize = 2;
const WORDS: usize = 3;
const GENERATION: usize = 4;
const NAME_BYTES: usize = 5;
const DEFINITION_BYTES: usize = 6;
/// Index of the entry's own words: the data of small objects, and the counts of larger ones.
const OWN: usize = 8;
const NAME: usize = 32;
const DEFINITION: usize = NAME + NAME_BYTES_MAX / 8;

const FREE: u64 = 0;
const THERE: u64 = 1;

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum Kind {
    /// A [`Counter`](crate::Counter).
    Counter = 1,
    /// A [`Table`](crate::Table).
    Table = 2,
    /// A [`NamedLock`](crate::NamedLock).
    Lock = 3,
    /// A [`RateLimiter`](crate::RateLimiter).
    RateLimiter = 4,
    /// A [`Cache`](crate::Cache).
    Cache = 5,
    /// A [`Breaker`](crate::Breaker).
    Breaker = 6,
}

impl Kind {
    /// Its name in messages and in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Table => "table",
            Kind::Lock => "lock",
            Kind::RateLimiter => "limiter",
            Kind::Cache => "cache",
            Kind::Breaker => "breaker",
        }
    }

    fn from_word(word: u64) -> Option<Kind> {
        use Kind::{Breaker, Cache, Counter, Lock, RateLimiter, Table};
        let all = [Counter, Table, Lock, RateLimiter, Cache, Breaker];
        all.into_iter().find(|kind| *kind as u64 == word)
    }
}

/// Why an object cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name is empty or too long.
    #[error("the name of a shared object has 1 to {NAME_BYTES_MAX} bytes, not {0}")]
    Name(usize),
    /// Its definition is too long.
    #[error("the definition has {0} bytes, more than {DEFINITION_BYTES_MAX}")]
    Definition(usize),
    /// There is an object of that name with another definition.
    #[error(
        "the {kind} `{name}` exists as `{found}`, and cannot be `{wanted}` too\n\
         hint: use one definition everywhere; a changed one applies after `samovar reload`"
    )]
    Other {
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Its present definition.
        found: String,
        /// The requested definition.
        wanted: String,
    },
    /// There is not enough memory for it.
    #[error(
        "the {kind} `{name}` needs {needed} bytes of shared memory, but the largest free block of \
         {all} bytes has {left}\n\
         hint: increase `shared.bytes_max`"
    )]
    Memory {
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes of the largest free piece.
        left: usize,
        /// Bytes of the whole memory.
        all: usize,
    },
    /// There are too many objects.
    #[error(
        "there are already {OBJECTS_MAX} shared objects, the maximum\nhint: store many values in \
         one table"
    )]
    Objects,
    /// A system call failed.
    #[error("cannot clear shared memory: {0}")]
    Io(#[from] std::io::Error),
    /// The directory's lock is not released.
    #[error("a stopped process holds the directory of shared objects")]
    Busy,
}

impl From<Busy> for OpenError {
    fn from(_: Busy) -> OpenError {
        OpenError::Busy
    }
}

/// A request for an object.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a [u8],
    pub(crate) definition: &'a str,
    /// Words in addition to the entry's own.
    pub(crate) words: usize,
}

/// The entry of an object, by its number.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a>(&'a [AtomicU64]);

impl<'a> Entry<'a> {
    pub(crate) fn of(shared: &'a Shared, index: u32) -> Entry<'a> {
        Entry(shared.entry(index as usize % OBJECTS_MAX))
    }

    pub(crate) fn kind(self) -> Option<Kind> {
        let is_there = self.word(STATE) == THERE;
        is_there.then(|| Kind::from_word(self.word(KIND))).flatten()
    }

    /// The entry's own words.
    pub(crate) fn own(self) -> &'a [AtomicU64] {
        &self.0[OWN..NAME]
    }

    /// The object's other words, if they are inside the memory.
    pub(crate) fn words(self, shared: &'a Shared) -> Option<&'a [AtomicU64]> {
        let (start, words) = (self.word(START) as usize, self.word(WORDS) as usize);
        (start >= HEAP_AT).then(|| shared.words().get(start..start.checked_add(words)?)).flatten()
    }

    pub(crate) fn bytes(self) -> u64 {
        self.word(WORDS).saturating_mul(8)
    }

    fn word(self, at: usize) -> u64 {
        self.0[at].load(Ordering::Acquire)
    }

    pub(crate) fn name(self) -> Vec<u8> {
        self.text(NAME, self.word(NAME_BYTES), NAME_BYTES_MAX)
    }

    pub(crate) fn definition(self) -> String {
        let text = self.text(DEFINITION, self.word(DEFINITION_BYTES), DEFINITION_BYTES_MAX);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn text(self, at: usize, len: u64, max: usize) -> Vec<u8> {
        let mut text = vec![0; (len as usize).min(max)];
        load_bytes(&self.0[at..], &mut text);
        text
    }

    fn is_named(self, wanted: &Wanted<'_>) -> bool {
        self.word(STATE) == THERE
            && self.word(KIND) == wanted.kind as u64
            && self.word(NAME_BYTES) == wanted.name.len() as u64
            && holds_bytes(&self.0[NAME..DEFINITION], wanted.name)
    }

    fn is_defined(self, definition: &str) -> bool {
        self.word(DEFINITION_BYTES) == definition.len() as u64
            && holds_bytes(&self.0[DEFINITION..], definition.as_bytes())
    }
}

fn used(shared: &Shared) -> std::ops::Range<u32> {
    0..(shared.words()[AT_ENTRIES].load(Ordering::Acquire).min(OBJECTS_MAX as u64) as u32)
}

/// All existing objects.
pub(crate) fn entries(shared: &Shared) -> impl Iterator<Item = (u32, Entry<'_>)> {
    used(shared).map(|index| (index, Entry::of(shared, index))).filter(|(_, e)| e.kind().is_some())
}

/// Finds the requested object; `None` if there is none. Another definition in this or a later
/// generation is an error.
fn find(shared: &Shared, wanted: &Wanted<'_>, generation: u64) -> Result<Option<u32>, OpenError> {
    let mut other: Option<Entry<'_>> = None;
    for index in used(shared) {
        let entry = Entry::of(shared, index);
        if !entry.is_named(wanted) {
            continue;
        }
        if entry.is_defined(wanted.definition) {
            // The application still uses it.
            entry.0[GENERATION].fetch_max(generation, Ordering::Relaxed);
            return Ok(Some(index));
        }
        if entry.word(GENERATION) >= generation {
            other = Some(entry);
        }
    }
    match other {
        None => Ok(None),
        Some(entry) => Err(OpenError::Other {
            kind: wanted.kind.name(),
            name: String::from_utf8_lossy(wanted.name).into_owned(),
            found: entry.definition(),
            wanted: wanted.definition.to_owned(),
        }),
    }
}

/// Opens the requested object and creates it if necessary.
pub(crate) fn open(
    shared: &Shared,
    me: ActingProcess<'_>,
    generation: u64,
    wanted: &Wanted<'_>,
) -> Result<u32, OpenError> {
    if wanted.name.is_empty() || wanted.name.len() > NAME_BYTES_MAX {
        return Err(OpenError::Name(wanted.name.len()));
    }
    if wanted.definition.len() > DEFINITION_BYTES_MAX {
        return Err(OpenError::Definition(wanted.definition.len()));
    }
    if let Some(index) = find(shared, wanted, generation)? {
        return Ok(index);
    }
    let _guard = acquire(&shared.words()[AT_LOCK], me)?;
    if let Some(index) = find(shared, wanted, generation)? {
        return Ok(index);
    }
    forget(shared, me);
    make(shared, me.owner, generation, wanted).inspect_err(|_| {
        shared.words()[AT_REFUSED].fetch_add(1, Ordering::Relaxed);
    })
}

/// Frees the entries of makers that have died, and of versions that no process can use any more.
fn forget(shared: &Shared, me: ActingProcess<'_>) {
    let mut oldest = None;
    for index in used(shared) {
        let entry = Entry::of(shared, index);
        let state = entry.word(STATE);
        let is_unfinished = state != FREE && state != THERE && is_abandoned(state, me);
        let mut is_left = || {
            let followed = successor(shared, entry);
            let oldest = *oldest.get_or_insert_with(|| oldest_generation(shared));
            followed.is_some_and(|generation| oldest.is_none_or(|oldest| oldest >= generation))
        };
        if is_unfinished || state == THERE && is_left() {
            entry.0[STATE].store(FREE, Ordering::Release);
        }
    }
}

/// Generation of the version after this one.
fn successor(shared: &Shared, of: Entry<'_>) -> Option<u64> {
    let name = of.name();
    let kind = of.kind()?;
    let wanted = Wanted { kind, name: &name, definition: "", words: 0 };
    let later = entries(shared).filter(|(_, other)| other.is_named(&wanted));
    let later = later.map(|(_, other)| other.word(GENERATION));
    later.filter(|generation| *generation > of.word(GENERATION)).min()
}

/// The oldest generation of all live processes. This process does not count, because it requests a
/// new object.
fn oldest_generation(shared: &Shared) -> Option<u64> {
    process_registry::used(shared)
        .filter_map(|seat| process_registry::generation(shared, seat))
        .min()
}

fn make(
    shared: &Shared,
    me: Owner,
    generation: u64,
    wanted: &Wanted<'_>,
) -> Result<u32, OpenError> {
    let words = wanted.words.next_multiple_of(PAGE_WORDS);
    let (start, largest) = gap(shared, words);
    let start = start.ok_or_else(|| OpenError::Memory {
        kind: wanted.kind.name(),
        name: String::from_utf8_lossy(wanted.name).into_owned(),
        needed: words * 8,
        left: largest * 8,
        all: shared.heap_words() * 8,
    })?;
    let mut free = (0..OBJECTS_MAX as u32).map(|index| (index, Entry::of(shared, index)));
    let (index, entry) =
        free.find(|(_, entry)| entry.word(STATE) == FREE).ok_or(OpenError::Objects)?;
    let fill = |at: usize, value: u64| entry.0[at].store(value, Ordering::Relaxed);
    // First, and in this order: a maker that dies leaves an entry that covers nothing, or the words
    // that it was to have.
    shared.words()[AT_ENTRIES].fetch_max(u64::from(index) + 1, Ordering::AcqRel);
    fill(WORDS, 0);
    fill(STATE, me);
    fill(START, start as u64);
    fill(WORDS, words as u64);
    let top = &shared.words()[AT_TOP];
    let touched = (top.load(Ordering::Relaxed) as usize).clamp(start, start + words) - start;
    if touched > 0 {
        shared.clear(start, touched)?;
    }
    top.fetch_max((start + words) as u64, Ordering::Relaxed);
    fill(KIND, wanted.kind as u64);
    fill(GENERATION, generation);
    fill(NAME_BYTES, wanted.name.len() as u64);
    fill(DEFINITION_BYTES, wanted.definition.len() as u64);
    entry.own().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    store_bytes(&entry.0[NAME..DEFINITION], wanted.name);
    store_bytes(&entry.0[DEFINITION..], wanted.definition.as_bytes());
    entry.0[STATE].store(THERE, Ordering::Release);
    Ok(index)
}

/// Start of the first gap of at least `words`, and the size of the largest gap.
fn gap(shared: &Shared, words: usize) -> (Option<usize>, usize) {
    let end = HEAP_AT + shared.heap_words();
    let mut taken: Vec<(usize, usize)> = used(shared)
        .map(|index| Entry::of(shared, index))
        .filter(|entry| entry.word(STATE) != FREE && entry.word(WORDS) > 0)
        .map(|entry| (entry.word(START) as usize, entry.word(WORDS) as usize))
        .collect();
    taken.push((end, 0));
    taken.sort_unstable();
    let (mut at, mut largest) = (HEAP_AT, 0);
    for (start, len) in taken {
        let room = start.min(end).saturating_sub(at);
        if room >= words {
            return (Some(at), room);
        }
        largest = largest.max(room);
        at = at.max(start.saturating_add(len));
    }
    (None, largest)
}

/// Bytes used by objects.
pub(crate) fn bytes_used(shared: &Shared) -> u64 {
    entries(shared).fold(0, |sum, (_, entry)| entry.bytes().saturating_add(sum))
}

const _: () = assert!(words_of(NAME_BYTES_MAX) == DEFINITION - NAME);
