//! record: access log, request ids and traces.
//!
//! `access` opens the access log and passes its lines to a thread of crates/log. `entry` follows
//! one request from its head to its last byte, `line` holds its data, `text` formats them, and
//! `time` formats dates. `request_id` connects a line with the request in the client and in PHP;
//! `trace` connects it with requests of other servers. Imports `route` (targets as received) and
//! `runtime`.

mod access;
mod basic_user;
mod entry;
mod line;
pub(crate) mod request_id;
mod text;
mod time;
pub(crate) mod trace;

pub(crate) use access::{AccessLog, Recorder};
pub use access::{in_words, target_of};
pub(crate) use basic_user::basic_user;
pub(crate) use entry::RequestLogEntry;
pub(crate) use line::Client;
