//! Builds the response for an opened file: media type, validators, ranges.
//!
//! Files are opened with `RESOLVE_NO_SYMLINKS`, so a symlink created after the route was computed
//! is not followed.

use super::range::{self, Wanted};
use super::validate::{Validators, Verdict};
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::response::file_body::{CHUNK_BYTES, FileBody, Segment};
use crate::runtime::disk::{self, DiskThreads, Held};
use crate::runtime::rejection::Rejection;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use samovar_config::Coding;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

/// Unix time of the last second that an HTTP date can express, at the end of the year 9999.
const HTTP_DATE_MAX: u64 = 253_402_300_799;
/// The parts of a request that matter for files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
}

/// A file to send.
pub(super) struct Opened {
    pub(super) file: Held,
    pub(super) metadata: Metadata,
    /// Content coding of the file.
    pub(super) coding: Option<Coding>,
}

pub(super) fn send(
    disk: &Rc<DiskThreads>,
    opened: Opened,
    kind: &HeaderValue,
    asked: Asked<'_>,
) -> Result<Response<ResponseBody>, Failure> {
    let Opened { file, metadata, coding } = opened;
    let size = metadata.len();
    let validators = validators(&metadata, coding);
    let verdict = validators.judge(asked.headers);
    let range = asked.headers.get(header::RANGE).filter(|_| verdict == Verdict::Send);
    let wanted = match range {
        Some(range) if asked.method == Method::GET => range::read(range.as_bytes(), size),
        _ => Wanted::Whole,
    };
    let mut response = match (verdict, wanted) {
        (Verdict::NotModified, _) => empty(StatusCode::NOT_MODIFIED),
        (Verdict::Failed, _) => empty(StatusCode::PRECONDITION_FAILED),
        (_, Wanted::Unsatisfiable) => unsatisfiable(size),
        (_, Wanted::Whole) => whole(disk, file, size, kind)?,
        (_, Wanted::Parts(parts)) => partial(disk, file, size, parts, kind),
    };
    // An empty body is not compressed. Clients that try to decompress it report a missing end.
    let has_content = matches!(response.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT);
    let headers = response.headers_mut();
    set(headers, header::ETAG, validators.etag);
    set(headers, header::LAST_MODIFIED, httpdate::fmt_http_date(validators.modified));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(coding) = coding.filter(|_| has_content) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    Ok(response)
}

/// Opens a file without following symlinks. Kernels before 5.6 and some sandboxes can only check
/// the last path component.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, Mode::empty()),
        other => other,
    };
    Ok(File::from(file?))
}

pub(super) fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::Forbidden,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::NotFound,
        // A symlink that did not exist when the route was computed.
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Failure::NotFound,
        // The disk threads have logged it.
        io::ErrorKind::TimedOut => Failure::Busy(Rejection::Files, 1),
        // `client::accept` frees descriptors and logs a hint.
        _ if disk::is_out_of_descriptors(error) => Failure::Busy(Rejection::Descriptors, 1),
        _ => {
            tracing::warn!(%error, "cannot read a file below the document root");
            Failure::Internal
        }
    }
}

/// The entity tag has nginx's format, `"<mtime>-<size>"` in hexadecimal, plus the coding of a
/// precompressed file.
fn validators(metadata: &Metadata, coding: Option<Coding>) -> Validators {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    let seconds = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Validators {
        etag: match coding {
            None => format!("\"{seconds:x}-{:x}\"", metadata.len()),
            Some(coding) => format!("\"{seconds:x}-{:x}-{}\"", metadata.len(), coding.name()),
        },
        modified: UNIX_EPOCH + Duration::from_secs(seconds.min(HTTP_DATE_MAX)),
    }
}

/// Extensions for which `mime_guess` has an outdated type or that of another format. The types are
/// nginx's.
const TYPES: &[(&str, &str)] = &[
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("rpm", "application/x-redhat-package-manager"),
    ("ts", "video/mp2t"),
    ("woff", "font/woff"),
];

/// Returns the media type for the name's extension, without a charset, as in nginx.
pub(super) fn media_type(path: &Path) -> HeaderValue {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let own = TYPES.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name));
    let kind = own.map(|(_, kind)| *kind).or_else(|| mime_guess::from_path(path).first_raw());
    HeaderValue::from_static(kind.unwrap_or("application/octet-stream"))
}

fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}

fn unsatisfiable(size: u64) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::RANGE_NOT_SATISFIABLE);
    set(response.headers_mut(), header::CONTENT_RANGE, format!("bytes */{size}"));
    response
}

/// A small file that is in the page cache is sent in one piece with its head.
fn whole(
    disk: &Rc<DiskThreads>,
    file: Held,
    size: u64,
    kind: &HeaderValue,
) -> Result<Response<ResponseBody>, Failure> {
    let mut file = FileBody::new(disk, file, [Segment::Range(0..size)]);
    let body = if size <= CHUNK_BYTES { file.take_cached() } else { None };
    let body = match body.transpose().map_err(|error| failure(&error))? {
        Some(bytes) => ResponseBody::whole(bytes),
        None => ResponseBody::file(file),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    if size == 0 {
        // hyper sets it only for HTTP/1.1.
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(0));
    }
    Ok(response)
}

fn partial(
    disk: &Rc<DiskThreads>,
    file: Held,
    size: u64,
    parts: Vec<Range<u64>>,
    kind: &HeaderValue,
) -> Response<ResponseBody> {
    let single = (parts.len() == 1).then(|| content_range(&parts[0], size));
    let boundary = if single.is_none() { new_boundary() } else { String::new() };
    let segments = match single {
        Some(_) => parts.into_iter().map(Segment::Range).collect(),
        None => multipart(parts, size, kind, &boundary),
    };
    let mut response = Response::new(ResponseBody::file(FileBody::new(disk, file, segments)));
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let headers = response.headers_mut();
    if let Some(range) = single {
        headers.insert(header::CONTENT_TYPE, kind.clone());
        set(headers, header::CONTENT_RANGE, range);
    } else {
        let multipart = format!("multipart/byteranges; boundary={boundary}");
        set(headers, header::CONTENT_TYPE, multipart);
    }
    response
}

/// Separator of the parts of a multipart response. RFC 9110 requires that it does not occur in the
/// file. This is not checked, but an author of a file cannot predict it: the standard library seeds
/// `RandomState` from the kernel.
fn new_boundary() -> String {
    let random = RandomState::new();
    format!("{:016x}{:016x}", random.hash_one(0), random.hash_one(1))
}

/// The parts of a file, each with its own head (RFC 9110, 14.6).
fn multipart(
    parts: Vec<Range<u64>>,
    size: u64,
    kind: &HeaderValue,
    boundary: &str,
) -> Vec<Segment> {
    let kind = kind.to_str().unwrap_or("application/octet-stream");
    let mut segments = Vec::with_capacity(2 * parts.len() + 1);
    for part in parts {
        let range = content_range(&part, size);
        segments.push(Segment::Bytes(Bytes::from(format!(
            "\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {range}\r\n\r\n"
        ))));
        segments.push(Segment::Range(part));
    }
    segments.push(Segment::Bytes(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
    segments
}

fn content_range(part: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", part.start, part.end - 1)
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: String) {
    let value = HeaderValue::try_from(value).expect("made of digits and visible characters");
    headers.insert(name, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Browsers and players depend on these types if `nosniff` forbids them to guess.
    #[test]
    fn extensions_map_to_media_types() {
        for (name, kind) in [
            ("a.css", "text/css"),
            ("a.html", "text/html"),
            // RFC 9239. nginx has the older `application/javascript`.
            ("a.js", "text/javascript"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml"),
            ("a.webp", "image/webp"),
            ("a.woff", "font/woff"),
            ("a.WOFF", "font/woff"),
            ("a.woff2", "font/woff2"),
            ("a.wasm", "application/wasm"),
            ("a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.ts", "video/mp2t"),
            ("a.midi", "audio/midi"),
            ("a.rpm", "application/x-redhat-package-manager"),
            ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
            ("a.no-such", "application/octet-stream"),
            ("woff", "application/octet-stream"),
        ] {
            assert_eq!(media_type(Path::new(name)), kind, "{name}");
        }
    }
}
