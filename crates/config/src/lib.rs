//! flags, environment, file → settings: one table says what can be set, everything else derives.
//!
//! Two stages. What was typed is collected with where it was typed ([`Sources`]: command line,
//! `SAMOVAR_…` variables, `samovar.toml`); then it is laid over the defaults, the file first, the
//! command line last, and checked into [`Settings`]. All mistakes are reported together.
//!
//! The rooms, lower ones first; none knows those below it in this list (`tests/rooms.rs`): `problem` (what is wrong,
//! and what to do), [`schema`] (what can be set), `locate` (the two things that depend on the machine: socket and
//! worker), [`sources`] (what was typed, and how it meets), [`docs`] (the manual page).
//!
//! To add a setting: one row in `schema/table/`, one field in [`schema::settings`],
//! `UPDATE=1 cargo test`.

pub mod docs;
mod locate;
mod problem;
pub mod schema;
pub mod sources;
#[cfg(test)]
mod tests;

pub use locate::{default_control_path, discover_control, locate_php, make_control_dir};
pub use problem::{Problem, Problems};
pub use schema::address::Listen;
pub use schema::binary::PhpBinary;
pub use schema::compression::{Coding, Compression};
pub use schema::console::ConsoleCommand;
pub use schema::listener::{Listener, Place, Protocol, Role};
pub use schema::location::{ErrorPage, Fallback, Location, Redirect};
pub use schema::log_target::LogTarget;
pub use schema::notation::duration;
pub use schema::pool::{DEFAULT_POOL, pools_need_restart};
pub use schema::send_folder::SendFolder;
pub use schema::settings::{
    AccessLogFormat, Acme, AcmeChallenge, ClientCertificates, Compat, EarlyHints, FastCgi, Insight,
    Limits, LogFormat, LogLevel, Otlp, Pool, Profile, Scheduling, Settings, Timeouts, Tls,
    TlsVersion, TraceFrom, Workers,
};
pub use schema::table::needs_restart;
pub use schema::upstream::Upstream;
pub use schema::{names, setting, table};
pub use sources::Sources;
