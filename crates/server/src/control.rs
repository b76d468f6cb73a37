//! Control socket: `samovar status`, `samovar reload`, `samovar stop` and other commands send their
//! requests here.
//!
//! crates/wire defines the messages of both ends. Server's end: `socket` is the socket's file,
//! `clients` serves several clients at once, `server` answers requests, `report` creates a status,
//! `facts` the data for `samovar doctor`.
//! `recent` has the counters of the last minutes, `storage` the free space of disks, `capacity` the
//! use of cores. `replay` records requests and runs them again. The commands' end is in crates/cli.
//! The file has mode 0600: a process that may write to it can stop the server.

pub(crate) mod capacity;
pub(crate) mod clients;
pub(crate) mod facts;
pub(crate) mod recent;
mod replay;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod storage;
mod waker;
