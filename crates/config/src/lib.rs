//! Flags, environment, file → settings. One table defines all settings; everything else is derived
//! from it.
//!
//! There are two stages. The first collects the typed values with their origin ([`Sources`]:
//! command line, `SAMOVAR_…` variables, `samovar.toml`). The second applies them over the defaults,
//! the file first and the command line last, and checks them into [`Settings`]. All mistakes are
//! reported together.
//!
//! The modules, lower ones first; no module depends on one below it in this list
//! (`tests/rooms.rs`):
//! - `problem`: a mistake and its hint
//! - [`schema`]: the available settings
//! - `locate`: the two values that depend on the machine, socket and worker binary
//! - `release`: the label of the release, from the settings or a file
//! - [`sources`]: the typed values and how they are merged
//! - [`docs`]: the manual page
//!
//! To add a setting: one row in `schema/table/`, one field in [`schema::settings`], `UPDATE=1 cargo
//! test`.

pub mod docs;
mod locate;
mod problem;
mod release;
pub mod schema;
pub mod sources;
#[cfg(test)]
mod tests;

pub use locate::{
    control_path, discover_all_controls, discover_control, discover_control_of, locate_php,
    locate_worker, locate_workers, make_control_dir,
};
pub use problem::{Problem, Problems};
pub use release::{InvalidRelease, release_of};
pub use schema::address::Listen;
pub use schema::binary::PhpBinary;
pub use schema::compression::{Coding, Compression};
pub use schema::console::ConsoleCommand;
pub use schema::intake::{Intake, IntakeResponse, Overload as IntakeOverload};
pub use schema::listener::{Endpoint, Listener, Protocol, Role};
pub use schema::location::{ErrorPage, Fallback, Location, Redirect};
pub use schema::log_target::LogTarget;
pub use schema::notation::{duration, release as is_release};
pub use schema::pool::{DEFAULT_POOL, pools_need_restart};
pub use schema::queue::{JobRate, Queue, Window};
pub use schema::redis::{Redis, RedisEndpoint};
pub use schema::schedule::{Overlap, Schedule, Work};
pub use schema::secret::{AdminToken, Secret};
pub use schema::send_folder::SendFolder;
pub use schema::settings::{
    AccessLogFormat, Acme, AcmeChallenge, ClientCertificates, Compat, EarlyHints, FastCgi, Insight,
    KeptConnections, Limits, LogFormat, LogLevel, Otlp, OtlpHistograms, Pool, Profile, Scheduling,
    Settings, Timeouts, Tls, TlsVersion, TraceFrom, Workers,
};
pub use schema::table::needs_restart;
pub use schema::upstream::Upstream;
pub use schema::{names, setting, table};
pub use sources::{ROOT_ENV, Sources, TOKEN_ENV};
