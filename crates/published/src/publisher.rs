//! The server's side: lays values out, replaces the root, and frees values that no process can see
//! any more.

use crate::index::{self, Named};
use crate::layout::{self, LayoutError, Top};
use crate::limits::NAME_BYTES_MAX;
use crate::region::{FIRST_EPOCH, HEADER_BYTES, Region, RegionError, root_of};
use crate::room::{Piece, Room};
use foldhash::quality::RandomState;
use samovar_shared::{PUBLISHED_MAX, Shared, holds, raise_floor};
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Limits for published values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of all values, and of replaced ones that are still read.
    pub bytes_max: u64,
    /// Maximum bytes of one value.
    pub value_bytes_max: u64,
    /// Maximum number of names; at most [`PUBLISHED_MAX`].
    pub names_max: usize,
}

/// Maximum number of processes listed in a message.
const HOLDERS_NAMED_MAX: usize = 5;

/// Why a value cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The name is empty or too long.
    #[error("the name of a published value has 1 to {NAME_BYTES_MAX} bytes, not {0}")]
    Name(usize),
    /// It exceeds the maximum size of a value.
    #[error(
        "`{0}` takes more than {1} bytes in PHP's representation\nhint: increase \
         `shared.published_value_bytes_max`, or publish it in parts"
    )]
    TooLarge(String, u64),
    /// It cannot be laid out for another reason.
    #[error("`{0}` cannot be published: {1}")]
    Layout(String, LayoutError),
    /// There are too many names.
    #[error(
        "`{0}` exceeds the maximum of {1} published values\n\
         hint: increase `shared.published_names_max`, publish one array, or publish null to \
         withdraw unused values"
    )]
    Names(String, usize),
    /// There is no room.
    #[error(
        "`{name}` takes {needed} bytes, but the largest free block of {all} bytes has {left}; \
         replaced values that are still read take {held}{holders}\n\
         hint: increase `shared.published_bytes_max`{advice}"
    )]
    Room {
        /// Its name.
        name: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes of the largest free piece.
        left: u64,
        /// Bytes in total.
        all: u64,
        /// Bytes of replaced values that are still read.
        held: u64,
        /// Processes that hold them.
        holders: String,
        /// Further advice.
        advice: &'static str,
    },
    /// The system has no memory.
    #[error("cannot allocate memory for `{0}`: {1}")]
    Io(String, io::Error),
    /// The epochs are used up.
    #[error("the maximum number of changes is reached: {0}\nhint: restart the server")]
    Epochs(u64),
}

impl PublishError {
    /// Whether the value itself is invalid, as opposed to a lack of room.
    pub fn is_of_value(&self) -> bool {
        matches!(
            self,
            PublishError::Name(_) | PublishError::TooLarge(..) | PublishError::Layout(..)
        )
    }
}

/// Figures of all published values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes available.
    pub bytes_max: u64,
    /// Bytes of published values.
    pub bytes: u64,
    /// Bytes of replaced values that are still read.
    pub replaced_bytes: u64,
    /// Values that could not be published.
    pub refused: u64,
    /// Changes since the start.
    pub changes: u64,
    /// Figures of each value.
    pub values: Vec<ValueFigures>,
}

/// Figures of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueFigures {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Number of reads since its name was first published.
    pub reads: u64,
}

/// A published value.
#[derive(Debug)]
struct Value {
    top: Top,
    piece: Option<Piece>,
    number: usize,
    digest: Digest,
    /// The first epoch in which it is visible.
    since: u64,
}

/// Digest of an encoded value: its length, and two hashes that no client can predict.
type Digest = (usize, u64, u64);

/// A replaced value or list.
#[derive(Debug)]
struct Replaced {
    /// The first epoch in which it is visible. `None` for a list, which a process reads but never
    /// keeps.
    since: Option<u64>,
    /// The last epoch in which it is visible.
    last: u64,
    piece: Piece,
}

impl Replaced {
    fn is_held(&self, spans: &[u64]) -> bool {
        let since = self.since;
        since.is_some_and(|since| spans.iter().any(|span| holds(*span, since, self.last)))
    }
}

#[derive(Debug)]
struct State {
    room: Room,
    epoch: u64,
    values: BTreeMap<Vec<u8>, Value>,
    list: Option<Piece>,
    replaced: Vec<Replaced>,
    refused: u64,
}

/// The publisher for all processes.
#[derive(Debug)]
pub struct Publisher {
    region: Region,
    shared: Shared,
    limits: Limits,
    hashing: [RandomState; 2],
    state: Mutex<State>,
}

impl Publisher {
    /// Creates a publisher with its own region. `shared` holds the pins of the readers.
    pub fn new(shared: Shared, limits: Limits) -> Result<Publisher, RegionError> {
        let region = Region::create(limits.bytes_max)?;
        let whole = Piece { at: HEADER_BYTES, bytes: region.bytes() - HEADER_BYTES };
        let state = State {
            room: Room::new(whole),
            epoch: FIRST_EPOCH,
            values: BTreeMap::new(),
            list: None,
            replaced: Vec::new(),
            refused: 0,
        };
        let hashing = [RandomState::default(), RandomState::default()];
        Ok(Publisher { region, shared, limits, hashing, state: Mutex::new(state) })
    }

    /// The region's memory file, for the processes that read it.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.region.file()
    }

    /// The limits for published values.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete before anything can fail.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a value, in place of the present value of that name, if there is one. An equal
    /// value changes nothing.
    pub fn publish(&self, name: &[u8], encoded: &[u8]) -> Result<(), PublishError> {
        let mut state = self.state();
        let done = self.place(&mut state, name, encoded);
        state.refused += u64::from(done.is_err());
        done
    }

    fn place(&self, state: &mut State, name: &[u8], encoded: &[u8]) -> Result<(), PublishError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(PublishError::Name(name.len()));
        }
        let text = || String::from_utf8_lossy(name).into_owned();
        let digest = self.digest(encoded);
        let before = state.values.get(name);
        if before.is_some_and(|value| value.digest == digest) {
            return Ok(());
        }
        let names_max = self.limits.names_max.min(PUBLISHED_MAX);
        if before.is_none() && state.values.len() >= names_max {
            return Err(PublishError::Names(text(), names_max));
        }
        let value_max = self.limits.value_bytes_max;
        let room = usize::try_from(value_max).unwrap_or(usize::MAX);
        let mut laid = layout::lay_out(encoded, room).map_err(|error| match error {
            LayoutError::TooLarge(_) => PublishError::TooLarge(text(), value_max),
            error => PublishError::Layout(text(), error),
        })?;
        let piece = match laid.bytes.len() {
            0 => None,
            bytes => Some(self.take(state, name, bytes)?),
        };
        if let Some(piece) = piece {
            laid.move_to(self.region.base() + piece.at);
            if let Err(error) = self.region.write(piece.at, &laid.bytes) {
                state.room.give_back(piece);
                return Err(PublishError::Io(text(), error));
            }
        }
        let number = before_number(state, name);
        let is_new = !state.values.contains_key(name);
        if let Some(reads) = self.shared.reads(number).filter(|_| is_new) {
            reads.store(0, Ordering::Relaxed);
        }
        let value = Value { top: laid.top, piece, number, digest, since: state.epoch + 1 };
        self.change(state, name, Some(value))
    }

    /// Records and returns the error for a value that is too large to be examined.
    pub(crate) fn too_large(&self, name: &[u8]) -> PublishError {
        self.state().refused += 1;
        let name = String::from_utf8_lossy(name).into_owned();
        PublishError::TooLarge(name, self.limits.value_bytes_max)
    }

    /// Withdraws a value. Returns false if there is none.
    pub fn withdraw(&self, name: &[u8]) -> Result<bool, PublishError> {
        let mut state = self.state();
        if !state.values.contains_key(name) {
            return Ok(false);
        }
        self.change(&mut state, name, None).map(|()| true)
    }

    fn digest(&self, encoded: &[u8]) -> Digest {
        let [one, two] = &self.hashing;
        (encoded.len(), one.hash_one(encoded), two.hash_one(encoded))
    }

    /// Room for a value or a list. If necessary, frees values that no process sees.
    fn take(&self, state: &mut State, name: &[u8], bytes: usize) -> Result<Piece, PublishError> {
        if let Some(piece) = state.room.take(bytes) {
            return Ok(piece);
        }
        self.collect(state);
        state.room.take(bytes).ok_or_else(|| self.no_room(state, name, bytes))
    }

    fn no_room(&self, state: &State, name: &[u8], bytes: usize) -> PublishError {
        let newest = state.epoch;
        let mut holders: Vec<i32> =
            self.shared.pins().filter(|pin| pin.epoch < newest).map(|pin| pin.pid).collect();
        let more = holders.len().saturating_sub(HOLDERS_NAMED_MAX);
        holders.truncate(HOLDERS_NAMED_MAX);
        let pids: Vec<String> = holders.iter().map(ToString::to_string).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let is_held = !state.replaced.is_empty();
        PublishError::Room {
            name: String::from_utf8_lossy(name).into_owned(),
            needed: bytes as u64,
            left: state.room.largest(),
            all: self.region.bytes() - HEADER_BYTES,
            held: state.replaced.iter().map(|replaced| replaced.piece.bytes).sum(),
            holders: if is_held && !pids.is_empty() {
                format!("; readers are the processes {}{more}", pids.join(", "))
            } else {
                String::new()
            },
            advice: if is_held {
                ", or run `samovar reload`, which frees replaced values"
            } else {
                ""
            },
        }
    }

    /// Begins the next epoch: the same values, except for this one.
    fn change(
        &self,
        state: &mut State,
        name: &[u8],
        value: Option<Value>,
    ) -> Result<(), PublishError> {
        let taken = value.as_ref().and_then(|value| value.piece);
        let list = match self.put_list(state, name, value.as_ref()) {
            Ok(list) => list,
            Err(error) => {
                // No process has seen it.
                if let Some(piece) = taken {
                    state.room.give_back(piece);
                }
                return Err(error);
            }
        };
        let old = match value {
            Some(value) => state.values.insert(name.to_vec(), value),
            None => state.values.remove(name),
        };
        let seen = state.epoch;
        let value = old.and_then(|old| Some((Some(old.since), old.piece?)));
        let list = state.list.replace(list).map(|list| (None, list));
        let gone = value.into_iter().chain(list);
        state.replaced.extend(gone.map(|(since, piece)| Replaced { since, last: seen, piece }));
        state.epoch += 1;
        self.collect(state);
        Ok(())
    }

    /// Lays out the new list and makes it the current one.
    fn put_list(
        &self,
        state: &mut State,
        name: &[u8],
        value: Option<&Value>,
    ) -> Result<Piece, PublishError> {
        let others = state.values.iter().filter(|(other, _)| *other != name);
        let changed = value.map(|value| (name, value));
        let values: Vec<Named<'_>> = others
            .map(|(name, value)| (&name[..], value))
            .chain(changed)
            .map(|(name, value)| Named { name, top: value.top, number: value.number })
            .collect();
        let bytes = index::lay_out(&values, 0, 0).len();
        let sketch: Vec<(Vec<u8>, Top, usize)> =
            values.iter().map(|v| (v.name.to_vec(), v.top, v.number)).collect();
        let piece = self.take(state, name, bytes)?;
        let named: Vec<Named<'_>> = sketch
            .iter()
            .map(|(name, top, number)| Named { name, top: *top, number: *number })
            .collect();
        let list = index::lay_out(&named, self.region.base(), piece.at);
        let written = self.region.write(piece.at, &list);
        let root = root_of(state.epoch + 1, piece.at);
        match (written, root) {
            (Ok(()), Some(root)) => {
                // PAIRS WITH `Reader::find`: everything that the root leads to is written before.
                self.region.root().store(root, Ordering::SeqCst);
                Ok(piece)
            }
            (written, _) => {
                state.room.give_back(piece);
                Err(match written {
                    Err(error) => PublishError::Io(String::from_utf8_lossy(name).into(), error),
                    Ok(()) => PublishError::Epochs(state.epoch),
                })
            }
        }
    }

    /// Frees replaced values that no process can see.
    fn collect(&self, state: &mut State) {
        if state.replaced.is_empty() {
            return;
        }
        let lowest = || self.shared.pins().map(|pin| pin.epoch).min();
        let floor = raise_floor(self.region.floor(), state.epoch, lowest);
        let State { replaced, room, .. } = state;
        // After the pins: a boot that ends at this moment has a pin or a span.
        let Some(spans) = self.shared.spans() else { return };
        replaced.retain(|replaced| {
            let is_seen = replaced.last >= floor || replaced.is_held(&spans);
            if !is_seen {
                room.give_back(replaced.piece);
            }
            is_seen
        });
    }

    /// Processes that hold replaced values which their successors would not hold.
    pub fn laggards(&self) -> Vec<i32> {
        let mut state = self.state();
        self.collect(&mut state);
        // Values that the image holds would be held by a successor, too.
        let spans = self.shared.spans().unwrap_or_default();
        let theirs = state.replaced.iter().filter(|replaced| !replaced.is_held(&spans));
        let held: u64 = theirs.map(|replaced| replaced.piece.bytes).sum();
        // As long as there is room, no process has to be replaced.
        if held < self.limits.bytes_max / 2 {
            return Vec::new();
        }
        let late = self.shared.pins().filter(|pin| pin.epoch < state.epoch);
        late.map(|pin| pin.pid).collect()
    }

    /// The present figures.
    pub fn figures(&self) -> Figures {
        let mut state = self.state();
        self.collect(&mut state);
        let bytes_of = |piece: &Piece| piece.bytes;
        let values: Vec<ValueFigures> = state
            .values
            .iter()
            .map(|(name, value)| ValueFigures {
                name: String::from_utf8_lossy(name).into_owned(),
                bytes: value.piece.as_ref().map_or(0, bytes_of),
                reads: self.shared.reads(value.number).map_or(0, |n| n.load(Ordering::Relaxed)),
            })
            .collect();
        Figures {
            bytes_max: self.limits.bytes_max,
            bytes: values.iter().map(|value| value.bytes).sum(),
            replaced_bytes: state.replaced.iter().map(|replaced| replaced.piece.bytes).sum(),
            refused: state.refused,
            changes: state.epoch - FIRST_EPOCH,
            values,
        }
    }
}

/// The number of the value with that name, or one that no other value has.
fn before_number(state: &State, name: &[u8]) -> usize {
    if let Some(value) = state.values.get(name) {
        return value.number;
    }
    let mut taken = vec![false; PUBLISHED_MAX];
    for value in state.values.values() {
        taken[value.number] = true;
    }
    taken.iter().position(|taken| !taken).unwrap_or(0)
}
