//! The HTTP/2 shapes: requests that would become two, or a different one, when rewritten as
//! HTTP/1.1.

use super::Noted;
use samovar_testkit::http::Client;
use samovar_testkit::http2::{
    self, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS, block, frame,
};
use std::io::Read;
use std::net::SocketAddr;

const SHAPE: u32 = 1;
const END: u32 = 3;

type Field = http2::Field<'static>;

/// A request as fields, and the request that the application may see; `None` for none.
pub(super) struct Shape {
    pub(super) name: &'static str,
    fields: Vec<Field>,
    body: &'static [u8],
    trailers: Vec<Field>,
    seen: Option<&'static str>,
}

const GET: [Field; 4] =
    [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"t"), (b":path", b"/a")];
const POST: [Field; 4] =
    [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"t"), (b":path", b"/a")];

fn get(name: &'static str, more: &[Field], seen: Option<&'static str>) -> Shape {
    Shape { name, fields: [&GET, more].concat(), body: b"", trailers: Vec::new(), seen }
}

fn post(
    name: &'static str,
    more: &[Field],
    body: &'static [u8],
    seen: Option<&'static str>,
) -> Shape {
    Shape { name, fields: [&POST, more].concat(), body, trailers: Vec::new(), seen }
}

/// A GET with another pseudo-header.
fn with(name: &'static str, key: &'static [u8], value: &'static [u8]) -> Shape {
    let mut shape = get(name, &[], None);
    for field in &mut shape.fields {
        if field.0 == key {
            field.1 = value;
        }
    }
    shape
}

fn without(name: &'static str, key: &'static [u8]) -> Shape {
    let mut shape = get(name, &[], None);
    shape.fields.retain(|field| field.0 != key);
    shape
}

fn trailed(name: &'static str, trailers: &[Field], seen: Option<&'static str>) -> Shape {
    Shape { trailers: trailers.to_vec(), ..post(name, &[], b"abc", seen) }
}

/// All shapes.
pub(super) fn shapes() -> Vec<Shape> {
    [headers(), lengths(), pseudo_headers(), trailers()].into_iter().flatten().collect()
}

/// Headers of a connection (RFC 9113, 8.2.2), invalid headers (8.2.1), and pseudo-headers that a
/// request does not have (8.3, 8.3.1).
fn headers() -> Vec<Shape> {
    let mut shapes = vec![
        get("a request", &[], Some("GET /a")),
        post("a body", &[], b"abc", Some("POST /a abc")),
        post("a body and its length", &[(b"content-length", b"3")], b"abc", Some("POST /a abc")),
        get("te: trailers", &[(b"te", b"trailers")], Some("GET /a")),
        get("cookies in crumbs", &[(b"cookie", b"a=1"), (b"cookie", b"b=2")], Some("GET /a")),
        trailed("a trailer", &[(b"x-a", b"b")], Some("POST /a abc")),
        trailed("a length as trailer", &[(b"content-length", b"36")], Some("POST /a abc")),
        // h2 permits this, and trailers are not passed on.
        trailed("a pseudo-header as trailer", &[(b":path", b"/b")], Some("POST /a abc")),
        get("the same host twice", &[(b"host", b"t")], Some("GET /a")),
        Shape {
            seen: Some("GET /a"),
            fields: [&GET[..2], &GET[3..], &[(b"host" as &[u8], b"t" as &[u8])]].concat(),
            ..get("a host in authority's place", &[], None)
        },
    ];
    for (name, field) in [
        ("a name in capitals", (b"X-A" as &[u8], b"b" as &[u8])),
        ("a coding in capitals", (b"Transfer-Encoding", b"chunked")),
        ("transfer-encoding", (b"transfer-encoding", b"chunked")),
        ("transfer-encoding: identity", (b"transfer-encoding", b"identity")),
        ("connection", (b"connection", b"close")),
        ("connection names a length", (b"connection", b"content-length")),
        ("keep-alive", (b"keep-alive", b"timeout=5")),
        ("proxy-connection", (b"proxy-connection", b"keep-alive")),
        ("upgrade", (b"upgrade", b"h2c")),
        ("te: gzip", (b"te", b"gzip")),
        ("te: chunked", (b"te", b"chunked")),
        ("CR LF in a value", (b"x-a", b"b\r\ntransfer-encoding: chunked")),
        ("two lines in a value", (b"x-a", b"b\r\n\r\nGET /hidden HTTP/1.1\r\nHost: t\r\n\r\n")),
        ("LF in a value", (b"x-a", b"b\nx-b: c")),
        ("CR in a value", (b"x-a", b"b\rx-b: c")),
        ("NUL in a value", (b"x-a", b"b\0c")),
        ("CR LF in a name", (b"x-a: b\r\ntransfer-encoding", b"chunked")),
        ("LF in a name", (b"x-a\nx-b", b"c")),
        ("NUL in a name", (b"x\0a", b"c")),
        ("a colon in a name", (b"transfer-encoding:chunked", b"c")),
        ("a blank in a name", (b"transfer-encoding ", b"chunked")),
        ("a blank before a name", (b" transfer-encoding", b"chunked")),
        ("no name", (b"", b"c")),
        ("another host", (b"host", b"u")),
        ("a second path", (b":path", b"/b")),
        ("a second method", (b":method", b"GET")),
        ("a second scheme", (b":scheme", b"http")),
        ("a second authority", (b":authority", b"t")),
        ("an unknown pseudo-header", (b":unknown", b"a")),
        ("the status of a request", (b":status", b"200")),
        ("a protocol without CONNECT", (b":protocol", b"websocket")),
        ("a length of a request without body", (b"content-length", b"3")),
        ("a length that is none", (b"content-length", b"a")),
    ] {
        shapes.push(get(name, &[field], None));
    }
    shapes.push(get("a pseudo-header behind a header", &[(b"x-a", b"b"), (b":path", b"/b")], None));
    shapes.push(get("two hosts", &[(b"host", b"t"), (b"host", b"u")], None));
    shapes
}

/// The length of the body (RFC 9113, 8.1.1).
fn lengths() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (name, lengths) in [
        ("a length too short", &[(b"content-length" as &[u8], b"2" as &[u8])][..]),
        ("a length of nothing", &[(b"content-length", b"0")]),
        ("a length too long", &[(b"content-length", b"4")]),
        ("two lengths", &[(b"content-length", b"3"), (b"content-length", b"4")]),
        ("two equal lengths", &[(b"content-length", b"3"), (b"content-length", b"3")]),
        ("a list of lengths", &[(b"content-length", b"3, 3")]),
        ("a signed length", &[(b"content-length", b"+3")]),
        ("a length with a tail", &[(b"content-length", b"3\x0b")]),
        ("a wild length", &[(b"content-length", b"18446744073709551619")]),
    ] {
        shapes.push(post(name, lengths, b"abc", None));
    }
    shapes
}

/// Target and method (RFC 9113, 8.3.1; CONNECT: 8.5).
fn pseudo_headers() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (name, key, value) in [
        ("an empty path", b":path" as &[u8], b"" as &[u8]),
        ("a path without slash", b":path", b"a"),
        ("a path that is a URL", b":path", b"http://u/a"),
        ("an asterisk for GET", b":path", b"*"),
        ("a blank in the path", b":path", b"/a HTTP/1.1"),
        ("a request in the path", b":path", b"/a HTTP/1.1\r\nHost: u\r\n\r\nGET /hidden"),
        ("LF in the path", b":path", b"/a\nb"),
        ("NUL in the path", b":path", b"/a\0"),
        ("a tab in the path", b":path", b"/a\tb"),
        ("an empty authority", b":authority", b""),
        ("a user in the authority", b":authority", b"u@t"),
        ("a path in the authority", b":authority", b"t/b"),
        ("a blank in the authority", b":authority", b"t u"),
        ("CR LF in the authority", b":authority", b"t\r\nx-a: b"),
        ("a port that is none", b":authority", b"t:x"),
        ("a method with a blank", b":method", b"GET /hidden"),
        ("a request in the method", b":method", b"GET /hidden HTTP/1.1\r\nHost: u\r\n\r\nGET"),
        ("no method's name", b":method", b""),
        ("TRACE", b":method", b"TRACE"),
        ("another scheme", b":scheme", b"ftp"),
        ("a URL as scheme", b":scheme", b"http://u/b?"),
        ("CR LF in the scheme", b":scheme", b"http\r\nx-a: b"),
        ("an empty scheme", b":scheme", b""),
    ] {
        shapes.push(with(name, key, value));
    }
    for key in [b":path" as &[u8], b":method", b":scheme", b":authority"] {
        shapes.push(without("without a pseudo-header", key));
    }
    let connect: [Field; 2] = [(b":method", b"CONNECT"), (b":authority", b"t:80")];
    shapes.push(Shape { fields: connect.to_vec(), ..get("CONNECT", &[], None) });
    shapes
}

/// Trailers (RFC 9113, 8.1 and 8.2.1).
fn trailers() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (name, field) in [
        ("a trailer in capitals", (b"X-A" as &[u8], b"b" as &[u8])),
        ("a coding as trailer", (b"transfer-encoding", b"chunked")),
        ("CR LF in a trailer", (b"x-a", b"b\r\nx-b: c")),
    ] {
        shapes.push(trailed(name, &[field], None));
    }
    shapes
}

/// End of the two requests of a connection: with a body, reset, or none.
#[derive(Debug, Default)]
struct Ended {
    shape: Option<u8>,
    end: Option<u8>,
}

/// Sends the shape, and a request after it, as far as the server accepts them.
fn send(address: SocketAddr, shape: &Shape) -> Ended {
    let mut client = Client::connect(address);
    let has_body = !shape.body.is_empty();
    let has_trailers = !shape.trailers.is_empty();
    let ends = |is_last: bool| if is_last { END_STREAM } else { 0 };
    let mut bytes = http2::PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, b""));
    let flags = END_HEADERS | ends(!has_body);
    bytes.extend(frame(HEADERS, flags, SHAPE, &block(&shape.fields)));
    if has_body {
        bytes.extend(frame(DATA, ends(!has_trailers), SHAPE, shape.body));
    }
    if has_trailers {
        bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, SHAPE, &block(&shape.trailers)));
    }
    let mut end = GET;
    end[3].1 = b"/end";
    bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, END, &block(&end)));
    let _ = client.try_send(&bytes);
    read(&client)
}

/// Reads until both requests have ended, or the connection has.
fn read(client: &Client) -> Ended {
    let mut ended = Ended::default();
    let mut stream = client.stream();
    let mut header = [0; 9];
    while ended.shape.is_none() || ended.end.is_none() {
        if stream.read_exact(&mut header).is_err() {
            break;
        }
        let [a, b, c, kind, flags, id @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        if stream.read_exact(&mut payload).is_err() {
            break;
        }
        let is_over =
            kind == RST_STREAM || (matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0);
        match u32::from_be_bytes(id) {
            SHAPE if is_over => ended.shape = Some(kind),
            END if is_over => ended.end = Some(kind),
            _ => {}
        }
    }
    ended
}

/// Sends all shapes to an HTTP/2 server.
pub(super) fn send_all(address: SocketAddr) {
    for shape in shapes() {
        send(address, &shape);
    }
}

#[test]
fn each_http2_shape_is_rejected_or_seen_as_intended() {
    let noted = Noted::start(|start| start);
    let mut wrong = Vec::new();
    for shape in shapes() {
        let ended = send(noted.server.address(), &shape);
        let mut seen = noted.take();
        seen.retain(|line| line != "GET /end");
        let expected: Vec<&str> = shape.seen.into_iter().collect();
        if seen != expected || (shape.seen.is_some() && ended.end != Some(DATA)) {
            let path = shape.fields.last();
            wrong.push(format!("{} ({path:?}): {ended:?}, seen {seen:?}", shape.name));
        }
    }
    assert!(wrong.is_empty(), "{} shapes:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(noted.server.get("/after").text(), "seen");
}
