//! One request to a collector: blocking, on the sender's own thread.

use crate::agent::{self, NoRoots};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use ureq::Agent;

/// Maximum number of bytes read of a response's body.
const RESPONSE_BYTES_MAX: u64 = 64 * 1024;
/// Settings with which no request can be sent.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The endpoint is neither `http://` nor `https://`. The second field is an example of a valid
    /// one.
    #[error("`{0}` is not an address of a collector\nhint: {1}")]
    Endpoint(String, &'static str),
    /// A header that HTTP does not allow.
    #[error("the header `{0}` has a name or value that HTTP does not allow")]
    Header(String),
    /// No trusted certificates.
    #[error(transparent)]
    Roots(#[from] NoRoots),
    /// The thread could not be started.
    #[error("cannot start a thread for the collector: {0}")]
    Thread(#[from] std::io::Error),
}

/// The used part of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Value of the header `retry-after`.
    pub retry_after: Option<String>,
    /// The part of the body that was read.
    pub body: Vec<u8>,
}

/// Address of a collector, and options for its requests.
#[derive(Clone, Copy, Debug)]
pub struct Address<'a> {
    /// For example `http://127.0.0.1:4318`; the path of each request is appended.
    pub endpoint: &'a str,
    /// A valid endpoint, shown in the error message for an invalid one.
    pub example: &'static str,
    /// Headers sent with each request.
    pub headers: &'a [(String, String)],
    /// Content type of the bodies.
    pub content_type: &'static str,
    /// Whether bodies are compressed with gzip.
    pub gzip: bool,
    /// Timeout for each step of a request: connect, send, wait for the response.
    pub timeout: Duration,
    /// File with trusted certificates; `None`: those of the machine.
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
    /// Checks the address; sends no request.
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

    /// Sends a body. An error is a network error.
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
        let mut response = sent.map_err(|e| e.to_string())?;
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        // The status is known: a response with a truncated body has the same meaning.
        let body = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_vec();
        Ok(Reply {
            status: response.status().as_u16(),
            retry_after,
            body: body.unwrap_or_default(),
        })
    }
}

/// Compresses a body. Never returns `None` in practice: only memory could fail, and that aborts.
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
    fn post_with_invalid_settings_is_rejected() {
        for (found, expected) in [
            (post("http://127.0.0.1:4318/", "authorization", None), ""),
            (post("127.0.0.1:4318", "a", None), "is not an address of a collector"),
            (post("ftp://collector", "a", None), "is not an address of a collector"),
            (post("http://collector/?a=b", "a", None), "is not an address of a collector"),
            (post("http://collector", "a b", None), "that HTTP does not allow"),
            (post("https://collector", "a", Some("/dev/null")), "no trusted certificates"),
        ] {
            let text = found.map_or_else(|e| e.to_string(), |_| String::new());
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
        }
    }
}
