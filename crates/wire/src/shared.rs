//! Part of the response to `status`: objects that workers share, except requests.

use serde::{Deserialize, Serialize};

/// Memory that workers share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedStatus {
    /// Bytes in use.
    pub bytes: u64,
    /// Maximum number of bytes.
    pub bytes_max: u64,
    /// Objects that could not be created.
    pub refused_total: u64,
    /// Objects in shared memory, and published values.
    pub objects: Vec<SharedObject>,
    /// Bytes of published values.
    pub published_bytes: u64,
    /// Maximum bytes of published values, replaced ones included.
    pub published_bytes_max: u64,
    /// Bytes of replaced values that are still read.
    pub published_stale_bytes: u64,
    /// Number of times a value was published, replaced or removed.
    pub published_changes_total: u64,
    /// Values that could not be published.
    pub published_rejected_total: u64,
}

/// One object in shared memory, or one published value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedObject {
    /// `counter`, `table`, `cache`, `lock`, `limiter`, `breaker` or `published`.
    pub kind: String,
    /// Name that the application has given.
    pub name: String,
    /// Bytes in use.
    pub bytes: u64,
    /// Rows in use, of a table or a limiter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Total number of rows, of a table or a limiter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
    /// Value of a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// Figures of a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<SharedCache>,
    /// Whether a lock is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// Calls that a limiter allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_total: Option<u64>,
    /// Calls that a limiter denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_total: Option<u64>,
    /// State and figures of a breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<SharedBreaker>,
    /// Number of reads of a published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_total: Option<u64>,
}

/// State and figures of a breaker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedBreaker {
    /// `closed`, `open` or `half-open`.
    pub state: String,
    /// Calls in its window.
    pub calls: u64,
    /// Failed calls in its window.
    pub failed: u64,
    /// Slow calls in its window.
    pub slow: u64,
    /// Number of times the breaker opened.
    pub opened_total: u64,
    /// Calls rejected by the breaker.
    pub refused_total: u64,
}

/// Figures of a cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedCache {
    /// Cache hits.
    pub hits_total: u64,
    /// Cache misses.
    pub misses_total: u64,
    /// Values evicted for new ones.
    pub evicted_total: u64,
    /// Values too large to be stored.
    pub too_large_total: u64,
    /// Stored values.
    pub values: u64,
    /// Bytes of the stored values.
    pub used_bytes: u64,
}
