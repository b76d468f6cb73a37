//! Values under keys that expire or are evicted. [`Cache`] has expiry times and one maker per key;
//! the bytes are in the store below it.

#[cfg(not(loom))]
mod apcu_entries;
#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
mod single_flight;
pub(crate) mod store;

#[cfg(not(loom))]
pub use apcu_entries::{Noted, NotedFigures};
#[cfg(not(loom))]
pub(crate) use handle::figures;
#[cfg(not(loom))]
pub use handle::{
    CACHE_BYTES_MAX, CACHE_BYTES_MIN, CACHE_KEY_BYTES_MAX, Cache, CacheError, CacheFigures,
    CacheOpenError, Condition, FlightRole, Life, Look,
};
