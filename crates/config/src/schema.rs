//! The available settings. Reading order:
//! - [`table`]: all settings, one row each
//! - [`setting`]: the content of a row, and the allowed values
//! - [`settings`]: the resulting types; `macros` declares them
//! - [`address`] and [`listener`]: the entries of `listen`
//! - `compression`: how responses are compressed
//! - `console`: the tables `[[console]]`
//! - `intake`: the tables `[[intake]]`
//! - `location`: the tables `[[location]]`
//! - `log_target`: destinations of logs
//! - `pool`: the tables `[[pool]]`
//! - `queue`: the tables `[[queue]]`
//! - `redis`: the address of a Redis
//! - `schedule`: the tables `[[schedule]]`
//! - [`secret`]: a value that no message shows
//! - [`send_folder`]: an entry of `[sendfile]`
//! - `notation`: sizes, times, addresses
//! - `domain`: names of the server, and the settings that follow from them
//! - `resolve`: checks that depend on the machine
//! - [`names`]: corrections for mistyped names

#[macro_use]
pub(crate) mod macros;

pub mod address;
pub mod binary;
pub mod compression;
pub(crate) mod console;
mod domain;
pub(crate) mod intake;
pub mod listener;
pub(crate) mod location;
pub(crate) mod log_target;
pub mod names;
pub(crate) mod notation;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod redis;
mod resolve;
pub(crate) mod schedule;
pub mod secret;
pub mod send_folder;
pub mod setting;
pub mod settings;
pub mod table;
pub mod upstream;
