//! The steps submit to deliver for locations whose scripts run in an external php-fpm: connections
//! to it, and FastCGI as a web server speaks it.
//!
//! | module | role |
//! |---|---|
//! | `record` | FastCGI records; `client` reads and writes them too |
//! | `response_parser` | response that a sequence of records contains; pure |
//! | `choose` | selects one of several php-fpm servers; pure |
//! | `names` | addresses of servers that are given by name |
//! | `open` | opens one connection |
//! | `pool` | connections to each server |
//! | `endpoints` | number of connections of all threads |
//! | `tally` | statistics of each server, and of each address of a name |
//! | `lru` | bounded map of recently used servers and addresses |
//! | `down` | servers that failed to accept a connection recently |
//! | `roundtrip` | one request on one connection, in a task of its own |
//! | `timing` | time limits of such a request, without the time spent waiting for the client |
//! | `response_state` | response state shared by this task and the request's own task |
//!
//! Imports `setup`, `exchange` and `runtime`. Does not know HTTP, except for a response head as
//! bytes.

mod choose;
mod down;
mod endpoints;
mod lru;
mod names;
mod open;
mod pool;
pub(crate) mod record;
mod response_parser;
mod response_state;
mod roundtrip;
mod tally;
mod timing;

pub(crate) use endpoints::AllPlaces;
pub use endpoints::{AddressFigures, PassFigures, UpstreamFigures};
pub(crate) use names::Names;
pub(crate) use pool::{Link, News, NoLink, Upstreams};
pub(crate) use response_state::{Broken, Head, PendingResponse};
pub(crate) use roundtrip::{Feed, Terms, begin, talk};
pub use tally::{LastFailure, TallyFigures};

/// Parses bytes as a response of php-fpm and returns how many of them belong to the body. For
/// fuzzing.
pub fn response_bytes_in(bytes: &[u8]) -> usize {
    let (mut input, mut reply) = (bytes::BytesMut::from(bytes), response_parser::Reply::new(1));
    let mut count = 0;
    while let Ok(Some(record)) = record::take(&mut input) {
        match reply.step(record) {
            Ok(response_parser::Step::Head(_, body) | response_parser::Step::Body(body)) => {
                count += body.len();
            }
            Ok(response_parser::Step::End) | Err(_) => break,
            Ok(response_parser::Step::Nothing | response_parser::Step::Said(_)) => {}
        }
    }
    count
}
