//! A server's life: it checks its settings, binds its addresses, serves, reloads, is replaced by
//! another server, and ends.
//!
//! The command line and the commands that only query a server are in crates/cli. Modules by layer;
//! a layer uses only the ones before it (`tests/rooms.rs`):
//!
//! - output for the caller (`terminal`) and the server's log (`logging`, `panics`)
//! - the process and its rights (`service`, `descriptors`, `rights`, `binary`, `companion`);
//!   the `admin_token`
//! - settings of other crates (`convert`)
//! - sampling of workers (`sampling`)
//! - the `canary`: its comparison and decisions
//! - the `control` socket
//! - `reload`, the server's side of it
//! - `development`: reloads after changes, for `samovar dev`
//! - `serve`, and `check`: whether a server would start; `facts` of one that does not run

mod admin_token;
mod binary;
mod canary;
mod certificates;
pub mod check;
pub mod companion;
mod control;
mod convert;
mod descriptors;
pub mod development;
mod engine;
pub mod facts;
mod graphs;
mod handover;
mod idle;
mod intake;
mod jobs;
mod loads;
mod logging;
mod machine_load;
mod panics;
mod pools;
mod publish;
mod reload;
pub mod rights;
mod sampling;
mod schedules;
mod serve;
mod service;
pub mod terminal;
mod upgrade;

pub use handover::predecessor::Predecessor;
pub use serve::run;
pub use service::VARIABLES as SERVICE_VARIABLES;
