//! A request as bytes: built once per target, copied for each transmission.

use crate::response::Asked;
use std::io::Write;
use std::rc::Rc;

/// Placeholder in a path for a number that differs in each transmission.
const NUMBER: &str = "{n}";
/// Maximum size of a body that is copied after the head, so that both leave in one system call.
const COPIED_BODY_BYTES_MAX: usize = 16 * 1024;
/// Headers that the client itself sets. In a target they would be contradictory.
const OWN_HEADERS: [&str; 3] = ["connection", "content-length", "transfer-encoding"];
/// Methods whose meaning expects a body, so that a missing body is also declared (RFC 9110, 8.6).
const METHODS_WITH_BODY: [&str; 3] = ["POST", "PUT", "PATCH"];

/// A target's description of its requests.
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) authority: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: Option<Rc<[u8]>>,
    pub(crate) close: bool,
}

/// A request that can be sent many times.
#[derive(Debug)]
pub(crate) struct Request {
    /// The head, split at the places of the number.
    pieces: Vec<Box<[u8]>>,
    body: Rc<[u8]>,
    asked: Asked,
}

impl Request {
    pub(crate) fn new(parts: &Parts) -> Result<Request, String> {
        check(parts)?;
        // Only the path is split: a header may contain the placeholder literally.
        let mut pieces: Vec<String> = parts.path.split(NUMBER).map(str::to_owned).collect();
        pieces[0].insert_str(0, &format!("{} ", parts.method));
        pieces.last_mut().expect("split gives one at least").push_str(&after_path(parts));
        let pieces = pieces.into_iter().map(|piece| piece.into_bytes().into()).collect();
        let asked = if parts.method == "HEAD" { Asked::Head } else { Asked::Body };
        Ok(Request { pieces, body: parts.body.clone().unwrap_or_default(), asked })
    }

    /// Writes the head, and the body if it is small. Returns the bytes that are still to be sent
    /// after that.
    pub(crate) fn copy_out(&self, number: u64, out: &mut Vec<u8>) -> &[u8] {
        out.clear();
        out.extend_from_slice(&self.pieces[0]);
        for piece in &self.pieces[1..] {
            write!(out, "{number}").expect("writing to memory cannot fail");
            out.extend_from_slice(piece);
        }
        if self.body.len() > COPIED_BODY_BYTES_MAX {
            return &self.body;
        }
        out.extend_from_slice(&self.body);
        &[]
    }

    /// Determines the form of its response.
    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }
}

fn after_path(parts: &Parts) -> String {
    let mut text = " HTTP/1.1\r\n".to_owned();
    let mut line = |name: &str, value: &str| {
        for piece in [name, ": ", value, "\r\n"] {
            text.push_str(piece);
        }
    };
    if !parts.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        line("Host", parts.authority);
    }
    for (name, value) in parts.headers {
        line(name, value);
    }
    if parts.body.is_some() || METHODS_WITH_BODY.contains(&parts.method) {
        line("Content-Length", &parts.body.as_ref().map_or(0, |body| body.len()).to_string());
    }
    if parts.close {
        line("Connection", "close");
    }
    text + "\r\n"
}

fn check(parts: &Parts) -> Result<(), String> {
    if !is_token(parts.method) {
        return Err(format!("invalid method `{}`", parts.method.escape_debug()));
    }
    if !parts.path.starts_with('/') || !parts.path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "invalid path `{}`\n\
             hint: start it with a slash; encode spaces and non-ASCII letters as %20",
            parts.path.escape_debug()
        ));
    }
    let hosts = parts.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    if hosts.count() > 1 {
        return Err("the header `Host` is given twice".to_owned());
    }
    for (name, value) in parts.headers {
        if !is_token(name) || value.contains(['\r', '\n', '\0']) {
            return Err(format!("invalid header `{}`", name.escape_debug()));
        }
        if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(format!("the header `{name}` is set by the client itself"));
        }
    }
    Ok(())
}

/// Whether it is a token of RFC 9110, 5.6.2.
fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::{COPIED_BODY_BYTES_MAX, Parts, Request};

    const PARTS: Parts = Parts {
        method: "GET",
        path: "/",
        authority: "127.0.0.1:80",
        headers: &[],
        body: None,
        close: false,
    };

    fn text(parts: &Parts, number: u64) -> String {
        let mut out = b"left over".to_vec();
        let request = Request::new(parts).unwrap();
        assert!(request.copy_out(number, &mut out).is_empty());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_request_has_line_and_host() {
        assert_eq!(text(&PARTS, 1), "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
    }

    #[test]
    fn placeholder_in_path_becomes_number() {
        let path = "/a{n}?n={n}";
        assert_eq!(
            text(&Parts { path, ..PARTS }, 42),
            "GET /a42?n=42 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"
        );
    }

    #[test]
    fn request_contains_headers_body_and_close() {
        let headers = [("host".into(), "a.test".into()), ("Cookie".into(), "n={n}".into())];
        let body = Some(b"hello".as_slice().into());
        assert_eq!(
            text(&Parts { method: "POST", headers: &headers, body, close: true, ..PARTS }, 1),
            "POST / HTTP/1.1\r\nhost: a.test\r\nCookie: n={n}\r\nContent-Length: 5\r\n\
             Connection: close\r\n\r\nhello"
        );
        assert!(text(&Parts { method: "PUT", ..PARTS }, 1).contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn large_body_is_not_copied() {
        let body = vec![b'x'; COPIED_BODY_BYTES_MAX + 1];
        let request = Request::new(&Parts { body: Some(body.clone().into()), ..PARTS }).unwrap();
        let mut out = Vec::new();
        assert_eq!(request.copy_out(1, &mut out), body);
        assert!(out.ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn invalid_parts_are_rejected() {
        for method in ["", "GET /", "G\r\n"] {
            assert!(Request::new(&Parts { method, ..PARTS }).is_err(), "{method:?}");
        }
        for path in ["", "x", "/a b", "/\r\n", "/ä"] {
            assert!(Request::new(&Parts { path, ..PARTS }).is_err(), "{path:?}");
        }
        let hosts = [("Host".into(), "a".into()), ("host".into(), "a".into())];
        assert!(Request::new(&Parts { headers: &hosts, ..PARTS }).is_err());
        for (name, value) in [("a b", ""), ("a", "b\r\nc: d"), ("content-length", "1")] {
            let headers = [(name.into(), value.into())];
            assert!(Request::new(&Parts { headers: &headers, ..PARTS }).is_err(), "{name:?}");
        }
    }
}
