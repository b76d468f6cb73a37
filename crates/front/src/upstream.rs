//! submit … deliver, where an old php-fpm runs a script: its connections, and FastCGI as a web server speaks it.
//!
//! `record` are the records, which `client` reads and writes too; `reply` is what they come to, pure; `choose`, pure too, says
//! which of several php-fpms is asked, `names` where those with names are, `pool` has the connections to each, `open` makes one, `places` says how many all threads have
//! and, by a `tally` of each and of each of a name's addresses, how they fare (as long as they are `remembered`), `down` who took no connection lately, `talk` is one request
//! on one of them, a task of its own, `course` whose time that takes, and `answer` what it and the request's own task know of each other. Imports `setup`, `exchange` and `runtime`; knows no HTTP but an answer's head as bytes.

mod answer;
mod choose;
mod course;
mod down;
mod names;
mod open;
mod places;
mod pool;
pub(crate) mod record;
mod remembered;
mod reply;
mod talk;
mod tally;

pub(crate) use answer::{Answering, Broken, Head};
pub(crate) use names::Names;
pub(crate) use places::AllPlaces;
pub use places::{AddressFigures, PassFigures, UpstreamFigures};
pub(crate) use pool::{Link, News, NoLink, Upstreams};
pub(crate) use talk::{Feed, Terms, begin, talk};
pub use tally::{LastTrouble, TallyFigures};

/// Takes bytes in as a php-fpm's answer, and says how many of them were body: for fuzzing.
pub fn answer_bytes_in(bytes: &[u8]) -> usize {
    let (mut input, mut reply) = (bytes::BytesMut::from(bytes), reply::Reply::new(1));
    let mut count = 0;
    while let Ok(Some(record)) = record::take(&mut input) {
        match reply.step(record) {
            Ok(reply::Step::Head(_, body) | reply::Step::Body(body)) => count += body.len(),
            Ok(reply::Step::End) | Err(_) => break,
            Ok(reply::Step::Nothing | reply::Step::Said(_)) => {}
        }
    }
    count
}
