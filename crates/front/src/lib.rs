//! client → front → ring → front → client: HTTP in, ring out. Knows neither PHP nor processes.
//!
//! One thread, one `tokio` runtime. A folder is a part of a request's way, and its entry file says what stands in it.
//! Imports lead down this table, never up (`tests/rooms.rs` looks):
//!
//! | folder | step | |
//! |---|---|---|
//! | `front` | | wires all of it up: start, sweep, reload, drain |
//! | `request` | (the story), submit | what happens to one request, stage by stage; its head and body on their way to PHP |
//! | `answer` | deliver | answers of workers, files and the front's own as hyper takes them |
//! | `client` | (listen), accept, parse | client connections, up to a parsed head |
//! | `shared` | | what all tasks of the front's thread share |
//! | `log` | record | the access log, request ids |
//! | `upstream` | submit … deliver | an old php-fpm that runs scripts of some locations |
//! | `exchange` | submit … deliver | the table of slots in flight; the worker's side is another crate |
//! | `tls` | accept | certificates and what else TLS is spoken with |
//! | `setup` | | what a reload changes as a whole: settings, site, routes |
//! | `route` | route | path → file, script, redirect or refusal |
//! | `runtime` | | clock, threads for files, counters, panics: no HTTP |
//!
//! Everything is bounded by a named limit. What the front is told are the settings of samovar-config, resolved.

mod answer;
mod client;
mod exchange;
mod front;
mod log;
mod request;
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
pub use request::probe::{ProbeDone, Probed};
pub use request::traced::{TRACE_COOKIE, trace_signature};
pub use route::explain::Explained;
pub use route::private;
pub use runtime::counters::CountersSnapshot;
pub use runtime::hostile::Hostile;
pub use runtime::link::{FrontEvent, KillReason, SupervisorLink};
pub use runtime::shed::Shed;
pub use runtime::trouble::Trouble;
pub use setup::{StartError, ValidSettings};
pub use tls::{CertificateFile, Notice, Prepared as PreparedTls, Tls, TlsError};
pub use upstream::answer_bytes_in as fastcgi_answer_bytes_in;
pub use upstream::{AddressFigures, LastTrouble, PassFigures, TallyFigures, UpstreamFigures};
