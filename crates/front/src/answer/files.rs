//! Files: those that a route names, packed ones that lie beside them (`beside`), and those that scripts have sent
//! (`sendfile`). `send` makes an answer of any of them, by `validate` (conditions) and `range`.

mod beside;
mod range;
mod send;
pub(crate) mod sendfile;
mod validate;

use crate::answer::body::AnswerBody;
use crate::answer::compress::{may_pack, vary};
use crate::answer::error_page::Failure;
use crate::runtime::disk::DiskThreads;
use http::{HeaderValue, Method, Response, StatusCode};
use samovar_config::Compression;
use send::{Opened, failure, media_type, open, send};
use std::path::Path;
use std::rc::Rc;

pub(crate) use send::Asked;

const ALLOWED: &str = "GET, HEAD";

/// Answers a request for the file at the canonical `path`. `kind`: of which type it is, where its name does not count.
/// `compression`: whether one that is packed may go out in its place.
pub(crate) fn respond(
    disk: &Rc<DiskThreads>,
    path: &Path,
    kind: Option<&HeaderValue>,
    asked: Asked<'_>,
    compression: Option<&Compression>,
) -> Result<Response<AnswerBody>, Failure> {
    if asked.method != Method::GET && asked.method != Method::HEAD {
        return Err(Failure::MethodNotAllowed(ALLOWED));
    }
    let file = open(path).map_err(|error| failure(&error))?;
    let metadata = file.metadata().map_err(|error| failure(&error))?;
    if !metadata.is_file() {
        return Err(Failure::NotFound);
    }
    let kind = kind.cloned().unwrap_or_else(|| media_type(path));
    let is_packed_for_some = compression.is_some_and(|c| may_pack(c, &kind, metadata.len()));
    let (depends, packed) = match compression.filter(|compression| compression.precompressed) {
        Some(compression) => beside::find(path, &metadata, asked.headers, &compression.codings),
        None => (false, None),
    };
    let opened = packed.unwrap_or(Opened { file, metadata, coding: None });
    let mut response = send(disk, opened, &kind, asked)?;
    // What has not changed says what the answer before depended on (RFC 9110, 15.4.5), though it has no media type.
    let is_unchanged = response.status() == StatusCode::NOT_MODIFIED;
    if depends || is_unchanged && is_packed_for_some {
        vary(response.headers_mut());
    }
    Ok(response)
}
