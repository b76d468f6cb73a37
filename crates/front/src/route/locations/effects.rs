//! What locations do to answers: headers, and pages for the server's own failures.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use samovar_config::ErrorPage;
use std::io;
use std::path::PathBuf;

/// Headers that say how long an answer may be kept. They are for answers that went well: an error that is kept for a
/// year would be none the server can take back.
const OF_CACHES: [HeaderName; 5] = [
    header::CACHE_CONTROL,
    header::EXPIRES,
    header::PRAGMA,
    HeaderName::from_static("cdn-cache-control"),
    HeaderName::from_static("surrogate-control"),
];

/// What is sent in place of an error page of our own.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    statuses: (u16, u16),
    pub(crate) bytes: Bytes,
    pub(crate) kind: HeaderValue,
}

/// What becomes of the answers for a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    headers: Vec<Header>,
    pages: Vec<Page>,
    compression: Option<bool>,
}

#[derive(Clone, Debug)]
struct Header {
    line: usize,
    name: HeaderName,
    /// `None`: it is taken out.
    value: Option<HeaderValue>,
}

impl Page {
    pub(super) fn read(page: &ErrorPage) -> Result<Page, (PathBuf, io::Error)> {
        let ErrorPage { statuses, file } = page;
        let bytes = std::fs::read(file).map_err(|error| (file.clone(), error))?;
        let kind = mime_guess::from_path(file).first_raw().unwrap_or("text/html");
        Ok(Page { statuses: *statuses, bytes: bytes.into(), kind: HeaderValue::from_static(kind) })
    }
}

/// A header as it is set; the settings have checked it.
pub(super) fn header(of: &(String, String)) -> Option<(HeaderName, Option<HeaderValue>)> {
    let (name, value) = of;
    let value = match value.as_str() {
        "" => None,
        value => Some(HeaderValue::from_str(value).ok()?),
    };
    Some((name.parse().ok()?, value))
}

impl Effects {
    /// What the table of a line adds; what is there already stays.
    pub(super) fn add(
        &mut self,
        line: usize,
        headers: &[(HeaderName, Option<HeaderValue>)],
        pages: &[Page],
    ) {
        for (name, value) in headers {
            if self.headers.iter().all(|known| known.name != *name) {
                self.headers.push(Header { line, name: name.clone(), value: value.clone() });
            }
        }
        self.pages.extend_from_slice(pages);
    }

    /// What the first table says of it counts.
    pub(super) fn allow_compression(&mut self, allowed: Option<bool>) {
        self.compression = self.compression.or(allowed);
    }

    /// Whether answers may be compressed.
    pub(crate) fn may_compress(&self) -> bool {
        self.compression.unwrap_or(true)
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.headers.is_empty() && self.pages.is_empty() && self.compression.is_none()
    }

    /// Sets and takes out headers of an answer.
    pub(crate) fn apply(&self, status: StatusCode, headers: &mut HeaderMap) {
        let is_kept = status.is_success() || status.is_redirection();
        for Header { name, value, .. } in &self.headers {
            match value {
                _ if !is_kept && OF_CACHES.contains(name) => {}
                Some(value) => {
                    headers.insert(name, value.clone());
                }
                None => {
                    headers.remove(name);
                }
            }
        }
    }

    /// The page for a failure with this status.
    pub(crate) fn page(&self, status: StatusCode) -> Option<&Page> {
        let status = status.as_u16();
        self.pages.iter().find(|page| (page.statuses.0..=page.statuses.1).contains(&status))
    }

    /// Line, name and value of each header, for people.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (usize, String)> {
        self.headers.iter().map(|Header { line, name, value }| {
            let value = value.as_ref().and_then(|value| value.to_str().ok());
            (
                *line,
                value.map_or_else(|| format!("{name} is taken out"), |v| format!("{name}: {v}")),
            )
        })
    }
}
