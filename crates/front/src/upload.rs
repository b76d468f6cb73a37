//! The request's body on its way into a slot: in memory, through a temporary file, or as it comes.
//!
//! Up to [`BODY_BYTES`] fit the slot and are there before the request is queued. More waits in an unlinked file, so
//! that a slow client keeps no worker busy; with `request_buffering` off it is passed on as it comes.

use crate::error_page::Failure;
use crate::exchange::{BodyFailure, Feed};
use crate::options::FrontOptions;
use crate::shared::Shared;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use samovar_ring::{BODY_BYTES, End};
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Bytes gathered before they are written to the file.
const SPOOL_CHUNK: usize = 256 * 1024;

/// A body, or the way to get it.
#[derive(Debug)]
pub(crate) enum Upload {
    None,
    /// All of it; fits a slot.
    Whole(Vec<u8>),
    /// All of it, in an unlinked file.
    Spooled(Arc<File>, u64),
    /// Still at the client. Its length, if it was declared.
    Live(Incoming, Option<u64>),
}

impl Upload {
    /// The body's length, if it is known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self {
            Upload::None => None,
            Upload::Whole(body) => Some(body.len() as u64),
            Upload::Spooled(_, bytes) => Some(*bytes),
            Upload::Live(_, bytes) => *bytes,
        }
    }
}

/// Why a frame of a body did not come.
enum Missing {
    TooSlow,
    Broken,
}

/// Receives a body as far as it has to be there before a worker gets the request.
pub(crate) async fn receive(
    shared: &Shared,
    options: &FrontOptions,
    mut body: Incoming,
) -> Result<Upload, Failure> {
    let limit = options.limits.body_bytes_max;
    let declared = body.size_hint().exact();
    if declared.is_some_and(|bytes| bytes > limit) {
        return Err(Failure::BodyTooLarge);
    }
    if !options.request_buffering {
        return Ok(Upload::Live(body, declared));
    }
    let mut memory = Vec::with_capacity(declared.unwrap_or(0).min(BODY_BYTES as u64) as usize);
    let mut spool: Option<Spool> = None;
    let mut total = 0;
    while let Some(bytes) = next(&mut body, options.timeouts.body).await? {
        total += bytes.len() as u64;
        if total > limit {
            return Err(Failure::BodyTooLarge);
        }
        memory.extend_from_slice(&bytes);
        let chunk = if spool.is_some() { SPOOL_CHUNK } else { BODY_BYTES };
        if memory.len() > chunk {
            spool = Some(write(shared, options, spool, &mut memory).await?);
        }
    }
    match spool {
        None => Ok(Upload::Whole(memory)),
        Some(spool) => {
            let spool = write(shared, options, Some(spool), &mut memory).await?;
            Ok(Upload::Spooled(spool.file, total))
        }
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Failure {
        match missing {
            Missing::TooSlow => Failure::BodyTimeout,
            Missing::Broken => Failure::BadBody,
        }
    }
}

/// The next bytes of the body; `None` at its end. Trailers are dropped.
async fn next(body: &mut Incoming, timeout: Duration) -> Result<Option<Bytes>, Missing> {
    loop {
        let frame = if timeout.is_zero() {
            body.frame().await
        } else {
            let frame = tokio::time::timeout(timeout, body.frame()).await;
            frame.map_err(|_| Missing::TooSlow)?
        };
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(Missing::Broken),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

struct Spool {
    file: Arc<File>,
}

/// Appends `memory` to the file, which is made first if there is none, on a thread that may block.
async fn write(
    shared: &Shared,
    options: &FrontOptions,
    spool: Option<Spool>,
    memory: &mut Vec<u8>,
) -> Result<Spool, Failure> {
    let bytes = std::mem::take(memory);
    let directory = options.temp_dir.clone();
    let written = spawn_blocking(move || -> io::Result<(Spool, Vec<u8>)> {
        let spool = match spool {
            Some(spool) => spool,
            None => Spool { file: Arc::new(tempfile::tempfile_in(directory)?) },
        };
        (&*spool.file).write_all(&bytes)?;
        Ok((spool, bytes))
    });
    match written.await.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
        Ok((spool, mut bytes)) => {
            bytes.clear();
            *memory = bytes;
            Ok(spool)
        }
        Err(error) => Err(disk_failure(shared, &options.temp_dir, &error)),
    }
}

fn disk_failure(shared: &Shared, temp_dir: &Path, error: &io::Error) -> Failure {
    if let Some(suppressed) = shared.warnings.disk.pass() {
        tracing::warn!(
            %error,
            temp_dir = %temp_dir.display(),
            suppressed,
            "cannot keep a request body (hint: free space there, or set another `temp_dir`)"
        );
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::DiskFull,
        _ => Failure::Internal,
    }
}

/// Pumps a body that did not fit into the slot, beside the task that awaits the answer.
pub(crate) fn pump(options: &FrontOptions, upload: Upload, feed: Feed) {
    match upload {
        Upload::None | Upload::Whole(_) => {}
        Upload::Spooled(file, bytes) => {
            tokio::task::spawn_local(pump_file(file, bytes, feed));
        }
        Upload::Live(body, _) => {
            let limit = options.limits.body_bytes_max;
            let timeout = options.timeouts.body;
            tokio::task::spawn_local(async move {
                if let Err(failure) = pump_live(body, limit, timeout, &feed).await {
                    feed.fail(failure);
                }
            });
        }
    }
}

async fn pump_file(file: Arc<File>, bytes: u64, feed: Feed) {
    let mut at = 0;
    while at < bytes {
        let file = Arc::clone(&file);
        let len = (bytes - at).min(BODY_BYTES as u64) as usize;
        let read = spawn_blocking(move || {
            let mut chunk = vec![0; len];
            file.read_exact_at(&mut chunk, at).map(|()| chunk)
        });
        let Ok(Ok(chunk)) = read.await else { return feed.fail(BodyFailure::Incomplete) };
        if put(&feed, &chunk).await.is_err() {
            return;
        }
        at += len as u64;
    }
    feed.end(End::Complete);
}

async fn pump_live(
    mut body: Incoming,
    limit: u64,
    timeout: Duration,
    feed: &Feed,
) -> Result<(), BodyFailure> {
    let mut total = 0;
    loop {
        feed.set_feeding(true);
        let bytes = match next_unless_over(&mut body, timeout, feed).await {
            None => return Ok(()),
            Some(Err(Missing::TooSlow)) => return Err(BodyFailure::Timeout),
            Some(Err(Missing::Broken)) => return Err(BodyFailure::Incomplete),
            Some(Ok(None)) => break,
            Some(Ok(Some(bytes))) => bytes,
        };
        feed.set_feeding(false);
        total += bytes.len() as u64;
        if total > limit {
            return Err(BodyFailure::TooLarge);
        }
        if put(feed, &bytes).await.is_err() {
            return Ok(());
        }
    }
    feed.set_feeding(false);
    feed.end(End::Complete);
    Ok(())
}

/// `None`: nobody wants the body any more.
async fn next_unless_over(
    body: &mut Incoming,
    timeout: Duration,
    feed: &Feed,
) -> Option<Result<Option<Bytes>, Missing>> {
    let mut next = pin!(next(body, timeout));
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
