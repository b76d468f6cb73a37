//! Whether a dependency is called at all: a breaker opens when too many calls of it fail or are slow, and lets one call
//! through now and then to see whether it is well again ("Circuit Breaker" in M. Nygard, Release It!).
//!
//! All of it lies in the words of its entry. One says the state: closed; open until a time; or half open, which is the
//! permission of one call, the probe, until a time. Whoever is given that permission exchanges the word, so only one is,
//! and the word itself is what it is known by. A probe that is killed answers nobody: when its time is over the next
//! call is the probe. Eight words count calls, each for an eighth of the window.

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

/// The lowest bits of the state's word; above them: until when.
const TAG_BITS: u32 = 2;
const TAG_OPEN: u64 = 1;
const TAG_HALF_OPEN: u64 = 2;

/// Bits of a bucket's counts; above three of them: which eighth of which window it counts.
const COUNT_BITS: u32 = 14;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const EPOCH_MASK: u64 = (1 << (64 - 3 * COUNT_BITS)) - 1;

const SECONDS_MIN: f64 = 0.1;
const SECONDS_MAX: f64 = 86_400.0;
const CALLS_MAX: i64 = 10_000;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Share of calls that fail, 0 to 1, from which on it opens.
    pub failures: f64,
    /// The same for slow calls.
    pub slow: f64,
    /// Seconds from which on a call is slow; 0: none is.
    pub slow_after: f64,
    /// Calls that a window must have before it says anything.
    pub calls_min: i64,
    /// Seconds that it looks back.
    pub window: f64,
    /// Seconds for which it stays open, and for which a probe may last.
    pub pause: f64,
}

/// Why no breaker can be so.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum WrongRules {
    /// A share that is none.
    #[error("a breaker's share of {0} calls is more than 0 and at most 1, not {1}")]
    Share(&'static str, f64),
    /// A time that cannot be.
    #[error("a breaker's {0} is {SECONDS_MIN} to {SECONDS_MAX} seconds, not {1}")]
    Seconds(&'static str, f64),
    /// A limit that cannot be.
    #[error("a call of a breaker is slow after 0 to {SECONDS_MAX} seconds, not {0}")]
    Slow(f64),
    /// No calls, or too many.
    #[error("a breaker judges by 1 to {CALLS_MAX} calls, not {0}")]
    Calls(i64),
}

/// Why there is no such breaker.
#[derive(Debug, thiserror::Error)]
pub enum BreakerOpenError {
    /// It cannot be so.
    #[error(transparent)]
    Wrong(#[from] WrongRules),
    /// It cannot be had.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// What a breaker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// None does.
    Open,
    /// One does.
    HalfOpen,
}

impl BreakerState {
    /// As PHP and the status are told.
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
            // What nobody writes means nothing.
            _ => BreakerState::Closed,
        }
    }
}

/// Whether a call may go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It may. What came of it is reported with this.
    Granted(Call),
    /// It may not, and so long it makes no sense to ask again.
    Refused(Duration),
}

/// A call that went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    begun_ns: u64,
    /// The word of the state that it is the probe of; 0: it is none.
    probe: u64,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it should.
    Well,
    /// It did not.
    Failed,
    /// Nobody can say: it counts as no call.
    Unknown,
}

/// How often, in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All calls that have ended.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were slow.
    pub slow: u64,
}

/// What the server says of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerFigures {
    /// Its state.
    pub state: BreakerState,
    /// What it has counted in the window.
    pub counts: Counts,
    /// Times it has opened.
    pub opened: u64,
    /// Calls that did not go through.
    pub refused: u64,
}

/// One breaker as a process has it.
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
            "failures={failures} slow={slow} slowAfter={slow_after} minimum={calls_min} pause={pause} window={window}"
        )
    }

    fn is_too_bad(&self, counts: Counts) -> bool {
        #[allow(clippy::cast_precision_loss)] // Counts of a window have 17 bits.
        let reaches =
            |count: u64, share: f64| count > 0 && count as f64 >= share * counts.calls as f64;
        counts.calls >= self.calls_min.unsigned_abs()
            && (reaches(counts.failed, self.failures) || reaches(counts.slow, self.slow))
    }
}

impl Breaker {
    /// The breaker of that name, closed if it is new.
    pub fn open(client: &Client, name: &[u8], rules: Rules) -> Result<Breaker, BreakerOpenError> {
        rules.check()?;
        let definition = rules.definition();
        let wanted = Wanted { kind: Kind::Breaker, name, definition: &definition, words: 0 };
        Ok(Breaker { object: client.open(&wanted)?, rules })
    }

    /// The number of the object behind it.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// Whether a call may go through now.
    pub fn ask(&self, client: &Client) -> Permission {
        self.ask_at(self.own(client), now_ns())
    }

    /// Says what came of a call.
    pub fn report(&self, client: &Client, call: Call, outcome: Outcome) {
        self.report_at(self.own(client), call, outcome, now_ns());
    }

    /// What it says; one that has been open for long enough waits for its probe.
    pub fn state(&self, client: &Client) -> BreakerState {
        BreakerState::of(self.own(client)[STATE].load(Ordering::Acquire))
    }

    /// What it has counted in its window.
    pub fn counts(&self, client: &Client) -> Counts {
        counts(self.own(client), ns(self.rules.window), now_ns())
    }

    /// It is closed from now on, and has counted nothing.
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
        // A longer one was written by somebody else, and would never end.
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
                // The next call may be the probe at once.
                Outcome::Unknown => word(TAG_OPEN, now),
                Outcome::Well | Outcome::Failed => until,
            };
            if next == 0 {
                forget(own);
            }
            // A probe whose time was over has been followed by another: that one counts.
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

#[allow(clippy::cast_sign_loss)] // `Rules::check` lets nothing below 0 through.
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

/// Which eighth of a window, of all that there were.
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
            // Shares are what matters.
            of = Counts { calls: of.calls / 2, failed: of.failed / 2, slow: of.slow / 2 };
        }
        of.calls += 1;
        of.failed = (of.failed + u64::from(has_failed)).min(of.calls);
        of.slow = (of.slow + u64::from(is_slow)).min(of.calls);
        Some(packed(epoch, of))
    };
    // Always `Some`, so it always succeeds.
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

/// What the server says of it; it only looks, and believes nothing.
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

#[cfg(test)]
mod tests;
