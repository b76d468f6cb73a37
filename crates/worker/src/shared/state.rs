//! State of this process for shared objects: one static, which one thread reaches.
//!
//! As in boundary.rs, none of the functions that have the state calls PHP.

use super::breaker_call::Begun;
use super::open_table::Opened;
use super::problem::Why;
use super::published_state::PublishedState;
use samovar_published::Region;
use samovar_shared::{Breaker, Cache, Client, NamedLock, RateLimiter, Shared};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int};
use std::os::fd::OwnedFd;

/// `samovar_problem` of shared.h.
#[repr(C)]
pub(super) struct Problem {
    pub(super) thrown: c_int,
    pub(super) text: *const c_char,
}

/// State of this process for the shared memory.
pub(super) struct SharedState {
    pub(super) client: Client,
    pub(super) published: PublishedState,
    pub(super) tables: Vec<Opened>,
    pub(super) limiters: Vec<RateLimiter>,
    pub(super) caches: Vec<Cache>,
    pub(super) breakers: Vec<Breaker>,
    /// Calls that a breaker let through and that have not returned yet.
    pub(super) calling: Vec<Begun>,
    /// Number of calls that breakers have let through.
    pub(super) calls: i64,
    /// Values that the request is making: the cache, and the hash of the key.
    pub(super) making: Vec<(u32, u64)>,
    /// Locks that the request or the boot holds.
    pub(super) held: Vec<NamedLock>,
    /// Number of requests and boots that have released their locks and values, plus one.
    pub(super) turn: u64,
    pub(super) text: CString,
    pub(super) problem: Problem,
}

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
        published: PublishedState::new(region, publishing),
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

pub(super) fn with<R>(f: impl FnOnce(&mut SharedState) -> R) -> Option<R> {
    // SAFETY: see `Global`: single thread, not re-entered.
    let place = unsafe { &mut *PLACE.0.get() };
    place.as_mut().map(f)
}

/// Runs `f` in a process that has its entry in the process registry. `None`: it failed, and
/// `samovar_shared_problem` returns the reason.
pub(super) fn act<R>(f: impl FnOnce(&mut SharedState) -> Result<R, Why>) -> Option<R> {
    with(|place| {
        let done = place.client.begin().map_err(Why::from).and_then(|()| f(place));
        done.map_err(|why| place.note(why)).ok()
    })
    .flatten()
}

impl SharedState {
    pub(super) fn note(&mut self, Why(thrown, text): Why) {
        self.text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        self.problem = Problem { thrown: thrown as c_int, text: self.text.as_ptr() };
    }
}
