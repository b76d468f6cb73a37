//! record: what is remembered of a request.
//!
//! `access` opens the access log and hands its lines to a thread of crates/log, `entry` follows one request from its
//! head to its last byte, `line` writes it down, `time` knows the calendar. `request_id` ties a line to what client and
//! PHP know of the request, `trace` ties it to those of other servers. Imports `route` (targets as they came) and `runtime`.

mod access;
mod entry;
mod line;
pub(crate) mod request_id;
mod time;
pub(crate) mod trace;

pub(crate) use access::{AccessLog, Recorder};
pub use access::{in_words, target_of};
pub(crate) use entry::RequestLogEntry;
pub(crate) use line::Client;
