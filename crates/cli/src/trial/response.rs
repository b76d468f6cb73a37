//! Bytes of a response → status, compared headers, body.

use anyhow::{Context, Result, bail};

/// Headers about the connection or the time, which are not compared.
const IGNORED: [&str; 7] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "x-request-id",
];

/// Replacement for the port of a server.
const PORT: &[u8] = b"{port}";

/// One complete response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TrialResponse {
    pub(crate) status: u16,
    /// The status line and the compared headers, one per line, sorted by name.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// Values of `Set-Cookie`.
    pub(crate) cookies: Vec<String>,
    /// Id of the request in the server and its workers.
    pub(crate) id: Option<String>,
}

impl TrialResponse {
    /// Parses all bytes received on a connection that the server has closed. The response to a
    /// HEAD request has no body.
    pub(crate) fn parse(bytes: &[u8], has_body: bool) -> Result<TrialResponse> {
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n");
        let end = end.context("the response head is incomplete")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("`{status_line}` is not a status line"))?;
        let headers: Vec<(String, &str)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
            .collect();
        let value = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
        let rest = &bytes[end + 4..];
        let body = if !has_body {
            Vec::new()
        } else if value("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            unchunk(rest)?
        } else {
            match value("content-length").and_then(|n| n.parse::<usize>().ok()) {
                Some(length) if length > rest.len() => {
                    bail!("the response has {} of {length} bytes", rest.len())
                }
                Some(length) => rest[..length].to_vec(),
                None => rest.to_vec(),
            }
        };
        let cookies: Vec<_> = headers
            .iter()
            .filter(|(n, _)| n == "set-cookie")
            .map(|(_, v)| (*v).to_owned())
            .collect();
        let id = value("x-request-id").map(str::to_owned);
        Ok(TrialResponse { status, head: compared(status, &headers), body, cookies, id })
    }

    /// Replaces the server's port, which an application may print.
    pub(crate) fn hide_port(&mut self, port: u16) {
        let port = port.to_string();
        self.head = without(&self.head, port.as_bytes());
        self.body = without(&self.body, port.as_bytes());
    }
}

fn compared(status: u16, headers: &[(String, &str)]) -> Vec<u8> {
    let mut kept: Vec<_> = headers.iter().filter(|(n, _)| !IGNORED.contains(&n.as_str())).collect();
    // A stable sort keeps the order of headers with the same name, because it has a meaning.
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    let lines = kept.iter().map(|(name, value)| format!("{name}: {value}\n"));
    format!("status: {status}\n{}", lines.collect::<String>()).into_bytes()
}

/// Replaces the port number, where it is a number of its own, by the same text for both servers.
fn without(text: &[u8], port: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let is_start = at == 0 || !text[at - 1].is_ascii_alphanumeric();
        let behind = text.get(at + port.len());
        if is_start
            && text[at..].starts_with(port)
            && !behind.is_some_and(u8::is_ascii_alphanumeric)
        {
            out.extend_from_slice(PORT);
            at += port.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

fn unchunk(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|part| part == b"\r\n");
        let end = end.context("the response ends within the size of a chunk")?;
        let size = String::from_utf8_lossy(&bytes[..end]);
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16)
            .with_context(|| format!("`{size}` is not the size of a chunk"))?;
        if size == 0 {
            return Ok(body);
        }
        let chunk = bytes.get(end + 2..).and_then(|rest| rest.get(..size));
        body.extend_from_slice(chunk.context("the response ends within a chunk")?);
        bytes = bytes.get(end + 2 + size + 2..).context("the response ends after a chunk")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_replaced_only_as_whole_number() {
        let check = |text: &str, expected: &str| {
            let found = without(text.as_bytes(), b"8080");
            assert_eq!(String::from_utf8_lossy(&found), expected);
        };
        check("http://h:8080/", "http://h:{port}/");
        check("8080", "{port}");
        check("18080 80801 x8080 8080x", "18080 80801 x8080 8080x");
        check("", "");
    }

    #[test]
    fn response_of_each_form_is_parsed() {
        let check = |bytes: &str, status, head: &str, body: &str| {
            let response = TrialResponse::parse(bytes.as_bytes(), true).expect(bytes);
            let head = format!("status: {status}\n{head}");
            assert_eq!(
                (response.status, response.body.as_slice()),
                (status, body.as_bytes()),
                "{bytes}"
            );
            assert_eq!(String::from_utf8_lossy(&response.head), head, "{bytes}");
        };
        check("HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n", 204, "", "");
        check(
            "HTTP/1.1 200 OK\r\nX: b\r\nA: c\r\nX: a\r\n\r\nall",
            200,
            "a: c\nx: b\nx: a\n",
            "all",
        );
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, "", "ab");
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: \
             chunked\r\n\r\n2\r\nab\r\nA;x\r\n0123456789\r\n0\r\n\r\n",
            200,
            "",
            "ab0123456789",
        );
    }

    #[test]
    fn truncated_response_is_rejected() {
        for bytes in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab",
        ] {
            assert!(TrialResponse::parse(bytes.as_bytes(), true).is_err(), "{bytes:?}");
        }
    }
}
