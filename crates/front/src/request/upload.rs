//! The request's body on its way into a slot: in memory, through a temporary file, or streamed.
//!
//! Up to [`BODY_BYTES`] fit the slot and are complete before the request is queued. A longer body
//! is stored in an unlinked file first, so that a slow client keeps no worker busy. With
//! `request_buffering` off it is streamed instead.
//!
//! A client that sends too slowly is cut off. `timeouts.body` limits the wait for one piece. It
//! also limits the total wait, plus one second for each `limits.body_rate_min` bytes received. Only
//! the time in which the front waits for the client counts, not that of a slow application or disk.

use super::context::RequestContext;
use crate::client::connection::ConnectionState;
use crate::client::request_body::{Broken, RequestBody};
use crate::exchange::budget::Charge;
use crate::exchange::{BodyFailure, Feed};
use crate::response::error_page::Failure;
use crate::runtime::disk::{self, DiskThreads};
use crate::runtime::disk_jobs::JobTarget;
use crate::runtime::rejection::Rejection;
use crate::shared::Shared;
use crate::upstream;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use samovar_config::Settings;
use samovar_ring::{BODY_BYTES, End};
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Number of bytes collected before they are written to the file.
const SPOOL_CHUNK: usize = 256 * 1024;

/// `Retry-After` of a client whose body finds no room, in s.
const SPOOL_RETRY_S: u64 = 5;

/// A body, or its source.
#[derive(Debug)]
pub(super) enum Upload {
    None,
    /// The whole body, which fits a slot.
    Whole(Vec<u8>),
    /// The whole body, in an unlinked file.
    Spooled(Spool, u64),
    /// A body still to be received from the client, piece by piece.
    Live(Box<Source>),
}

impl Upload {
    /// The body's length, if known.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Upload::None => None,
            Upload::Whole(body) => Some(body.len() as u64),
            Upload::Spooled(_, bytes) => Some(*bytes),
            Upload::Live(source) => source.declared(),
        }
    }

    /// Returns a copy of the body. If it is longer than `bytes_max`, or not received yet, returns
    /// its length instead; zero: unknown.
    pub(super) async fn copy(
        &self,
        disk: &DiskThreads,
        bytes_max: usize,
    ) -> (Vec<u8>, Option<u64>) {
        match self {
            Upload::None => (Vec::new(), None),
            Upload::Whole(body) if body.len() <= bytes_max => (body.clone(), None),
            Upload::Spooled(spool, bytes) if *bytes <= bytes_max as u64 => {
                let mut body = Vec::with_capacity(*bytes as usize);
                while (body.len() as u64) < *bytes {
                    let left = *bytes as usize - body.len();
                    match disk.read(&spool.file, body.len() as u64, left).await {
                        Ok(piece) if !piece.is_empty() => body.extend_from_slice(&piece),
                        _ => return (Vec::new(), Some(*bytes)),
                    }
                }
                (body, None)
            }
            upload => (Vec::new(), Some(upload.bytes().unwrap_or(0))),
        }
    }
}

/// Reason why a frame of a body was not received.
#[derive(Debug)]
enum Missing {
    TooSlow,
    TooLarge,
    Broken,
}

/// A body to be received from the client, and its limits.
#[derive(Debug)]
pub(super) struct Source {
    connection: Rc<ConnectionState>,
    body: RequestBody,
    bytes_max: u64,
    /// Minimum rate in bytes per second. Zero: no minimum.
    rate_min: u64,
    /// Zero: no timeout.
    timeout: Duration,
    bytes: u64,
    waited: Duration,
    /// No frame has been requested yet.
    is_first: bool,
}

impl Source {
    /// `bytes_max`: maximum length of the body, if it differs from the settings.
    pub(super) fn new(
        connection: &Rc<ConnectionState>,
        settings: &Settings,
        bytes_max: Option<u64>,
        body: RequestBody,
    ) -> Source {
        Source {
            connection: Rc::clone(connection),
            body,
            bytes_max: bytes_max.unwrap_or(settings.limits.body_bytes_max),
            rate_min: settings.limits.body_rate_min,
            timeout: settings.timeouts.body,
            bytes: 0,
            waited: Duration::ZERO,
            is_first: true,
        }
    }

    pub(super) fn declared(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Returns the next bytes of the body, or `None` at its end. Trailers are dropped.
    async fn next(&mut self) -> Result<Option<Bytes>, Missing> {
        loop {
            let Some(frame) = self.frame().await? else { return Ok(None) };
            let Ok(frame) = frame else {
                let is_too_large = self.connection.is_body_too_large();
                return Err(if is_too_large { Missing::TooLarge } else { Missing::Broken });
            };
            if let Ok(bytes) = frame.into_data() {
                self.bytes += bytes.len() as u64;
                return if self.bytes > self.bytes_max {
                    Err(Missing::TooLarge)
                } else {
                    Ok(Some(bytes))
                };
            }
        }
    }

    async fn frame(&mut self) -> Result<Option<Result<Frame<Bytes>, Broken>>, Missing> {
        let patience = patience(self.timeout, self.rate_min, self.bytes, self.waited);
        let mut frame = pin!(self.body.frame());
        // Bytes that are already there need neither the clock nor a timer.
        let mut is_first = std::mem::take(&mut self.is_first);
        let early = poll_fn(|cx| match frame.as_mut().poll(cx) {
            Poll::Ready(frame) => Poll::Ready(Some(frame)),
            // hyper continues to read after the service has been polled. Bytes that came with the
            // head are there in the task's next turn.
            Poll::Pending if std::mem::take(&mut is_first) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(frame) = early.await {
            return Ok(frame);
        }
        let Some(patience) = patience else { return Ok(frame.await) };
        let since = Instant::now();
        let frame = tokio::time::timeout(patience, frame).await;
        self.waited = self.waited.saturating_add(since.elapsed());
        frame.map_err(|_| Missing::TooSlow)
    }
}

/// Returns the time limit for the next piece. `waited`: total wait for this client so far, in which
/// it sent `bytes`.
fn patience(timeout: Duration, rate_min: u64, bytes: u64, waited: Duration) -> Option<Duration> {
    if timeout.is_zero() {
        return None;
    }
    let Some(earned) = bytes.checked_div(rate_min) else { return Some(timeout) };
    let allowed = timeout.saturating_add(Duration::from_secs(earned));
    Some(timeout.min(allowed.saturating_sub(waited)))
}

/// Receives the part of a body that must be present before a worker gets the request. `is_live`:
/// nothing is received here.
pub(super) async fn receive(
    context: &RequestContext<'_>,
    mut source: Source,
    is_live: bool,
) -> Result<Upload, Failure> {
    let declared = source.declared();
    if declared.is_some_and(|bytes| bytes > source.bytes_max) {
        return Err(Failure::BodyTooLarge);
    }
    if is_live {
        return Ok(Upload::Live(Box::new(source)));
    }
    let _receiving = source.connection.begin_receiving();
    let mut memory = Vec::with_capacity(declared.unwrap_or(0).min(BODY_BYTES as u64) as usize);
    let mut spool: Option<Spool> = None;
    while let Some(bytes) = source.next().await? {
        memory.extend_from_slice(&bytes);
        let chunk = if spool.is_some() { SPOOL_CHUNK } else { BODY_BYTES };
        if memory.len() > chunk {
            spool = Some(write(context, spool, source.bytes, &mut memory).await?);
        }
    }
    match spool {
        None => Ok(Upload::Whole(memory)),
        Some(spool) => {
            let spool = write(context, Some(spool), source.bytes, &mut memory).await?;
            Ok(Upload::Spooled(spool, source.bytes))
        }
    }
}

impl From<Missing> for BodyFailure {
    fn from(missing: Missing) -> BodyFailure {
        match missing {
            Missing::TooSlow => BodyFailure::Timeout,
            Missing::TooLarge => BodyFailure::TooLarge,
            Missing::Broken => BodyFailure::Incomplete,
        }
    }
}

/// The body as it is sent to an upstream instead of a worker.
pub(super) struct Pieces {
    upload: Upload,
    disk: Rc<DiskThreads>,
    at: u64,
}

impl Pieces {
    pub(super) fn new(shared: &Shared, upload: Upload) -> Pieces {
        Pieces { upload, disk: Rc::clone(&shared.disk), at: 0 }
    }
}

impl upstream::Feed for Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, BodyFailure>> {
        match &mut self.upload {
            Upload::None => None,
            Upload::Whole(body) => {
                let body = std::mem::take(body);
                self.upload = Upload::None;
                (!body.is_empty()).then(|| Ok(body.into()))
            }
            Upload::Spooled(_, bytes) if self.at >= *bytes => None,
            Upload::Spooled(file, bytes) => {
                let len = (*bytes - self.at).min(BODY_BYTES as u64) as usize;
                let piece = self.disk.read(&file.file, self.at, len).await;
                let piece = piece.map_err(|_| BodyFailure::Incomplete);
                self.at += piece.as_ref().map_or(0, |bytes| bytes.len() as u64);
                Some(piece)
            }
            Upload::Live(source) => source.next().await.map_err(BodyFailure::from).transpose(),
        }
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Failure {
        match missing {
            Missing::TooSlow => Failure::BodyTimeout,
            Missing::TooLarge => Failure::BodyTooLarge,
            Missing::Broken => Failure::BadBody,
        }
    }
}

/// A temporary file, and its part of the budget.
#[derive(Debug)]
pub(super) struct Spool {
    file: Arc<File>,
    charge: Charge,
}

/// Appends `memory` to the file on a thread that may block. Creates the file first if there is
/// none. `total`: size of the file afterwards.
async fn write(
    context: &RequestContext<'_>,
    spool: Option<Spool>,
    total: u64,
    memory: &mut Vec<u8>,
) -> Result<Spool, Failure> {
    let (shared, settings) = (context.shared(), &context.setup.settings);
    let (file, charge) = match spool {
        Some(Spool { file, charge }) => (Some(file), charge),
        None => (None, context.spool_charge()),
    };
    if !charge.try_set(total) {
        report_full(shared, context);
        return Err(Failure::Busy(Rejection::Spool, SPOOL_RETRY_S));
    }
    let bytes = std::mem::take(memory);
    let directory = settings.temp_dir.clone();
    let place = JobTarget::Path(directory.clone());
    let written = shared.disk.run(place, move || -> io::Result<(Arc<File>, Vec<u8>)> {
        let file = match file {
            Some(file) => file,
            None => Arc::new(tempfile::tempfile_in(directory)?),
        };
        (&*file).write_all(&bytes)?;
        Ok((file, bytes))
    });
    match written.await {
        Ok((file, mut bytes)) => {
            bytes.clear();
            *memory = bytes;
            Ok(Spool { file, charge })
        }
        Err(error) => Err(disk_failure(shared, &settings.temp_dir, &error)),
    }
}

/// Logs a body for which there is no room.
fn report_full(shared: &Shared, context: &RequestContext<'_>) {
    let Some(suppressed) = shared.common.warnings.shed[Rejection::Spool as usize].pass() else {
        return;
    };
    let (what, hint) = Rejection::Spool.words();
    let _named = samovar_log::pool::enter(shared.pool_name());
    let client = context.client();
    tracing::warn!(what, %client, suppressed, "request body rejected: 503\nhint: {hint}");
}

fn disk_failure(shared: &Shared, temp_dir: &Path, error: &io::Error) -> Failure {
    shared.disk.report("a request body", temp_dir, error);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::DiskFull,
        io::ErrorKind::TimedOut => Failure::Busy(Rejection::Files, 1),
        _ if disk::is_out_of_descriptors(error) => Failure::Busy(Rejection::Descriptors, 1),
        _ => Failure::Internal,
    }
}

/// Feeds a body that did not fit into the slot, in a task parallel to the one that awaits the
/// response.
pub(super) fn pump(shared: &Shared, upload: Upload, feed: Feed) {
    match upload {
        Upload::None | Upload::Whole(_) => {}
        Upload::Spooled(file, bytes) => {
            tokio::task::spawn_local(pump_file(Rc::clone(&shared.disk), file, bytes, feed));
        }
        Upload::Live(source) => {
            tokio::task::spawn_local(async move {
                if let Err(failure) = pump_live(*source, &feed).await {
                    feed.fail(failure);
                }
            });
        }
    }
}

/// Feeds a body from memory.
pub(super) async fn pump_bytes(feed: Feed, body: Vec<u8>) {
    for piece in body.chunks(BODY_BYTES) {
        if put(&feed, piece).await.is_err() {
            return;
        }
    }
    feed.end(End::Complete);
}

async fn pump_file(disk: Rc<DiskThreads>, spool: Spool, bytes: u64, feed: Feed) {
    let file = &spool.file;
    let mut at = 0;
    while at < bytes {
        let len = (bytes - at).min(BODY_BYTES as u64) as usize;
        let Ok(chunk) = disk.read(file, at, len).await else {
            return feed.fail(BodyFailure::Incomplete);
        };
        if put(&feed, &chunk).await.is_err() {
            return;
        }
        at += chunk.len() as u64;
        // The file is in memory, and its worker may read as fast as this loop writes. Yield to
        // other tasks.
        tokio::task::yield_now().await;
    }
    feed.end(End::Complete);
}

async fn pump_live(mut source: Source, feed: &Feed) -> Result<(), BodyFailure> {
    loop {
        feed.set_feeding(true);
        let bytes = match next_unless_over(&mut source, feed).await {
            None => return Ok(()),
            Some(Err(missing)) => return Err(missing.into()),
            Some(Ok(None)) => break,
            Some(Ok(Some(bytes))) => bytes,
        };
        feed.set_feeding(false);
        if put(feed, &bytes).await.is_err() {
            return Ok(());
        }
    }
    feed.set_feeding(false);
    feed.end(End::Complete);
    Ok(())
}

/// Returns `None` if the body is not needed any more.
async fn next_unless_over(
    source: &mut Source,
    feed: &Feed,
) -> Option<Result<Option<Bytes>, Missing>> {
    let mut next = pin!(source.next());
    poll_fn(|cx| {
        if feed.poll_over(cx).is_ready() {
            return Poll::Ready(None);
        }
        next.as_mut().poll(cx).map(Some)
    })
    .await
}

async fn put(feed: &Feed, mut bytes: &[u8]) -> Result<(), ()> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| feed.poll_write(bytes, cx)).await?;
        bytes = &bytes[written..];
    }
    Ok(())
}
