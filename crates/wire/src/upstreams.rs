//! State of the php-fpm servers that `fastcgi_pass` names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One php-fpm of one pool. It is listed for an hour after its last request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamStatus {
    /// Pool whose locations name it; empty if the server has one pool.
    pub pool: String,
    /// Address as in the settings.
    pub address: String,
    /// Connections that are in use or being established.
    pub connections: u64,
    /// Maximum number of connections (`fastcgi.connections_max`).
    pub connections_max: u64,
    /// Requests that wait for a connection to this php-fpm, or to another one that can replace it.
    pub waiting: u64,
    /// Requests that wait for a connection to any php-fpm of the pool.
    pub queued: u64,
    /// Maximum number of waiting requests (`fastcgi.queue_max`).
    pub queue_max: u64,
    /// Request counters.
    #[serde(flatten)]
    pub tally: UpstreamTally,
    /// For a host name: the addresses that were tried within the last hour.
    pub addresses: Vec<UpstreamAddress>,
}

/// One of the addresses of a php-fpm's host name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamAddress {
    /// Address with port.
    pub address: String,
    /// Connections in use.
    pub connections: u64,
    /// Request counters. A failed connection attempt counts here, even if another address accepted
    /// the request.
    #[serde(flatten)]
    pub tally: UpstreamTally,
}

/// Counters of requests to a php-fpm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamTally {
    /// Requests sent.
    pub requests_total: u64,
    /// Requests whose response has begun.
    pub responses_total: u64,
    /// Total time that requests waited for the head of their response.
    pub waited_seconds: f64,
    /// Requests without a complete response, by reason.
    pub troubles: BTreeMap<String, u64>,
    /// Last such failure; `null`: there was none.
    pub last_trouble: Option<UpstreamError>,
}

/// A request without a complete response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamError {
    /// One of the reasons.
    pub reason: String,
    /// Error message of the system, if there is one.
    pub words: String,
    /// Time of the failure, in seconds of Unix time.
    pub at: u64,
}

impl UpstreamTally {
    /// Returns the number of requests without a complete response.
    #[must_use]
    pub fn errors_total(&self) -> u64 {
        self.troubles.values().sum()
    }

    /// Returns the mean time to the head of a response in seconds; `None`: there was no response
    /// yet.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // No server counts beyond 2⁵³.
    pub fn mean_seconds(&self) -> Option<f64> {
        (self.responses_total > 0).then(|| self.waited_seconds / self.responses_total as f64)
    }
}
