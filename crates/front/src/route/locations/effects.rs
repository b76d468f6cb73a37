//! What locations do to answers: headers, and pages for the server's own failures.

use super::said::Said;
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

/// Headers that say what the content is. They are for the content of the path, not for a page that tells of an error.
const OF_CONTENT: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::CONTENT_DISPOSITION, header::CONTENT_LANGUAGE];

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
    compression: Option<Said<bool>>,
    access_log: Option<Said<bool>>,
    intercept: Option<Said<bool>>,
}

/// What a table turns on or off.
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

/// Whether an answer consists of several ranges.
fn is_in_parts(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"multipart/byteranges"))
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

    /// Of each, what the first table says counts.
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

    /// Whether answers may be compressed.
    pub(crate) fn may_compress(&self) -> bool {
        self.compression.is_none_or(|said| said.what)
    }

    /// Whether requests are in the access log.
    pub(crate) fn is_logged(&self) -> bool {
        self.access_log.is_none_or(|said| said.what)
    }

    pub(super) fn is_nothing(&self) -> bool {
        let switches = [self.compression, self.access_log, self.intercept];
        let is_unsaid = switches.iter().all(Option::is_none);
        self.headers.is_empty() && self.pages.is_empty() && is_unsaid
    }

    /// The page for what an application has answered with this status, if it is to have ours.
    pub(crate) fn page_instead(&self, status: StatusCode) -> Option<&Page> {
        self.page(status).filter(|_| self.intercept.is_some_and(|said| said.what))
    }

    /// The type that files have here; `None`: the one that their names say.
    pub(crate) fn content_type(&self) -> Option<&HeaderValue> {
        let header = self.headers.iter().find(|header| header.name == header::CONTENT_TYPE)?;
        header.value.as_ref()
    }

    /// Sets and takes out headers of an answer.
    pub(crate) fn apply(&self, status: StatusCode, headers: &mut HeaderMap) {
        let is_kept = status.is_success() || status.is_redirection();
        for Header { name, value, .. } in &self.headers {
            match value {
                _ if !is_kept && OF_CACHES.contains(name) => {}
                _ if !status.is_success() && OF_CONTENT.contains(name) => {}
                // The parts have types of their own.
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

    /// The page for a failure with this status.
    pub(crate) fn page(&self, status: StatusCode) -> Option<&Page> {
        let status = status.as_u16();
        self.pages.iter().find(|page| (page.statuses.0..=page.statuses.1).contains(&status))
    }

    /// Line and words of what else is not as everywhere, for people.
    pub(crate) fn switches(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let words = [
            (self.compression, "answers may be compressed", "answers are not compressed"),
            (self.access_log, "requests are logged", "requests are not in the access log"),
            (
                self.intercept,
                "error pages are for the application's answers, too",
                "error pages are for the server's own failures",
            ),
        ];
        words.into_iter().filter_map(|(said, on, off)| {
            said.map(|Said { line, what }| (line, if what { on } else { off }))
        })
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
