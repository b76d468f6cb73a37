//! How those fare that `fastcgi_pass` names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One php-fpm, of one pool. It is told of for an hour after its last request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamStatus {
    /// The pool whose locations name it; empty where there is one.
    pub pool: String,
    /// As the settings name it.
    pub address: String,
    /// Connections that are in use, or being made.
    pub connections: u64,
    /// How many there may be: `fastcgi.connections_max`.
    pub connections_max: u64,
    /// Requests that wait for one, be it of this php-fpm or of another that would do.
    pub waiting: u64,
    /// Requests that wait for a connection to any php-fpm of the pool.
    pub queued: u64,
    /// How many may: `fastcgi.queue_max`.
    pub queue_max: u64,
    /// What came of its requests.
    #[serde(flatten)]
    pub tally: UpstreamTally,
    /// Where it has a name: the addresses that were tried within the last hour.
    pub addresses: Vec<UpstreamAddress>,
}

/// One of the addresses that a php-fpm's name stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamAddress {
    /// With its port.
    pub address: String,
    /// Connections that are in use.
    pub connections: u64,
    /// What came of its requests. A connection that it did not take counts here, also where another address took it.
    #[serde(flatten)]
    pub tally: UpstreamTally,
}

/// What came of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamTally {
    /// Requests that it was sent.
    pub requests_total: u64,
    /// Of these, how many it has begun to answer.
    pub answers_total: u64,
    /// How long they waited for the head of their answer, together.
    pub waited_seconds: f64,
    /// Requests that it did not answer, or not to the end, by reason.
    pub troubles: BTreeMap<String, u64>,
    /// The last of them; `null`: there was none.
    pub last_trouble: Option<UpstreamTrouble>,
}

/// What was wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamTrouble {
    /// One of the reasons.
    pub reason: String,
    /// What the system said of it, if it did.
    pub words: String,
    /// When, in seconds of Unix time.
    pub at: u64,
}

impl UpstreamTally {
    /// How many requests it did not answer, or not to the end.
    #[must_use]
    pub fn troubles_total(&self) -> u64 {
        self.troubles.values().sum()
    }

    /// How long an answer's head took on average, in seconds; none was given yet: `None`.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Counts beyond 2⁵³ are no server's.
    pub fn mean_seconds(&self) -> Option<f64> {
        (self.answers_total > 0).then(|| self.waited_seconds / self.answers_total as f64)
    }
}
