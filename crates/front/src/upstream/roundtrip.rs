//! submit … deliver: one request to php-fpm, and its response.
//!
//! A separate task writes and reads at the same time, because a script may respond before it has
//! read its whole body. Response bytes that the client has not read are buffered in memory, then in
//! a spill file (`response`). When the limits of both are reached, php-fpm has to wait. The
//! timeouts run while php-fpm is expected to send a byte or to accept one, but not while the
//! client is waited for (`course`).

use super::open::AnyWire;
use super::pool::Link;
use super::record::{
    self, BEGIN_REQUEST, CONTENT_BYTES_MAX, PARAMS, STDIN, put_header, put_pair, put_stream,
};
use super::response_parser::{Reply, Step};
use super::response_state::{Broken, Filling, PendingResponse, pair};
use super::timing::{self, Course};
use crate::exchange::BodyFailure;
use crate::exchange::budget::Charges;
use crate::runtime::disk::DiskThreads;
use crate::runtime::upstream_failure::UpstreamFailure;
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

/// A connection carries one request at a time.
const ID: u16 = 1;
const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
const READ_BYTES: usize = 32 * 1024;
/// Time between two checks whether the client of a complete response has left.
const PRESENCE_CHECK: Duration = Duration::from_millis(100);
/// Maximum number of bytes of php-fpm's messages that are logged for one request.
const SAID_BYTES_MAX: usize = 8 * 1024;

/// Source of a request's body.
pub(crate) trait Feed {
    /// Returns the next bytes, or `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, BodyFailure>>>;
}

/// Parameters of one request.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Maximum time without a byte from php-fpm; zero: unlimited.
    pub(crate) response: Duration,
    /// Maximum time of the whole request; zero: unlimited.
    pub(crate) whole: Duration,
    /// Maximum run time after the client has received the whole response; zero: unlimited.
    pub(crate) after: Duration,
    /// Threads that write the spill file; `setup` has the limits of the buffers.
    pub(crate) disk: Rc<DiskThreads>,
    pub(crate) setup: Rc<Setup>,
    /// Parts of the budgets for the response.
    pub(crate) charges: Option<Charges>,
    /// For the log.
    pub(crate) upstream: Upstream,
    pub(crate) request_id: String,
}

/// Returns the records that a request begins with. `None` if a parameter is too long for one
/// record: php-fpm requires each parameter to be in a single record.
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

/// Starts a task that sends a request. Returns the end from which its response is read.
pub(crate) fn talk(
    link: Link,
    begun: BytesMut,
    feed: impl Feed + 'static,
    mut terms: Terms,
) -> PendingResponse {
    let (pending, filling) = pair(&terms.disk, &terms.setup, terms.charges.take());
    tokio::task::spawn_local(async move {
        let news = link.news();
        let mut talk = Talk { filling, terms, course: Course::new(), said: 0 };
        let end = talk.run(link, begun, feed).await;
        // Before the response head, the task that waits for the head reports the failure.
        if let Err(Broken::UpstreamFailure(trouble)) = end
            && talk.filling.has_head()
        {
            news.broke_off(trouble, &talk.terms.upstream, &talk.terms.request_id);
        }
        talk.filling.end(end);
    });
    pending
}

struct Talk {
    filling: Filling,
    terms: Terms,
    course: Course,
    said: usize,
}

/// Reason why a request was not written completely.
enum Unsent {
    /// php-fpm accepts no more bytes; it may have responded nevertheless.
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
            return Err(Broken::UpstreamFailure(UpstreamFailure::Unreachable));
        };
        let (mut reader, mut writer) = tokio::io::split(wire);
        let Talk { filling, terms, course, said } = self;
        let (mut is_sent, mut is_written) = (false, false);
        let end = {
            let mut reading = pin!(read(&mut reader, filling, course, terms, said));
            let mut writing = pin!(write(&mut writer, begun, feed, course));
            let mut over = pin!(course.over(terms.response, terms.whole));
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
                    trouble = &mut over => break Err(Broken::UpstreamFailure(trouble)),
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
            Err(Broken::UpstreamFailure(UpstreamFailure::Closed))
                if link.is_kept && !course.has_byte() =>
            {
                Err(Broken::Stale)
            }
            Err(broken) => Err(broken),
        }
    }
}

/// Returns when the response is not needed any more, or when `after` has passed since the client
/// received all of it. php-fpm ends the script at its next output after the connection is closed.
async fn unwanted(filling: &Filling, after: Duration) {
    poll_fn(|cx| {
        filling.watch(cx);
        let is_over = filling.is_unwanted() || filling.is_let_go();
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    if filling.is_let_go() {
        let client_leaves = async {
            while !filling.is_unwanted() {
                tokio::time::sleep(PRESENCE_CHECK).await;
            }
        };
        let _ = tokio::time::timeout(timing::or_ever(after), client_leaves).await;
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

/// Writes all bytes. Each accepted byte restarts the response timeout.
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

/// Reads the response to its end. Returns whether no bytes are left after it.
async fn read(
    reader: &mut ReadHalf<AnyWire>,
    filling: &Filling,
    course: &Course,
    terms: &Terms,
    said: &mut usize,
) -> Result<bool, Broken> {
    let (mut input, mut reply) = (BytesMut::new(), Reply::new(ID));
    loop {
        while let Some(record) = record::take(&mut input)
            .map_err(|_| Broken::UpstreamFailure(UpstreamFailure::Garbage))?
        {
            match reply.step(record).map_err(Broken::UpstreamFailure)? {
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
            Ok(0) | Err(_) => return Err(Broken::UpstreamFailure(UpstreamFailure::Closed)),
        }
    }
}

/// Logs a message that php-fpm sends for the log of its web server.
fn say(terms: &Terms, text: &[u8], said: &mut usize) {
    let text = &text[..text.len().min(SAID_BYTES_MAX.saturating_sub(*said))];
    *said += text.len();
    let text = String::from_utf8_lossy(text);
    let Terms { upstream, request_id, .. } = terms;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        tracing::warn!(%upstream, request_id, "message from php-fpm: {}", line.escape_debug());
    }
}
