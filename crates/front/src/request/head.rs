//! Encodes the head of a request for PHP, by nginx's rules.
//!
//! Header names that contain other characters than letters, digits and `-` are not passed. `X_Y`
//! and `X-Y` would be the same variable in PHP, so a client could forge a header that a proxy sets.
//! `Proxy` is dropped, because `HTTP_PROXY` controls HTTP clients (httpoxy). Repeated headers are
//! joined: `Cookie` by `; `, others by `, `.

use super::context::ScriptRequest;
use crate::log::trace::{OwnHeader, TRACEPARENT, TRACESTATE};
use crate::route::target::Target;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use samovar_ring::Lane;
use samovar_ring::request::{
    FLAG_APP, FLAG_HTTPS, FLAG_REQUEST_ACCOUNTING, FLAG_WHOLE, RequestHead, TooLarge, encode_with,
};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

/// A `$_SERVER` variable: name and value.
type Variable<'a> = (&'static [u8], Cow<'a, [u8]>);

/// The headers that PHP gets as separate fields, each with its first value. They are collected in
/// one pass, because each lookup would hash the name.
#[derive(Default)]
struct Fields<'a> {
    content_type: Option<&'a HeaderValue>,
    content_length: Option<&'a HeaderValue>,
    authorization: Option<&'a HeaderValue>,
    cookie: Option<&'a HeaderValue>,
}

impl<'a> Fields<'a> {
    fn of(headers: &'a HeaderMap) -> Fields<'a> {
        let mut fields = Fields::default();
        for (name, value) in headers {
            let field = match *name {
                header::CONTENT_TYPE => &mut fields.content_type,
                header::CONTENT_LENGTH => &mut fields.content_length,
                header::AUTHORIZATION => &mut fields.authorization,
                header::COOKIE => &mut fields.cookie,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        fields
    }
}

impl ScriptRequest<'_> {
    /// Encodes the head into `out`. `body_bytes`: the body's length, if known. `is_whole`: the
    /// request runs as a whole script.
    pub(super) fn encode(
        &self,
        body_bytes: Option<u64>,
        is_whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let ScriptRequest { context, parts, script } = *self;
        let whole = if is_whole { FLAG_WHOLE } else { 0 };
        if let Some(told) = context.told {
            return self.encode_told(told, body_bytes, whole, out);
        }
        let ends = context.ends;
        let headers = &parts.headers;
        let fields = Fields::of(headers);
        let cookie = fields.cookie.and_then(|_| joined(headers, &header::COOKIE));
        let claimed = self.context.claims.address.map(|address| address.to_string());
        let remote_port =
            if claimed.is_some() { 0 } else { ends.peer.map_or(0, |peer| peer.port()) };
        let is_https = self.context.claims.is_https.unwrap_or(ends.is_tls);
        let declared = || fields.content_length?.to_str().ok()?.parse().ok();
        let target = Target::of(parts);
        let head = RequestHead {
            method: parts.method.as_str().as_bytes(),
            target: target.whole,
            query: target.query.unwrap_or_default(),
            protocol: protocol(parts.version),
            script_filename: &script.filename,
            script_name: &script.name,
            // As in nginx when `try_files` has rewritten the URI to the script.
            document_uri: &script.name,
            path_info: &script.path_info,
            document_root: context.setup.site.root.as_os_str().as_bytes(),
            server_name: self.server_name().as_bytes(),
            server_addr: ends.local_text.as_bytes(),
            remote_addr: claimed.as_deref().unwrap_or(&ends.peer_text).as_bytes(),
            request_id: context.id.as_bytes(),
            content_type: fields.content_type.map(HeaderValue::as_bytes),
            cookie: cookie.as_deref(),
            authorization: fields.authorization.map(HeaderValue::as_bytes),
            content_length: body_bytes.or_else(declared),
            server_port: self.server_port(is_https),
            remote_port,
            flags: flags(script.lane, is_https, self.shared().recorder.wants_reports()) | whole,
        };
        let own = context.traceparent.map(OwnHeader::header);
        let of_ends = ends.variables.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        let of_trace = self.trace_variables();
        let of_trace = of_trace.iter().flatten().map(|(name, value)| (*name, &value[..]));
        let variables = of_ends.chain(of_trace);
        if headers.len() == headers.keys_len() && self.host_override().is_none() {
            let single = headers.iter().map(|(n, v)| (n.as_str().as_bytes(), v.as_bytes()));
            let passed = single.filter(|(name, _)| is_passed(name)).chain(own);
            return encode_with(&head, passed, variables.chain(script.variables()), out);
        }
        let all = self.joined_headers();
        let all = all.iter().map(|(name, value)| (*name, &value[..])).chain(own);
        encode_with(&head, all, variables.chain(script.variables()), out)
    }

    /// The trace as environment variables. They match the headers of [`Self::encode`], but headers
    /// that are not trusted are left out.
    pub(super) fn trace_variables(&self) -> [Option<Variable<'_>>; 2] {
        let Some(trace) = self.context.trace else { return [None, None] };
        let came = |name: &'static [u8], header: &HeaderName| {
            let value = if trace.came() { joined(&self.parts.headers, header) } else { None };
            value.map(|value| (name, value))
        };
        let own = self
            .context
            .traceparent
            .map(|text| (b"TRACEPARENT" as &[u8], Cow::Borrowed(text.value())));
        [own.or_else(|| came(b"TRACEPARENT", &TRACEPARENT)), came(b"TRACESTATE", &TRACESTATE)]
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

    /// The value that replaces the `Host` header: from a trusted proxy, or the host of a target in
    /// absolute form (RFC 9112 3.2.2).
    fn host_override(&self) -> Option<&str> {
        let target = self.parts.uri.authority().map(http::uri::Authority::as_str);
        self.context.claims.host.as_deref().or(target)
    }

    fn server_name(&self) -> &str {
        let context = self.context;
        let host = Some(context.host(self.parts)).filter(|host| !host.is_empty());
        let fallback = context.setup.settings.server_name.as_deref();
        host.or(fallback).unwrap_or(&context.ends.local_text)
    }

    fn server_port(&self, is_https: bool) -> u16 {
        let claims = self.context.claims;
        let own = || self.context.ends.port().filter(|_| claims.is_https.is_none());
        let usual = if is_https { 443 } else { 80 };
        claims.port.or_else(own).unwrap_or(usual)
    }
}

pub(super) fn flags(lane: Lane, is_https: bool, has_request_accounting: bool) -> u32 {
    let app = if lane.is_app() { FLAG_APP } else { 0 };
    let https = if is_https { FLAG_HTTPS } else { 0 };
    let request_accounting = if has_request_accounting { FLAG_REQUEST_ACCOUNTING } else { 0 };
    app | https | request_accounting
}

fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::HTTP_10 => b"HTTP/1.0",
        Version::HTTP_2 => b"HTTP/2.0",
        _ => b"HTTP/1.1",
    }
}

pub(super) fn is_passed(name: &[u8]) -> bool {
    name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-') && name != b"proxy"
}

/// Joins all values of a header.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::front_response::without_port;

    #[test]
    fn port_is_removed_from_host() {
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
    fn forgeable_header_names_are_not_passed() {
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
    fn fields_have_the_first_value_of_a_header() {
        let mut headers = HeaderMap::new();
        for value in ["a", "b"] {
            headers.append(header::CONTENT_TYPE, HeaderValue::from_static(value));
            headers.append(header::ACCEPT, HeaderValue::from_static(value));
        }
        headers.insert(header::COOKIE, HeaderValue::from_static("c=1"));
        let fields = Fields::of(&headers);
        assert_eq!(fields.content_type, headers.get(header::CONTENT_TYPE));
        assert_eq!(fields.cookie, headers.get(header::COOKIE));
        assert_eq!((fields.content_length, fields.authorization), (None, None));
    }

    #[test]
    fn repeated_header_values_are_joined() {
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
