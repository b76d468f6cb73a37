//! Rate limiter: limits how often something may happen per key. A bucket of tokens per key refills
//! over time.
//!
//! Only one time is stored per bucket: when it will be full again (the generic cell rate algorithm,
//! ITU-T I.371). A full bucket needs no row. When rows run out, the rows of full buckets are
//! removed first, and then those of the buckets that are nearest to full.

use crate::buckets::{self, KEY_BYTES, KEYS_MAX};
use crate::chain::{Chains, Dimensions, Refused};
use crate::client::Client;
use crate::directory::{Entry, Kind, OpenError, Wanted};
use crate::os;
use std::sync::atomic::{AtomicU64, Ordering};

const BURST_MAX: u64 = 1_000_000_000;
const RATE_MAX: f64 = 1e9;
/// Indexes of an entry's own words: numbers of allowed and denied operations.
const ALLOWED: usize = 0;
const DENIED: usize = 1;
/// If no bucket is full, one in this number of buckets is removed at once, so that the next keys
/// find room.
const FORGOTTEN_SHARE: usize = 8;

/// Why the parameters of a limiter are invalid.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum WrongRate {
    /// The rate per second is zero or too large.
    #[error("a limiter allows more than 0 and at most 1,000,000,000 a second, not {0}")]
    Rate(f64),
    /// The number of tokens is zero or too large.
    #[error("a limiter's burst is 1 to {BURST_MAX}, not {0}")]
    Burst(u64),
    /// The number of keys is zero or too large.
    #[error("a limiter has 1 to {KEYS_MAX} keys, not {0}")]
    Keys(usize),
}

/// Why a limiter cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LimiterOpenError {
    /// Its parameters are invalid.
    #[error(transparent)]
    Wrong(#[from] WrongRate),
    /// The object cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why a limiter cannot decide.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LimiterError {
    /// A process that holds a bucket does not continue.
    #[error("a stopped process holds a bucket of the limiter")]
    Busy,
    /// The cost is more than a full bucket holds.
    #[error("the cost {cost} is 0, or more than the burst of {burst}: it would never be allowed")]
    Cost {
        /// The requested number of tokens.
        cost: u64,
        /// Tokens of a full bucket.
        burst: u64,
    },
}

/// A process's handle of a limiter.
#[derive(Debug)]
pub struct RateLimiter {
    object: u32,
    /// Time between two tokens, ns.
    interval_ns: u64,
    burst: u64,
    is: Dimensions,
}

impl RateLimiter {
    /// Opens the limiter of that name. Each bucket receives `rate` tokens per second and holds
    /// `burst`.
    pub fn open(
        client: &Client,
        name: &[u8],
        rate: f64,
        burst: u64,
        keys: usize,
    ) -> Result<RateLimiter, LimiterOpenError> {
        if !(rate > 0.0 && rate <= RATE_MAX) {
            return Err(WrongRate::Rate(rate).into());
        }
        if !(1..=BURST_MAX).contains(&burst) {
            return Err(WrongRate::Burst(burst).into());
        }
        if !(1..=KEYS_MAX).contains(&keys) {
            return Err(WrongRate::Keys(keys).into());
        }
        let is = buckets::dimensions(keys);
        let definition = format!("rate={rate} burst={burst} keys={keys}");
        let words = is.words();
        let wanted = Wanted { kind: Kind::RateLimiter, name, definition: &definition, words };
        let object = client.open(&wanted)?;
        // At least 1, because the rate is at most RATE_MAX. A value that is too large for the
        // integer saturates in the cast.
        #[allow(clippy::cast_sign_loss)] // The rate is more than 0.
        let interval_ns = ((1e9 / rate) as u64).max(1);
        Ok(RateLimiter { object, interval_ns, burst, is })
    }

    /// Number of its object.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// Takes `cost` tokens from the bucket of `key` and returns 0. If there are not enough, takes
    /// none and returns the nanoseconds until there are.
    pub fn take(&self, client: &Client, key: &[u8], cost: u64) -> Result<u64, LimiterError> {
        let wait = self.ask(client, key, cost, true)?;
        let count = if wait == 0 { ALLOWED } else { DENIED };
        Entry::of(client.shared(), self.object).own()[count].fetch_add(1, Ordering::Relaxed);
        Ok(wait)
    }

    /// Same as [`RateLimiter::take`], but takes nothing.
    pub fn look(&self, client: &Client, key: &[u8], cost: u64) -> Result<u64, LimiterError> {
        self.ask(client, key, cost, false)
    }

    /// Tokens in the bucket of `key`.
    pub fn left(&self, client: &Client, key: &[u8]) -> Result<u64, LimiterError> {
        let now = now_ns();
        let short_of_full = self
            .with(client, key, |row| (false, row.saturating_sub(now).div_ceil(self.interval_ns)))?;
        Ok(self.burst.saturating_sub(short_of_full))
    }

    fn ask(
        &self,
        client: &Client,
        key: &[u8],
        cost: u64,
        takes: bool,
    ) -> Result<u64, LimiterError> {
        if cost == 0 || cost > self.burst {
            return Err(LimiterError::Cost { cost, burst: self.burst });
        }
        let now = now_ns();
        let tokens = |count: u64| count.saturating_mul(self.interval_ns);
        self.with(client, key, |full_at| {
            // No bucket is emptier than empty: a later time is garbage written by another process.
            let full_at_sane = (*full_at).clamp(now, now.saturating_add(tokens(self.burst)));
            let then = full_at_sane.saturating_add(tokens(cost));
            let wait = then.saturating_sub(now.saturating_add(tokens(self.burst)));
            if wait == 0 && takes {
                *full_at = then;
            }
            (wait == 0 && takes, wait)
        })
    }

    /// Passes the time at which the bucket of `key` is full to `change`, and stores it if `change`
    /// returns true.
    fn with<R>(
        &self,
        client: &Client,
        key: &[u8],
        change: impl Fn(&mut u64) -> (bool, R),
    ) -> Result<R, LimiterError> {
        let chains = self.chains(client).ok_or(LimiterError::Busy)?;
        let me = client.me(self.object);
        let mut long = [0xff; 1 + 16];
        let key = if key.len() <= KEY_BYTES { key } else { client.digest(key, &mut long) };
        let hash = client.hash(key);
        // Other processes may take the rows that were removed: then more rows are removed.
        for _ in 0..FORGOTTEN_SHARE {
            match chains.update(me, (hash, key), &mut [0], |row, _| change(&mut row[0])) {
                Ok(result) => return Ok(result),
                Err(Refused::Busy) => return Err(LimiterError::Busy),
                Err(Refused::Full) => self.forget(client, chains)?,
            }
        }
        Err(LimiterError::Busy)
    }

    /// Removes the rows of full buckets, or, if there are none, those of the fullest.
    fn forget(&self, client: &Client, chains: Chains<'_>) -> Result<(), LimiterError> {
        let (me, now) = (client.me(self.object), now_ns());
        let (mut found, mut key, mut row, mut cursor) = (Vec::new(), Vec::new(), [0], 0);
        while let Some(at) =
            chains.next(me, cursor, &mut key, &mut row).map_err(|_| LimiterError::Busy)?
        {
            found.push((row[0], key.clone()));
            cursor = at + 1;
        }
        found.sort_unstable();
        let full = found.partition_point(|(full_at, _)| *full_at <= now);
        let goes = full.max(found.len().div_ceil(FORGOTTEN_SHARE));
        for (_, key) in found.into_iter().take(goes) {
            chains.delete(me, client.hash(&key), &key).map_err(|_| LimiterError::Busy)?;
        }
        Ok(())
    }

    fn chains<'a>(&self, client: &'a Client) -> Option<Chains<'a>> {
        let words = Entry::of(client.shared(), self.object).words(client.shared())?;
        (words.len() >= self.is.words()).then(|| Chains::new(words, self.is))
    }
}

fn now_ns() -> u64 {
    os::monotonic().as_nanos() as u64
}

/// Number of keys that have a row, and the maximum.
pub(crate) fn fill(words: &[AtomicU64], definition: &str) -> Option<(u64, u64)> {
    let is = buckets::parse(definition)?;
    let chains = (words.len() >= is.words()).then(|| Chains::new(words, is))?;
    Some((chains.count() as u64, is.rows as u64))
}

/// Numbers of allowed and denied operations.
pub(crate) fn counts(own: &[AtomicU64]) -> (u64, u64) {
    (own[ALLOWED].load(Ordering::Relaxed), own[DENIED].load(Ordering::Relaxed))
}
