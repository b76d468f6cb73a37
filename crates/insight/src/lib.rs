//! insight: request accounting. Finished requests in; routes with histograms, waits, timers and
//! time series out.
//!
//! The front passes its data about each request when the request has ended ([`Intake::put`]), and
//! uses nothing else of this crate. A separate thread adds the requests up ([`Aggregate`]); pages
//! and exporters read the figures there. In reading order:
//!
//! | file | content |
//! |---|---|
//! | `finished.rs` | one finished request |
//! | `hex_id.rs` | ids of traces in JSON |
//! | `batch.rs` | batches of requests on their way to the thread; most requests are packed |
//! | `intake.rs` | front → thread: a bounded channel of batches that never blocks the front |
//! | `report.rs` | a worker's report on its request: route, waits, timers; untrusted bytes |
//! | `histogram.rs` | times with a bounded relative error |
//! | `bounds.rs` | bounds of exported histograms |
//! | `bounded_map.rs` | map with a limited number of names from outside |
//! | `statements.rs` | statements of one route, and statements that are repeated |
//! | `route.rs` | sums of one route |
//! | `route_name.rs` | name of a request's route |
//! | `checkpoint_savings.rs` | saving of a booted application |
//! | `releases.rs` | labels of the generations |
//! | `recorded_error.rs` | an exception or fatal error of one request |
//! | `recent_requests.rs` | details of the last slow and failed requests, in a ring each |
//! | `errors.rs` | errors of all requests, grouped by class and place |
//! | `heat_map.rs` | rows of the latency heat map |
//! | `recent_parts.rs` | figures of each route in the last minutes and hours |
//! | `series.rs` | the last seconds and minutes |
//! | `redaction.rs` | removal of secret values |
//! | `sources.rs` | other machines that report their requests |
//! | `observation.rs` | one finished request for sinks and the sampler |
//! | `aggregate.rs` | all of these figures, and access for readers |
//! | `sink.rs` | receivers of each single request |
//! | `slow_log.rs` | a record of each slow request |
//! | `pinba.rs` | Pinba's packets (`packet.rs`); sent by `sender.rs`, received by `listener.rs` |
//! | `store.rs` | history on disk |
//! | `handover_gate.rs` | wait for another server to release a resource |
//! | `aggregator.rs` | the aggregation thread |
//! | `export.rs` | export to Prometheus, OpenMetrics and OpenTelemetry |

// Displayed values are floats. Counters stay below 2⁵³, so they are exact.
#![allow(clippy::cast_precision_loss)]

mod aggregate;
mod aggregator;
mod batch;
mod bounded_map;
mod bounds;
mod checkpoint_savings;
mod errors;
pub mod export;
mod finished;
mod handover_gate;
mod heat_map;
mod hex_id;
mod histogram;
mod intake;
mod observation;
pub mod pinba;
mod recent_parts;
mod recent_requests;
mod recorded_error;
mod redaction;
mod releases;
mod report;
mod route;
mod route_name;
mod series;
mod sink;
pub mod slow_log;
mod sources;
mod statements;
pub mod store;

pub use aggregate::{Aggregate, Limits};
pub use aggregator::{Clock, HistoryOptions, Insight, Notice, Options, now};
pub use batch::{Batch, Marks, id_mark, mark};
pub use bounded_map::OTHER;
pub use bounds::Bounds;
pub use checkpoint_savings::Saving;
pub use errors::{ErrorGroup, ErrorGroups};
pub use finished::{End, Finished, Model, Numbers};
pub use handover_gate::HandoverGate;
pub use heat_map::{HEAT_ROWS, heat_row};
pub use histogram::Histogram;
pub use intake::{Ended, Intake, Outlet, intake};
pub use observation::{Seen, Witness};
pub use recent_parts::Part;
pub use recent_requests::{RecentRequest, RecentRequests, RecentStatement, RecentTimer, Scene};
pub use recorded_error::{ErrorCause, RecordedError};
pub use redaction::{BLOT, Redaction};
pub use releases::{Release, Releases};
pub use report::{
    Boot, Entry, ErrorKind, Malformed, REPORT_BYTES_MAX, Report, ReportedError, SpanKind,
    Statement, StatementKind, Tags, TimedSpan, TimedSpans, Wait, WaitKind,
};
pub use route::{Costs, RouteFigures, TimerFigures, WaitFigures};
pub use route_name::{Glance, NOT_FOUND, route_by_path};
pub use samovar_log::fold;
pub use series::{Moment, Series};
pub use sink::{Fate, Sink, Tally};
pub use sources::SourceFigures;
pub use statements::{REPEATS_MIN, StatementFigures};
