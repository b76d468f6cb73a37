//! Cookies that clients send.

use crate::case::{Case, Is, Theme, numbered};
use samovar_testkit::http::Request;

const COOKIES: &[(&str, &str)] = &[
    ("one", "a=1"),
    ("two", "a=1; b=2"),
    ("no space", "a=1;b=2"),
    ("many spaces", "  a=1 ;   b=2  "),
    ("space around the equals sign", "a = 1; b= 2"),
    ("comma", "a=1, b=2"),
    ("duplicate: the first wins", "a=1; a=2"),
    ("empty", ""),
    ("semicolons only", ";;;"),
    ("no value", "a; b=; c=1"),
    ("no name", "=1; a=2"),
    ("equals signs", "a=b=c; d==="),
    ("percent escapes", "a=%41%20%2B; %62=2"),
    ("pluses", "a=1+2; b+c=3"),
    ("broken escapes", "a=%zz; b=%"),
    ("quotes", "a=\"1 2\"; b='3'"),
    ("nul", "a=%00b; c%00d=1"),
    ("array", "a[0]=x; a[k]=y; b[]=1; b[]=2"),
    ("array after scalar", "a=1; a[x]=2"),
    ("encoded brackets", "a%5Bx%5D=1"),
    ("open bracket", "a[b=1"),
    ("dots and spaces in names", "a.b=1; c d=2"),
    ("ampersand", "a=1&b=2; c=3"),
    ("utf-8", "ä=ö; a=ü"),
    ("encoded utf-8", "a=%C3%A4; b=%FF"),
    ("$ attributes", "$Version=1; a=1; $Path=/"),
    ("__Host- prefix", "__Host-a=1; __Secure-b=2"),
    ("encoded __Host- prefix", "%5F_Host-a=1; _%5FSecure-b=2; ..Host-c=3; __Host-d=4"),
    ("names like superglobals", "_COOKIE=1; GLOBALS=2; this=3"),
];

pub(crate) fn theme() -> Theme {
    let dump = || Request::get("/dump.php?a=get");
    let mut cases: Vec<_> = COOKIES
        .iter()
        .map(|(name, text)| Case::one(*name, dump().header("Cookie", text)))
        .collect();
    let numbered = |count| numbered(count, |i| format!("c{i}={i}; "));
    cases.extend([
        Case::one("many", dump().header("Cookie", &numbered(199))),
        Case::one("over max_input_vars", dump().header("Cookie", &numbered(210))),
        Case::one("control characters", dump().header("Cookie", "a=1\u{1}2"))
            .differs("RFC 9110 forbids them in a header", Is::Own(400, &[])),
        Case::one("two headers", dump().header("Cookie", "a=1").header("Cookie", "b=2"))
            .differs_before_nginx_1_23(
                "nginx before 1.23 hands both over and php-fpm keeps the last; \
                 since 1.23 they are joined",
                Is::Own(200, &["\"string HTTP_COOKIE\": \"a=1; b=2\""]),
            ),
        Case::one("long", dump().header("Cookie", &format!("a={}", "x".repeat(4000)))),
        Case::one(
            "filter_input",
            Request::get("/settings.php?do=filter-cookie").header("Cookie", "c=1; d[]=2"),
        ),
        Case::steps(
            "set by the server, sent by the client",
            [Request::get("/respond.php?do=cookie&value=a%20b%3B%25"), Request::get("/dump.php")],
        ),
        Case::steps(
            "set and deleted",
            [
                Request::get("/respond.php?do=cookie"),
                Request::get("/dump.php"),
                Request::get("/respond.php?do=cookie-delete"),
                Request::get("/dump.php"),
            ],
        ),
    ]);
    Theme { name: "cookies", cases }
}
