//! flags, environment, file → settings: one table says what can be set, everything else derives.
//!
//! Two stages. What was typed is collected with where it was typed ([`Sources`]: command line,
//! `SAMOVAR_…` variables, `samovar.toml`); then it is laid over the defaults, the file first, the
//! command line last, and checked into [`Settings`]. All mistakes are reported together.
//!
//! Reading order: [`table`] (what can be set), [`setting`] (what an entry holds, what is allowed),
//! [`settings`] (what comes out), [`sources`] and `file` (what was typed), `resolve` (how they
//! meet). `consoles`: the tables `[[worker]]`, which only a file has. `restart`: what a reload cannot change.
//! [`control`] and [`php`] find the two things that depend on the machine: socket and worker.
//!
//! To add a setting: one entry in [`table`], one field in [`settings`], `UPDATE=1 cargo test`.

mod consoles;
pub mod control;
pub mod docs;
mod file;
pub mod names;
pub mod php;
mod problem;
mod resolve;
mod restart;
pub mod setting;
pub mod settings;
pub mod sources;
pub mod table;
#[cfg(test)]
mod tests;
mod typed;
mod value;

pub use consoles::Console;
pub use control::{default_control_path, discover_control, make_control_dir};
pub use php::locate_php;
pub use problem::{Problem, Problems};
pub use restart::needs_restart;
pub use settings::{
    AccessLog, AccessLogFormat, Compat, EarlyHints, Limits, Listen, LogFormat, LogLevel, Php,
    Settings, Timeouts,
};
pub use sources::Sources;
