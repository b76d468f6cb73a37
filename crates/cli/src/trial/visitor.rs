//! A client that sends requests one after another, with the cookies that were set.

use super::response::TrialResponse;
use super::targets::Target;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const RESPONSE_BYTES_MAX: u64 = 64 << 20;
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const COOKIES_MAX: usize = 300;
/// Host of requests that name none.
const HOST: &str = "localhost";

/// A new visitor has no cookies.
#[derive(Debug, Default)]
pub(crate) struct Visitor {
    /// Cookies of all paths and hosts: all requests are for one application.
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    pub(crate) fn get(&mut self, server: SocketAddr, target: &Target) -> Result<TrialResponse> {
        self.exchange(server, self.request(target).as_bytes(), true).map(|(response, _)| response)
    }

    /// Sends a request of any method with this id, and returns its time until the response was
    /// complete. A `Cookie` of the request replaces those of the visitor.
    pub(crate) fn send(
        &mut self,
        server: SocketAddr,
        target: &samovar_load::Target,
        id: &str,
    ) -> Result<(TrialResponse, Duration)> {
        let has_own = target.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let mut target = target.clone();
        target.headers.push(("X-Request-Id".to_owned(), id.to_owned()));
        if !has_own && !self.cookies.is_empty() {
            target.headers.push(("Cookie".to_owned(), self.cookie()));
        }
        let bytes = target.bytes(HOST).map_err(|error| anyhow!("{error}"))?;
        self.exchange(server, &bytes, target.method != "HEAD")
    }

    fn exchange(
        &mut self,
        server: SocketAddr,
        request: &[u8],
        has_body: bool,
    ) -> Result<(TrialResponse, Duration)> {
        let mut stream =
            TcpStream::connect_timeout(&server, CONNECT_TIMEOUT).context("cannot connect")?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let begun = Instant::now();
        stream.write_all(request).context("cannot send the request")?;
        let mut bytes = Vec::new();
        let read = stream.take(RESPONSE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.with_context(|| format!("no response within {} s", RESPONSE_TIMEOUT.as_secs()))?;
        let time = begun.elapsed();
        if bytes.len() as u64 > RESPONSE_BYTES_MAX {
            bail!("the response is longer than {} MiB", RESPONSE_BYTES_MAX >> 20);
        }
        let response = TrialResponse::parse(&bytes, has_body)?;
        for cookie in &response.cookies {
            self.keep(cookie);
        }
        Ok((response, time))
    }

    fn request(&self, target: &Target) -> String {
        let mut request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: samovar/{}\r\nAccept: */*\r\nConnection: \
             close\r\n",
            target.path,
            target.host,
            env!("CARGO_PKG_VERSION")
        );
        if !self.cookies.is_empty() {
            let _ = write!(request, "Cookie: {}\r\n", self.cookie());
        }
        request + "\r\n"
    }

    fn cookie(&self) -> String {
        let cookies: Vec<_> = self.cookies.iter().map(|(n, v)| format!("{n}={v}")).collect();
        cookies.join("; ")
    }

    /// Stores a cookie as in RFC 6265, but ignores domains, paths and dates. `Max-Age=0` removes a
    /// cookie; PHP sends it together with a date.
    fn keep(&mut self, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let is_over = parts.any(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            name.eq_ignore_ascii_case("max-age") && value.parse::<i64>().is_ok_and(|s| s <= 0)
        });
        if is_over {
            self.cookies.remove(name);
        } else if self.cookies.len() < COOKIES_MAX || self.cookies.contains_key(name) {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_stored_and_removed() {
        let mut visitor = Visitor::default();
        let target = Target { host: "h".to_owned(), path: "/p?q".to_owned() };
        assert!(!visitor.request(&target).contains("Cookie"));
        for cookie in ["a=1; Path=/; HttpOnly", "b=x=y", "a=2", "nonsense", "c=3"] {
            visitor.keep(cookie);
        }
        visitor.keep("c=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0");
        let request = visitor.request(&target);
        assert!(request.starts_with("GET /p?q HTTP/1.1\r\nHost: h\r\n"), "{request}");
        assert!(request.ends_with("\r\nCookie: a=2; b=x=y\r\n\r\n"), "{request}");
    }
}
