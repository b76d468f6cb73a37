//! Effects of locations on responses: headers, and pages for the server's own errors.

use super::positioned::Said;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use samovar_config::ErrorPage;
use std::io;
use std::path::PathBuf;

/// Headers that control caching. They are not set on error responses: the server could not withdraw
/// an error that is cached for a year.
const OF_CACHES: [HeaderName; 5] = [
    header::CACHE_CONTROL,
    header::EXPIRES,
    header::PRAGMA,
    HeaderName::from_static("cdn-cache-control"),
    HeaderName::from_static("surrogate-control"),
];

/// Headers that describe the content. They are set only on successful responses, because they
/// describe the content of the path and not an error page.
const OF_CONTENT: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::CONTENT_DISPOSITION, header::CONTENT_LANGUAGE];

/// A page that replaces a built-in error page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    statuses: (u16, u16),
    pub(crate) bytes: Bytes,
    pub(crate) kind: HeaderValue,
}

/// Effects on the responses for a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    headers: Vec<Header>,
    pages: Vec<Page>,
    compression: Option<Said<bool>>,
    access_log: Option<Said<bool>>,
    intercept: Option<Said<bool>>,
}

/// Features that a table turns on or off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    pub(super) compression: Option<bool>,
    pub(super) access_log: Option<bool>,
    pub(super) intercept: Option<bool>,
}

#[derive(Clone, Debug)]
struct Header {
    line: usize,
    name: HeaderName,
    /// `None`: the header is removed.
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

/// Whether a response consists of several ranges.
fn is_in_parts(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"multipart/byteranges"))
}

/// Parses a header to set; the settings have validated it.
pub(super) fn header(of: &(String, String)) -> Option<(HeaderName, Option<HeaderValue>)> {
    let (name, value) = of;
    let value = match value.as_str() {
        "" => None,
        value => Some(HeaderValue::from_str(value).ok()?),
    };
    Some((name.parse().ok()?, value))
}

impl Effects {
    /// Adds the headers and pages of the table in this line. Headers that are present already are
    /// kept.
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

    /// Sets each switch that no earlier table has set.
    pub(super) fn switch(&mut self, line: usize, to: Switches) {
        let Switches { compression, access_log, intercept } = to;
        for (switch, to) in [
            (&mut self.compression, compression),
            (&mut self.access_log, access_log),
            (&mut self.intercept, intercept),
        ] {
            *switch = switch.or(to.map(|what| Said { line, what }));
        }
    }

    /// Whether responses may be compressed.
    pub(crate) fn may_compress(&self) -> bool {
        self.compression.is_none_or(|said| said.what)
    }

    /// Whether requests are written to the access log.
    pub(crate) fn is_logged(&self) -> bool {
        self.access_log.is_none_or(|said| said.what)
    }

    pub(super) fn is_nothing(&self) -> bool {
        let switches = [self.compression, self.access_log, self.intercept];
        let is_unsaid = switches.iter().all(Option::is_none);
        self.headers.is_empty() && self.pages.is_empty() && is_unsaid
    }

    /// Returns the page that replaces an application's response with this status, if responses of
    /// applications are to be replaced.
    pub(crate) fn page_instead(&self, status: StatusCode) -> Option<&Page> {
        self.page(status).filter(|_| self.intercept.is_some_and(|said| said.what))
    }

    /// The type of files here; `None`: the type is derived from their names.
    pub(crate) fn content_type(&self) -> Option<&HeaderValue> {
        let header = self.headers.iter().find(|header| header.name == header::CONTENT_TYPE)?;
        header.value.as_ref()
    }

    /// Sets and removes headers of a response.
    pub(crate) fn apply(&self, status: StatusCode, headers: &mut HeaderMap) {
        let is_kept = status.is_success() || status.is_redirection();
        for Header { name, value, .. } in &self.headers {
            match value {
                _ if !is_kept && OF_CACHES.contains(name) => {}
                _ if !status.is_success() && OF_CONTENT.contains(name) => {}
                // Each part has its own type.
                _ if *name == header::CONTENT_TYPE && is_in_parts(headers) => {}
                Some(value) => {
                    headers.insert(name, value.clone());
                }
                None => {
                    headers.remove(name);
                }
            }
        }
    }

    /// Returns the page for an error with this status.
    pub(crate) fn page(&self, status: StatusCode) -> Option<&Page> {
        let status = status.as_u16();
        self.pages.iter().find(|page| (page.statuses.0..=page.statuses.1).contains(&status))
    }

    /// Line and description of each switch that is set, for display.
    pub(crate) fn switches(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let words = [
            (self.compression, "compression on", "compression off"),
            (self.access_log, "access log on", "access log off"),
            (
                self.intercept,
                "error pages also for the application's responses",
                "error pages only for the server's own errors",
            ),
        ];
        words.into_iter().filter_map(|(said, on, off)| {
            said.map(|Said { line, what }| (line, if what { on } else { off }))
        })
    }

    /// Line, name and value of each header, for display.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (usize, String)> {
        self.headers.iter().map(|Header { line, name, value }| {
            let value = value.as_ref().and_then(|value| value.to_str().ok());
            (
                *line,
                value.map_or_else(|| format!("header {name} removed"), |v| format!("{name}: {v}")),
            )
        })
    }
}
