//! Counters of the front. Each is declared in one row, here.
//!
//! From these rows follow the counters that the front's threads change (`runtime/counters.rs` of
//! crates/front), the keys of the status, the metrics, and their pages in docs/reference. A row
//! has the documentation, the key of the status, the kind, and the end of the metric's name.

use serde::{Deserialize, Serialize};

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// The value goes up and down.
    Gauge,
    /// The value only grows.
    Counter,
}

/// A value of `T` as a metric.
#[derive(Debug)]
pub struct CounterMetric<T> {
    /// Name of the server's metric, without the suffix of counters.
    pub name: &'static str,
    /// Name of a pool's metric, if several pools have values.
    pub pool_name: &'static str,
    /// Kind.
    pub kind: CounterKind,
    /// Documentation.
    pub help: &'static str,
    /// Reads the value.
    pub value: fn(&T) -> u64,
}

/// Calls a macro with the counters that each pool has: the given arguments, `;`, and the rows.
#[macro_export]
macro_rules! pool_counters {
    ($use:ident $($arguments:tt)*) => { $use! { $($arguments)*;
        /// Requests whose head was parsed, including static files.
        requests_total: Counter, "requests";
        /// Requests whose response is not complete.
        in_flight: Gauge, "requests_in_flight";
        /// Requests that wait for a worker.
        queue_depth: Gauge, "queue_depth";
        /// Slots of the ring in use, including background work.
        slots_in_use: Gauge, "slots_in_use";
        /// Requests run again because their worker died.
        retries_total: Counter, "retries";
        /// Requests sent to the tracing workers to record their call graph.
        requests_traced_total: Counter, "requests_traced";
        /// Trace requests dropped because the tracing workers were busy or absent.
        trace_requests_dropped_total: Counter, "trace_requests_dropped";
        /// Responses with a status of 500 or above, from any source.
        responses_5xx_total: Counter, "responses_5xx";
        /// Requests rejected with status 503, for any reason.
        rejected_total: Counter, "rejections";
        /// Requests whose response did not come in time: status 504.
        timeouts_total: Counter, "requests_timed_out";
        /// Scripts that ran too long after their response was complete or their client left.
        post_response_timeouts_total: Counter, "post_response_timeouts";
        /// Scripts that still ran when the drain timeout of a stop expired.
        drain_timeouts_total: Counter, "drain_timeouts";
        /// Responses sent compressed.
        responses_compressed_total: Counter, "responses_compressed";
        /// Responses sent uncompressed because too many others were being compressed.
        compressions_skipped_total: Counter, "compressions_skipped";
        /// Workers killed because a script did not end after its time limit.
        overrun_kills_total: Counter, "overrun_kills";
        /// Requests sent to the php-fpm of a location.
        upstream_requests_total: Counter, "upstream_requests";
        /// Connections in use to the php-fpm of a location.
        upstream_connections: Gauge, "upstream_connections";
        /// Requests that wait for a connection to the php-fpm of a location.
        upstream_queue_depth: Gauge, "upstream_queue_depth";
    } };
}

/// Calls a macro with the counters that only the server as a whole has, like [`pool_counters`].
#[macro_export]
macro_rules! server_counters {
    ($use:ident $($arguments:tt)*) => { $use! { $($arguments)*;
        /// Open connections.
        connections: Gauge, "connections";
        /// Connections accepted.
        connections_total: Counter, "connections_accepted";
        /// Connections refused by the per-client limit.
        connections_refused_total: Counter, "connections_refused";
        /// Idle connections closed to make room for new ones.
        connections_reclaimed_total: Counter, "connections_reclaimed";
        /// Request heads refused before routing: invalid, too large, or late.
        heads_refused_total: Counter, "heads_refused";
        /// Unfinished connections closed to make room for new ones.
        connections_unfinished_reclaimed_total: Counter, "connections_unfinished_reclaimed";
        /// Response bytes held in memory for slow clients.
        buffered_bytes: Gauge, "buffered_bytes";
        /// Bytes of request bodies and responses in temporary files.
        spooled_bytes: Gauge, "spooled_bytes";
        /// Responses and request bodies cut because the buffers were full.
        buffers_cut_total: Counter, "buffers_cut";
        /// Requests ended by a panic of the server: status 500.
        panics_total: Counter, "panics";
        /// Requests received over FastCGI.
        fastcgi_requests_total: Counter, "fastcgi_requests";
        /// Requests of an intake stored as jobs.
        intake_requests_total: Counter, "intake_requests";
        /// Requests of an intake dropped because they could not be stored.
        intake_dropped_total: Counter, "intake_dropped";
        /// FastCGI requests aborted by the web server.
        fastcgi_aborted_total: Counter, "fastcgi_aborted";
    } };
}

macro_rules! declare_values {
    (
        $(#[$struct_doc:meta])* $name:ident;
        $($(#[doc = $doc:literal])+ $key:ident: $kind:ident, $metric:literal;)*
    ) => {
        $(#[$struct_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $key: u64,)*
        }

        impl $name {
            /// All values as metrics.
            pub const METRICS: &[CounterMetric<$name>] = &[$(CounterMetric {
                name: concat!("samovar_", $metric),
                pool_name: concat!("samovar_pool_", $metric),
                kind: CounterKind::$kind,
                help: concat!($($doc),+).trim_ascii(),
                value: |values| values.$key,
            },)*];

            /// Adds the values of another pool or thread.
            #[must_use]
            pub fn plus(self, other: &$name) -> $name {
                $name { $($key: self.$key + other.$key,)* }
            }
        }
    };
}

pool_counters! { declare_values
    /// Counters of the front that each pool has.
    PoolCounters
}
server_counters! { declare_values
    /// Counters of the front that only the server as a whole has.
    ServerCounters
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn metrics_have_help_and_unique_names() {
        let pools = PoolCounters::METRICS.iter().map(|m| (m.name, m.help));
        let all: Vec<_> =
            pools.chain(ServerCounters::METRICS.iter().map(|m| (m.name, m.help))).collect();
        let names: BTreeSet<_> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|(_, help)| help.ends_with('.') && !help.starts_with(' ')));
    }

    #[test]
    fn plus_adds_every_value() {
        let one = PoolCounters { requests_total: 2, upstream_queue_depth: 1, ..Default::default() };
        let sum = one.plus(&one);
        assert_eq!((sum.requests_total, sum.upstream_queue_depth), (4, 2));
    }
}
