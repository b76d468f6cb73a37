//! What the whole-server tests speak: `Server::app("hello").workers(2).start()`, the same pages through
//! nginx + php-fpm (`Oracle`), raw HTTP, and waiting on conditions instead of sleeping. Above that: visitors
//! with cookies (`visitor`), the comparison of their walks (`walk`, `masks`), databases of a test's own.
//!
//! A helper panics where a test would fail anyway: the panic's text is the test's message.
#![allow(clippy::missing_panics_doc, clippy::expect_used)]

pub mod copy;
pub mod http;
mod kernel;
mod mariadb;
pub mod masks;
mod multipart;
mod oracle;
pub mod order;
pub mod php;
mod postgres;
mod process;
mod redis;
mod server;
pub mod visitor;
mod wait;
pub mod walk;

pub use mariadb::MariaDb;
pub use multipart::{BOUNDARY, Multipart};
pub use oracle::{Oracle, nginx_version};
pub use postgres::Postgres;
pub use redis::Redis;
pub use server::{Server, Start, ini};
pub use wait::{WATCHDOG, eventually};

use std::path::PathBuf;

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).expect("crates/testkit lies two folders deep").to_owned()
}
