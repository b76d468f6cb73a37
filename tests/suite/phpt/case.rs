//! One `.phpt` file: its sections, and the request that they describe.

use samovar_testkit::http::Request;
use std::collections::BTreeMap;
use std::path::Path;

/// Names and values.
pub(crate) type Pairs = Vec<(String, String)>;

/// A test of php-src.
pub(crate) struct Case {
    /// Path below the document root, without `.phpt`.
    pub(crate) name: String,
    pub(crate) sections: BTreeMap<String, Vec<u8>>,
}

impl Case {
    /// Reads a `.phpt` file below `root`.
    pub(crate) fn read(path: &Path, root: &Path) -> Case {
        let name = path.strip_prefix(root).expect("below the root").with_extension("");
        let name = name.to_string_lossy().into_owned();
        let content = std::fs::read(path).unwrap_or_else(|e| panic!("read `{name}`: {e}"));
        Case { name, sections: sections(&content) }
    }

    /// A section, unchanged.
    pub(crate) fn section(&self, name: &str) -> Option<&[u8]> {
        self.sections.get(name).map(Vec::as_slice)
    }

    /// A section as text, without the surrounding white space.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.section(name).map(|content| String::from_utf8_lossy(content).trim().to_owned())
    }

    /// The reason why the test cannot run through a web server, if there is one.
    pub(crate) fn foreign(&self) -> Option<&'static str> {
        let has = |section| self.sections.contains_key(section);
        match () {
            () if has("ARGS") => Some("it is about command line arguments"),
            () if has("STDIN") || has("CAPTURE_STDIO") => Some("it is about standard streams"),
            () if has("XFAIL") => Some("php-src expects it to fail"),
            () => None,
        }
    }

    /// `key=value` of each line of INI, with the test's folder inserted.
    pub(crate) fn ini(&self, folder: &Path) -> Pairs {
        let text = self.text("INI").unwrap_or_default();
        let text = text.replace("{PWD}", &folder.display().to_string()).replace("{TMP}", "/tmp");
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(key, value)| (key.trim().to_owned(), unquoted(value).to_owned())).collect()
    }

    /// ENV, split into the server's environment and request headers (`HTTP_…`).
    pub(crate) fn environment(&self) -> (Pairs, Pairs) {
        let text = self.text("ENV").unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        let (headers, environment): (Vec<_>, Vec<_>) =
            pairs.partition(|(name, _)| name.starts_with("HTTP_"));
        let header = |(name, value): (String, String)| {
            (name.trim_start_matches("HTTP_").replace('_', "-"), value)
        };
        (environment, headers.into_iter().map(header).collect())
    }

    /// PHP code that prints `skip` if the test does not apply.
    pub(crate) fn skip_script(&self) -> Option<Vec<u8>> {
        let extensions = self.text("EXTENSIONS").unwrap_or_default();
        let mut script: Vec<u8> = extensions
            .split_whitespace()
            .flat_map(|e| {
                format!("<?php extension_loaded('{e}') || die('skip no {e}'); ?>").into_bytes()
            })
            .collect();
        script.extend_from_slice(self.section("SKIPIF").unwrap_or_default());
        (!script.is_empty()).then_some(script)
    }

    /// The bytes of the request that runs the test.
    pub(crate) fn request(&self) -> Vec<u8> {
        // Cookies may be invalid UTF-8, so they are inserted as bytes.
        let bytes = self.request_without_cookies().bytes();
        let Some(cookie) = self.section("COOKIE") else { return bytes };
        let line_end = bytes.windows(2).position(|w| w == b"\r\n").expect("a request line") + 2;
        let (line, rest) = bytes.split_at(line_end);
        [line, b"Cookie: ", cookie.trim_ascii(), b"\r\n", rest].concat()
    }

    fn request_without_cookies(&self) -> Request {
        let query = self.text("GET").map(|get| format!("?{get}")).unwrap_or_default();
        let target = format!("/{}.php{query}", self.name);
        let request = match (self.section("POST_RAW"), self.section("PUT"), self.text("POST")) {
            (Some(raw), _, _) => with_raw_body("POST", &target, raw),
            (_, Some(raw), _) => with_raw_body("PUT", &target, raw),
            (_, _, Some(post)) => Request::form(&target, &post),
            _ => Request::get(&target),
        };
        let (_, headers) = self.environment();
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// `POST_RAW` and PUT: lines with `Content-Type:` are the header; the other lines are the body,
/// joined by LF.
fn with_raw_body(method: &str, target: &str, raw: &[u8]) -> Request {
    let mut kind = None;
    let mut body: Vec<&[u8]> = Vec::new();
    for line in raw.trim_ascii().split(|byte| *byte == b'\n') {
        let is_kind = line.get(..13).is_some_and(|l| l.eq_ignore_ascii_case(b"content-type:"));
        if is_kind && kind.is_none() {
            kind = Some(String::from_utf8_lossy(&line[13..]).trim().to_owned());
        } else {
            body.push(line);
        }
    }
    let request = Request::new(method, target).body(body.join(&b'\n'));
    kind.into_iter().fold(request, |request, kind| request.header("Content-Type", &kind))
}

fn sections(content: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut sections = BTreeMap::new();
    let mut current = String::new();
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if let Some(name) = heading(line) {
            current = name;
        } else {
            let section: &mut Vec<u8> = sections.entry(current.clone()).or_default();
            section.extend_from_slice(line);
        }
    }
    sections
}

fn heading(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    let name = text.strip_prefix("--")?.strip_suffix("--")?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    is_name.then(|| name.to_owned())
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value)
}
