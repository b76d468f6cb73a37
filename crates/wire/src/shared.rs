//! What workers share beside requests, within the answer to `status`.

use serde::{Deserialize, Serialize};

/// The memory that workers share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedStatus {
    /// Bytes in use.
    pub bytes: u64,
    /// Bytes that there may be.
    pub bytes_max: u64,
    /// Objects that could not be made.
    pub refused_total: u64,
    /// What is in it, and what is published.
    pub objects: Vec<SharedObject>,
    /// Bytes of published values.
    pub published_bytes: u64,
    /// Bytes that these may have, and those that were replaced.
    pub published_bytes_max: u64,
    /// Bytes of values that were replaced, and are still read.
    pub published_replaced_bytes: u64,
    /// Values that were published, replaced or taken away.
    pub published_changes_total: u64,
    /// Values that could not be published.
    pub published_refused_total: u64,
}

/// One object in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedObject {
    /// `counter`, `table`, `cache`, `lock`, `limiter`, `breaker` or `published`.
    pub kind: String,
    /// As the application says.
    pub name: String,
    /// Bytes in use.
    pub bytes: u64,
    /// Rows in use of a table or limiter, and how many it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Rows that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
    /// What a counter says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// What a cache has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<SharedCache>,
    /// Whether somebody holds a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What a limiter has allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_total: Option<u64>,
    /// What it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_total: Option<u64>,
    /// What a breaker says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<SharedBreaker>,
    /// How often a published value was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_total: Option<u64>,
}

/// A breaker's state and figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedBreaker {
    /// `closed`, `open` or `half-open`.
    pub state: String,
    /// Calls in its window.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were slow.
    pub slow: u64,
    /// Times it has opened.
    pub opened_total: u64,
    /// Calls that did not go through.
    pub refused_total: u64,
}

/// A cache's figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedCache {
    /// Values found.
    pub hits_total: u64,
    /// Values not found.
    pub misses_total: u64,
    /// Values that made room for others.
    pub evicted_total: u64,
    /// Values that could not be kept.
    pub too_large_total: u64,
    /// Values kept.
    pub values: u64,
    /// Bytes of them.
    pub used_bytes: u64,
}
