//! A number that all processes count in.

use crate::client::Client;
use crate::directory::{Entry, Kind, OpenError, Wanted};
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of 64 bits, which overflows as PHP's integers would not: it goes on at the other end.
#[derive(Clone, Copy, Debug)]
pub struct Counter(u32);

impl Counter {
    /// The counter of that name, at 0 if it is new.
    pub fn open(client: &Client, name: &[u8]) -> Result<Counter, OpenError> {
        let wanted = Wanted { kind: Kind::Counter, name, definition: "", words: 0 };
        client.open(&wanted).map(Counter)
    }

    /// The number of the object behind it.
    pub fn object(self) -> u32 {
        self.0
    }

    /// The counter that has this number, as [`Counter::object`] has said it.
    pub fn of(object: u32) -> Counter {
        Counter(object)
    }

    fn word(self, client: &Client) -> &AtomicU64 {
        &Entry::of(client.shared(), self.0).own()[0]
    }

    /// What it says.
    pub fn get(self, client: &Client) -> i64 {
        self.word(client).load(Ordering::Acquire).cast_signed()
    }

    /// Adds, and says what came of it.
    pub fn add(self, client: &Client, by: i64) -> i64 {
        let before = self.word(client).fetch_add(by.cast_unsigned(), Ordering::AcqRel);
        before.cast_signed().wrapping_add(by)
    }

    /// Says another number from now on; what it said before.
    pub fn set(self, client: &Client, to: i64) -> i64 {
        self.word(client).swap(to.cast_unsigned(), Ordering::AcqRel).cast_signed()
    }

    /// Says another number if it says `expected`.
    pub fn compare_and_set(self, client: &Client, expected: i64, to: i64) -> bool {
        let (expected, to) = (expected.cast_unsigned(), to.cast_unsigned());
        self.word(client)
            .compare_exchange(expected, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
