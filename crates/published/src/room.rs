//! Free space of the region: pieces in order, neighbours joined.

use std::collections::BTreeMap;

/// Sizes of pieces are multiples of this: a cache line of the processor.
const GRAIN: u64 = 64;

/// A range of bytes in the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Room {
    /// Start and size.
    free: BTreeMap<u64, u64>,
}

impl Room {
    pub(crate) fn new(whole: Piece) -> Room {
        Room { free: BTreeMap::from([(whole.at, whole.bytes)]) }
    }

    /// Takes the first piece that is large enough; never one of zero bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Piece> {
        let bytes = (bytes as u64).max(1).checked_next_multiple_of(GRAIN)?;
        let (at, found) =
            self.free.iter().find(|(_, size)| **size >= bytes).map(|(a, b)| (*a, *b))?;
        self.free.remove(&at);
        if found > bytes {
            self.free.insert(at + bytes, found - bytes);
        }
        Some(Piece { at, bytes })
    }

    /// Returns a taken piece.
    pub(crate) fn give_back(&mut self, piece: Piece) {
        let Piece { mut at, mut bytes } = piece;
        let before = self.free.range(..at).next_back().map(|(a, b)| (*a, *b));
        if let Some((before, size)) = before.filter(|(before, size)| before + size == at) {
            self.free.remove(&before);
            (at, bytes) = (before, size + bytes);
        }
        if let Some(after) = self.free.remove(&(at + bytes)) {
            bytes += after;
        }
        self.free.insert(at, bytes);
    }

    pub(crate) fn largest(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_never_overlap_and_all_space_is_returned() {
        let whole = Piece { at: 4096, bytes: 1 << 16 };
        let mut room = Room::new(whole);
        let mut random = fastrand::Rng::with_seed(3);
        let mut taken: Vec<Piece> = Vec::new();
        for _ in 0..10_000 {
            if random.bool() {
                let Some(piece) = room.take(random.usize(0..3000)) else { continue };
                let apart = |other: &Piece| {
                    other.at + other.bytes <= piece.at || piece.at + piece.bytes <= other.at
                };
                assert!(taken.iter().all(apart));
                assert!(piece.at >= whole.at && piece.at + piece.bytes <= whole.at + whole.bytes);
                taken.push(piece);
            } else if !taken.is_empty() {
                room.give_back(taken.swap_remove(random.usize(0..taken.len())));
            }
        }
        for piece in taken {
            room.give_back(piece);
        }
        assert_eq!((room.free.len(), room.largest()), (1, whole.bytes));
        assert_eq!(room.take(usize::MAX), None);
    }
}
