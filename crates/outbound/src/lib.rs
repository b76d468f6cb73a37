//! outbound: HTTP requests that the server itself sends. Does not know the content of these
//! requests.
//!
//! All calls block and run on their users' own threads, never on a request's path. In reading
//! order:
//!
//! | file | content |
//! |---|---|
//! | `agent.rs` | HTTP clients: one timeout per step; the machine's trusted certificates |
//! | `get.rs` | one document |
//! | `post.rs` | one body to one collector, and its response |
//! | `waits.rs` | pauses after a response or a failure |
//! | `courier.rs` | thread that sends queued parcels to a peer that may be away |
//! | `teller.rs` | reports a failure once, and the recovery once |

pub mod agent;
mod courier;
mod get;
mod post;
mod teller;
pub mod waits;

pub use agent::NoRoots;
pub use courier::{Attempt, Desk, Next, Outbox, Patience, Road};
pub use get::get;
pub use post::{Address, Post, Reply, Unusable};
pub use teller::{ProblemSink, Teller};
