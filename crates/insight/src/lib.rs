//! insight: finished requests in, routes with histograms, waits, timers and series out.
//!
//! The front hands over what it knows of each request when it has ended ([`Intake::put`]), and knows nothing else of this
//! crate. A thread of its own adds it up ([`Aggregate`]); whoever shows or exports figures reads them there. In reading
//! order:
//!
//! | file | |
//! |---|---|
//! | `finished.rs` | one finished request |
//! | `batch.rs` | batches of them on their way to the thread; most are packed |
//! | `intake.rs` | front → thread: batches, bounded, nobody waits |
//! | `report.rs` | what a worker says of its request beside its usage: route, waits, timers; hostile bytes |
//! | `fold.rs` | a path without its numbers: `/users/42` → `/users/{n}` |
//! | `histogram.rs` | times with a bounded relative error |
//! | `capped.rs` | names that an attacker may invent, and the one for all beyond the cap |
//! | `route.rs` | what is added up for one route |
//! | `saving.rs` | what it saves to boot ahead |
//! | `kept.rs` | the last slow and failed requests, whole |
//! | `series.rs` | the last seconds and minutes |
//! | `redaction.rs` | values that nobody should read |
//! | `sources.rs` | other machines that tell of their requests |
//! | `aggregate.rs` | all of it, and what a reader is shown |
//! | `sink.rs` | who is handed each request beside the figures |
//! | `slow_log.rs` | a record of each slow one |
//! | `pinba.rs` | Pinba's packets, and both their ways: `sender.rs`, `listener.rs` |
//! | `store.rs` | history on disk |
//! | `turn.rs` | what waits until another server has let go |
//! | `running.rs` | the thread that does it |
//! | `export.rs` | figures for others: Prometheus and OpenMetrics; spans and figures for OpenTelemetry |

// What is shown is a float; counts beyond 2⁵³ are no server's.
#![allow(clippy::cast_precision_loss)]

mod aggregate;
mod batch;
mod capped;
pub mod export;
mod finished;
mod fold;
mod histogram;
mod intake;
mod kept;
pub mod pinba;
mod redaction;
mod report;
mod route;
mod running;
mod saving;
mod series;
mod sink;
pub mod slow_log;
mod sources;
pub mod store;
mod turn;

pub use aggregate::{Aggregate, Limits, route_by_path};
pub use batch::{Batch, Marks, id_mark, mark};
pub use capped::OTHER;
pub use finished::{End, Finished, Model, Numbers};
pub use fold::fold;
pub use histogram::Histogram;
pub use intake::{Ended, Intake, Outlet, intake};
pub use kept::{Kept, KeptRequests, KeptTimer, Scene};
pub use redaction::{BLOT, Redaction};
pub use report::{Boot, Entry, Malformed, REPORT_BYTES_MAX, Report, Tags, Wait, WaitKind};
pub use route::{Costs, RouteFigures, TimerFigures, WaitFigures};
pub use running::{Clock, HistoryOptions, Insight, Options, now};
pub use saving::Saving;
pub use series::{HEAT_ROWS, Moment, Series, heat_row};
pub use sink::{Fate, Seen, Sink, Tally, Witness};
pub use sources::SourceFigures;
pub use turn::Turn;
