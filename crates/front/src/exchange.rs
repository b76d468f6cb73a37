//! submit … deliver, on the ring's side: requests in flight and the bytes of their answers.
//!
//! `table` knows who waits for which slot and when the ring is looked at, `deadlines` for how long (by `times`); `wait` is the queue
//! for a slot (of `waiter`s), `feed` the body's way in, `answer` the answer's way out, `relay` that of an answer whose
//! client is slow, of which `kept` knows what waits. `admission` says who is taken in while others wait, by what `shares` counts; `gathering` when workers are
//! woken for it. `later` is what they have cost, `lost` says why there is no answer, `deaths` decides whether a request is run again. Imports `setup` and
//! `runtime`; knows neither HTTP nor connections.

pub(crate) mod admission;
mod answer;
mod deadlines;
pub(crate) mod deaths;
mod feed;
mod gathering;
pub(crate) mod kept;
mod later;
mod lost;
pub(crate) mod relay;
pub(crate) mod shares;
mod slot;
mod table;
mod times;
mod wait;
mod waiter;

pub(crate) use answer::{Answer, Exchange, Piece, WorkerMessage};
pub(crate) use feed::Feed;
pub(crate) use later::{Cost, Later};
pub(crate) use lost::{BodyFailure, Lost};
pub(crate) use table::{Exchanges, Order, SharedExchanges};
pub(crate) use wait::SlotWait;
