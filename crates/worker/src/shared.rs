//! PHP's objects in the memory that workers share: the Rust half of csrc/functions/shared.h.
//!
//! As in boundary.rs, one thread reaches one static through these functions, none of which calls
//! PHP. C may use their results until the next call.

mod breaker;
mod cache;
mod counter;
mod limiter;
mod lock;
mod noted;
mod published;
mod table;

use crate::log;
use samovar_channel::EXIT_REPLACE;
use samovar_published::Region;
use samovar_shared::{
    Breaker, BreakerOpenError, Cache, CacheError, CacheOpenError, Client, LimiterError,
    LimiterOpenError, NamedLock, OpenError, Outcome, RateLimiter, RegistryFull, Shared, TableError,
    TableOpenError,
};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int};
use std::os::fd::OwnedFd;

/// Class of the exception that PHP throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
enum Thrown {
    /// `Error`: the PHP code is wrong.
    Error = 0,
    /// `ValueError`: an argument is wrong.
    Value = 1,
    /// `RuntimeException`: there is no room, or another process does not make progress.
    Runtime = 2,
}

/// `samovar_problem` of shared.h.
#[repr(C)]
struct Problem {
    thrown: c_int,
    text: *const c_char,
}

/// State of this process for the shared memory.
struct SharedState {
    client: Client,
    published: published::PublishedState,
    tables: Vec<table::Opened>,
    limiters: Vec<RateLimiter>,
    caches: Vec<Cache>,
    breakers: Vec<Breaker>,
    /// Calls that a breaker let through and that have not returned yet.
    calling: Vec<breaker::Begun>,
    /// Number of calls that breakers have let through.
    calls: i64,
    /// Values that the request is making: the cache, and the hash of the key.
    making: Vec<(u32, u64)>,
    /// Locks that the request or the boot holds.
    held: Vec<NamedLock>,
    /// Number of requests and boots that have released their locks and values, plus one.
    turn: u64,
    text: CString,
    problem: Problem,
}

/// Message for a process whose parent read published values and has died at the moment of the fork.
const NO_LONGER_THERE: &str =
    "PHP Samovar: a process exits, because its first published values are gone";

struct Global(UnsafeCell<Option<SharedState>>);
// SAFETY: the process has one thread. `with` hands out one reference at a time, because no function
// called inside it calls back into this file (none calls PHP).
unsafe impl Sync for Global {}
// Next to the other variables that each request writes (boundary.h).
#[unsafe(link_section = "samovar_of_request")]
static PLACE: Global = Global(UnsafeCell::new(None));

/// Attaches the shared memory: once, in the template.
pub(crate) fn attach(shared: Shared, region: Region, publishing: OwnedFd) {
    let generation = shared.begin_generation();
    let place = SharedState {
        client: Client::new(shared, generation),
        published: published::PublishedState::new(region, publishing),
        tables: Vec::new(),
        limiters: Vec::new(),
        caches: Vec::new(),
        breakers: Vec::new(),
        calling: Vec::new(),
        calls: 0,
        making: Vec::new(),
        held: Vec::new(),
        turn: 1,
        text: CString::default(),
        problem: Problem { thrown: 0, text: std::ptr::null() },
    };
    // SAFETY: see `Global`; PHP has not started yet.
    unsafe { *PLACE.0.get() = Some(place) };
}

/// Called at the start of a worker, so that the state which a rollback restores already has its
/// entry in the process registry. If that fails, the worker tries again when it needs the entry,
/// and reports the error then.
pub(crate) fn begin() {
    let is_well =
        with(|place| place.client.begin().is_err() || place.published.inherit(&place.client));
    if is_well == Some(false) {
        log::write(NO_LONGER_THERE, "");
        // SAFETY: ends the process, which has no request yet.
        unsafe { libc::_exit(EXIT_REPLACE) }
    }
}

fn with<R>(f: impl FnOnce(&mut SharedState) -> R) -> Option<R> {
    // SAFETY: see `Global`: single thread, not re-entered.
    let place = unsafe { &mut *PLACE.0.get() };
    place.as_mut().map(f)
}

/// Runs `f` in a process that has its entry in the process registry. `None`: it failed, and
/// [`samovar_shared_problem`] returns the reason.
fn act<R>(f: impl FnOnce(&mut SharedState) -> Result<R, Why>) -> Option<R> {
    with(|place| {
        let done = place.client.begin().map_err(Why::from).and_then(|()| f(place));
        done.map_err(|why| place.note(why)).ok()
    })
    .flatten()
}

/// Error as PHP gets it.
struct Why(Thrown, String);

impl SharedState {
    fn note(&mut self, Why(thrown, text): Why) {
        self.text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        self.problem = Problem { thrown: thrown as c_int, text: self.text.as_ptr() };
    }
}

impl From<RegistryFull> for Why {
    fn from(error: RegistryFull) -> Why {
        Why(Thrown::Runtime, error.to_string())
    }
}

impl From<OpenError> for Why {
    fn from(error: OpenError) -> Why {
        let thrown = match error {
            OpenError::Name(_) | OpenError::Definition(_) => Thrown::Value,
            OpenError::Other { .. } => Thrown::Error,
            OpenError::Memory { .. } | OpenError::Objects | OpenError::Io(_) | OpenError::Busy => {
                Thrown::Runtime
            }
        };
        Why(thrown, error.to_string())
    }
}

impl From<TableOpenError> for Why {
    fn from(error: TableOpenError) -> Why {
        match error {
            TableOpenError::Definition(error) => Why(Thrown::Value, error.to_string()),
            TableOpenError::Open(error) => error.into(),
        }
    }
}

impl From<CacheOpenError> for Why {
    fn from(error: CacheOpenError) -> Why {
        match error {
            CacheOpenError::Bytes(_) => Why(Thrown::Value, error.to_string()),
            CacheOpenError::Open(error) => error.into(),
        }
    }
}

impl From<CacheError> for Why {
    fn from(error: CacheError) -> Why {
        let thrown = match error {
            CacheError::Busy => Thrown::Runtime,
            CacheError::Key(_) => Thrown::Value,
        };
        Why(thrown, error.to_string())
    }
}

impl From<BreakerOpenError> for Why {
    fn from(error: BreakerOpenError) -> Why {
        match error {
            BreakerOpenError::Wrong(error) => Why(Thrown::Value, error.to_string()),
            BreakerOpenError::Open(error) => error.into(),
        }
    }
}

impl From<LimiterOpenError> for Why {
    fn from(error: LimiterOpenError) -> Why {
        match error {
            LimiterOpenError::Wrong(error) => Why(Thrown::Value, error.to_string()),
            LimiterOpenError::Open(error) => error.into(),
        }
    }
}

impl From<LimiterError> for Why {
    fn from(error: LimiterError) -> Why {
        let thrown = match error {
            LimiterError::Busy => Thrown::Runtime,
            LimiterError::Cost { .. } => Thrown::Value,
        };
        Why(thrown, error.to_string())
    }
}

impl From<TableError> for Why {
    fn from(error: TableError) -> Why {
        let thrown = match error {
            TableError::Full { .. } | TableError::Busy(_) | TableError::Overflow(_) => {
                Thrown::Runtime
            }
            TableError::Key { .. }
            | TableError::Text { .. }
            | TableError::Column(_)
            | TableError::Type { .. } => Thrown::Value,
        };
        Why(thrown, error.to_string())
    }
}

/// Called in a process that this one has forked: it needs its own entry in the process registry.
pub(crate) fn forked() {
    let is_well = with(|place| {
        place.client.forked();
        place.held.clear();
        place.making.clear();
        place.calling.clear();
        place.published.forked(&place.client)
    });
    if is_well == Some(false) {
        log::write(NO_LONGER_THERE, "");
        // SAFETY: ends the process: the values that it has read may be gone.
        unsafe { libc::_exit(EXIT_REPLACE) }
    }
}

/// Releases all locks and values at the end of a request or a boot.
pub(crate) fn let_go() {
    with(|place| {
        place.published.end_request(&place.client);
        place.turn += 1;
        for lock in std::mem::take(&mut place.held) {
            lock.release(&place.client);
        }
        for (cache, hash) in std::mem::take(&mut place.making) {
            if let Some(cache) = place.caches.get(cache as usize) {
                cache.end_making(&place.client, hash);
            }
        }
        // A fatal error or the time limit ended the request inside these calls.
        for call in std::mem::take(&mut place.calling) {
            call.end(&place.client, Outcome::Failed);
        }
    });
}

/// Returns the error of the last failed call. It is valid until the next failure.
#[unsafe(no_mangle)]
extern "C" fn samovar_shared_problem() -> *const Problem {
    with(|place| &raw const place.problem).unwrap_or(std::ptr::null())
}

/// Records that the application is resident: the end of a request does not free its memory. The
/// memory is rolled back if `rolls_back`, else it stays.
pub(crate) fn resident(rolls_back: bool) {
    with(|place| place.published.resident(&place.client, rolls_back));
}

/// Records that whole scripts run from now on. A script leaves nothing to the next one.
pub(crate) fn scripts() {
    with(|place| place.published.scripts());
}

/// Records that the image is taken, with which other processes begin.
pub(crate) fn image_taken() {
    with(|place| place.published.keep(&place.client));
}

/// Records that the process's memory is as it was before the request.
pub(crate) fn rolled_back() {
    with(|place| place.published.rolled_back(&place.client));
}
