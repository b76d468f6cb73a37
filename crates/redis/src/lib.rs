//! A client for Redis: blocking, for the threads of the server that may wait.
//!
//! | file | role |
//! |---|---|
//! | `error.rs` | why a request failed |
//! | `address.rs` | where the server is, and how to reach it |
//! | `reply.rs` | parses replies (RESP2), within limits |
//! | `lookup.rs` | addresses of a host, with a time limit |
//! | `stream.rs` | a TCP, TLS or Unix connection with time limits |
//! | `connection.rs` | commands in a pipeline, authentication |
//! | `client.rs` | scripts on a connection that is opened again after a failure |
//! | `listener.rs` | the thread that waits for messages of a channel |
//!
//! All waits have a limit. A reply has a maximum size, because the peer may not be a Redis.

mod address;
mod client;
mod connection;
mod error;
mod listener;
mod lookup;
mod reply;
mod stream;

pub use address::{Address, Endpoint, Options};
pub use client::{Client, Script, ScriptCall, Terms};
pub use error::Error;
pub use listener::listen;
pub use reply::Reply;
