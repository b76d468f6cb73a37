//! Bodies: urlencoded forms, JSON, and `php://input` of everything.

use crate::case::{Case, Theme, numbered};
use samovar_testkit::http::Request;

const FORM: &str = "application/x-www-form-urlencoded";

const FORMS: &[(&str, &str)] = &[
    ("one", "a=1"),
    ("two", "a=1&b=2"),
    ("empty", ""),
    ("no value", "a&b="),
    ("empty name", "=1&a=2"),
    ("nested", "a[b][]=1&a[b][]=2&c[d]=3"),
    ("hostile names", "a.b=1&c d=2&e[f=3&g]h=4&[i]=5"),
    ("duplicate", "a=1&a=2"),
    ("pluses and escapes", "a=1+2%2B3&b=%41%zz%"),
    ("nul", "a=%00&b%00c=1"),
    ("newlines", "a=1\r\nb=2\n"),
    ("trailing newline", "a=1\r\n"),
    ("raw utf-8", "ä=ö"),
    ("semicolons", "a=1;b=2"),
    ("json in a form", "{\"a\": 1}"),
    ("brackets only", "[]=1&[][]=2"),
];

const TYPES: &[(&str, &str, &str)] = &[
    ("charset", "application/x-www-form-urlencoded; charset=UTF-8", "a=1"),
    ("other charset", "application/x-www-form-urlencoded; charset=ISO-8859-1", "a=%E4"),
    ("upper case", "APPLICATION/X-WWW-FORM-URLENCODED", "a=1"),
    ("no space", "application/x-www-form-urlencoded;charset=utf-8", "a=1"),
    ("comma", "application/x-www-form-urlencoded, text/plain", "a=1"),
    ("spaces around", "  application/x-www-form-urlencoded  ", "a=1"),
    ("prefix", "application/x-www-form-urlencoded-not", "a=1"),
    ("json", "application/json", "{\"a\":1}"),
    ("json with charset", "application/json; charset=utf-8", "{\"ä\":\"ö\"}"),
    ("text", "text/plain", "a=1"),
    ("xml", "text/xml", "<x><a>1</a></x>"),
    ("octets", "application/octet-stream", "\0\u{1}\u{2}"),
    ("garbage", "garbage", "a=1"),
    ("empty", "", "a=1"),
];

fn input(name: &str, case: &str, body: &str) -> Case {
    Case::one(name, Request::post(&format!("/input.php?do={case}"), "text/plain", body))
}

pub(crate) fn theme() -> Theme {
    let dump = "/dump.php?a=get&g=1";
    let forms = FORMS
        .iter()
        .map(|(name, body)| Case::one(format!("form: {name}"), Request::form(dump, body)));
    let types = TYPES.iter().map(|(name, kind, body)| {
        Case::one(format!("type: {name}"), Request::post(dump, kind, *body))
    });
    let mut cases: Vec<_> = forms.chain(types).collect();
    let numbered = |count| numbered(count, |i| format!("v{i}={i}&"));
    let chunked = |name: &str, kind: &str, body: &str| {
        Case::raw(
            name,
            format!(
                "POST /dump.php HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n\
             Transfer-Encoding: chunked\r\n\r\n{body}"
            ),
        )
    };
    cases.extend([
        Case::one("form: as many as max_input_vars", Request::form(dump, &numbered(200))),
        Case::one("form: over max_input_vars", Request::form(dump, &numbered(250))),
        Case::one("form: long value", Request::form(dump, &format!("a={}", "x".repeat(200_000)))),
        Case::one(
            "form: at post_max_size",
            Request::form(dump, &format!("a={}", "x".repeat(262_142))),
        ),
        Case::one(
            "form: over post_max_size",
            Request::form(dump, &format!("a={}", "x".repeat(262_143))),
        ),
        Case::one(
            "form: far over post_max_size",
            Request::form(dump, &format!("a={}", "x".repeat(900_000))),
        ),
        Case::one("type: none", Request::new("POST", dump).body("a=1")),
        Case::one("type: none and no body", Request::new("POST", dump).body("")),
        Case::one(
            "json: over post_max_size",
            Request::post(dump, "application/json", "x".repeat(300_000)),
        ),
        Case::one(
            "PUT over post_max_size",
            Request::new("PUT", "/input.php?do=size").body("x".repeat(300_000)),
        ),
        chunked("chunked form", FORM, "3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n"),
        chunked("chunked json", "application/json", "7\r\n{\"a\":1}\r\n0\r\n\r\n"),
        chunked("chunked and empty", FORM, "0\r\n\r\n"),
        chunked("chunked with a trailer", FORM, "3\r\na=1\r\n0\r\nX-A: trailer\r\n\r\n"),
        Case::one(
            "form: $_REQUEST prefers the body",
            Request::form("/dump.php?a=get", "a=post").header("Cookie", "a=cookie"),
        ),
        Case::one(
            "Expect: 100-continue",
            Request::form(dump, "a=1").header("Expect", "100-continue"),
        ),
        Case::one(
            "Content-Encoding is left alone",
            Request::form(dump, "a=1").header("Content-Encoding", "gzip"),
        ),
        Case::one(
            "filter_input of a form",
            Request::form("/settings.php?do=filter-post", "n=5&m[]=1"),
        ),
    ]);
    cases.extend(inputs());
    Theme { name: "bodies", cases }
}

fn inputs() -> Vec<Case> {
    let sized = |name: &str, bytes: usize| {
        let body: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        Case::one(name, Request::new("PUT", "/input.php?do=size").body(body))
    };
    vec![
        input("php://input twice", "twice", "some text"),
        Case::one("php://input of a form, twice", Request::form("/input.php?do=twice", "a=1&b=2")),
        input("php://input sought", "seek", "0123456789"),
        input("php://input on two handles", "two-handles", "0123456789"),
        input("php://input as lines", "lines", "one\ntwo\r\nthree"),
        input("php://input copied", "copy", &"copy me ".repeat(1000)),
        input("php://input's meta data", "meta", "x"),
        input("php://input unread", "unread", &"x".repeat(200_000)),
        input("php://input partly read", "partly", &"0123456789".repeat(10_000)),
        input("php://input parsed by hand", "parse", "a=1&b[]=2"),
        input("php://input as XML", "xml", "<x><a>inner</a></x>"),
        Case::one("php://input of a GET", Request::get("/input.php?do=twice")),
        Case::one(
            "php://input of a GET with a body",
            Request::get("/input.php?do=twice").body("body"),
        ),
        Case::one(
            "php://input of a DELETE",
            Request::new("DELETE", "/input.php?do=twice").body("body"),
        ),
        sized("php://input of 0 bytes", 0),
        sized("php://input of 1 byte", 1),
        sized("php://input of 16 KiB", 16 * 1024),
        sized("php://input of 64 KiB and a byte", 64 * 1024 + 1),
        sized("php://input of 256 KiB", 256 * 1024),
        Case::one("php://stdin", Request::form("/input.php?do=stdin", "a=1")),
        Case::one("forms unread by setting", Request::form("/raw/script.php", "a=1")).script_only(),
    ]
}
