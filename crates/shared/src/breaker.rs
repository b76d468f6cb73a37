//! Circuit breaker: decides whether a dependency is called at all. It opens when too many calls
//! fail or are slow. Then it lets one call through now and then to check whether the dependency
//! works again ("Circuit Breaker" in M. Nygard, Release It!).
//!
//! All data is in the words of the breaker's entry. One word holds the state: closed; open until a
//! time; or half open until a time. Half open is the permission for one call, the probe. A process
//! gets this permission by exchanging the word, so only one process gets it, and the word itself
//! identifies the probe.
//!
//! A probe that is killed never reports. When its time is over, the next call is the probe. Eight
//! words count calls, each for an eighth of the window.

use crate::client::Client;
use crate::directory::{Entry, Kind, OpenError, Wanted};
use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

const STATE: usize = 0;
const OPENED: usize = 1;
const REFUSED: usize = 2;
const BUCKETS_AT: usize = 4;
const BUCKETS: u64 = 8;

/// Number of the lowest bits of the state word, which hold the state. The bits above hold its end
/// time.
const TAG_BITS: u32 = 2;
const TAG_OPEN: u64 = 1;
const TAG_HALF_OPEN: u64 = 2;

/// Bits of each of a bucket's three counts. The bits above them identify the eighth of the window
/// that the bucket counts.
const COUNT_BITS: u32 = 14;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const EPOCH_MASK: u64 = (1 << (64 - 3 * COUNT_BITS)) - 1;

const SECONDS_MIN: f64 = 0.1;
const SECONDS_MAX: f64 = 86_400.0;
const CALLS_MAX: i64 = 10_000;

/// Conditions under which a breaker opens, and the time it stays open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Share of failed calls at which it opens, 0 to 1.
    pub failures: f64,
    /// Share of slow calls at which it opens, 0 to 1.
    pub slow: f64,
    /// Duration in seconds at which a call counts as slow; 0: no call is slow.
    pub slow_after: f64,
    /// Minimum number of calls in the window before the shares count.
    pub calls_min: i64,
    /// Length of the window, seconds.
    pub window: f64,
    /// Time that it stays open, and time limit of a probe, seconds.
    pub pause: f64,
}

/// Why the rules of a breaker are invalid.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum WrongRules {
    /// A share is out of range.
    #[error("a breaker's share of {0} calls is more than 0 and at most 1, not {1}")]
    Share(&'static str, f64),
    /// A time is out of range.
    #[error("a breaker's {0} is {SECONDS_MIN} to {SECONDS_MAX} seconds, not {1}")]
    Seconds(&'static str, f64),
    /// The limit for slow calls is out of range.
    #[error(
        "the time after which a call of a breaker is slow is 0 to {SECONDS_MAX} seconds, not {0}"
    )]
    Slow(f64),
    /// No calls, or too many.
    #[error("the minimum of a breaker is 1 to {CALLS_MAX} calls, not {0}")]
    Calls(i64),
}

/// Why a breaker cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BreakerOpenError {
    /// Its rules are invalid.
    #[error(transparent)]
    Wrong(#[from] WrongRules),
    /// The object cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// State of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// No call goes through.
    Open,
    /// One call goes through.
    HalfOpen,
}

impl BreakerState {
    /// The name that PHP and the status use.
    pub const fn name(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half-open",
        }
    }

    fn of(word: u64) -> BreakerState {
        match word & ((1 << TAG_BITS) - 1) {
            TAG_OPEN => BreakerState::Open,
            TAG_HALF_OPEN => BreakerState::HalfOpen,
            // An invalid tag counts as closed.
            _ => BreakerState::Closed,
        }
    }
}

/// Whether a call may go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It may. The caller reports its outcome with this value.
    Granted(Call),
    /// It may not. Another attempt is useless before this time has passed.
    Refused(Duration),
}

/// A call that went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    begun_ns: u64,
    /// State word of the probe; 0: the call is no probe.
    probe: u64,
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Well,
    /// It failed.
    Failed,
    /// Unknown: does not count as a call.
    Unknown,
}

/// Numbers of calls in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All calls that have ended.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that were slow.
    pub slow: u64,
}

/// The server's report on a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerFigures {
    /// Its state.
    pub state: BreakerState,
    /// Calls counted in the window.
    pub counts: Counts,
    /// Number of times it has opened.
    pub opened: u64,
    /// Calls that were refused.
    pub refused: u64,
}

/// A process's handle of a breaker.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    object: u32,
    rules: Rules,
}

impl Rules {
    fn check(&self) -> Result<(), WrongRules> {
        let is_share = |share: f64| share > 0.0 && share <= 1.0;
        let is_time = |seconds: f64| (SECONDS_MIN..=SECONDS_MAX).contains(&seconds);
        match self {
            _ if !is_share(self.failures) => Err(WrongRules::Share("failed", self.failures)),
            _ if !is_share(self.slow) => Err(WrongRules::Share("slow", self.slow)),
            _ if !(0.0..=SECONDS_MAX).contains(&self.slow_after) => {
                Err(WrongRules::Slow(self.slow_after))
            }
            _ if !(1..=CALLS_MAX).contains(&self.calls_min) => {
                Err(WrongRules::Calls(self.calls_min))
            }
            _ if !is_time(self.window) => Err(WrongRules::Seconds("window", self.window)),
            _ if !is_time(self.pause) => Err(WrongRules::Seconds("pause", self.pause)),
            _ => Ok(()),
        }
    }

    fn definition(&self) -> String {
        let Rules { failures, slow, slow_after, calls_min, window, pause } = self;
        format!(
            "failures={failures} slow={slow} slowAfter={slow_after} minimum={calls_min} \
             pause={pause} window={window}"
        )
    }

    fn is_too_bad(&self, counts: Counts) -> bool {
        #[allow(clippy::cast_precision_loss)] // The counts of a window have 17 bits.
        let reaches =
            |count: u64, share: f64| count > 0 && count as f64 >= share * counts.calls as f64;
        counts.calls >= self.calls_min.unsigned_abs()
            && (reaches(counts.failed, self.failures) || reaches(counts.slow, self.slow))
    }
}

impl Breaker {
    /// Opens the breaker of that name; a new one is closed.
    pub fn open(client: &Client, name: &[u8], rules: Rules) -> Result<Breaker, BreakerOpenError> {
        rules.check()?;
        let definition = rules.definition();
        let wanted = Wanted { kind: Kind::Breaker, name, definition: &definition, words: 0 };
        Ok(Breaker { object: client.open(&wanted)?, rules })
    }

    /// Number of its object.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// Whether a call may go through now.
    pub fn ask(&self, client: &Client) -> Permission {
        self.ask_at(self.own(client), now_ns())
    }

    /// Reports the outcome of a call.
    pub fn report(&self, client: &Client, call: Call, outcome: Outcome) {
        self.report_at(self.own(client), call, outcome, now_ns());
    }

    /// Its state. A breaker that has been open for long enough still reports open until its probe.
    pub fn state(&self, client: &Client) -> BreakerState {
        BreakerState::of(self.own(client)[STATE].load(Ordering::Acquire))
    }

    /// Calls counted in its window.
    pub fn counts(&self, client: &Client) -> Counts {
        counts(self.own(client), ns(self.rules.window), now_ns())
    }

    /// Closes it and clears its counts.
    pub fn reset(&self, client: &Client) {
        let own = self.own(client);
        forget(own);
        own[STATE].store(0, Ordering::Release);
    }

    fn own<'a>(&self, client: &'a Client) -> &'a [AtomicU64] {
        Entry::of(client.shared(), self.object).own()
    }

    fn ask_at(&self, own: &[AtomicU64], now: u64) -> Permission {
        let found = own[STATE].load(Ordering::Acquire);
        if BreakerState::of(found) == BreakerState::Closed {
            return Permission::Granted(Call { begun_ns: now, probe: 0 });
        }
        let pause = ns(self.rules.pause);
        let left = (found >> TAG_BITS).saturating_sub(now);
        // A longer pause is garbage written by another process, and would never end.
        let is_over = left == 0 || left > pause;
        let probe = word(TAG_HALF_OPEN, now + pause);
        if is_over && exchange(&own[STATE], found, probe) {
            return Permission::Granted(Call { begun_ns: now, probe });
        }
        own[REFUSED].fetch_add(1, Ordering::Relaxed);
        Permission::Refused(Duration::from_nanos(if is_over { pause } else { left }))
    }

    fn report_at(&self, own: &[AtomicU64], call: Call, outcome: Outcome, now: u64) {
        let slow_after = ns(self.rules.slow_after);
        let is_slow = slow_after > 0 && now.saturating_sub(call.begun_ns) >= slow_after;
        let until = word(TAG_OPEN, now + ns(self.rules.pause));
        if call.probe != 0 {
            let next = match outcome {
                Outcome::Well if !is_slow => 0,
                // The next call may be the probe immediately.
                Outcome::Unknown => word(TAG_OPEN, now),
                Outcome::Well | Outcome::Failed => until,
            };
            if next == 0 {
                forget(own);
            }
            // If the probe's time was over, another probe has followed: that one counts.
            exchange(&own[STATE], call.probe, next);
            return;
        }
        if outcome == Outcome::Unknown {
            return;
        }
        let window = ns(self.rules.window);
        count(own, window, now, outcome == Outcome::Failed, is_slow);
        if self.rules.is_too_bad(counts(own, window, now)) && exchange(&own[STATE], 0, until) {
            own[OPENED].fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn word(tag: u64, until: u64) -> u64 {
    until << TAG_BITS | tag
}

fn exchange(at: &AtomicU64, from: u64, to: u64) -> bool {
    at.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

fn now_ns() -> u64 {
    os::monotonic().as_nanos() as u64
}

#[allow(clippy::cast_sign_loss)] // `Rules::check` rejects values below 0.
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn buckets(own: &[AtomicU64]) -> &[AtomicU64] {
    &own[BUCKETS_AT..BUCKETS_AT + BUCKETS as usize]
}

fn forget(own: &[AtomicU64]) {
    for bucket in buckets(own) {
        bucket.store(0, Ordering::Relaxed);
    }
}

/// Number of the eighth of a window, counted from the start of the clock.
fn epoch(window: u64, now: u64) -> u64 {
    now / (window / BUCKETS).max(1)
}

fn unpacked(bucket: u64) -> Counts {
    let part = |at: u32| bucket >> (at * COUNT_BITS) & COUNT_MAX;
    Counts { calls: part(0), failed: part(1), slow: part(2) }
}

fn packed(epoch: u64, of: Counts) -> u64 {
    (epoch & EPOCH_MASK) << (3 * COUNT_BITS)
        | of.slow << (2 * COUNT_BITS)
        | of.failed << COUNT_BITS
        | of.calls
}

fn count(own: &[AtomicU64], window: u64, now: u64, has_failed: bool, is_slow: bool) {
    let epoch = epoch(window, now);
    let bucket = &buckets(own)[(epoch % BUCKETS) as usize];
    let next = |found: u64| {
        let is_current = found >> (3 * COUNT_BITS) == epoch & EPOCH_MASK;
        let mut of = if is_current { unpacked(found) } else { Counts::default() };
        if of.calls >= COUNT_MAX {
            // Only the shares matter.
            of = Counts { calls: of.calls / 2, failed: of.failed / 2, slow: of.slow / 2 };
        }
        of.calls += 1;
        of.failed = (of.failed + u64::from(has_failed)).min(of.calls);
        of.slow = (of.slow + u64::from(is_slow)).min(of.calls);
        Some(packed(epoch, of))
    };
    // Always `Some`, so the update always succeeds.
    let _ = bucket.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
}

fn counts(own: &[AtomicU64], window: u64, now: u64) -> Counts {
    let epoch = epoch(window, now);
    let mut sum = Counts::default();
    for bucket in buckets(own) {
        let found = bucket.load(Ordering::Acquire);
        let age = epoch.wrapping_sub(found >> (3 * COUNT_BITS)) & EPOCH_MASK;
        if age < BUCKETS {
            let of = unpacked(found);
            sum.calls += of.calls;
            sum.failed += of.failed;
            sum.slow += of.slow;
        }
    }
    sum
}

/// Figures for the server, which only reads and trusts no word.
pub(crate) fn figures(own: &[AtomicU64], definition: &str) -> BreakerFigures {
    let window = definition.rsplit_once("window=").and_then(|(_, window)| window.parse().ok());
    let window = window.filter(|window| (SECONDS_MIN..=SECONDS_MAX).contains(window));
    BreakerFigures {
        state: BreakerState::of(own[STATE].load(Ordering::Acquire)),
        counts: window.map(|window| counts(own, ns(window), now_ns())).unwrap_or_default(),
        opened: own[OPENED].load(Ordering::Relaxed),
        refused: own[REFUSED].load(Ordering::Relaxed),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
