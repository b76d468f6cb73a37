//! Numbers about the front, for `samovar status` and metrics. Each of its threads writes its own; they are added up when they are
//! read.

use crate::runtime::hostile::Hostile;
use crate::runtime::shed::Shed;
use crate::runtime::trouble::Trouble;
use std::sync::atomic::{AtomicU64, Ordering};

/// One number. Only one thread changes it, so a load and a store do where a locked add would cost more.
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
    pub(crate) traced: Count,
    pub(crate) not_traced: Count,
    pub(crate) connections: Count,
    pub(crate) connections_accepted: Count,
    pub(crate) responses_5xx: Count,
    pub(crate) rejected: Count,
    /// Of these, by reason.
    pub(crate) shed: [Count; Shed::ALL.len()],
    pub(crate) connections_refused: Count,
    pub(crate) connections_reclaimed: Count,
    pub(crate) timeouts: Count,
    pub(crate) after_timeouts: Count,
    pub(crate) drain_timeouts: Count,
    pub(crate) compressed: Count,
    pub(crate) compressions_skipped: Count,
    pub(crate) overrun_kills: Count,
    pub(crate) panics: Count,
    pub(crate) fastcgi_requests: Count,
    pub(crate) fastcgi_aborted: Count,
    /// Connections that were closed, by reason.
    pub(crate) fastcgi_refused: [Count; Hostile::ALL.len()],
    /// Requests that went to the php-fpm of a location.
    pub(crate) passes: Count,
    pub(crate) passes_open: Count,
    pub(crate) passes_queued: Count,
    pub(crate) pass_troubles: [Count; Trouble::ALL.len()],
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
    /// Requests that went to workers that take down call graphs.
    pub traced_total: u64,
    /// Requests that were to, and found those workers busy, or not there.
    pub not_traced_total: u64,
    /// Open connections.
    pub connections: u64,
    /// Connections ever accepted.
    pub connections_total: u64,
    /// Answers with a status of 500 or above, whoever made them.
    pub responses_5xx_total: u64,
    /// 503: the request was refused, for whatever reason.
    pub rejected_total: u64,
    /// Of these, how many for which reason: in the order of [`Shed::ALL`].
    pub shed_totals: [u64; Shed::ALL.len()],
    /// Connections that were closed at once: their clients had enough.
    pub connections_refused_total: u64,
    /// Connections that were idle, and closed to make room for new ones.
    pub connections_reclaimed_total: u64,
    /// 504: a worker gave no byte in time, or took too long for the whole request.
    pub timeouts_total: u64,
    /// Scripts that went on for too long after their client had its answer, or had gone.
    pub after_timeouts_total: u64,
    /// Scripts that were told to end because the server did not wait for them any longer when it stopped.
    pub drain_timeouts_total: u64,
    /// Answers that went out compressed.
    pub compressed_total: u64,
    /// Answers that went out as they were because too many others were being compressed.
    pub compressions_skipped_total: u64,
    /// Workers that were to be killed because a script did not end when its time was over.
    pub overrun_kills_total: u64,
    /// Requests that a bug of the front has ended: 500.
    pub panics_total: u64,
    /// Requests that came by FastCGI.
    pub fastcgi_requests_total: u64,
    /// Of these, how many the web server took back.
    pub fastcgi_aborted_total: u64,
    /// FastCGI connections that were closed for what came: in the order of [`Hostile::ALL`].
    pub fastcgi_refused_totals: [u64; Hostile::ALL.len()],
    /// Requests that went to the php-fpm of a location.
    pub fastcgi_passes_total: u64,
    /// Connections to one that are in use.
    pub fastcgi_passes_open: u64,
    /// Requests that wait for such a connection.
    pub fastcgi_passes_queued: u64,
    /// Requests that such a php-fpm did not answer, or not to the end: in the order of [`Trouble::ALL`].
    pub fastcgi_pass_trouble_totals: [u64; Trouble::ALL.len()],
    /// Access log lines that were lost: the disk was slower than the clients, or full, or nobody read.
    pub log_lines_lost_total: u64,
}

impl CountersSnapshot {
    /// With those of another pool. What only one pool counts, as connections, stays what it is.
    #[must_use]
    pub fn with(self, other: &CountersSnapshot) -> CountersSnapshot {
        let shed = |at: usize| self.shed_totals[at] + other.shed_totals[at];
        CountersSnapshot {
            requests_total: self.requests_total + other.requests_total,
            in_flight: self.in_flight + other.in_flight,
            queue_depth: self.queue_depth + other.queue_depth,
            slots_in_use: self.slots_in_use + other.slots_in_use,
            retries_total: self.retries_total + other.retries_total,
            traced_total: self.traced_total + other.traced_total,
            not_traced_total: self.not_traced_total + other.not_traced_total,
            responses_5xx_total: self.responses_5xx_total + other.responses_5xx_total,
            rejected_total: self.rejected_total + other.rejected_total,
            shed_totals: std::array::from_fn(shed),
            timeouts_total: self.timeouts_total + other.timeouts_total,
            after_timeouts_total: self.after_timeouts_total + other.after_timeouts_total,
            drain_timeouts_total: self.drain_timeouts_total + other.drain_timeouts_total,
            compressed_total: self.compressed_total + other.compressed_total,
            compressions_skipped_total: self.compressions_skipped_total
                + other.compressions_skipped_total,
            overrun_kills_total: self.overrun_kills_total + other.overrun_kills_total,
            fastcgi_passes_total: self.fastcgi_passes_total + other.fastcgi_passes_total,
            fastcgi_passes_open: self.fastcgi_passes_open + other.fastcgi_passes_open,
            fastcgi_passes_queued: self.fastcgi_passes_queued + other.fastcgi_passes_queued,
            fastcgi_pass_trouble_totals: std::array::from_fn(|at| {
                self.fastcgi_pass_trouble_totals[at] + other.fastcgi_pass_trouble_totals[at]
            }),
            ..self
        }
    }
}

impl CountersSnapshot {
    /// With those of another thread of the front.
    #[must_use]
    pub(crate) fn with_thread(self, other: &CountersSnapshot) -> CountersSnapshot {
        let refused =
            |at: usize| self.fastcgi_refused_totals[at] + other.fastcgi_refused_totals[at];
        CountersSnapshot {
            connections: self.connections + other.connections,
            connections_total: self.connections_total + other.connections_total,
            connections_refused_total: self.connections_refused_total
                + other.connections_refused_total,
            connections_reclaimed_total: self.connections_reclaimed_total
                + other.connections_reclaimed_total,
            compressed_total: self.compressed_total + other.compressed_total,
            compressions_skipped_total: self.compressions_skipped_total
                + other.compressions_skipped_total,
            panics_total: self.panics_total + other.panics_total,
            fastcgi_requests_total: self.fastcgi_requests_total + other.fastcgi_requests_total,
            fastcgi_aborted_total: self.fastcgi_aborted_total + other.fastcgi_aborted_total,
            fastcgi_refused_totals: std::array::from_fn(refused),
            ..self.with(other)
        }
    }
}

impl Counters {
    pub(crate) fn snapshot(&self, log_lines_lost: u64) -> CountersSnapshot {
        CountersSnapshot {
            requests_total: self.requests.get(),
            in_flight: self.in_flight.get(),
            queue_depth: self.queue_depth.get(),
            slots_in_use: self.slots_in_use.get(),
            retries_total: self.retries.get(),
            traced_total: self.traced.get(),
            not_traced_total: self.not_traced.get(),
            connections: self.connections.get(),
            connections_total: self.connections_accepted.get(),
            responses_5xx_total: self.responses_5xx.get(),
            rejected_total: self.rejected.get(),
            shed_totals: self.shed.each_ref().map(Count::get),
            connections_refused_total: self.connections_refused.get(),
            connections_reclaimed_total: self.connections_reclaimed.get(),
            timeouts_total: self.timeouts.get(),
            after_timeouts_total: self.after_timeouts.get(),
            drain_timeouts_total: self.drain_timeouts.get(),
            compressed_total: self.compressed.get(),
            compressions_skipped_total: self.compressions_skipped.get(),
            overrun_kills_total: self.overrun_kills.get(),
            panics_total: self.panics.get(),
            fastcgi_requests_total: self.fastcgi_requests.get(),
            fastcgi_aborted_total: self.fastcgi_aborted.get(),
            fastcgi_refused_totals: self.fastcgi_refused.each_ref().map(Count::get),
            fastcgi_passes_total: self.passes.get(),
            fastcgi_passes_open: self.passes_open.get(),
            fastcgi_passes_queued: self.passes_queued.get(),
            fastcgi_pass_trouble_totals: self.pass_troubles.each_ref().map(Count::get),
            log_lines_lost_total: log_lines_lost,
        }
    }
}
