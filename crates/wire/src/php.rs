//! Figures of PHP's engine: opcache, and messages by level.

use serde::{Deserialize, Serialize};

/// opcache, whose memory all processes of a generation share. Counters restart with it, except the
/// restarts, and with a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpcacheStatus {
    /// Used memory.
    pub used_bytes: u64,
    /// Free memory.
    pub free_bytes: u64,
    /// Memory of scripts that have changed. Only a restart frees it.
    pub wasted_bytes: u64,
    /// Whether the memory is full: further scripts are compiled by each request.
    pub full: bool,
    /// Interned strings.
    pub strings: u64,
    /// Memory of interned strings.
    pub strings_used_bytes: u64,
    /// Free memory for interned strings.
    pub strings_free_bytes: u64,
    /// Cached scripts.
    pub scripts: u64,
    /// Names under which scripts are found.
    pub keys: u64,
    /// Maximum number of these names.
    pub keys_max: u64,
    /// Scripts found in the cache.
    pub hits_total: u64,
    /// Scripts that were compiled.
    pub misses_total: u64,
    /// Restarts because the memory was full.
    pub restarts_memory_total: u64,
    /// Restarts because there were too many keys.
    pub restarts_keys_total: u64,
    /// Restarts by `opcache_reset()`.
    pub restarts_manual_total: u64,
}

/// Messages of PHP by level, without those that the application excludes with `@` or
/// `error_reporting()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagesStatus {
    /// Fatal, recoverable and user errors.
    pub error_total: u64,
    /// Warnings.
    pub warning_total: u64,
    /// Notices.
    pub notice_total: u64,
    /// Uses of deprecated features.
    pub deprecated_total: u64,
}

impl MessagesStatus {
    /// Returns the levels with their names.
    #[must_use]
    pub fn by_level(&self) -> [(&'static str, u64); 4] {
        [
            ("error", self.error_total),
            ("warning", self.warning_total),
            ("notice", self.notice_total),
            ("deprecated", self.deprecated_total),
        ]
    }
}
