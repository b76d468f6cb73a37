//! One request to whoever collects: blocking, on a thread of its sender's own.

use crate::agent::{self, NoRoots};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use ureq::Agent;

/// What is read of an answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// Settings that no request can be sent with.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Neither `http://` nor `https://`; an address that would do.
    #[error("`{0}` is no address of a collector\nhint: {1}")]
    Endpoint(String, &'static str),
    /// A header that HTTP does not allow.
    #[error("the header `{0}` has a name or a value that HTTP does not allow")]
    Header(String),
    /// No certificates to trust.
    #[error(transparent)]
    Roots(#[from] NoRoots),
    /// No thread.
    #[error("cannot start a thread for the collector: {0}")]
    Thread(#[from] std::io::Error),
}

/// An answer, as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// The header of that name.
    pub retry_after: Option<String>,
    /// What was read of its body.
    pub body: Vec<u8>,
}

/// To whom, and how.
#[derive(Clone, Copy, Debug)]
pub struct Address<'a> {
    /// `http://127.0.0.1:4318`: a request's path is added.
    pub endpoint: &'a str,
    /// An endpoint that would do, for whoever has set another.
    pub example: &'static str,
    /// Sent with each request.
    pub headers: &'a [(String, String)],
    /// The bodies' type.
    pub content_type: &'static str,
    /// Whether bodies are packed.
    pub gzip: bool,
    /// How long each step of a request may take: connect, send, wait for the answer.
    pub timeout: Duration,
    /// A file with certificates to trust; those of the machine if `None`.
    pub roots: Option<&'a Path>,
}

/// Sends requests to one collector.
#[derive(Debug)]
pub struct Post {
    agent: Agent,
    endpoint: String,
    headers: Vec<(String, String)>,
    content_type: &'static str,
    gzip: bool,
}

impl Post {
    /// Checks the address; sends nothing.
    pub fn new(to: &Address<'_>) -> Result<Post, Unusable> {
        let Address { headers, content_type, gzip, timeout: limit, roots, .. } = *to;
        let endpoint = to.endpoint.trim_end_matches('/');
        let is_usable = ureq::http::Uri::try_from(endpoint).is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
        });
        if !is_usable {
            return Err(Unusable::Endpoint(endpoint.to_owned(), to.example));
        }
        for (name, value) in headers {
            let name_is_fine = ureq::http::HeaderName::try_from(name).is_ok();
            if !name_is_fine || ureq::http::HeaderValue::try_from(value).is_err() {
                return Err(Unusable::Header(name.clone()));
            }
        }
        let agent = if endpoint.starts_with("https:") {
            agent::secure(limit, roots)?
        } else {
            agent::plain(limit)
        };
        let (endpoint, headers) = (endpoint.to_owned(), headers.to_vec());
        Ok(Post { agent, endpoint, headers, content_type, gzip })
    }

    /// Sends a body; an error is the network's.
    pub fn send(&self, path: &str, body: &[u8]) -> Result<Reply, String> {
        let mut request = self
            .agent
            .post(format!("{}{path}", self.endpoint))
            .header("content-type", self.content_type);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let packed = if self.gzip { pack(body) } else { None };
        let sent = match packed {
            Some(packed) => request.header("content-encoding", "gzip").send(&packed[..]),
            None => request.send(body),
        };
        let mut answer = sent.map_err(|e| e.to_string())?;
        let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        // The status is known: an answer whose body breaks off has the same meaning.
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        Ok(Reply { status: answer.status().as_u16(), retry_after, body: body.unwrap_or_default() })
    }
}

/// Nothing where it cannot be packed: memory does not fail, and nothing else can.
fn pack(body: &[u8]) -> Option<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(body).ok()?;
    packer.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::{Address, Post, Unusable};
    use std::path::Path;
    use std::time::Duration;

    fn post(endpoint: &str, header: &str, roots: Option<&str>) -> Result<Post, Unusable> {
        let headers = [(header.to_owned(), "x".to_owned())];
        Post::new(&Address {
            endpoint,
            example: "http://127.0.0.1:4318",
            headers: &headers,
            content_type: "text/plain",
            gzip: false,
            timeout: Duration::from_secs(1),
            roots: roots.map(Path::new),
        })
    }

    #[test]
    fn settings_that_cannot_work_are_told_at_the_start() {
        for (found, expected) in [
            (post("http://127.0.0.1:4318/", "authorization", None), ""),
            (post("127.0.0.1:4318", "a", None), "is no address of a collector"),
            (post("ftp://collector", "a", None), "is no address of a collector"),
            (post("http://collector/?a=b", "a", None), "is no address of a collector"),
            (post("http://collector", "a b", None), "that HTTP does not allow"),
            (post("https://collector", "a", Some("/dev/null")), "no certificates"),
        ] {
            let text = found.map_or_else(|e| e.to_string(), |_| String::new());
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
        }
    }
}
