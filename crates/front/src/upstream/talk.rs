//! submit … deliver: one request at a php-fpm, and its answer.
//!
//! A task of its own writes and reads at the same time: a script may answer before it has read all of its body. What the
//! client does not take waits in memory, then in a file, up to limits beyond which php-fpm waits (`answer`). Time counts
//! while php-fpm owes a byte, or does not take one; not while a client is waited for (`course`).

use super::answer::{Answering, Broken, Filling, pair};
use super::course::{self, Course};
use super::open::AnyWire;
use super::pool::Link;
use super::record::{
    self, BEGIN_REQUEST, CONTENT_BYTES_MAX, PARAMS, STDIN, put_header, put_pair, put_stream,
};
use super::reply::{Reply, Step};
use crate::exchange::BodyFailure;
use crate::runtime::disk::DiskThreads;
use crate::runtime::trouble::Trouble;
use crate::setup::Setup;
use bytes::{BufMut, Bytes, BytesMut};
use samovar_config::Upstream;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

/// There is one request at a time.
const ID: u16 = 1;
const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
const READ_BYTES: usize = 32 * 1024;
/// Bytes of php-fpm's messages that one request has in the log.
const SAID_BYTES_MAX: usize = 8 * 1024;

/// A request's body on its way in.
pub(crate) trait Feed {
    /// The next bytes; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, BodyFailure>>>;
}

/// What holds for one request.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Without a byte from php-fpm; zero: for ever.
    pub(crate) answer: Duration,
    /// For all of it; zero: for ever.
    pub(crate) whole: Duration,
    /// For what it does when its client has all of the answer; zero: for ever.
    pub(crate) after: Duration,
    /// Who keeps what waits for the client, and how much.
    pub(crate) disk: Rc<DiskThreads>,
    pub(crate) setup: Rc<Setup>,
    /// For the log.
    pub(crate) upstream: Upstream,
    pub(crate) request_id: String,
}

/// The records that a request begins with. `None`: a parameter is too long for any record; php-fpm wants each whole in one.
pub(crate) fn begin<'a>(
    keeps: bool,
    params: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Option<BytesMut> {
    let mut out = BytesMut::with_capacity(4096);
    put_header(&mut out, BEGIN_REQUEST, ID, 8);
    out.put_u16(RESPONDER);
    out.put_u8(if keeps { KEEP_CONNECTION } else { 0 });
    out.put_bytes(0, 5);
    let (mut told, mut pair) = (BytesMut::with_capacity(4096), BytesMut::new());
    for (name, value) in params {
        pair.clear();
        put_pair(&mut pair, name, value);
        if pair.len() > CONTENT_BYTES_MAX {
            return None;
        }
        if told.len() + pair.len() > CONTENT_BYTES_MAX {
            put_stream(&mut out, PARAMS, ID, &told);
            told.clear();
        }
        told.extend_from_slice(&pair);
    }
    put_stream(&mut out, PARAMS, ID, &told);
    put_header(&mut out, PARAMS, ID, 0);
    Some(out)
}

/// Sends a request, and what comes of it to the other end of what it returns.
pub(crate) fn talk(
    link: Link,
    begun: BytesMut,
    feed: impl Feed + 'static,
    terms: Terms,
) -> Answering {
    let (answering, filling) = pair(&terms.disk, &terms.setup);
    tokio::task::spawn_local(async move {
        let news = link.news();
        let mut talk = Talk { filling, terms, course: Course::new(), said: 0 };
        let end = talk.run(link, begun, feed).await;
        // Before its head, whoever waits for that says so.
        if let Err(Broken::Trouble(trouble)) = end
            && talk.filling.has_head()
        {
            news.broke_off(trouble, &talk.terms.upstream, &talk.terms.request_id);
        }
        talk.filling.end(end);
    });
    answering
}

struct Talk {
    filling: Filling,
    terms: Terms,
    course: Course,
    said: usize,
}

/// Why a request was not written to its end.
enum Unsent {
    /// php-fpm takes no more; it may have answered all the same.
    Socket,
    Body(BodyFailure),
}

impl Talk {
    async fn run(
        &mut self,
        mut link: Link,
        begun: BytesMut,
        feed: impl Feed,
    ) -> Result<(), Broken> {
        let Some(wire) = link.wire.take() else {
            return Err(Broken::Trouble(Trouble::Unreachable));
        };
        let (mut reader, mut writer) = tokio::io::split(wire);
        let Talk { filling, terms, course, said } = self;
        let (mut is_sent, mut is_written) = (false, false);
        let end = {
            let mut reading = pin!(read(&mut reader, filling, course, terms, said));
            let mut writing = pin!(write(&mut writer, begun, feed, course));
            let mut over = pin!(course.over(terms.answer, terms.whole));
            let mut unwanted = pin!(unwanted(filling, terms.after));
            loop {
                tokio::select! {
                    biased;
                    () = &mut unwanted => return Ok(()),
                    end = &mut reading => break end,
                    sent = &mut writing, if !is_written => {
                        is_written = true;
                        match sent {
                            Ok(()) => is_sent = true,
                            Err(Unsent::Socket) => {}
                            Err(Unsent::Body(failure)) => break Err(Broken::Body(failure)),
                        }
                    }
                    trouble = &mut over => break Err(Broken::Trouble(trouble)),
                }
            }
        };
        match end {
            Ok(is_clean) => {
                if is_clean && is_sent && link.keeps() {
                    let wire: AnyWire = reader.unsplit(writer);
                    link.keep(wire);
                }
                Ok(())
            }
            Err(Broken::Trouble(Trouble::Closed)) if link.is_kept && !course.has_byte() => {
                Err(Broken::Stale)
            }
            Err(broken) => Err(broken),
        }
    }
}

/// Returns when nobody wants the answer any more, or `after` its client has all of it.
async fn unwanted(filling: &Filling, after: Duration) {
    poll_fn(|cx| {
        filling.watch(cx);
        let is_over = filling.is_unwanted() || filling.is_let_go();
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    if filling.is_let_go() {
        tokio::time::sleep(course::or_ever(after)).await;
    }
}

async fn write(
    writer: &mut WriteHalf<AnyWire>,
    begun: BytesMut,
    mut feed: impl Feed,
    course: &Course,
) -> Result<(), Unsent> {
    put(writer, &begun, course).await?;
    drop(begun);
    loop {
        let next = {
            let _client = course.wait_for_client();
            feed.next().await
        };
        let Some(bytes) = next else { break };
        let mut out = BytesMut::new();
        for piece in bytes.map_err(Unsent::Body)?.chunks(CONTENT_BYTES_MAX) {
            out.clear();
            put_stream(&mut out, STDIN, ID, piece);
            put(writer, &out, course).await?;
        }
    }
    let mut out = BytesMut::new();
    put_header(&mut out, STDIN, ID, 0);
    put(writer, &out, course).await
}

/// Each byte that is taken is a sign of life.
async fn put(
    writer: &mut WriteHalf<AnyWire>,
    mut bytes: &[u8],
    course: &Course,
) -> Result<(), Unsent> {
    while !bytes.is_empty() {
        match writer.write(bytes).await {
            Ok(written @ 1..) => {
                bytes = &bytes[written..];
                course.moves();
            }
            Ok(0) | Err(_) => return Err(Unsent::Socket),
        }
    }
    Ok(())
}

/// Reads the answer to its end; whether nothing is left behind it.
async fn read(
    reader: &mut ReadHalf<AnyWire>,
    filling: &Filling,
    course: &Course,
    terms: &Terms,
    said: &mut usize,
) -> Result<bool, Broken> {
    let (mut input, mut reply) = (BytesMut::new(), Reply::new(ID));
    loop {
        while let Some(record) =
            record::take(&mut input).map_err(|_| Broken::Trouble(Trouble::Garbage))?
        {
            match reply.step(record).map_err(Broken::Trouble)? {
                Step::Nothing => {}
                Step::Head(head, first) => {
                    filling.head(head);
                    filling.put(first, course).await?;
                }
                Step::Body(bytes) => filling.put(bytes, course).await?,
                Step::Said(text) => say(terms, &text, said),
                Step::End => return Ok(input.is_empty()),
            }
        }
        input.reserve(READ_BYTES);
        match reader.read_buf(&mut input).await {
            Ok(1..) => {
                course.has_begun();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return Err(Broken::Trouble(Trouble::Closed)),
        }
    }
}

/// What php-fpm wants to have in its web server's log.
fn say(terms: &Terms, text: &[u8], said: &mut usize) {
    let text = &text[..text.len().min(SAID_BYTES_MAX.saturating_sub(*said))];
    *said += text.len();
    let text = String::from_utf8_lossy(text);
    let Terms { upstream, request_id, .. } = terms;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        tracing::warn!(%upstream, request_id, "php-fpm says: {}", line.escape_debug());
    }
}
