//! Pinba's packets: requests with their timers, as Pinba's PHP extension sends them over UDP, one
//! packet each.
//!
//! Packets are sent so that an existing Pinba server sees these machines. Packets are received so
//! that hosts with php-fpm and the extension are visible here. The message is defined by the
//! extension's `pinba.proto` (proto2, [protocol](https://github.com/tony2001/pinba_engine)): the
//! strings of timers and tags are in a dictionary, and timers are columns. Received packets are not
//! trusted.
//!
//! A packet is one request, regardless of its `request_count`: the extension writes 0 there, and
//! Pinba's own reports count packets. Packets within a packet, which a relay may send, count as one
//! request each, in addition to the outer one.

mod accounting;
mod dictionary;
pub mod listener;
mod message;
mod packet;
pub mod sender;

pub use packet::{PACKET_BYTES_MAX, Packet, Refused, Sender, encode};

#[cfg(test)]
mod tests;
