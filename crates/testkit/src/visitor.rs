//! A visitor: one connection, kept cookies, each response recorded under the name of its step.

use crate::http::{Client, Request, Response};
use crate::multipart::Multipart;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A visitor of an application.
#[derive(Debug)]
pub struct Visitor {
    address: SocketAddr,
    client: Client,
    cookies: BTreeMap<String, String>,
    /// Responses, step by step.
    pub steps: Vec<(String, Response)>,
}

/// The smallest PNG that `finfo` recognizes as a picture.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\
    \x1f\x15\xc4\x89\0\0\0\rIDAT\
    x\x9cc\xfc\xcf\xc0P\x0f\0\x04\x85\x01\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82";

/// A file to upload: field, name, type, content.
pub type Upload<'a> = (&'a str, &'a str, &'a str, &'a [u8]);

impl Visitor {
    /// Creates a visitor without cookies.
    pub fn new(address: SocketAddr) -> Visitor {
        let client = Client::connect(address);
        Visitor { address, client, cookies: BTreeMap::new(), steps: Vec::new() }
    }

    /// Sends a request with the cookies so far, as the step of that name.
    pub fn send(&mut self, step: &str, request: Request) -> Response {
        let cookies: Vec<String> = self.cookies.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let request = match &cookies[..] {
            [] => request,
            cookies => request.header("Cookie", &cookies.join("; ")),
        };
        let response = self.client.request(&request);
        assert!(response.complete, "{step}: the answer broke off: {}", response.text());
        for cookie in response.all("set-cookie") {
            self.keep(cookie);
        }
        if response.header("connection").is_some_and(|c| c.eq_ignore_ascii_case("close")) {
            self.client = Client::connect(self.address);
        }
        self.steps.push((step.to_owned(), response.clone()));
        response
    }

    /// GET; the step is named after its target.
    pub fn get(&mut self, target: &str) -> Response {
        self.send(&format!("GET {target}"), Request::get(target))
    }

    /// GET that is not recorded as a step of the walk.
    pub fn look(&mut self, target: &str) -> Response {
        let response = self.get(target);
        self.steps.pop();
        response
    }

    fn keep(&mut self, cookie: &str) {
        let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
        let Some((name, value)) = pair.split_once('=') else { return };
        let gone = value.is_empty() || value == "deleted" || attributes.contains("Max-Age=0");
        if gone {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// POST of an urlencoded form.
pub fn form(target: &str, fields: &[(&str, &str)]) -> Request {
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    Request::form(target, &pairs.join("&"))
}

/// POST of a multipart form.
pub fn multipart(target: &str, fields: &[(&str, &str)], files: &[Upload]) -> Request {
    let body = fields.iter().fold(Multipart::new(), |body, (name, value)| body.field(name, value));
    let body = files.iter().fold(body, |body, (field, name, kind, content)| {
        let disposition =
            format!("Content-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"");
        body.part(format!("{disposition}\r\nContent-Type: {kind}"), content)
    });
    body.post(target)
}

/// The text between two texts.
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    found.unwrap_or_else(|| panic!("no `{before}…{after}` in:\n{text}")).0
}

/// The value of a form's field, with any attributes before it.
pub fn field_value<'a>(page: &'a str, name: &str) -> &'a str {
    let rest_of_tag = between(page, &format!(" name=\"{name}\""), ">");
    between(rest_of_tag, "value=\"", "\"")
}

fn escape(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
