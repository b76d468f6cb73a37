//! Call graphs of traced requests: read from what workers send, added up by day and route, kept, asked for, written for others.
//!
//! | file | |
//! |---|---|
//! | `calls/trace.rs` | one request's graph, as its worker has written it |
//! | `calls/graph.rs` | many of them, added up by names |
//! | `calls/times.rs` | how often a function took how long |
//! | `calls/store.rs` | days and routes, in memory or on disk, bounded |
//! | `calls/keeper.rs` | the thread that takes them in and keeps them |
//! | `calls/table.rs` | a graph as a table |
//! | `calls/export.rs` | callgrind's and XHProf's formats |

#![allow(clippy::similar_names, reason = "caller and callee are what call graphs are made of")]

pub mod export;
mod graph;
mod keeper;
mod store;
pub mod table;
mod times;
mod trace;

pub use graph::{Edge, Function, Graph, Kind};
pub use keeper::{Calls, CallsOptions, CallsReport, Selected};
pub use times::Times;
