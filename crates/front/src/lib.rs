//! client → front → ring → front → client: receives HTTP requests and passes them to workers
//! through the ring. Does not know PHP or processes.
//!
//! Each front thread has its own `tokio` runtime. Each folder is one part of a request's path, and
//! its entry file lists its contents. A folder may import only folders below it in this table
//! (checked by `tests/rooms.rs`):
//!
//! | folder | step | |
//! |---|---|---|
//! | `front` | | connects all parts: start, sweep, reload, drain |
//! | `request` | (overview), submit | stages of one request; head and body on their way to PHP |
//! | `response` | deliver | responses of workers, files and the front itself, as hyper bodies |
//! | `client` | (listen), accept, parse | client connections, up to a parsed head |
//! | `shared` | | state shared by all tasks of a front thread |
//! | `log` | record | the access log, request IDs |
//! | `upstream` | submit … deliver | external php-fpm pools that run scripts of some locations |
//! | `exchange` | submit … deliver | the table of slots in flight; workers are in another crate |
//! | `tls` | accept | certificates and other TLS settings |
//! | `setup` | | the part a reload replaces as a whole: settings, site, routes |
//! | `route` | route | path → file, script, redirect or refusal |
//! | `runtime` | | clock, threads for files, counters, panics: no HTTP |
//!
//! All resources have a named limit. The input is the resolved settings of samovar-config.

mod client;
mod exchange;
mod front;
mod log;
mod request;
mod response;
mod route;
mod runtime;
mod setup;
mod shared;
mod tls;
mod upstream;

#[cfg(test)]
mod tests;

pub use client::fastcgi::requests_in as fastcgi_requests_in;
pub use client::listeners::{self, Bound};
pub use client::proxy_header;
pub use front::Front;
pub use front::handle::FrontHandle;
pub use front::sweep::SWEEP;
pub use log::{in_words as log_in_words, target_of as log_target_of};
pub use request::TraceHeaders;
pub use request::canary::CANARY_COOKIE;
pub use request::job_batch::{BatchDone, BatchError};
pub use request::probe::{ProbeDone, Probed};
pub use request::replay::{ReplayDone, ReplayError, ReplayOrder, Replayed};
pub use request::trace_selection::{TRACE_COOKIE, trace_signature};
pub use response::compressed_body::LEVELS as COMPRESSION_LEVELS;
pub use route::explain::Explained;
pub use route::private;
pub use runtime::counters::CountersSnapshot;
pub use runtime::development::{BuildErrorPage, Development, FailedRequest};
pub use runtime::hostile::Hostile;
pub use runtime::job_intake::{IntakeCell, IntakeDone, IntakeError, IntakeRequest, JobIntake};
pub use runtime::link::{FrontEvent, KillReason, SupervisorLink};
pub use runtime::recordings::{
    RECORDED_BODY_BYTES_MAX, RECORDED_REQUESTS_MAX, RecordOrder, Recorded, RecordedInput,
    RecordedResponse, RecordingState, Recordings,
};
pub use runtime::rejection::Rejection;
pub use runtime::upstream_failure::UpstreamFailure;
pub use setup::{StartError, ValidSettings};
pub use shared::canary::{CanaryBy, CanaryRouting};
pub use tls::{CertificateFile, Notice, Prepared as PreparedTls, Tls, TlsError};
pub use upstream::response_bytes_in as fastcgi_response_bytes_in;
pub use upstream::{AddressFigures, LastFailure, PassFigures, TallyFigures, UpstreamFigures};
