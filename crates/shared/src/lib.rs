//! PHP's processes ↔ one memory file: what they share beside requests, and what no rollback touches.
//!
//! The server makes the file, the templates of all generations map it, and workers inherit it. Objects in it have names;
//! whoever needs one first makes it. It knows neither HTTP nor PHP.
//!
//! Anybody may be killed at any instruction. So what is written becomes visible by one store; locks name their holder,
//! of whom the kernel knows whether it lives; and a row that changes hands is noted before it does. Whoever waits looks
//! again by itself, and has a limit.
//!
//! Reading order: [`lock`] (who holds what), [`seats`] (who is who), [`chain`] (rows under keys), [`directory`] (objects by
//! name), [`memory`] (where it all lies), [`client`] (a process), then the objects: [`counter`], [`table`],
//! [`named_lock`], [`limiter`], [`cache`], [`breaker`]; and [`pins`], who may still see what was replaced (crates/published).
//!
//! All of it is words (`AtomicU64`), each of which may hold anything: offsets are compared before they are used, and
//! loops end after as many steps as there are rows.
#![allow(unsafe_code)] // `os` maps memory and asks for locks, `memory` makes words of it.

#[cfg(not(loom))]
mod breaker;
#[cfg(not(loom))]
mod cache;
mod chain;
#[cfg(not(loom))]
mod client;
#[cfg(not(loom))]
mod counter;
#[cfg(not(loom))]
mod directory;
#[cfg(not(loom))]
mod figures;
#[cfg(all(test, loom))]
mod interleavings;
#[cfg(not(loom))]
mod limiter;
mod lock;
#[cfg(not(loom))]
mod memory;
mod named_lock;
mod os;
mod pins;
#[cfg(not(loom))]
mod seats;
#[cfg(loom)]
#[path = "cache/store.rs"]
mod store;
mod sync;
#[cfg(not(loom))]
mod table;

#[cfg(not(loom))]
pub use breaker::{
    Breaker, BreakerFigures, BreakerOpenError, BreakerState, Call, Counts, Outcome, Permission,
    Rules, WrongRules,
};
#[cfg(not(loom))]
pub use cache::{
    CACHE_BYTES_MAX, CACHE_BYTES_MIN, CACHE_KEY_BYTES_MAX, Cache, CacheError, CacheFigures,
    CacheOpenError, Condition, Life, Look, MakersTurn, Noted, NotedFigures,
};
#[cfg(not(loom))]
pub use client::{Client, NoSeat};
#[cfg(not(loom))]
pub use counter::Counter;
#[cfg(not(loom))]
pub use directory::{DEFINITION_BYTES_MAX, Kind, NAME_BYTES_MAX, OBJECTS_MAX, OpenError};
#[cfg(not(loom))]
pub use figures::{Figures, ObjectFigures};
#[cfg(not(loom))]
pub use limiter::{LimiterError, LimiterOpenError, RateLimiter, WrongRate};
#[cfg(not(loom))]
pub use memory::{AttachError, PUBLISHED_MAX, Shared};
#[cfg(not(loom))]
pub use named_lock::{Acquired, NamedLock};
pub use pins::{NO_PIN, NO_SPAN, Pin, holds, joined, raise_floor, span};
#[cfg(not(loom))]
pub use table::{
    COLUMNS_MAX, Column, ColumnKind, KEY_BYTES_MAX, ROW_BYTES_MAX, Table, TableError,
    TableOpenError, Value, WrongDefinition,
};
