//! Call graphs of traced requests: read from the workers' reports, added up by day and route,
//! stored, queried and exported.
//!
//! | file | content |
//! |---|---|
//! | `calls/trace.rs` | graph of one request, as its worker wrote it |
//! | `calls/graph.rs` | graph of many requests, added up by name |
//! | `calls/stacks.rs` | memory allocated by stack |
//! | `calls/allocations.rs` | the same as a profile, for flame graphs and tables |
//! | `calls/times.rs` | distribution of a function's durations |
//! | `calls/store.rs` | days and routes, in memory or on disk, bounded |
//! | `calls/collector.rs` | thread that receives and stores graphs |
//! | `calls/table.rs` | a graph as a table |
//! | `calls/export.rs` | callgrind's and XHProf's formats |

#![allow(clippy::similar_names, reason = "call graphs consist of callers and callees")]

mod allocations;
mod collector;
pub mod export;
mod graph;
mod stacks;
mod store;
pub mod table;
mod times;
mod trace;

pub use collector::{Calls, CallsOptions, CallsReport, Selected};
pub use graph::{Edge, Function, Graph, Kind};
pub use stacks::{Allocated, Stack, Stacks};
pub use times::Times;
