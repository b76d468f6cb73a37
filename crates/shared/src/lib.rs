//! Shared memory of PHP's processes: one memory file with the data that they share apart from
//! requests. A rollback does not touch it. Knows neither HTTP nor PHP.
//!
//! The server creates the file, the templates of all generations map it, and workers inherit it.
//! Objects in it have names; the first process that needs an object creates it.
//!
//! Any process may be killed at any instruction. Therefore:
//!
//! - A write becomes visible by one store.
//! - A lock names its holder, and the kernel knows whether the holder lives.
//! - A row is noted in a journal before it changes hands.
//! - A waiting process checks again without a wake-up, and has a time limit.
//!
//! Reading order:
//!
//! - [`lock`]: locks and their holders
//! - [`process_registry`]: the process registry
//! - [`chain`]: rows under keys
//! - [`directory`]: objects by name
//! - [`memory`]: the memory layout
//! - [`columns`], [`buckets`]: the rows of tables and limiters
//! - [`client`]: one process
//! - [`counter`], [`table`], [`named_lock`], [`limiter`], [`cache`], [`breaker`]: the objects
//! - [`pins`]: processes that may still read replaced values (crates/published)
//!
//! All data consists of words (`AtomicU64`), and each word may hold any value. Offsets are compared
//! before they are used, and loops end after as many steps as there are rows.
#![allow(unsafe_code)] // `os` maps memory and requests locks, `memory` makes words of it.

#[cfg(not(loom))]
mod breaker;
#[cfg(not(loom))]
mod buckets;
mod cache;
mod chain;
#[cfg(not(loom))]
mod client;
#[cfg(not(loom))]
mod columns;
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
#[cfg(not(loom))]
mod limits;
mod lock;
#[cfg(not(loom))]
mod memory;
mod named_lock;
mod os;
mod pins;
#[cfg(not(loom))]
mod process_registry;
mod sync;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod table_error;

#[cfg(not(loom))]
pub use breaker::{
    Breaker, BreakerFigures, BreakerOpenError, BreakerState, Call, Counts, Outcome, Permission,
    Rules, WrongRules,
};
#[cfg(not(loom))]
pub use cache::{
    CACHE_BYTES_MAX, CACHE_BYTES_MIN, CACHE_KEY_BYTES_MAX, Cache, CacheError, CacheFigures,
    CacheOpenError, Condition, FlightRole, Life, Look, Noted, NotedFigures,
};
#[cfg(not(loom))]
pub use client::{Client, RegistryFull};
#[cfg(not(loom))]
pub use columns::{
    COLUMNS_MAX, Column, ColumnKind, KEY_BYTES_MAX, ROW_BYTES_MAX, Value, WrongDefinition,
};
#[cfg(not(loom))]
pub use counter::Counter;
#[cfg(not(loom))]
pub use directory::{DEFINITION_BYTES_MAX, Kind, NAME_BYTES_MAX, OpenError};
#[cfg(not(loom))]
pub use figures::{Figures, ObjectFigures};
#[cfg(not(loom))]
pub use limiter::{LimiterError, LimiterOpenError, RateLimiter, WrongRate};
#[cfg(not(loom))]
pub use limits::OBJECTS_MAX;
#[cfg(not(loom))]
pub use memory::{AttachError, PUBLISHED_MAX, Shared};
#[cfg(not(loom))]
pub use named_lock::{Acquired, NamedLock};
pub use pins::{NO_PIN, NO_SPAN, Pin, holds, joined, raise_floor, span};
#[cfg(not(loom))]
pub use table::{Table, TableOpenError};
#[cfg(not(loom))]
pub use table_error::TableError;
