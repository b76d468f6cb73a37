//! The HTTP/1.1 shapes, as bytes.

/// A shape, and the requests that the application may see without a proxy.
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    /// `None` for no request and a closed connection. Requests after the shape follow these.
    pub(super) seen: Option<Vec<&'static str>>,
}

/// A request that must be seen only if it was sent as a separate request.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: t\r\n\r\n";

fn shape(name: &'static str, bytes: impl AsRef<[u8]>, seen: Option<&[&'static str]>) -> Shape {
    Shape { name, bytes: bytes.as_ref().to_vec(), seen: seen.map(<[_]>::to_vec) }
}

fn refused(name: &'static str, bytes: impl AsRef<[u8]>) -> Shape {
    shape(name, bytes, None)
}

/// A POST with these headers.
fn post(headers: &str, rest: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: t\r\n{headers}\r\n\r\n{rest}")
}

fn chunked(rest: &str) -> String {
    post("Transfer-Encoding: chunked", rest)
}

fn get(headers: &str) -> String {
    format!("GET /a HTTP/1.1\r\nHost: t\r\n{headers}\r\n\r\n")
}

/// All shapes.
pub(super) fn shapes() -> Vec<Shape> {
    [lengths(), codings(), chunks(), trailers(), lines(), targets(), remainders()]
        .into_iter()
        .flatten()
        .collect()
}

/// The length of the body.
fn lengths() -> Vec<Shape> {
    let mut shapes = vec![
        shape("a length", post("Content-Length: 3", "abc"), Some(&["POST /a abc"])),
        shape("zeros before a length", post("Content-Length: 0003", "abc"), Some(&["POST /a abc"])),
        shape(
            "blanks around a length",
            post("Content-Length: \t 3 \t", "abc"),
            Some(&["POST /a abc"]),
        ),
        shape(
            "a length of a GET",
            "GET /a HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc",
            Some(&["GET /a abc"]),
        ),
        shape(
            "underscores are no length",
            post("Content_Length: 9\r\nContent-Length: 3", "abc"),
            Some(&["POST /a abc"]),
        ),
        shape(
            "underscores are no coding",
            post("Transfer_Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
            Some(&["POST /a 0"]),
        ),
    ];
    for (name, headers) in [
        ("two lengths", "Content-Length: 0\r\nContent-Length: 36"),
        ("two equal lengths", "Content-Length: 0\r\nContent-Length: 0"),
        ("a list of lengths", "Content-Length: 0, 36"),
        ("a list of equal lengths", "Content-Length: 0, 0"),
        ("lengths far apart", "Content-Length: 36\r\nX-A: b\r\nContent-length: 0"),
        ("a signed length", "Content-Length: +36"),
        ("a negative length", "Content-Length: -1"),
        ("a hexadecimal length", "Content-Length: 0x24"),
        ("an octal length", "Content-Length: 0o44"),
        ("an empty length", "Content-Length:"),
        ("a length of blanks", "Content-Length: \t "),
        ("a length in two", "Content-Length: 3 6"),
        ("a length with a tail", "Content-Length: 36a"),
        ("a length with an underscore", "Content-Length: 3_6"),
        ("a length with a point", "Content-Length: 36.0"),
        ("a length in quotes", "Content-Length: \"36\""),
        ("a length beyond all", "Content-Length: 18446744073709551616"),
        ("a length that wraps", "Content-Length: 18446744073709551652"),
        ("a blank before the colon", "Content-Length : 36"),
        ("a tab before the colon", "Content-Length\t: 36"),
        ("NUL behind a length", "Content-Length: 36\0"),
        ("a vertical tab before a length", "Content-Length: \x0b36"),
        ("a form feed behind a length", "Content-Length: 36\x0c"),
        ("a length folded", "Content-Length:\r\n 36"),
        ("a length continued", "Content-Length: 3\r\n 6"),
        ("a length behind a fold", "X-A: b\r\n\tc\r\nContent-Length: 36"),
        ("a length behind CR", "X-A: b\rContent-Length: 36"),
    ] {
        shapes.push(refused(name, post(headers, HIDDEN)));
    }
    shapes.push(refused(
        "digits of another alphabet",
        post("Content-Length: \u{663}\u{666}", HIDDEN),
    ));
    shapes
}

/// Chunked and other transfer codings.
fn codings() -> Vec<Shape> {
    let mut shapes = vec![
        shape("a coding", chunked("3\r\nabc\r\n0\r\n\r\n"), Some(&["POST /a abc"])),
        shape(
            "a coding in capitals",
            post("TRANSFER-ENCODING: CHUNKED", "3\r\nabc\r\n0\r\n\r\n"),
            Some(&["POST /a abc"]),
        ),
        shape(
            "a coding between blanks",
            post("Transfer-Encoding: \t chunked \t", "3\r\nabc\r\n0\r\n\r\n"),
            Some(&["POST /a abc"]),
        ),
        shape(
            "a coding of a GET",
            "GET /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            Some(&["GET /a abc"]),
        ),
        refused(
            "HTTP/1.0 in chunks",
            format!(
                "POST /a HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
            ),
        ),
        refused(
            "HTTP/1.0 with both",
            format!(
                "POST /a HTTP/1.0\r\nHost: t\r\nConnection: keep-alive\r\n\
                 Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
            ),
        ),
    ];
    for (name, headers) in [
        ("CL before TE", "Content-Length: 41\r\nTransfer-Encoding: chunked"),
        ("TE before CL", "Transfer-Encoding: chunked\r\nContent-Length: 41"),
        ("CL and TE of 5", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        ("CL and an unknown TE", "Content-Length: 41\r\nTransfer-Encoding: xchunked"),
        ("CL and an empty TE", "Content-Length: 41\r\nTransfer-Encoding:"),
        ("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        ("identity before chunked", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"),
        ("chunked before identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
        ("a list of codings", "Transfer-Encoding: chunked, chunked"),
        ("gzip, chunked", "Transfer-Encoding: gzip, chunked"),
        ("chunked, gzip", "Transfer-Encoding: chunked, gzip"),
        ("chunked and a comma", "Transfer-Encoding: chunked,"),
        ("a comma and chunked", "Transfer-Encoding: , chunked"),
        ("an unknown coding", "Transfer-Encoding: xchunked"),
        ("identity", "Transfer-Encoding: identity"),
        ("chunked in quotes", "Transfer-Encoding: \"chunked\""),
        ("chunked with a parameter", "Transfer-Encoding: chunked;a=b"),
        ("a blank before TE's colon", "Transfer-Encoding : chunked"),
        ("a tab before TE's colon", "Transfer-Encoding\t: chunked"),
        ("a vertical tab before chunked", "Transfer-Encoding: \x0bchunked"),
        ("NUL before chunked", "Transfer-Encoding: \0chunked"),
        ("NUL behind chunked", "Transfer-Encoding: chunked\0"),
        ("CR behind chunked", "Transfer-Encoding: chunked\r"),
        ("a folded coding", "Transfer-Encoding:\r\n chunked"),
        ("a coding behind a blank", " Transfer-Encoding: chunked"),
        ("a coding behind CR", "X-A: b\rTransfer-Encoding: chunked"),
        ("a coding behind NUL", "X-A: b\0\r\nTransfer-Encoding: chunked"),
        ("a coding without its colon", "Transfer-Encoding chunked"),
        ("a byte of Latin-1 in the coding", "Transfer-Encoding: chunked\u{a0}"),
    ] {
        shapes.push(refused(name, post(headers, &format!("0\r\n\r\n{HIDDEN}"))));
    }
    shapes
}

/// The length of a chunk.
fn chunks() -> Vec<Shape> {
    let abc = Some(&["POST /a abc"][..]);
    let mut shapes = vec![
        shape("zeros before a size", chunked("0000000000000003\r\nabc\r\n00\r\n\r\n"), abc),
        shape("an extension", chunked("3;a=b\r\nabc\r\n0;c\r\n\r\n"), abc),
        shape("an extension in quotes", chunked("3;a=\"b;c\"\r\nabc\r\n0\r\n\r\n"), abc),
        shape("blanks before an extension", chunked("3 \t;a\r\nabc\r\n0\r\n\r\n"), abc),
    ];
    for (name, body) in [
        ("a size that is none", "x\r\nabc\r\n0\r\n\r\n"),
        ("no size", "\r\nabc\r\n0\r\n\r\n"),
        ("an extension alone", ";a\r\nabc\r\n0\r\n\r\n"),
        ("a signed size", "+3\r\nabc\r\n0\r\n\r\n"),
        ("a negative size", "-3\r\nabc\r\n0\r\n\r\n"),
        ("a prefix of hexadecimals", "0x3\r\nabc\r\n0\r\n\r\n"),
        ("an underscore in a size", "0_3\r\nabc\r\n0\r\n\r\n"),
        ("a blank before a size", " 3\r\nabc\r\n0\r\n\r\n"),
        ("a size in two", "0 3\r\nabc\r\n0\r\n\r\n"),
        ("a size beyond all", "10000000000000003\r\nabc\r\n0\r\n\r\n"),
        ("a size that wraps", "fffffffffffffffffffff3\r\nabc\r\n0\r\n\r\n"),
        ("a chunk longer than its size", "1\r\nabc\r\n0\r\n\r\n"),
        ("a chunk without its end", "3\r\nabc0\r\n\r\n"),
        ("LF behind a size", "3\nabc\r\n0\r\n\r\n"),
        ("LF behind a chunk", "3\r\nabc\n0\r\n\r\n"),
        ("CR behind a size", "3\rabc\r\n0\r\n\r\n"),
        ("CR behind a chunk", "3\r\nabc\r0\r\n\r\n"),
        ("two CRs behind a size", "3\r\r\nabc\r\n0\r\n\r\n"),
        ("LF in an extension", "3;a\nb\r\nabc\r\n0\r\n\r\n"),
        ("LF behind an extension", "3;a\nabc\r\n0\r\n\r\n"),
        ("CR in an extension", "3;a\rb\r\nabc\r\n0\r\n\r\n"),
        ("LF behind the last size", "0\n\r\n"),
        ("LF at the end", "0\r\n\n"),
        ("LF and LF at the end", "0\n\n"),
        ("NUL in a size", "3\0\r\nabc\r\n0\r\n\r\n"),
    ] {
        shapes.push(refused(name, chunked(&format!("{body}{HIDDEN}"))));
    }
    shapes
}

/// Data after the last chunk.
fn trailers() -> Vec<Shape> {
    let abc = Some(&["POST /a abc"][..]);
    // A reader that misinterprets the trailers would not see this part of the next request.
    let both = "POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 41\r\n\
        Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let mut shapes = vec![
        shape("a trailer", chunked("3\r\nabc\r\n0\r\nX-A: b\r\n\r\n"), abc),
        shape("a length as trailer", chunked("3\r\nabc\r\n0\r\nContent-Length: 36\r\n\r\n"), abc),
        shape(
            "a coding as trailer",
            chunked("3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            abc,
        ),
        shape("a host as trailer", chunked("3\r\nabc\r\n0\r\nHost: other\r\n\r\n"), abc),
    ];
    for (name, end) in [
        ("LF in place of trailers", "0\r\n\nX: y\r\n\r\n"),
        ("LF behind a trailer", "0\r\nX: y\n\r\n"),
        ("a trailer that LFs end", "0\r\nX: y\n\n"),
        ("CR in a trailer", "0\r\nX: y\rz\r\n\r\n"),
        ("two CRs behind a trailer", "0\r\nX: y\r\r\n\r\n"),
        ("a request as trailer", "0\r\nGET /hidden HTTP/1.1\n\n\r\n\r\n"),
    ] {
        shapes.push(refused(name, chunked(&format!("3\r\nabc\r\n{end}{both}{HIDDEN}"))));
    }
    shapes
}

/// Ends of lines, and invalid headers.
fn lines() -> Vec<Shape> {
    let mut shapes = vec![
        // LF as the end of all lines of the head (RFC 9112, 2.2), as in nginx.
        shape("LF ends all lines", "GET /a HTTP/1.1\nHost: t\n\n", Some(&["GET /a"])),
        shape("LF ends one line", "GET /a HTTP/1.1\r\nHost: t\nX-A: b\r\n\r\n", Some(&["GET /a"])),
        shape("an empty line before", "\r\nGET /a HTTP/1.1\r\nHost: t\r\n\r\n", Some(&["GET /a"])),
    ];
    for (name, headers) in [
        ("CR in a value", "X-A: b\rc"),
        ("CR CR at the end", "X-A: b\r"),
        ("NUL in a value", "X-A: b\0c"),
        ("NUL in a name", "X\0A: b"),
        ("a fold", "X-A: b\r\n c"),
        ("a fold of a tab", "X-A: b\r\n\tc"),
        ("a fold as first line", " X-A: b"),
        ("a line without colon", "X-A"),
        ("a line without name", ": b"),
        ("a blank in a name", "X A: b"),
        ("a name in brackets", "X(A): b"),
        ("a name of Latin-1", "X-\u{e4}: b"),
        ("a second host", "Host: u"),
        ("a second host, the same", "host: t"),
        ("DEL in a value", "X-A: b\x7fc"),
    ] {
        shapes.push(refused(name, get(headers) + HIDDEN));
    }
    shapes
}

/// Host and target.
fn targets() -> Vec<Shape> {
    let mut shapes = vec![
        shape("absolute-form", "GET http://t/a HTTP/1.1\r\nHost: t\r\n\r\n", Some(&["GET /a"])),
        // RFC 9112, 3.2.2: the target's authority replaces the header.
        shape(
            "absolute-form, another host",
            "GET http://u/a HTTP/1.1\r\nHost: t\r\n\r\n",
            Some(&["GET /a"]),
        ),
    ];
    for (name, line) in [
        ("a target with a blank", "GET /a /hidden HTTP/1.1"),
        ("two blanks", "GET  /a HTTP/1.1"),
        ("two blanks before the version", "GET /a  HTTP/1.1"),
        ("a tab in the line", "GET\t/a HTTP/1.1"),
        ("a blank at the end", "GET /a HTTP/1.1 "),
        ("a blank at the beginning", " GET /a HTTP/1.1"),
        ("CR in the target", "GET /a\rb HTTP/1.1"),
        ("NUL in the target", "GET /a\0b HTTP/1.1"),
        ("no version", "GET /a"),
        ("a version of one digit", "GET /a HTTP/1"),
        ("a version of three digits", "GET /a HTTP/1.10"),
        ("a later version", "GET /a HTTP/1.2"),
        ("HTTP/2 in text", "GET /a HTTP/2.0"),
        ("a version in lower case", "GET /a http/1.1"),
        ("a target without slash", "GET a HTTP/1.1"),
        ("another scheme", "GET ftp://t/a HTTP/1.1"),
        ("an authority with user", "GET http://u@t/a HTTP/1.1"),
        ("an authority with a blank's escape", "GET http://t%20u/a HTTP/1.1"),
        ("no authority", "GET http:///a HTTP/1.1"),
        ("a method with a colon", "GET: /a HTTP/1.1"),
        ("no method", "/a HTTP/1.1"),
    ] {
        shapes.push(refused(name, format!("{line}\r\nHost: t\r\n\r\n{HIDDEN}")));
    }
    for (name, host) in [
        ("no host", ""),
        ("a host with a path", "Host: t/a\r\n"),
        ("a host with a blank", "Host: t u\r\n"),
        ("a host with user", "Host: u@t\r\n"),
        ("a list of hosts", "Host: t, u\r\n"),
        ("a blank before the host's colon", "Host : t\r\n"),
        ("a port that is none", "Host: t:80a\r\n"),
    ] {
        shapes.push(refused(name, format!("GET /a HTTP/1.1\r\n{host}\r\n{HIDDEN}")));
    }
    shapes
}

/// Bodies that are not read, and requests after them.
fn remainders() -> Vec<Shape> {
    let hidden = HIDDEN.len();
    let with_body = |line: &str| {
        format!("{line} HTTP/1.1\r\nHost: t\r\nContent-Length: {hidden}\r\n\r\n{HIDDEN}")
    };
    vec![
        shape(
            "pipelined",
            "GET /a HTTP/1.1\r\nHost: t\r\n\r\n\
             POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc\
             GET /c HTTP/1.1\r\nHost: t\r\n\r\n",
            Some(&["GET /a", "POST /b abc", "GET /c"]),
        ),
        shape("a body for a file", with_body("POST /page.txt"), Some(&[])),
        shape("a body of a GET for a file", with_body("GET /page.txt"), Some(&[])),
        shape("a body of OPTIONS *", with_body("OPTIONS *"), Some(&[])),
        shape(
            "chunks for a file",
            format!(
                "GET /page.txt HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n\
                 {hidden:x}\r\n{HIDDEN}\r\n0\r\n\r\n"
            ),
            Some(&[]),
        ),
        shape(
            "a body of HEAD",
            format!(
                "HEAD /page.txt HTTP/1.1\r\nHost: t\r\nContent-Length: {hidden}\r\n\r\n{HIDDEN}"
            ),
            Some(&[]),
        ),
        shape(
            "a request as body",
            with_body("POST /a"),
            Some(&["POST /a GET /hidden HTTP/1.1\r\nHost: t"]),
        ),
        shape("TRACE with a body", with_body("TRACE /a"), Some(&[])),
        shape("CONNECT with a body", with_body("CONNECT t:80"), Some(&[])),
        refused(
            "expected and not wanted",
            format!(
                "POST /a HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n\
                 Content-Length: 99999999999\r\n\r\n{HIDDEN}"
            ),
        ),
        shape(
            "expected by a file",
            format!(
                "GET /page.txt HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n\
                 Content-Length: {hidden}\r\n\r\n{HIDDEN}"
            ),
            Some(&[]),
        ),
        shape(
            "an upgrade to HTTP/2",
            "GET /a HTTP/1.1\r\nHost: t\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
            Some(&["GET /a"]),
        ),
        refused(
            "HTTP/2 behind HTTP/1.1",
            "GET /missing.txt HTTP/9\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ),
    ]
}
