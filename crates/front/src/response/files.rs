//! Static files: files that a route names, precompressed files next to them (`precompressed`), and
//! files that scripts send (`sendfile`). `send` builds the response for all of them, with
//! `validate` (conditions) and `range`.

mod precompressed;
mod range;
mod send;
pub(crate) mod sendfile;
mod validate;

use crate::response::body::ResponseBody;
use crate::response::compress::{may_pack, vary};
use crate::response::error_page::Failure;
use crate::runtime::disk::{DiskThreads, Held};
use http::{HeaderValue, Method, Response, StatusCode};
use precompressed::Packed;
use samovar_config::Compression;
use send::{Opened, failure, media_type, open, send};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::rc::Rc;

pub(crate) use send::Asked;

const ALLOWED: &str = "GET, HEAD";

/// An opened file, and the precompressed files next to it.
struct Found {
    file: File,
    metadata: Metadata,
    beside: Vec<Packed>,
}

/// Opens the file. May block on disk I/O.
fn find(path: &Path, has_beside: bool) -> io::Result<Found> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    let has_beside = has_beside && metadata.is_file();
    let beside = if has_beside { precompressed::find(path, &metadata) } else { Vec::new() };
    Ok(Found { file, metadata, beside })
}

/// Serves a request for the file at the canonical `path`.
///
/// - `far`: the threads that open it, if its file system may hang.
/// - `kind`: its media type, if it does not follow from the name.
/// - `compression`: whether a precompressed file may be sent instead.
pub(crate) async fn respond(
    (disk, far): (&Rc<DiskThreads>, Option<&Rc<DiskThreads>>),
    path: &Path,
    kind: Option<&HeaderValue>,
    asked: Asked<'_>,
    compression: Option<&Compression>,
) -> Result<Response<ResponseBody>, Failure> {
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
    let best = compression_beside.filter(|_| depends).and_then(|compression| {
        precompressed::choose(&beside, asked.headers, &compression.codings)
    });
    let mut opened = Opened { file, metadata, coding: None };
    for (at, (file, metadata, coding)) in beside.into_iter().enumerate() {
        let file = Held::new(file, far);
        if best == Some(at) {
            opened = Opened { file, metadata, coding: Some(coding) };
        }
    }
    let mut response = send(disk, opened, &kind, asked)?;
    // A 304 and a 206 must carry the same `Vary` as the 200 would (RFC 9110, 15.4.5 and 15.3.7).
    // The 304 has no media type, and the 206 may have that of its parts.
    let replaces_whole =
        matches!(response.status(), StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT);
    if depends || replaces_whole && is_packed_for_some {
        vary(response.headers_mut());
    }
    Ok(response)
}
