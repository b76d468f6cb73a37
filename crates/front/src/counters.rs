//! Numbers about the front, for `samovar status` and metrics. Written by the front's thread only.

use std::sync::atomic::{AtomicU64, Ordering};

/// One number. Only the front's thread changes it, so a load and a store do where a locked add would cost more.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, less: u64) {
        self.0.store(self.get().saturating_sub(less), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: Count,
    pub(crate) in_flight: Count,
    pub(crate) queue_depth: Count,
    pub(crate) slots_in_use: Count,
    pub(crate) retries: Count,
    pub(crate) connections: Count,
    pub(crate) connections_accepted: Count,
    pub(crate) responses_5xx: Count,
    pub(crate) rejected: Count,
    pub(crate) timeouts: Count,
    pub(crate) log_lines_dropped: Count,
}

/// The numbers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// Requests whose head was parsed, static files included.
    pub requests_total: u64,
    /// Requests whose answer is not complete.
    pub in_flight: u64,
    /// Requests that wait for a worker. As of the last sweep.
    pub queue_depth: u64,
    /// Slots of the ring that are not free, background work included. As of the last sweep.
    pub slots_in_use: u64,
    /// Requests run again because their worker died.
    pub retries_total: u64,
    /// Open connections.
    pub connections: u64,
    /// Connections ever accepted.
    pub connections_total: u64,
    /// Answers with a status of 500 or above, whoever made them.
    pub responses_5xx_total: u64,
    /// 503: no worker in time, or the queue was full.
    pub rejected_total: u64,
    /// 504: a worker gave no byte in time.
    pub timeouts_total: u64,
    /// Access log lines that were lost because the disk was slower than the clients.
    pub log_lines_dropped_total: u64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> CountersSnapshot {
        CountersSnapshot {
            requests_total: self.requests.get(),
            in_flight: self.in_flight.get(),
            queue_depth: self.queue_depth.get(),
            slots_in_use: self.slots_in_use.get(),
            retries_total: self.retries.get(),
            connections: self.connections.get(),
            connections_total: self.connections_accepted.get(),
            responses_5xx_total: self.responses_5xx.get(),
            rejected_total: self.rejected.get(),
            timeouts_total: self.timeouts.get(),
            log_lines_dropped_total: self.log_lines_dropped.get(),
        }
    }
}
