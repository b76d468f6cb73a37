//! How to reach the Redis.

use std::time::Duration;

/// A Redis that several machines share.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// The Redis.
    pub redis: samovar_redis::Options,
    /// Prefix of all keys.
    pub prefix: String,
    /// Time after which the jobs of a server without heartbeats run elsewhere.
    pub lease: Duration,
}

impl SharedOptions {
    /// Returns the prefix of all keys. The braces put them into the same slot of a cluster.
    pub(super) fn key(&self) -> Vec<u8> {
        format!("{{{}}}", self.prefix).into_bytes()
    }

    /// Returns the channel for messages that jobs are ready. Each one is the name of its sender.
    pub(crate) fn channel(&self) -> Vec<u8> {
        [&*self.key(), b":wake"].concat()
    }
}
