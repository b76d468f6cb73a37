//! A number to which all processes add.

use crate::client::Client;
use crate::directory::{Entry, Kind, OpenError, Wanted};
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of 64 bits. On overflow it wraps, unlike PHP's integers.
#[derive(Clone, Copy, Debug)]
pub struct Counter(u32);

impl Counter {
    /// Opens the counter of that name; a new one is 0.
    pub fn open(client: &Client, name: &[u8]) -> Result<Counter, OpenError> {
        let wanted = Wanted { kind: Kind::Counter, name, definition: "", words: 0 };
        client.open(&wanted).map(Counter)
    }

    /// Number of its object.
    pub fn object(self) -> u32 {
        self.0
    }

    /// The counter with this object number, from [`Counter::object`].
    pub fn of(object: u32) -> Counter {
        Counter(object)
    }

    fn word(self, client: &Client) -> &AtomicU64 {
        &Entry::of(client.shared(), self.0).own()[0]
    }

    /// Its value.
    pub fn get(self, client: &Client) -> i64 {
        self.word(client).load(Ordering::Acquire).cast_signed()
    }

    /// Adds to it and returns the sum.
    pub fn add(self, client: &Client, by: i64) -> i64 {
        let before = self.word(client).fetch_add(by.cast_unsigned(), Ordering::AcqRel);
        before.cast_signed().wrapping_add(by)
    }

    /// Sets it and returns the previous value.
    pub fn set(self, client: &Client, to: i64) -> i64 {
        self.word(client).swap(to.cast_unsigned(), Ordering::AcqRel).cast_signed()
    }

    /// Sets it if its value is `expected`.
    pub fn compare_and_set(self, client: &Client, expected: i64, to: i64) -> bool {
        let (expected, to) = (expected.cast_unsigned(), to.cast_unsigned());
        self.word(client)
            .compare_exchange(expected, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
