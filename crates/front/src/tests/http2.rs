//! Tests of HTTP/2 with frames written by hand: concurrent requests, and slow, greedy or malicious
//! clients.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: [u8; 4] = 8u32.to_be_bytes();
const ENHANCE_YOUR_CALM: u8 = 11;
/// `:status: 200` in the static table of RFC 7541.
const OK: u8 = 0x88;
const BAD_REQUEST: u8 = 0x8c;

/// A received frame.
#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn ends(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes each field as a literal without indexing.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            out.push(u8::try_from(text.len()).expect("short"));
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

fn head(method: &str, path: &str) -> Vec<u8> {
    let scheme = ("scheme", "http");
    fields(&[
        (":method", method),
        (&format!(":{}", scheme.0), scheme.1),
        (":authority", "test"),
        (":path", path),
    ])
}

impl Client {
    /// Starts an HTTP/2 connection with this initial window for each response.
    pub(super) fn begin(server: &Server, window: u32) -> Client {
        let mut client = server.client();
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.send(&frame(SETTINGS, 0, 0, &[&[0, 4][..], &window.to_be_bytes()].concat()));
        client
    }

    fn ask_for(&mut self, stream: u32, path: &str) {
        self.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &head("GET", path)));
    }

    /// Asks as a proxy that forwards a request of the client `203.0.113.from`.
    pub(super) fn ask_for_client(&mut self, stream: u32, from: u8) {
        let client = fields(&[("x-forwarded-for", &format!("203.0.113.{from}"))]);
        let block = [head("GET", "/"), client].concat();
        self.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &block));
    }

    /// Reads until this number of streams has ended.
    pub(super) fn ends_of(&mut self, mut count: usize) {
        while count > 0 {
            let frame = self.frame().expect("the responses before the end");
            assert!(frame.kind != RST_STREAM, "{frame:?}");
            count -= usize::from(frame.ends());
        }
    }

    /// Reads the next frame; `None` at the end of the connection.
    fn frame(&mut self) -> Option<Frame> {
        let header = self.take(9);
        let [a, b, c, kind, flags, stream @ ..] = <[u8; 9]>::try_from(header).ok()?;
        let payload = self.take(u32::from_be_bytes([0, a, b, c]) as usize);
        Some(Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }

    /// Reads until the next frame of a kind.
    fn of_kind(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.frame().expect("such a frame before the end");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads the response on a stream and returns its status byte and body. Opens the windows.
    fn respond(&mut self, stream: u32) -> (u8, Vec<u8>) {
        let (mut status, mut body) = (0, Vec::new());
        loop {
            let frame = self.frame().expect("all of an answer");
            assert!(frame.kind != RST_STREAM, "{frame:?}");
            if frame.stream != stream {
                continue;
            }
            let ends = frame.ends();
            match frame.kind {
                HEADERS => status = frame.payload.iter().copied().find(|b| *b >= 0x80).unwrap_or(0),
                DATA => {
                    let more = (frame.payload.len() as u32).to_be_bytes();
                    if !ends && !frame.payload.is_empty() {
                        self.send(&self::frame(WINDOW_UPDATE, 0, 0, &more));
                        self.send(&self::frame(WINDOW_UPDATE, 0, stream, &more));
                    }
                    body.extend_from_slice(&frame.payload);
                }
                _ => {}
            }
            if ends {
                return (status, body);
            }
        }
    }

    /// Reads to the end of the connection; returns whether a GOAWAY was received.
    fn goodbye(&mut self) -> bool {
        let mut has_said = false;
        while let Some(frame) = self.frame() {
            has_said |= frame.kind == GOAWAY;
        }
        has_said
    }
}

fn echo() -> Server {
    Server::new().work(|job| {
        let said = [job.field("protocol"), job.field("target"), job.headers["host"].clone()];
        job.respond(&said.join(" "))
    })
}

#[test]
fn concurrent_streams_get_their_responses() {
    let server = echo().work(|job| job.respond("second worker"));
    let mut client = Client::begin(&server, 65_535);
    for stream in [1, 3, 5, 7, 9] {
        client.ask_for(stream, "/a?b");
    }
    let mut done = 0;
    while done < 5 {
        let frame = client.frame().expect("answers");
        if frame.kind == DATA {
            let text = String::from_utf8(frame.payload.clone()).expect("text");
            assert!(matches!(text.as_str(), "HTTP/2.0 /a?b test" | "second worker" | ""), "{text}");
        }
        done += usize::from(frame.ends());
    }
    until("no request is open", || server.handle.counters().pool.in_flight == 0);
    assert_eq!(server.handle.counters().pool.requests_total, 5);
}

#[test]
fn request_and_response_bodies_are_complete() {
    let server = Server::new().work(|job| {
        let body = job.body().expect("a body");
        job.head(200, "");
        job.write(&body);
        After::Finish
    });
    let mut client = Client::begin(&server, 1_000);
    client.send(&frame(HEADERS, END_HEADERS, 1, &head("POST", "/")));
    let body = pattern(40_000);
    for (index, piece) in body.chunks(10_000).enumerate() {
        client.send(&frame(DATA, if index == 3 { END_STREAM } else { 0 }, 1, piece));
    }
    let (status, found) = client.respond(1);
    assert_eq!(status, OK);
    assert!(found == body, "{} bytes", found.len());
}

/// `413` in the Huffman code of RFC 7541.
const TOO_LARGE: &[u8] = &[0x68, 0x2c, 0xff];

#[test]
fn too_large_body_is_rejected_before_it_is_complete() {
    let server = Server::with(4, |o| o.limits.body_bytes_max = 1_000);
    // In a connection's second response, the status may be an index into the dynamic table.
    for (stream, length) in [(1, Some("1001")), (3, None)] {
        let mut client = Client::begin(&server, 65_535);
        let more = length.map_or(vec![], |length| fields(&[("content-length", length)]));
        client.send(&frame(HEADERS, END_HEADERS, stream, &[head("POST", "/"), more].concat()));
        client.send(&frame(DATA, 0, stream, &[b'x'; 1001]));
        let response = client.of_kind(HEADERS);
        let is_refused = memchr::memmem::find(&response.payload, TOO_LARGE).is_some();
        assert!(response.stream == stream && is_refused, "{response:?}");
    }
}

/// RFC 9113, 8.2.3: the parts of `Cookie` are one header.
#[test]
fn cookie_parts_are_joined_before_headers_are_counted() {
    let server = Server::with(4, |o| o.limits.headers_max = 5)
        .work(|job| job.respond(&format!("{}; {}", job.field("cookie"), job.headers["cookie"])));
    let mut client = Client::begin(&server, 65_535);
    let cookies: Vec<String> = (0..88).map(|at| format!("c{at}=v")).collect();
    let mut ask = |stream: u32, more: usize| {
        let mut all: Vec<(&str, &str)> = cookies.iter().map(|one| ("cookie", &**one)).collect();
        all.extend(std::iter::repeat_n(("x-a", "b"), more));
        let head = [head("GET", "/"), fields(&all)].concat();
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &head));
        client.respond(stream)
    };
    let joined = cookies.join("; ");
    assert_eq!(ask(1, 3), (OK, format!("{joined}; {joined}").into_bytes()));
    // 431 is a literal in the head.
    let (status, body) = ask(3, 4);
    let body = String::from_utf8(body).expect("text");
    assert!(status != OK && body.contains("(limits.headers_max)"), "{body}");
}

/// RFC 9113, 8.3.1: `Host` must equal the authority; 8.1.1: the length must equal that of the body.
#[test]
fn conflicting_hosts_or_lengths_are_rejected() {
    let server = echo();
    let mut client = Client::begin(&server, 65_535);
    let cases: [(&[(&str, &str)], u8); 9] = [
        (&[("host", "test")], OK),
        (&[("host", "TEST")], OK),
        (&[("host", "test"), ("host", "test")], BAD_REQUEST),
        (&[("x-a", " b")], BAD_REQUEST),
        (&[("x-a", "b\t")], BAD_REQUEST),
        (&[("x-a", ""), ("x-b", "b c")], OK),
        (&[("host", "other")], BAD_REQUEST),
        (&[("host", "test"), ("host", "other")], BAD_REQUEST),
        (&[("content-length", "0"), ("content-length", "0")], BAD_REQUEST),
    ];
    for (index, (more, expected)) in cases.iter().enumerate() {
        let stream = 2 * index as u32 + 1;
        let head = [head("GET", "/"), fields(more)].concat();
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &head));
        assert_eq!(client.respond(stream).0, *expected, "{more:?}");
    }
}

/// Requests that HTTP/1.1 would parse differently (RFC 9113, 8.2.1, 8.2.2, 8.1.1, 10.3). Each must
/// end its stream or its connection, and reach no worker.
#[test]
fn downgrade_smuggling_reaches_no_worker() {
    let server = Server::new();
    let heads: [&[(&str, &str)]; 9] = [
        &[("transfer-encoding", "chunked")],
        &[("connection", "close")],
        &[("keep-alive", "1")],
        &[("proxy-connection", "x")],
        &[("upgrade", "h2c")],
        &[("te", "gzip")],
        &[("x\r\nhost", "evil")],
        &[("x", "a\r\nhost: evil")],
        &[("Upper", "x")],
    ];
    for more in heads {
        let mut client = Client::begin(&server, 65_535);
        let head = [head("GET", "/"), fields(more)].concat();
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &head));
        let refused = loop {
            let Some(frame) = client.frame() else { break true };
            match frame.kind {
                RST_STREAM | GOAWAY => break true,
                HEADERS => break frame.payload.contains(&BAD_REQUEST),
                _ => {}
            }
        };
        assert!(refused, "{more:?}");
    }
    for length in ["3", "1"] {
        let mut client = Client::begin(&server, 65_535);
        let head = [head("POST", "/"), fields(&[("content-length", length)])].concat();
        client.send(&frame(HEADERS, END_HEADERS, 1, &head));
        client.send(&frame(DATA, END_STREAM, 1, b"ab"));
        let mut ends = std::iter::from_fn(|| client.frame());
        let is_refused = |f: Frame| {
            matches!(f.kind, RST_STREAM | GOAWAY)
                || (f.kind == HEADERS && f.payload.contains(&BAD_REQUEST))
        };
        assert!(ends.any(is_refused), "a length of {length}");
    }
}

/// The worker finishes long before its client opens a window, and the wait for the client is
/// limited.
#[test]
fn closed_window_resets_stream_at_write_timeout() {
    let ends = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ends);
    let change = |o: &mut Settings| o.timeouts.write = Duration::from_millis(300);
    let server = Server::with(4, change).work(move |job| {
        if job.field("target") == "/long" {
            job.head(200, "");
            for piece in pattern(3_000_000).chunks(50_000) {
                job.write(piece);
            }
            count.fetch_add(1, Ordering::SeqCst);
            return After::Finish;
        }
        job.respond("ok")
    });
    let mut client = Client::begin(&server, 0);
    client.ask_for(1, "/long");
    assert_eq!(client.of_kind(HEADERS).stream, 1);
    until("the worker is done", || ends.load(Ordering::SeqCst) == 1);
    assert_eq!(client.of_kind(RST_STREAM).stream, 1);
    until("nothing is open", || server.handle.counters().pool.in_flight == 0);
    // Other streams of the same connection continue.
    client.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]));
    client.ask_for(3, "/");
    assert_eq!(client.respond(3), (OK, b"ok".to_vec()));
}

/// RFC 9113, 5.4.1 and 10.5: a connection may be closed for requests that cost much and have no
/// purpose.
#[test]
fn rapid_resets_close_connection() {
    let server = echo();
    let mut client = Client::begin(&server, 65_535);
    let mut rounds = 0;
    for stream in (1..4000u32).step_by(2) {
        let asked = frame(HEADERS, END_STREAM | END_HEADERS, stream, &head("GET", "/"));
        let back = frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
        if client.stream.write_all(&[asked, back].concat()).is_err() {
            break;
        }
        rounds += 1;
    }
    client.goodbye();
    assert!(rounds < 2000 || !client.more(), "it is still open");
    assert!(server.handle.counters().pool.requests_total <= 500);
    assert_eq!(server.get("/").status, 200, "others are served");
    until("nothing is open", || server.handle.counters().pool.in_flight == 0);
}

/// Event streams end only in this way, and so does a download of which a browser wants another
/// part.
#[test]
fn cancelled_responses_keep_connection_open() {
    const LEFT: usize = 500;
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let serve = move |job: &mut Job<'_>| {
        job.head(200, "");
        job.flush();
        if job.field("target") == "/long" {
            wait.lock().unwrap().recv_timeout(WATCHDOG).expect("the test says when");
            job.write(b"all of it");
        } else {
            job.write(b"event");
            job.flush();
            while !job.worker.is_cancelled(job.slot) {
                std::thread::yield_now();
            }
        }
        After::Finish
    };
    let serve = Arc::new(serve);
    let other = Arc::clone(&serve);
    let server = Server::new().work(move |job| serve(job)).work(move |job| other(job));
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/long");
    assert_eq!(client.of_kind(HEADERS).stream, 1);
    for stream in (3..).step_by(2).take(LEFT) {
        client.ask_for(stream, "/events");
        assert_eq!(client.of_kind(HEADERS).stream, stream);
        client.send(&frame(RST_STREAM, 0, stream, &CANCEL));
    }
    go.send(()).expect("a worker waits");
    assert_eq!(client.respond(1).1, b"all of it");
}

#[test]
fn body_in_many_small_frames_is_accepted() {
    const PIECES: usize = 30_000;
    const AT_A_TIME: usize = 500;
    let server = Server::new().work(|job| {
        let length = job.body().expect("a body").len();
        job.respond(&length.to_string())
    });
    let mut client = Client::begin(&server, 65_535);
    client.send(&frame(HEADERS, END_HEADERS, 1, &head("POST", "/")));
    let pieces = frame(DATA, 0, 1, b"x").repeat(AT_A_TIME);
    for _ in 0..PIECES / AT_A_TIME {
        // In many small writes, as from a user who types. The reply to the ping shows that the
        // server has read all of them.
        client.send(&[&pieces[..], &frame(PING, 0, 0, &[0; 8])].concat());
        assert_eq!(client.of_kind(PING).flags, 1);
    }
    client.send(&frame(DATA, END_STREAM, 1, b""));
    assert_eq!(client.respond(1), (OK, PIECES.to_string().into_bytes()));
}

/// A client without data may send an empty DATA frame, for as long as an upload takes. (h2 counts
/// these for the lifetime of a connection, and closes it at the 101st.)
#[test]
fn empty_data_frames_keep_connection_open() {
    let server = Server::new().work(|job| {
        let length = job.body().expect("a body").len();
        job.respond(&length.to_string())
    });
    let mut client = Client::begin(&server, 65_535);
    for stream in [1, 3] {
        client.send(&frame(HEADERS, END_HEADERS, stream, &head("POST", "/")));
        for _ in 0..300 {
            let pieces = [frame(DATA, 0, stream, b""), frame(DATA, 0, stream, b"x")].concat();
            client.send(&[&pieces[..], &frame(DATA, 0, stream, b"")].concat());
            client.send(&[frame(DATA, 0, stream, b""), frame(PING, 0, 0, &[0; 8])].concat());
            assert_eq!(client.of_kind(PING).flags, 1);
        }
        client.send(&frame(DATA, END_STREAM, stream, b""));
        assert_eq!(client.respond(stream), (OK, b"300".to_vec()));
    }
}

/// Clients of a proxy send invalid requests for days on one connection. The proxy is requested to
/// open a new connection, and no response is lost. (h2 counts these requests for the lifetime of a
/// connection, too.)
#[test]
fn many_invalid_requests_lose_no_response() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::new().work(move |job| {
        wait.lock().unwrap().recv_timeout(WATCHDOG).expect("the test says when");
        job.respond("all of it")
    });
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/");
    until("it runs", || server.handle.counters().pool.in_flight == 1);
    let mistake = [head("GET", "/"), fields(&[("connection", "close")])].concat();
    let said = (1u32..2000).find_map(|at| {
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 2 * at + 1, &mistake));
        let frame = std::iter::from_fn(|| client.frame())
            .find(|frame| matches!(frame.kind, RST_STREAM | GOAWAY));
        frame.filter(|frame| frame.kind == GOAWAY).map(|frame| (at, frame))
    });
    let (at, said) = said.expect("it wears out");
    assert!(at > 400, "{at} mistakes");
    assert_eq!(said.payload[4..8], [0; 4], "it is no error");
    go.send(()).expect("a worker waits");
    let ends =
        std::iter::from_fn(|| client.frame()).find(|frame| frame.stream == 1 && frame.ends());
    assert_eq!(ends.map(|frame| frame.payload), Some(b"all of it".to_vec()));
}

/// The last frame that a client gets says which of its requests were not started (RFC 9113, 6.8).
#[test]
fn ping_flood_gets_goaway_with_last_stream() {
    let server = echo();
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/");
    assert_eq!(client.respond(1).0, OK);
    let pings = frame(PING, 1, 0, &[0; 8]).repeat(20_000);
    // The server may have closed the connection before it has read everything.
    let _ = client.stream.write_all(&pings);
    let said = client.of_kind(GOAWAY);
    assert_eq!(said.payload, [0, 0, 0, 1, 0, 0, 0, ENHANCE_YOUR_CALM]);
}

/// RFC 9113, 4.3 and 10.5.1: no other frame may be sent on the connection before the head is
/// complete.
#[test]
fn unfinished_head_closes_connection() {
    let change = |o: &mut Settings| o.timeouts.header = Duration::from_millis(200);
    let server = Server::with(4, change);
    let mut client = Client::begin(&server, 65_535);
    client.send(&frame(HEADERS, END_STREAM, 1, &head("GET", "/")));
    client.goodbye();
    until("it is gone", || server.handle.counters().server.connections == 0);
    let mut client = Client::begin(&server, 65_535);
    let head = head("GET", "/");
    for _ in 0..2000 {
        // No limit in hyper counts these frames.
        let more = frame(9, 0, 1, &head);
        if client.stream.write_all(&more).is_err() {
            break;
        }
    }
    client.goodbye();
}

/// RFC 9113, 9.1: the connection is closed with GOAWAY.
#[test]
fn idle_connection_gets_goaway() {
    let change = |o: &mut Settings| o.timeouts.idle = Duration::from_millis(300);
    let server = Server::with(4, change).work(|job| job.respond("ok"));
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/");
    assert_eq!(client.respond(1), (OK, b"ok".to_vec()));
    client.of_kind(GOAWAY);
    client.stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    client.goodbye();
    until("it is gone", || server.handle.counters().server.connections == 0);
}

#[test]
fn drain_finishes_open_streams() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let mut server = Server::new().work(move |job| {
        wait.lock().unwrap().recv_timeout(WATCHDOG).expect("the test says when");
        job.respond("late")
    });
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/");
    until("it runs", || server.handle.counters().pool.in_flight == 1);
    server.handle.drain();
    client.of_kind(GOAWAY);
    // hyper sends a ping and waits for its acknowledgement before it names the last request.
    client.send(&frame(6, 1, 0, &[0x0b, 0x7b, 0xa2, 0xf0, 0x8b, 0x9b, 0xfe, 0x54]));
    go.send(()).expect("a worker waits");
    assert_eq!(client.respond(1), (OK, b"late".to_vec()));
    drop(client);
    server.stop();
}

/// The declared length is reached, and the script continues: the client has its whole response.
#[test]
fn response_with_declared_length_ends_before_script() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::new().work(move |job| {
        job.head(200, "Content-Length: 4\n");
        job.write(b"done");
        job.flush();
        wait.lock().unwrap().recv_timeout(WATCHDOG).expect("the client has its answer");
        After::Finish
    });
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/");
    assert_eq!(client.respond(1), (OK, b"done".to_vec()));
    go.send(()).expect("the worker waits");
}

#[test]
fn reset_of_stream_frees_slot() {
    let (said, gone) = channel();
    let server = Server::new().work(move |job| {
        job.head(200, "");
        while job.write(b"again") && job.flush() {}
        said.send(()).expect("the test waits");
        After::Finish
    });
    let mut client = Client::begin(&server, 65_535);
    client.ask_for(1, "/");
    client.of_kind(DATA);
    client.send(&frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()));
    gone.recv_timeout(WATCHDOG).expect("the worker is told");
    until("nothing is open", || server.handle.counters().pool.in_flight == 0);
}

#[test]
fn disabled_http2_is_400() {
    let server = Server::with(4, |o| o.http2 = false).work(|job| job.respond("ok"));
    let mut client = Client::begin(&server, 65_535);
    assert!(client.rest().starts_with("HTTP/1.1 400"));
    assert_eq!(server.get("/").text(), "ok");
}
