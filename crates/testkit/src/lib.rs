//! Helpers for the whole-server tests: `Server::app("hello").workers(2).start()`, the same pages
//! through nginx + php-fpm (`Oracle`), raw HTTP, and waiting on conditions instead of sleeping.
//!
//! Higher-level helpers:
//!
//! - visitors with cookies (`visitor`), and the comparison of their walks (`walk`, `masks`)
//! - private databases
//!
//! Lower-level helpers:
//!
//! - collectors that misbehave (`collector`), an authority that issues certificates (`Authority`)
//! - messages decoded by other programs (`protoc`)
//! - environments that are too small (`confine`)
//! - listeners that accept no connection (`deaf`), file systems that hang (`mute`)
//! - readers that stop (`tap`), processes (`family`)
//!
//! A helper panics where a test would fail anyway: the panic's text is the test's message.
#![allow(clippy::missing_panics_doc, clippy::expect_used)]

mod authority;
mod binary;
mod certificate;
pub mod collector;
mod confine;
pub mod copy;
mod deaf;
pub mod family;
mod flag;
mod fpm;
mod haproxy;
pub mod http;
pub mod http2;
pub mod kernel;
mod ldap;
mod mariadb;
pub mod markdown;
pub mod masks;
mod memcached;
mod mongo;
mod multipart;
mod mute;
mod oracle;
pub mod order;
pub mod php;
mod port;
mod postgres;
mod pprof;
mod process;
pub mod protoc;
mod redis;
pub mod rooms;
mod secure;
mod server;
mod ssh;
mod tap;
pub mod visitor;
mod wait;
pub mod walk;
mod workspace;

pub use authority::{Authority, AuthorityBehaviour};
pub use binary::binary;
pub use certificate::Certificate;
pub use confine::{Cgroup, Disk, may_mount};
pub use deaf::Deaf;
pub use flag::SetOnDrop;
pub use fpm::Fpm;
pub use haproxy::Haproxy;
pub use ldap::Ldap;
pub use mariadb::MariaDb;
pub use memcached::Memcached;
pub use mongo::Mongo;
pub use multipart::{BOUNDARY, Multipart};
pub use mute::MuteMount;
pub use oracle::{Nginx, Oracle, nginx_version};
pub use port::port;
pub use postgres::Postgres;
pub use pprof::go_tool_pprof;
pub use process::{end, has_ended, is_root, kill, processes_naming};
pub use redis::Redis;
pub use secure::{SecureClient, SecureStream};
pub use server::{Held, Server, Start, front_threads, ini};
pub use ssh::Ssh;
pub use tap::{Reader, Tap};
pub use wait::{WATCHDOG, eventually};
pub use workspace::workspace;
