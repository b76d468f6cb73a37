//! The control socket: `samovar status`, `samovar reload` and `samovar stop` ask here.
//!
//! crates/wire has the words of both ends. The server's: `socket` is the file, `clients` hears several at once, `server`
//! answers, `report` is what a status is made of. The commands': `client`. The socket's file has mode 0600: who may
//! write to it may stop the server.

pub(crate) mod client;
pub(crate) mod clients;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod socket;
mod waker;
