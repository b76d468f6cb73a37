//! Counters of the front, for `samovar status` and metrics. Each thread writes its own; they are
//! added up on reading. crates/wire declares them (`counters.rs`).

use crate::runtime::hostile::Hostile;
use crate::runtime::rejection::Rejection;
use crate::runtime::upstream_failure::UpstreamFailure;
use samovar_wire::{PoolCounters, ServerCounters, pool_counters, server_counters};
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only one thread changes. A load and a store are cheaper than a locked add.
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

macro_rules! declare_counts {
    (
        $(#[$struct_doc:meta])* $name:ident, $values:ident;
        $($(#[doc = $doc:literal])+ $key:ident: $kind:ident, $metric:literal;)*
    ) => {
        $(#[$struct_doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $key: Count,)*
        }

        impl $name {
            fn values(&self) -> $values {
                $values { $($key: self.$key.get(),)* }
            }
        }
    };
}

pool_counters! { declare_counts
    /// Counters that each pool has. As of the last sweep: `queue_depth`, `slots_in_use`.
    PoolCounts, PoolCounters
}
server_counters! { declare_counts
    /// Counters that only the server as a whole has.
    ServerCounts, ServerCounters
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) pool: PoolCounts,
    pub(crate) server: ServerCounts,
    /// Rejected requests by reason.
    pub(crate) rejected: [Count; Rejection::ALL.len()],
    /// FastCGI connections that were closed, by reason.
    pub(crate) fastcgi_rejected: [Count; Hostile::ALL.len()],
    /// Requests without a complete response from the php-fpm of a location, by kind of failure.
    pub(crate) upstream_errors: [Count; UpstreamFailure::ALL.len()],
}

/// Values of the counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// Values that each pool has.
    pub pool: PoolCounters,
    /// Values of the server as a whole.
    pub server: ServerCounters,
    /// Rejected requests by reason, in the order of [`Rejection::ALL`].
    pub rejected_totals: [u64; Rejection::ALL.len()],
    /// FastCGI connections closed because of invalid input, by reason, in the order of
    /// [`Hostile::ALL`].
    pub fastcgi_rejected_totals: [u64; Hostile::ALL.len()],
    /// Requests without a complete response from the php-fpm of a location, by kind of failure, in
    /// the order of [`UpstreamFailure::ALL`].
    pub upstream_error_totals: [u64; UpstreamFailure::ALL.len()],
    /// Access log lines lost because the disk was slower than the clients or full, or because no
    /// process read the output.
    pub log_lines_dropped_total: u64,
}

impl CountersSnapshot {
    /// Adds the counters of another pool. Values of the server as a whole are not changed.
    #[must_use]
    pub fn with(self, other: &CountersSnapshot) -> CountersSnapshot {
        CountersSnapshot {
            pool: self.pool.plus(&other.pool),
            rejected_totals: sums(self.rejected_totals, &other.rejected_totals),
            upstream_error_totals: sums(self.upstream_error_totals, &other.upstream_error_totals),
            ..self
        }
    }

    /// Adds the counters of another thread of the front.
    #[must_use]
    pub(crate) fn with_thread(self, other: &CountersSnapshot) -> CountersSnapshot {
        let theirs = &other.fastcgi_rejected_totals;
        CountersSnapshot {
            server: self.server.plus(&other.server),
            fastcgi_rejected_totals: sums(self.fastcgi_rejected_totals, theirs),
            ..self.with(other)
        }
    }
}

fn sums<const N: usize>(ours: [u64; N], theirs: &[u64; N]) -> [u64; N] {
    std::array::from_fn(|at| ours[at] + theirs[at])
}

impl Counters {
    pub(crate) fn snapshot(&self, log_lines_dropped_total: u64) -> CountersSnapshot {
        CountersSnapshot {
            pool: self.pool.values(),
            server: self.server.values(),
            rejected_totals: self.rejected.each_ref().map(Count::get),
            fastcgi_rejected_totals: self.fastcgi_rejected.each_ref().map(Count::get),
            upstream_error_totals: self.upstream_errors.each_ref().map(Count::get),
            log_lines_dropped_total,
        }
    }
}
