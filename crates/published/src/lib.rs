//! Published values: one PHP process → the server → all PHP processes. The values are constant and
//! are read in place.
//!
//! A process publishes by sending the server a value in a simple encoding ([`encoding`]). Only the
//! server can write the region ([`region`]). It lays the value out there in the format of PHP's own
//! immutable values ([`layout`]). Then it replaces the root, one word: the address of a list of all
//! names ([`index`]). Workers map the region at the same address and cannot make it writable. So a
//! value is returned without a copy, and no process can corrupt the values that others read.
//!
//! A request reads, until its end, the list that was the newest at its first read. The space of a
//! replaced value is free again when no process can see it any more ([`publisher`], by the pins of
//! `samovar-shared`).
//!
//! The sender is hostile: its message is copied before it is checked, and rejected unless it is a
//! value. A process that is killed after it has sent a message gets no response, and blocks nothing
//! ([`service`]).
#![allow(unsafe_code)] // `region` maps memory and writes it, `reader` reads it.

pub mod encoding;
mod index;
mod json;
pub mod layout;
mod limits;
mod publisher;
mod publishing;
mod reader;
mod region;
mod room;
mod service;

pub use json::from_json;
pub use limits::NAME_BYTES_MAX;
pub use publisher::{Figures, Limits, PublishError, Publisher, ValueFigures};
pub use publishing::Publishing;
pub use reader::{Found, Reader};
pub use region::{Region, RegionError};
pub use service::{Asked, Outgoing, SendError, Service, ask};
