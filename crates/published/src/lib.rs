//! A process of PHP → the server → all processes of PHP: constant values, read where they lie.
//!
//! Who publishes sends the server a value in a simple encoding ([`encoding`]). The server, which alone can write the region
//! ([`region`]), lays it out there as PHP has its own immutable values ([`layout`]), and then replaces the root, one word:
//! the address of a list of all names ([`index`]). Workers have the region mapped at the same address, and cannot make it
//! writable, so a value is returned without being copied, and nobody can spoil what others read.
//!
//! A request reads the list that was the newest when it first asked, to its end. What was replaced is room again when no
//! process can see it any more ([`publisher`], by the pins of `samovar-shared`).
//!
//! Who asks is hostile: what it sends is copied before it is looked at, and refused unless it is a value; and whoever
//! is killed while it asks leaves a message that is answered to nobody ([`service`]).
#![allow(unsafe_code)] // `region` maps memory and writes it, `reader` reads it.

pub mod encoding;
mod index;
mod json;
pub mod layout;
mod publisher;
mod publishing;
mod reader;
mod region;
mod room;
mod service;

pub use json::from_json;
pub use publisher::{Figures, Limits, PublishError, Publisher, ValueFigures};
pub use publishing::Publishing;
pub use reader::{Found, Reader};
pub use region::{Region, RegionError};
pub use service::{Asked, Ends, Outgoing, SendError, Service, ask};

/// Longest name of a value, bytes.
pub const NAME_BYTES_MAX: usize = 256;
