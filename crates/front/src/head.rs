//! head: what PHP is told about a request, by nginx's rules.
//!
//! Header names with other characters than letters, digits and `-` are not passed on: `X_Y` and `X-Y` would be the same
//! variable in PHP, which lets a client forge what a proxy sets. `Proxy` is dropped, because `HTTP_PROXY` steers
//! HTTP clients (httpoxy). Headers that come several times are joined: `Cookie` by `; `, others by `, `.

use crate::connection::ConnectionState;
use crate::forwarded::Claims;
use crate::route::Script;
use crate::shared::Setup;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use samovar_ring::Lane;
use samovar_ring::request::{FLAG_APP, FLAG_HTTPS, RequestHead, TooLarge, encode};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

/// A request on its way to PHP.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) connection: &'a ConnectionState,
    pub(crate) setup: &'a Setup,
    pub(crate) parts: &'a Parts,
    pub(crate) script: &'a Script,
    pub(crate) id: &'a HeaderValue,
    pub(crate) trust: &'a Claims,
}

impl Caller<'_> {
    /// Encodes the head into `out`. `body_bytes`: the body's length, if it is known.
    pub(crate) fn encode(
        &self,
        body_bytes: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let Caller { connection, parts, script, .. } = *self;
        let headers = &parts.headers;
        let cookie = joined(headers, &header::COOKIE);
        let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let claimed = self.trust.address.map(|address| address.to_string());
        let remote_port = if claimed.is_some() { 0 } else { connection.peer.port() };
        let is_https = self.trust.is_https.unwrap_or(false);
        let declared = || headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
        let path_and_query = parts.uri.path_and_query().map_or("/", |p| p.as_str());
        let head = RequestHead {
            method: parts.method.as_str().as_bytes(),
            target: path_and_query.as_bytes(),
            query: parts.uri.query().unwrap_or_default().as_bytes(),
            protocol: protocol(parts.version),
            script_filename: &script.filename,
            script_name: &script.name,
            // As nginx, where `try_files` has rewritten the URI to the script.
            document_uri: &script.name,
            path_info: &script.path_info,
            document_root: self.setup.site.root.as_os_str().as_bytes(),
            server_name: self.server_name().as_bytes(),
            server_addr: connection.local_text.as_bytes(),
            remote_addr: claimed.as_deref().unwrap_or(&connection.peer_text).as_bytes(),
            request_id: self.id.as_bytes(),
            content_type,
            cookie: cookie.as_deref(),
            authorization,
            content_length: body_bytes.or_else(declared),
            server_port: self.server_port(is_https),
            remote_port,
            flags: flags(script.lane, is_https),
        };
        if headers.len() == headers.keys_len() && self.host_override().is_none() {
            let single = headers.iter().map(|(n, v)| (n.as_str().as_bytes(), v.as_bytes()));
            return encode(&head, single.filter(|(name, _)| is_passed(name)), out);
        }
        let all = self.joined_headers();
        encode(&head, all.iter().map(|(name, value)| (*name, &value[..])), out)
    }

    fn joined_headers(&self) -> Vec<(&[u8], Cow<'_, [u8]>)> {
        let headers = &self.parts.headers;
        let names = headers.keys().filter(|name| is_passed(name.as_str().as_bytes()));
        names
            .filter_map(|name| {
                let value = match self.host_override() {
                    Some(host) if name == header::HOST => Cow::Borrowed(host.as_bytes()),
                    _ => joined(headers, name)?,
                };
                Some((name.as_str().as_bytes(), value))
            })
            .collect()
    }

    /// What replaces the `Host` header: a trusted proxy's word, or the host of a target in absolute form (RFC 9112
    /// 3.2.2).
    fn host_override(&self) -> Option<&str> {
        let target = self.parts.uri.authority().map(http::uri::Authority::as_str);
        self.trust.host.as_deref().or(target)
    }

    /// The name the client used: a trusted proxy's word, the target's host, or the `Host` header's.
    fn server_name(&self) -> &str {
        let target = self.parts.uri.host();
        let header = self.parts.headers.get(header::HOST).and_then(|h| h.to_str().ok());
        let host = self.trust.host.as_deref().or(target).or(header).map(without_port);
        let fallback = self.setup.options.server_name.as_deref();
        host.filter(|h| !h.is_empty()).or(fallback).unwrap_or(&self.connection.local_text)
    }

    fn server_port(&self, is_https: bool) -> u16 {
        match (self.trust.port, self.trust.is_https) {
            (Some(port), _) => port,
            (None, Some(_)) if is_https => 443,
            (None, Some(_)) => 80,
            (None, None) => self.connection.local.port(),
        }
    }
}

fn flags(lane: Lane, is_https: bool) -> u32 {
    let app = if lane == Lane::App { FLAG_APP } else { 0 };
    let https = if is_https { FLAG_HTTPS } else { 0 };
    app | https
}

fn protocol(version: Version) -> &'static [u8] {
    if version == Version::HTTP_10 { b"HTTP/1.0" } else { b"HTTP/1.1" }
}

fn is_passed(name: &[u8]) -> bool {
    name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-') && name != b"proxy"
}

/// All values of a header as one.
fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.get_all(name).iter();
    let mut all = Cow::Borrowed(values.next()?.as_bytes());
    let separator: &[u8] = if name == header::COOKIE { b"; " } else { b", " };
    for value in values {
        let all = all.to_mut();
        all.extend_from_slice(separator);
        all.extend_from_slice(value.as_bytes());
    }
    Some(all)
}

/// `example.com:80` → `example.com`, `[::1]:80` → `[::1]`.
fn without_port(host: &str) -> &str {
    match host.rfind([':', ']']) {
        Some(at) if host.as_bytes()[at] == b':' => &host[..at],
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_cut_off() {
        for (host, name) in [
            ("example.com", "example.com"),
            ("example.com:80", "example.com"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            (":80", ""),
        ] {
            assert_eq!(without_port(host), name);
        }
    }

    #[test]
    fn names_that_could_be_forged_are_not_passed() {
        for (name, passes) in [
            ("x-real-ip", true),
            ("x_real_ip", false),
            ("proxy", false),
            ("x.y", false),
            ("a1", true),
        ] {
            assert_eq!(is_passed(name.as_bytes()), passes, "{name}");
        }
    }

    #[test]
    fn values_are_joined() {
        let mut headers = HeaderMap::new();
        for value in ["a=1", "b=2"] {
            headers.append(header::COOKIE, HeaderValue::from_static(value));
            headers.append(header::ACCEPT, HeaderValue::from_static(value));
        }
        assert_eq!(joined(&headers, &header::COOKIE).as_deref(), Some(&b"a=1; b=2"[..]));
        assert_eq!(joined(&headers, &header::ACCEPT).as_deref(), Some(&b"a=1, b=2"[..]));
        assert_eq!(joined(&headers, &header::HOST), None);
    }
}
