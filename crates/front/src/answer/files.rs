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
use crate::runtime::disk::{DiskThreads, Held};
use beside::Packed;
use http::{HeaderValue, Method, Response, StatusCode};
use samovar_config::Compression;
use send::{Opened, failure, media_type, open, send};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::rc::Rc;

pub(crate) use send::Asked;

const ALLOWED: &str = "GET, HEAD";

/// A file that is there, and those beside it.
struct Found {
    file: File,
    metadata: Metadata,
    beside: Vec<Packed>,
}

/// May wait for a disk.
fn find(path: &Path, has_beside: bool) -> io::Result<Found> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    let has_beside = has_beside && metadata.is_file();
    let beside = if has_beside { beside::find(path, &metadata) } else { Vec::new() };
    Ok(Found { file, metadata, beside })
}

/// Answers a request for the file at the canonical `path`. `far`: who looks for it, if its file system may hang. `kind`: of
/// which type it is, where its name does not count. `compression`: whether one that is packed may go out in its place.
pub(crate) async fn respond(
    (disk, far): (&Rc<DiskThreads>, Option<&Rc<DiskThreads>>),
    path: &Path,
    kind: Option<&HeaderValue>,
    asked: Asked<'_>,
    compression: Option<&Compression>,
) -> Result<Response<AnswerBody>, Failure> {
    if asked.method != Method::GET && asked.method != Method::HEAD {
        return Err(Failure::MethodNotAllowed(ALLOWED));
    }
    let compression_beside = compression.filter(|compression| compression.precompressed);
    let has_beside = compression_beside.is_some();
    let found = match far {
        None => find(path, has_beside),
        Some(far) => {
            let path = path.to_owned();
            Box::pin(far.ask(path.clone(), move || find(&path, has_beside))).await
        }
    };
    let Found { file, metadata, beside } = found.map_err(|error| failure(&error))?;
    let file = Held::new(file, far);
    if !metadata.is_file() {
        return Err(Failure::NotFound);
    }
    let kind = kind.cloned().unwrap_or_else(|| media_type(path));
    let is_packed_for_some = compression.is_some_and(|c| may_pack(c, &kind, metadata.len()));
    let depends = !beside.is_empty();
    let best = compression_beside
        .filter(|_| depends)
        .and_then(|compression| beside::choose(&beside, asked.headers, &compression.codings));
    let mut opened = Opened { file, metadata, coding: None };
    for (at, (file, metadata, coding)) in beside.into_iter().enumerate() {
        let file = Held::new(file, far);
        if best == Some(at) {
            opened = Opened { file, metadata, coding: Some(coding) };
        }
    }
    let mut response = send(disk, opened, &kind, asked)?;
    // What has not changed says what the answer before depended on (RFC 9110, 15.4.5), though it has no media type.
    let is_unchanged = response.status() == StatusCode::NOT_MODIFIED;
    if depends || is_unchanged && is_packed_for_some {
        vary(response.headers_mut());
    }
    Ok(response)
}
