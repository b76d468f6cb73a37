//! Files: types, validators, ranges, and bodies that are read in bounded pieces.
//!
//! The route gives a canonical path. It is opened with `RESOLVE_NO_SYMLINKS`, so that a symlink that was put
//! there since is not followed. Small files are read at once; of larger ones a thread that may block reads
//! the next piece when the client has taken the last.

use crate::deliver::AnswerBody;
use crate::error_page::Failure;
use crate::range::{self, Wanted};
use crate::validate::{Validators, Verdict};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::{JoinHandle, spawn_blocking};

/// A file up to this size is read at once, on the front's thread.
const SMALL_BYTES_MAX: u64 = 64 * 1024;
/// Bytes read at a time of a larger one.
const CHUNK_BYTES: u64 = 256 * 1024;
const ALLOWED: &str = "GET, HEAD";
/// Parts of a multipart answer are divided by this; RFC 9110 wants it not to occur in the file, which
/// nobody checks: clients go by the lengths.
const BOUNDARY: &str = "samovar-5f1d7f8a0c3e4b29";

/// Answers a request for the file at the canonical `path`.
pub(crate) fn respond(path: &Path, parts: &Parts) -> Result<Response<AnswerBody>, Failure> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(Failure::MethodNotAllowed(ALLOWED));
    }
    let file = open(path).map_err(|error| failure(&error))?;
    let metadata = file.metadata().map_err(|error| failure(&error))?;
    if !metadata.is_file() {
        return Err(Failure::NotFound);
    }
    let size = metadata.len();
    let validators = validators(&metadata);
    let kind = media_type(path);
    let verdict = validators.judge(&parts.headers);
    let range = parts.headers.get(header::RANGE).filter(|_| verdict == Verdict::Send);
    let wanted = match range {
        Some(range) if parts.method == Method::GET => range::read(range.as_bytes(), size),
        _ => Wanted::Whole,
    };
    let mut response = match (verdict, wanted) {
        (Verdict::NotModified, _) => empty(StatusCode::NOT_MODIFIED),
        (Verdict::Failed, _) => empty(StatusCode::PRECONDITION_FAILED),
        (_, Wanted::Unsatisfiable) => unsatisfiable(size),
        (_, Wanted::Whole) => whole(file, size, &kind)?,
        (_, Wanted::Parts(parts)) => partial(file, size, parts, &kind),
    };
    let headers = response.headers_mut();
    set(headers, header::ETAG, validators.etag);
    set(headers, header::LAST_MODIFIED, httpdate::fmt_http_date(validators.modified));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    Ok(response)
}

/// Opens without following any symlink; kernels before 5.6 and some sandboxes only guard the last component.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, Mode::empty()),
        other => other,
    };
    Ok(File::from(file?))
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::Forbidden,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::NotFound,
        // A symlink that was not there when the route was made.
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Failure::NotFound,
        _ => {
            tracing::warn!(%error, "cannot read a file below the document root");
            Failure::Internal
        }
    }
}

/// nginx's: `"<mtime>-<size>"` in hexadecimal.
fn validators(metadata: &Metadata) -> Validators {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    let seconds = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Validators {
        etag: format!("\"{seconds:x}-{:x}\"", metadata.len()),
        modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
    }
}

/// By the name's extension, without charset, as nginx does.
fn media_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_raw();
    HeaderValue::from_static(guess.unwrap_or("application/octet-stream"))
}

fn empty(status: StatusCode) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::empty());
    *response.status_mut() = status;
    response
}

fn unsatisfiable(size: u64) -> Response<AnswerBody> {
    let mut response = empty(StatusCode::RANGE_NOT_SATISFIABLE);
    set(response.headers_mut(), header::CONTENT_RANGE, format!("bytes */{size}"));
    response
}

fn whole(file: File, size: u64, kind: &HeaderValue) -> Result<Response<AnswerBody>, Failure> {
    let body = if size <= SMALL_BYTES_MAX {
        let mut bytes = vec![0; size as usize];
        file.read_exact_at(&mut bytes, 0).map_err(|error| failure(&error))?;
        AnswerBody::whole(bytes.into())
    } else {
        AnswerBody::file(FileBody::new(file, [Segment::Range(0..size)]))
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    Ok(response)
}

fn partial(
    file: File,
    size: u64,
    parts: Vec<Range<u64>>,
    kind: &HeaderValue,
) -> Response<AnswerBody> {
    let single = (parts.len() == 1).then(|| content_range(&parts[0], size));
    let segments = match single {
        Some(_) => parts.into_iter().map(Segment::Range).collect(),
        None => multipart(parts, size, kind),
    };
    let mut response = Response::new(AnswerBody::file(FileBody::new(file, segments)));
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let headers = response.headers_mut();
    if let Some(range) = single {
        headers.insert(header::CONTENT_TYPE, kind.clone());
        set(headers, header::CONTENT_RANGE, range);
    } else {
        let multipart = format!("multipart/byteranges; boundary={BOUNDARY}");
        set(headers, header::CONTENT_TYPE, multipart);
    }
    response
}

/// The parts of a file, each with a head of its own (RFC 9110, 14.6).
fn multipart(parts: Vec<Range<u64>>, size: u64, kind: &HeaderValue) -> Vec<Segment> {
    let kind = kind.to_str().unwrap_or("application/octet-stream");
    let mut segments = Vec::with_capacity(2 * parts.len() + 1);
    for part in parts {
        let range = content_range(&part, size);
        segments.push(Segment::Bytes(Bytes::from(format!(
            "\r\n--{BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Range: {range}\r\n\r\n"
        ))));
        segments.push(Segment::Range(part));
    }
    segments.push(Segment::Bytes(Bytes::from(format!("\r\n--{BOUNDARY}--\r\n"))));
    segments
}

fn content_range(part: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", part.start, part.end - 1)
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: String) {
    let value = HeaderValue::try_from(value).expect("made of digits and visible characters");
    headers.insert(name, value);
}

/// A piece of a body: bytes at hand, or bytes of the file.
#[derive(Debug)]
enum Segment {
    Bytes(Bytes),
    Range(Range<u64>),
}

/// A body of segments, read one chunk at a time.
#[derive(Debug)]
pub(crate) struct FileBody {
    file: Arc<File>,
    segments: VecDeque<Segment>,
    left: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    fn new(file: File, segments: impl IntoIterator<Item = Segment>) -> FileBody {
        let segments: VecDeque<_> = segments.into_iter().collect();
        let left = segments
            .iter()
            .map(|segment| match segment {
                Segment::Bytes(bytes) => bytes.len() as u64,
                Segment::Range(range) => range.end - range.start,
            })
            .sum();
        FileBody { file: Arc::new(file), segments, left, reading: None }
    }

    /// Bytes that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes; `None` at the end. An error if the file has become shorter.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.reading.is_none() {
            match self.segments.pop_front() {
                None => return Poll::Ready(None),
                Some(Segment::Bytes(bytes)) => return self.give(Ok(bytes)),
                Some(Segment::Range(range)) => self.read(range),
            }
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        self.give(read.unwrap_or_else(|panic| Err(io::Error::other(panic))))
    }

    fn read(&mut self, range: Range<u64>) {
        let end = range.end.min(range.start + CHUNK_BYTES);
        if end < range.end {
            self.segments.push_front(Segment::Range(end..range.end));
        }
        let file = Arc::clone(&self.file);
        self.reading = Some(spawn_blocking(move || {
            let mut chunk = vec![0; (end - range.start) as usize];
            file.read_exact_at(&mut chunk, range.start)?;
            Ok(chunk.into())
        }));
    }

    fn give(&mut self, bytes: io::Result<Bytes>) -> Poll<Option<io::Result<Bytes>>> {
        if let Ok(bytes) = &bytes {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        Poll::Ready(Some(bytes))
    }
}
