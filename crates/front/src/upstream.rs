//! submit … deliver, where an old php-fpm runs a script: its connections, and FastCGI as a web server speaks it.
//!
//! `record` are the records, which `client` reads and writes too; `reply` is what they come to, pure; `pool` has the
//! connections to each address, `talk` is one request on one of them, a task of its own, and `answer` what it and the
//! request's own task know of each other. Imports `exchange` and `runtime`; knows no HTTP but an answer's head as bytes.

mod answer;
mod pool;
pub(crate) mod record;
mod reply;
mod talk;

pub(crate) use answer::{Answering, Broken, Head};
pub(crate) use pool::Upstreams;
pub(crate) use talk::{Feed, Terms, begin, talk};
