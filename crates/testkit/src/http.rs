//! HTTP/1.1 as bytes: a client that sends exactly the bytes of a test and shows exactly the bytes
//! it received.

use crate::wait::WATCHDOG;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    address: SocketAddr,
    unread: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The rest of the status line.
    pub reason: String,
    /// Names in lower case and values, in the order of arrival, with repeated ones.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// Whether the body ended as its framing announced.
    pub complete: bool,
}

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// A request without body.
    pub fn new(method: &str, target: &str) -> Request {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: vec![("Host".to_owned(), "localhost".to_owned())],
            body: None,
        }
    }

    /// GET.
    pub fn get(target: &str) -> Request {
        Request::new("GET", target)
    }

    /// POST with a body of the given type.
    pub fn post(target: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Request {
        Request::new("POST", target).header("Content-Type", content_type).body(body)
    }

    /// POST of an urlencoded form.
    pub fn form(target: &str, body: &str) -> Request {
        Request::post(target, "application/x-www-form-urlencoded", body)
    }

    /// Adds a header; `Host` replaces the default one.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Request {
        if name.eq_ignore_ascii_case("host") {
            self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case("host"));
        }
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body and its Content-Length.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The request as sent over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let has = |wanted: &str| self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(wanted));
        if let Some(body) = &self.body
            && !has("content-length")
            && !has("transfer-encoding")
        {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body.as_deref().unwrap_or_default());
        out
    }
}

impl Response {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// All headers of that name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        named.map(|(_, v)| v.as_str()).collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// `name=value` of each `Set-Cookie`, joined for a `Cookie` header.
    pub fn cookies(&self) -> String {
        let pairs = self.all("set-cookie").into_iter().filter_map(|c| c.split(';').next());
        pairs.collect::<Vec<_>>().join("; ")
    }
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(WATCHDOG)).expect("a positive time-out");
        stream.set_nodelay(true).expect("a TCP socket");
        Client { stream, address, unread: Vec::new() }
    }

    /// Connects to a server that may not listen. No wait of this connection is longer than
    /// `patience`.
    pub fn try_connect(address: SocketAddr, patience: Duration) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, address, unread: Vec::new() })
    }

    /// Whether bytes of a response have arrived that were not read yet.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The connection itself, for actions outside of HTTP.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// One read. With a timeout, a signal may interrupt the call (man 7 signal): that is not a
    /// response.
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Sends bytes unchanged.
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("the server reads");
    }

    /// Sends bytes unchanged, to a server that may have closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// GET on this connection.
    pub fn get(&mut self, target: &str) -> Response {
        self.request(&Request::get(target))
    }

    /// Sends a request and reads its response.
    pub fn request(&mut self, request: &Request) -> Response {
        self.send(&request.bytes());
        self.read(request.method() == "HEAD")
    }

    /// As [`Self::request`], for a server that may respond before it has read everything, or close.
    pub fn try_request(&mut self, request: &Request) -> io::Result<Response> {
        let sent = self.try_send(&request.bytes());
        self.try_read(request.method() == "HEAD").or_else(|e| sent.and(Err(e)))
    }

    /// Reads one response. `head`: it is a response to a HEAD request.
    pub fn read(&mut self, head: bool) -> Response {
        let address = self.address;
        self.try_read(head).unwrap_or_else(|e| panic!("no answer from {address}: {e}"))
    }

    /// Reads one response; `UnexpectedEof` if the server closed without one.
    pub fn try_read(&mut self, head: bool) -> io::Result<Response> {
        self.read_with_interim(head).map(|(_, response)| response)
    }

    /// Reads one response, and the interim responses (1xx) before it.
    pub fn read_with_interim(&mut self, head: bool) -> io::Result<(Vec<Response>, Response)> {
        let mut interim = Vec::new();
        loop {
            let response = self.read_head()?;
            if !(100..200).contains(&response.status) {
                return Ok((interim, self.read_body(response, head)?));
            }
            interim.push(response);
        }
    }

    /// Reads a status line and headers, also those of an interim response.
    pub fn read_head(&mut self) -> io::Result<Response> {
        let end = self.fill_until(|unread| find(unread, b"\r\n\r\n").map(|at| at + 4))?;
        let head = self.take(end);
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {head}")))?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let reason = status_line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
        Ok(Response { status, reason, headers, body: Vec::new(), complete: false })
    }

    fn read_body(&mut self, mut response: Response, head: bool) -> io::Result<Response> {
        let length = response.header("content-length").and_then(|l| l.parse::<usize>().ok());
        let chunked = response.header("transfer-encoding").is_some_and(|t| t.contains("chunked"));
        if head || matches!(response.status, 204 | 304) {
            response.complete = true;
        } else if chunked {
            response.complete = self.read_chunks(&mut response.body)?;
        } else if let Some(length) = length {
            let got = self.fill_until(|unread| (unread.len() >= length).then_some(length));
            response.complete = got.is_ok();
            let take = got.unwrap_or(self.unread.len());
            response.body = self.take(take);
        } else {
            // Until the server closes.
            while self.fill()? > 0 {}
            response.body = std::mem::take(&mut self.unread);
            response.complete = true;
        }
        Ok(response)
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            match self.read_chunk()? {
                None => return Ok(false),
                Some(chunk) if chunk.is_empty() => return Ok(true),
                Some(chunk) => body.extend_from_slice(&chunk),
            }
        }
    }

    /// One chunk of a chunked body: empty at its proper end, `None` if the server closed before.
    pub fn read_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Ok(line_end) = self.fill_until(|unread| find(unread, b"\r\n").map(|at| at + 2)) else {
            return Ok(None);
        };
        let line = self.take(line_end);
        let digits = String::from_utf8_lossy(&line);
        let digits = digits.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(digits, 16)
            .map_err(|e| io::Error::other(format!("chunk size `{digits}`: {e}")))?;
        let Ok(end) = self.fill_until(|unread| (unread.len() >= size + 2).then_some(size + 2))
        else {
            return Ok(None);
        };
        let mut chunk = self.take(end);
        chunk.truncate(size);
        Ok(Some(chunk))
    }

    /// The first `count` unread bytes. Copied as a whole, because a copy byte by byte is slow in
    /// code that is not optimized.
    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.unread.split_off(count);
        std::mem::replace(&mut self.unread, rest)
    }

    fn fill_until(&mut self, done: impl Fn(&[u8]) -> Option<usize>) -> io::Result<usize> {
        loop {
            if let Some(end) = done(&self.unread) {
                return Ok(end);
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut buffer = vec![0u8; 64 * 1024];
        match self.read_some(&mut buffer) {
            Ok(len) => {
                self.unread.extend_from_slice(&buffer[..len]);
                Ok(len)
            }
            // A reset is also an end: the bytes before it count.
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Whether the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && matches!(self.fill(), Ok(0))
    }

    /// Reads all bytes that arrive within `limit`.
    pub fn read_for(&mut self, limit: Duration) -> Vec<u8> {
        let start = Instant::now();
        while let Some(left) = limit.checked_sub(start.elapsed()).filter(|l| !l.is_zero()) {
            self.stream.set_read_timeout(Some(left)).expect("a positive time-out");
            if !matches!(self.fill(), Ok(n) if n > 0) {
                break;
            }
        }
        self.stream.set_read_timeout(Some(WATCHDOG)).expect("a positive time-out");
        std::mem::take(&mut self.unread)
    }

    /// Announces that no more bytes will be sent.
    pub fn finish_sending(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes at once, as a client that leaves.
    pub fn abort(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
