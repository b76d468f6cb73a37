//! Request headers: how they become variables, and which ones have an effect.

use crate::case::{Case, Is, Theme, numbered};
use samovar_testkit::http::Request;

const HEADERS: &[(&str, &[(&str, &str)])] = &[
    ("one", &[("X-A", "1")]),
    ("lower case", &[("x-a", "1")]),
    ("mixed case", &[("x-A-bC", "1")]),
    ("empty", &[("X-A", "")]),
    ("spaces inside", &[("X-A", "  a   b  ")]),
    ("comma", &[("X-A", "1, 2")]),
    ("colon", &[("X-A", "a: b")]),
    ("quotes", &[("X-A", "\"a\" 'b' \\c")]),
    ("markup", &[("X-A", "<b>&amp;")]),
    ("percents", &[("X-A", "%41%00")]),
    ("utf-8", &[("X-A", "Grüße")]),
    ("digits in the name", &[("X-1-2", "1")]),
    ("name of one letter", &[("X", "1")]),
    ("name ends with hyphen", &[("X-", "1")]),
    ("name with two hyphens", &[("X--A", "1")]),
    ("underscore in the name", &[("X_A", "1"), ("X-B", "2")]),
    ("dot in the name", &[("X.A", "1")]),
    ("specials in the name", &[("X!#$%&'*+^`|~A", "1")]),
    (
        "Accept and friends",
        &[
            ("Accept", "text/html;q=0.9, */*"),
            ("Accept-Language", "de, en;q=0.5"),
            ("Accept-Charset", "utf-8"),
            ("User-Agent", "test/1.0 (\"x\")"),
            ("Referer", "http://localhost/a?b#c"),
            ("Origin", "http://localhost"),
            ("DNT", "1"),
        ],
    ),
    ("Cache-Control and Pragma", &[("Cache-Control", "no-cache"), ("Pragma", "no-cache")]),
    (
        "conditional",
        &[("If-None-Match", "\"abc\""), ("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")],
    ),
    ("If-Match on a script", &[("If-Match", "\"other\"")]),
    ("Range on a script", &[("Range", "bytes=0-3")]),
    ("If-Range on a script", &[("Range", "bytes=0-3"), ("If-Range", "\"abc\"")]),
    (
        "X-Forwarded",
        &[
            ("X-Forwarded-For", "1.2.3.4"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "other"),
            ("X-Forwarded-Port", "443"),
            ("X-Real-IP", "1.2.3.4"),
            ("Forwarded", "for=1.2.3.4;proto=https"),
        ],
    ),
    ("X-Original-URL", &[("X-Original-URL", "/other"), ("X-Rewrite-URL", "/other")]),
    ("X-HTTP-Method-Override", &[("X-HTTP-Method-Override", "DELETE")]),
    ("X-Requested-With", &[("X-Requested-With", "XMLHttpRequest")]),
    ("X-Request-Id", &[("X-Request-Id", "mine-1")]),
    ("HTTPS as a header", &[("HTTPS", "on"), ("X-Https", "on")]),
    (
        "names of variables",
        &[
            ("Remote-Addr", "6.6.6.6"),
            ("Script-Name", "/x"),
            ("Request-Method", "X"),
            ("Document-Root", "/"),
        ],
    ),
    ("type without body", &[("Content-Type", "text/plain")]),
    ("length zero", &[("Content-Length", "0")]),
    (
        "type and length zero",
        &[("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "0")],
    ),
    ("Upgrade", &[("Upgrade", "websocket"), ("Connection", "Upgrade")]),
    ("TE", &[("TE", "trailers")]),
    ("Via and Max-Forwards", &[("Via", "1.1 proxy"), ("Max-Forwards", "3")]),
    ("Basic", &[("Authorization", "Basic dXNlcjpwYXNz")]),
    ("Basic, lower case", &[("Authorization", "basic dXNlcjpwYXNz")]),
    ("Basic without password", &[("Authorization", "Basic dXNlcg==")]),
    ("Basic, empty user", &[("Authorization", "Basic OnBhc3M=")]),
    ("Basic, colons in the password", &[("Authorization", "Basic dTphOmI6Yw==")]),
    ("Basic, utf-8", &[("Authorization", "Basic w6Q6w7Y=")]),
    ("Basic, no base64", &[("Authorization", "Basic !!!")]),
    ("Basic, empty", &[("Authorization", "Basic ")]),
    ("Basic, two spaces", &[("Authorization", "Basic  dXNlcjpwYXNz")]),
    ("Digest", &[("Authorization", "Digest username=\"u\", realm=\"r\", nonce=\"n\"")]),
    ("Digest, empty", &[("Authorization", "Digest ")]),
    ("Bearer", &[("Authorization", "Bearer abc.def.ghi")]),
    ("Authorization of rubbish", &[("Authorization", "rubbish")]),
    ("Authorization, empty", &[("Authorization", "")]),
    ("Proxy-Authorization", &[("Proxy-Authorization", "Basic dXNlcjpwYXNz")]),
];

fn with(headers: &[(&str, &str)]) -> Request {
    headers.iter().fold(Request::get("/dump.php?a=1"), |r, (name, value)| r.header(name, value))
}

pub(crate) fn theme() -> Theme {
    let mut cases: Vec<_> =
        HEADERS.iter().map(|(name, headers)| Case::one(*name, with(headers))).collect();
    let long = "abcdefgh".repeat(1000);
    let raw = |name: &str, headers: &[u8]| {
        let head = b"GET /dump.php?a=1 HTTP/1.1\r\nHost: localhost\r\n";
        Case::raw(name, [&head[..], headers, b"\r\n"].concat())
    };
    let numbered = numbered(80, |i| format!("X-N{i}: {i}\r\n"));
    cases.extend([
        Case::one("long value", with(&[("X-A", &long)])),
        Case::one("long name", with(&[(&format!("X-{}", "n".repeat(150)), "1")])),
        raw("many", numbered.as_bytes()),
        raw("no space behind the colon", b"X-A:1\r\n"),
        raw("bytes that are no utf-8", b"X-A: \xe4\xff\r\n"),
        Case::one("twice", with(&[("X-A", "1"), ("X-A", "2")])).differs_before_nginx_1_23(
            "nginx before 1.23 hands both over and php-fpm keeps the last; \
             since 1.23 they are joined",
            Is::Replaced(&[
                ("\"2\"", "\"1, 2\""),
                ("        \"2\",\n        null,", "        \"1, 2\",\n        null,"),
            ]),
        ),
        Case::one("httpoxy", with(&[("Proxy", "http://evil")])).differs(
            "HTTP_PROXY would configure HTTP clients: a Proxy header never becomes a variable",
            Is::Own(200, &["HTTP_HOST"]),
        ),
        raw("tabs around the value", b"X-A:\t1\t\r\n").differs(
            "white space around a value is no part of it (RFC 9110); nginx takes off spaces alone",
            Is::Replaced(&[("\\t1\\t", "1")]),
        ),
        Case::one("Basic, nul", with(&[("Authorization", "Basic dQB4OnA=")])).differs(
            "PHP finds no user in it; REMOTE_USER comes from nginx's own reading",
            Is::Replaced(&[("\"string REMOTE_USER\": \"u\"", "\"string REMOTE_USER\": \"\"")]),
        ),
        Case::one("Host with port", with(&[("Host", "localhost:8080")])).differs_before_nginx_1_30(
            "Debian's fastcgi_params hand over $host, without the port; \
             nginx's own hand over all of it",
            Is::Replaced(&[
                ("\"string Host\": \"localhost\"", "\"string Host\": \"localhost:8080\""),
                ("\"string HTTP_HOST\": \"localhost\"", "\"string HTTP_HOST\": \"localhost:8080\""),
            ]),
        ),
        Case::one("Host in capitals", with(&[("Host", "LOCALHOST")])).differs(
            "Debian's $host is in lower case",
            Is::Replaced(&[("\": \"localhost\"", "\": \"LOCALHOST\"")]),
        ),
        Case::one("another Host", with(&[("Host", "other.example")])).differs(
            "SERVER_NAME is the host that was asked for: there are no server blocks to name one",
            Is::Replaced(&[("SERVER_NAME\": \"localhost\"", "SERVER_NAME\": \"other.example\"")]),
        ),
        Case::one("Host is an address", with(&[("Host", "127.0.0.1")])).differs(
            "as above",
            Is::Replaced(&[("SERVER_NAME\": \"localhost\"", "SERVER_NAME\": \"127.0.0.1\"")]),
        ),
        Case::one(
            "filter_input of headers",
            Request::get("/settings.php?do=filter-server&x=1").header("X-A", "<1>"),
        ),
        Case::one(
            "getallheaders",
            Request::get("/respond.php?do=request-headers")
                .header("X-MiXed-Case", "1")
                .header("Accept", "a/b"),
        ),
    ]);
    Theme { name: "headers", cases }
}
