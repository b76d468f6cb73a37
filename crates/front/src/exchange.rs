//! The ring side of the steps submit to deliver: requests in flight and their response bytes.
//!
//! | module | role |
//! |---|---|
//! | `table` | slots in flight, the tasks that wait for them, and when the ring is polled |
//! | `slot` | one row of the table |
//! | `turn_queue`, `slot_queue`, `slot_waiter` | queue of requests that wait for a slot |
//! | `client_order` | which of them is next, and how many the ring has at a time |
//! | `detachment` | a request gives up its slot before its worker has finished |
//! | `deadlines`, `time_limits` | time limits of queued and running requests |
//! | `feed` | request body into the slot |
//! | `response_reader` | response out of the slot |
//! | `relay`, `spill_buffer` | response to a client slower than the worker; its buffered bytes |
//! | `budget` | limits on the bytes that are held for clients |
//! | `admission`, `shares` | decides whether a request may queue; counts requests per client |
//! | `wake_batching` | decides when workers are woken for submitted requests |
//! | `deferred_usage` | usage of a request, reported when its worker has finished |
//! | `missing_response` | reasons why a response is missing or incomplete |
//! | `deaths` | decides whether a request is retried after its worker died |
//!
//! Imports `setup` and `runtime`. Does not know HTTP or connections.

pub(crate) mod admission;
pub(crate) mod budget;
mod client_order;
mod deadlines;
pub(crate) mod deaths;
mod deferred_usage;
mod detachment;
mod feed;
mod missing_response;
pub(crate) mod relay;
mod response_reader;
pub(crate) mod shares;
mod slot;
mod slot_queue;
mod slot_waiter;
pub(crate) mod spill_buffer;
mod table;
mod time_limits;
mod turn_queue;
mod wake_batching;

pub(crate) use deferred_usage::{Cost, Later};
pub(crate) use feed::Feed;
pub(crate) use missing_response::{BodyFailure, Lost};
pub(crate) use response_reader::{Exchange, Piece, ResponseReader, WorkerMessage};
pub(crate) use slot_queue::SlotWait;
pub(crate) use table::{Exchanges, Order, SharedExchanges};
pub(crate) use turn_queue::Turn;
