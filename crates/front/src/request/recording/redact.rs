//! Replaces secret values of a request: cookies, credentials, and values with secret names.
//!
//! Names are kept. Values are those of headers, of the query, of forms and of JSON. A value, or a
//! body of another type, that contains a secret name with its value is replaced as a whole. A path
//! stays as it is, because it selects the script.

use crate::runtime::recordings::{RecordedInput, SecretNames, unescaped};
use samovar_insight::BLOT;
use samovar_ring::request::{Headers, RequestHead, decode, decode_variables, encode_with};
use serde_json::Value;
use std::borrow::Cow;

/// Maximum number of names that are reported.
const NAMES_MAX: usize = 64;
/// Maximum length of a reported name, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Maximum number of parts of a multipart body that are examined; a body with more is dropped.
const PARTS_MAX: usize = 1_000;

/// Fills the texts of the input, and replaces its secrets, unless `names` is `None`. Returns `None`
/// if the head is invalid, or too long after the replacement.
pub(super) fn redact(input: RecordedInput, names: Option<&SecretNames>) -> Option<RecordedInput> {
    let (head, headers) = decode(&input.head)?;
    let variables = decode_variables(&input.head)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    let host = host.map_or_else(|| text(head.server_name), |(_, host)| text(host));
    let Some(names) = names else {
        let (method, target) = (text(head.method), text(head.target));
        return Some(RecordedInput { method, target, host, ..input });
    };
    let mut found = Found { names, redacted: Vec::new() };
    let body = found.body(head.content_type.unwrap_or_default(), &input.body);
    let (target, query) = (found.target(head.target), found.pairs("query", head.query, b'&'));
    let cookie = head.cookie.map(|cookie| found.cookies(cookie));
    let authorization = head.authorization.map(|_| found.blot("header", b"authorization"));
    let changed_length = (body.len() != input.body.len()).then(|| body.len().to_string());
    let mut values = |all: Headers<'_>, kind: &'static str| -> Vec<(Vec<u8>, Vec<u8>)> {
        let value = |(name, value): (&[u8], &[u8])| {
            let new = match &changed_length {
                Some(length) if is_length(name) => Cow::Owned(length.clone().into_bytes()),
                _ => found.value(kind, name, value),
            };
            (name.to_vec(), new.into_owned())
        };
        all.into_iter().map(value).collect()
    };
    let headers = values(headers, "header");
    let variables = values(variables, "variable");
    let content_length = match &changed_length {
        Some(_) => Some(body.len() as u64),
        None => head.content_length,
    };
    let changed = RequestHead {
        target: &target,
        query: &query,
        cookie: cookie.as_deref(),
        authorization: authorization.as_deref(),
        content_length,
        ..head
    };
    let mut encoded = Vec::new();
    let (headers, variables) = (borrowed(&headers), borrowed(&variables));
    encode_with(&changed, headers, variables, &mut encoded).ok()?;
    let (method, target) = (text(head.method), text(&target));
    let redacted = found.redacted;
    let body = body.into_owned();
    Some(RecordedInput { method, target, host, head: encoded, body, cut: input.cut, redacted })
}

fn borrowed(all: &[(Vec<u8>, Vec<u8>)]) -> impl Iterator<Item = (&[u8], &[u8])> {
    all.iter().map(|(name, value)| (&name[..], &value[..]))
}

fn is_length(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content-length") || name == b"CONTENT_LENGTH"
}

/// The secrets that were found.
struct Found<'a> {
    names: &'a SecretNames,
    redacted: Vec<String>,
}

impl Found<'_> {
    fn blot(&mut self, kind: &str, name: &[u8]) -> Cow<'static, [u8]> {
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
        let text = format!("{kind} {}", name.escape_debug());
        if self.redacted.len() < NAMES_MAX && !self.redacted.contains(&text) {
            self.redacted.push(text);
        }
        Cow::Borrowed(BLOT.as_bytes())
    }

    /// A header, or a variable of a web server.
    fn value<'v>(&mut self, kind: &str, name: &[u8], value: &'v [u8]) -> Cow<'v, [u8]> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let value = if is("cookie") || is("http_cookie") {
            return self.cookies(value);
        } else if self.names.has(name) {
            return self.blot(kind, name);
        } else if is("query_string") {
            self.pairs("query", value, b'&')
        } else {
            self.target(value)
        };
        if self.names.are_in(&value) { self.blot(kind, name) } else { value }
    }

    /// All cookies: also those whose names are not secret identify a visitor.
    fn cookies<'v>(&mut self, cookies: &'v [u8]) -> Cow<'v, [u8]> {
        let mut all = Vec::with_capacity(cookies.len());
        for cookie in cookies.split(|byte| *byte == b';') {
            if !all.is_empty() {
                all.extend_from_slice(b"; ");
            }
            let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            let blot = self.blot("cookie", name);
            all.extend_from_slice(name);
            all.push(b'=');
            all.extend_from_slice(&blot);
        }
        all.into()
    }

    /// A path or URL with a query.
    fn target<'v>(&mut self, target: &'v [u8]) -> Cow<'v, [u8]> {
        let Some(at) = memchr::memchr(b'?', target) else { return Cow::Borrowed(target) };
        match self.pairs("query", &target[at + 1..], b'&') {
            Cow::Borrowed(_) => Cow::Borrowed(target),
            Cow::Owned(query) => [&target[..=at], &query].concat().into(),
        }
    }

    /// Pairs `name=value`, as in a query or a form.
    fn pairs<'v>(&mut self, kind: &str, pairs: &'v [u8], between: u8) -> Cow<'v, [u8]> {
        let mut has_changed = false;
        let mut all = Vec::with_capacity(pairs.len());
        for (at, pair) in pairs.split(|byte| *byte == between).enumerate() {
            if at > 0 {
                all.push(between);
            }
            match memchr::memchr(b'=', pair) {
                Some(equals) if self.is_secret(&pair[..equals], &pair[equals + 1..]) => {
                    has_changed = true;
                    let blot = self.blot(kind, &pair[..equals]);
                    all.extend_from_slice(&pair[..=equals]);
                    all.extend_from_slice(&blot);
                }
                _ => all.extend_from_slice(pair),
            }
        }
        if has_changed { all.into() } else { Cow::Borrowed(pairs) }
    }

    fn is_secret(&self, name: &[u8], value: &[u8]) -> bool {
        self.names.has(&unescaped(name)) || self.names.are_in(value)
    }

    fn body<'v>(&mut self, kind: &[u8], body: &'v [u8]) -> Cow<'v, [u8]> {
        let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let media = media.to_ascii_lowercase();
        if media == b"application/x-www-form-urlencoded" {
            self.pairs("field", body, b'&')
        } else if media == b"application/json" || media.ends_with(b"+json") {
            self.json(body)
        } else if media == b"multipart/form-data" {
            self.multipart(kind, body)
        } else {
            self.other(body)
        }
    }

    /// A body whose parts are unknown.
    fn other<'v>(&mut self, body: &'v [u8]) -> Cow<'v, [u8]> {
        if self.names.are_in(body) { self.blot("body", b"(all of it)") } else { body.into() }
    }

    fn json<'v>(&mut self, body: &'v [u8]) -> Cow<'v, [u8]> {
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
            return self.other(body);
        };
        if !self.members(&mut value, "") {
            return Cow::Borrowed(body);
        }
        serde_json::to_vec(&value).unwrap_or_default().into()
    }

    /// Replaces secret members, and texts with a secret in them. The depth of a value is limited by
    /// its parser. `name` is that of the value. Returns whether there were some.
    fn members(&mut self, value: &mut Value, name: &str) -> bool {
        let is_secret = match &*value {
            Value::String(text) => self.names.are_in(text.as_bytes()),
            _ => false,
        };
        if is_secret || self.names.has(name.as_bytes()) {
            self.blot("member", name.as_bytes());
            *value = Value::String(BLOT.to_owned());
            return true;
        }
        match value {
            Value::Object(members) => members
                .iter_mut()
                .fold(false, |changed, (name, value)| self.members(value, name) | changed),
            Value::Array(all) => {
                all.iter_mut().fold(false, |changed, value| self.members(value, "") | changed)
            }
            _ => false,
        }
    }

    fn multipart<'v>(&mut self, kind: &[u8], body: &'v [u8]) -> Cow<'v, [u8]> {
        let Some(boundary) = parameter(kind, b"boundary=") else { return self.other(body) };
        let mark = [b"--", boundary].concat();
        if memchr::memmem::find(body, &mark).is_none() {
            return self.other(body);
        }
        let mut all = Vec::with_capacity(body.len());
        let (mut has_changed, mut from, mut parts) = (false, 0, 0);
        while let Some(at) = memchr::memmem::find(&body[from..], &mark) {
            let start = from + at + mark.len();
            all.extend_from_slice(&body[from..start]);
            let end = memchr::memmem::find(&body[start..], &mark);
            let end = end.map_or(body.len(), |end| start + end);
            let part = &body[start..end];
            from = end;
            parts += 1;
            if parts > PARTS_MAX {
                self.blot("field", b"(too many fields)");
                return Cow::Owned(Vec::new());
            }
            let head = memchr::memmem::find(part, b"\r\n\r\n").map_or(0, |at| at + 4);
            // Parsers differ about names in a head, so all of it counts.
            if self.names.has(&part[..head]) || self.names.are_in(&part[head..]) {
                has_changed = true;
                let name = [&b" name="[..], b"name="]
                    .iter()
                    .find_map(|mark| parameter(&part[..head], mark))
                    .unwrap_or(b"(without a name)");
                let blot = self.blot("field", name);
                all.extend_from_slice(&part[..head]);
                all.extend_from_slice(&blot);
                all.extend_from_slice(b"\r\n");
            } else {
                all.extend_from_slice(part);
            }
        }
        all.extend_from_slice(&body[from..]);
        if has_changed { all.into() } else { Cow::Borrowed(body) }
    }
}

/// Value of a parameter of a header, with or without quotes. `name` includes `=`.
fn parameter<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = header.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name))?;
    let value = &header[at + name.len()..];
    let value = match value.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|byte| *byte == b'"').next()?,
        None => value.split(|byte| b"; \r\n".contains(byte)).next()?,
    };
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, body: &str, expected: &str, names: &[&str]) {
        let secret = SecretNames::of(&["pin".to_owned()]);
        let mut found = Found { names: &secret, redacted: Vec::new() };
        let redacted = found.body(kind.as_bytes(), body.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), expected, "{body}");
        assert_eq!(found.redacted, names, "{body}");
    }

    #[test]
    fn secrets_of_bodies_are_replaced() {
        let form = "application/x-www-form-urlencoded";
        check(form, "a=1&password=x%26y&b", "a=1&password=(redacted)&b", &["field password"]);
        check(form, "a=1&b=2", "a=1&b=2", &[]);
        check(
            form,
            "user%5Bpassw%6frd%5d=x",
            "user%5Bpassw%6frd%5d=(redacted)",
            &["field user%5Bpassw%6frd%5d"],
        );
        check(form, "%=1&%zz=2&%7", "%=1&%zz=2&%7", &[]);
        let json = "application/json; charset=utf-8";
        check(
            json,
            r#"{"n":[{"PIN":7}],"user":{"token":[1,2]}}"#,
            r#"{"n":[{"PIN":"(redacted)"}],"user":{"token":"(redacted)"}}"#,
            &["member PIN", "member token"],
        );
        check(json, r#"{ "a": 1 }"#, r#"{ "a": 1 }"#, &[]);
        check(json, "{broken", "{broken", &[]);
        check("text/plain", "I lost my password", "I lost my password", &[]);
        let all = &["body (all of it)"];
        for (kind, body) in [
            ("text/plain", "password=x"),
            ("", r#"{"token": "x"}"#),
            ("application/xml", "<Login><Password>x</Password></Login>"),
            ("application/json", r#"{"token": "x"} rest"#),
            ("multipart/form-data; Boundary = B", "--B\r\n\r\npassword=x"),
        ] {
            check(kind, body, "(redacted)", all);
        }
    }

    #[test]
    fn values_with_a_secret_in_them_are_replaced() {
        let form = "application/x-www-form-urlencoded";
        check(
            form,
            "payload=%7B%22token%22%3A1%7D&a=%7B%22b%22%3A1%7D&api.key=1&a+pin=2",
            "payload=(redacted)&a=%7B%22b%22%3A1%7D&api.key=(redacted)&a+pin=(redacted)",
            &["field payload", "field api.key", "field a+pin"],
        );
        check(
            "application/json",
            r#"{"a":["https://u:p@h/"],"b":"{\"token\":1}","c":"d"}"#,
            r#"{"a":["(redacted)"],"b":"(redacted)","c":"d"}"#,
            &["member ", "member b"],
        );
    }

    #[test]
    fn secret_parts_of_multipart_bodies_are_replaced() {
        let kind = "multipart/form-data; boundary=\"B\"";
        let part = |name: &str, text: &str| {
            format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
        };
        let body = part("a", "1") + &part("my_password", "secret") + &part("b", "2") + "--B--\r\n";
        let expected =
            part("a", "1") + &part("my_password", "(redacted)") + &part("b", "2") + "--B--\r\n";
        check(kind, &body, &expected, &["field my_password"]);
        for (head, name) in [
            ("form-data;name=\"pin\"", "pin"),
            ("form-data; NAME='pin'", "\\'pin\\'"),
            ("form-data; name = pin", "(without a name)"),
            ("form-data; filename=\"token.txt\"; name=f", "f"),
        ] {
            let part = |text: &str| format!("--B\r\nContent-Disposition: {head}\r\n\r\n{text}\r\n");
            check(kind, &part("t0ps"), &part("(redacted)"), &[&format!("field {name}")]);
        }
        let json = |text: &str| part("operations", text);
        check(kind, &json(r#"{"password":"x"}"#), &json("(redacted)"), &["field operations"]);
        check(kind, "--B", "--B", &[]);
        check("multipart/form-data", "--B", "--B", &[]);
    }

    #[test]
    fn secrets_of_a_head_are_replaced() {
        let head = RequestHead {
            method: b"POST",
            target: b"/a?token=1&b=2",
            query: b"token=1&b=2",
            cookie: Some(b"sid=1; lang=de"),
            authorization: Some(b"Basic eDp5"),
            content_type: Some(b"application/x-www-form-urlencoded"),
            content_length: Some(5),
            ..RequestHead::default()
        };
        let headers: [(&[u8], &[u8]); 9] = [
            (b"host", b"a.example"),
            (b"cookie", b"sid=1; lang=de"),
            (b"x-api-key", b"k"),
            (b"referer", b"https://a.example/?password=p"),
            (b"content-length", b"5"),
            (b"proxy-authorization", b"Basic x"),
            (b"x-auth-user", b"kim7"),
            (b"x-original-url", b"/a?page=visible&token=1"),
            (b"x-callback", b"https://kim:pw1@a.example/"),
        ];
        let mut encoded = Vec::new();
        encode_with(&head, headers, [], &mut encoded).expect("it fits");
        let input =
            RecordedInput { head: encoded, body: b"pin=7".to_vec(), ..RecordedInput::default() };
        let kept = redact(input.clone(), None).expect("a valid head");
        assert_eq!((&kept.head, kept.redacted.len()), (&input.head, 0));
        assert_eq!((&*kept.target, &*kept.host), ("/a?token=1&b=2", "a.example"));
        let redacted = redact(input, Some(&SecretNames::of(&["pin".to_owned()])));
        let redacted = redacted.expect("a valid head");
        let (head, headers) = decode(&redacted.head).expect("a valid head");
        assert_eq!(redacted.target, "/a?token=(redacted)&b=2");
        assert_eq!(head.query, b"token=(redacted)&b=2");
        assert_eq!(head.cookie, Some(&b"sid=(redacted); lang=(redacted)"[..]));
        assert_eq!(head.authorization, Some(&b"(redacted)"[..]));
        assert_eq!((redacted.body.len(), head.content_length), (14, Some(14)));
        let text = format!("{headers:?}{:?}", String::from_utf8_lossy(&redacted.head));
        for secret in ["sid=1", "=de", "eDp5", "password=p", "token=1", "Basic", "kim7", "pw1"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(headers[2].1, b"(redacted)");
        assert_eq!(headers[4].1, b"14");
        assert_eq!(headers[7].1, b"/a?page=visible&token=(redacted)");
    }
}
