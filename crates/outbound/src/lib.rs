//! outbound: whom the server itself asks over HTTP. It knows nothing of what is sent.
//!
//! All of it blocks, on threads of its users' own: nothing here is on a request's way. In reading order:
//!
//! | file | |
//! |---|---|
//! | `agent.rs` | how anybody is asked: each step has its time, over TLS with the certificates that the machine trusts |
//! | `post.rs` | one body to one collector, and its answer |
//! | `waits.rs` | how long to wait after an answer, or after none |
//! | `courier.rs` | the thread that sends what another one queues, to somebody who may be away |
//! | `teller.rs` | tells what goes wrong once, and once when it goes well again |

pub mod agent;
mod courier;
mod post;
mod teller;
pub mod waits;

pub use agent::NoRoots;
pub use courier::{Attempt, Desk, Next, Outbox, Patience, Road};
pub use post::{Address, Post, Reply, Unusable};
pub use teller::{Teller, Trouble};
