//! Methods, versions, and HEAD.

use crate::case::{Case, Is, Theme};
use samovar_testkit::http::Request;

pub(crate) fn theme() -> Theme {
    let mut cases = Vec::new();
    for method in [
        "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "PROPFIND", "MKCOL", "COPY",
        "REPORT", "PURGE", "FOO",
    ] {
        cases.push(Case::one(method, Request::new(method, "/dump.php?a=1")));
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET"] {
        let request = Request::new(method, "/dump.php?a=1");
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        cases.push(Case::one(format!("{method} with a form"), request.clone().body("a=2&b=3")));
        cases.push(Case::one(format!("{method} with an empty form"), request.body("")));
    }
    for (name, target) in [
        ("page", "/dump.php?a=1"),
        ("nothing", "/respond.php?do=nothing"),
        ("status", "/respond.php?do=code&code=404"),
        ("redirect", "/respond.php?do=location"),
        ("length by the script", "/respond.php?do=length"),
        ("length zero", "/respond.php?do=length-zero"),
        ("type", "/respond.php?do=type&type=text/plain"),
        ("cookies", "/respond.php?do=cookie-twice"),
        ("header callback", "/respond.php?do=callback"),
        ("flushes", "/output.php?do=flush"),
        ("big", "/output.php?do=big"),
        ("buffer callback with a header", "/output.php?do=callback-header"),
        ("exit", "/ending.php?do=exit-text"),
        ("shutdown with a header", "/ending.php?do=shutdown-header"),
        ("warning", "/errors.php?do=notice"),
        ("hidden fatal", "/errors.php?do=hidden-fatal"),
        ("session", "/session.php?do=count"),
        ("204", "/respond.php?do=code-only&code=204"),
        ("304", "/respond.php?do=code-only&code=304"),
    ] {
        cases.push(Case::one(format!("HEAD of {name}"), Request::new("HEAD", target)));
    }
    cases.push(Case::steps(
        "HEAD runs the script to its end",
        [Request::new("HEAD", "/ending.php?do=mark"), Request::get("/ending.php?do=read-mark")],
    ));
    let raw = |name: &str, bytes: &str| Case::raw(name, bytes);
    cases.extend([
        raw("HTTP/1.0", "GET /dump.php?a=1 HTTP/1.0\r\nHost: localhost\r\n\r\n"),
        raw("HTTP/1.0 HEAD", "HEAD /dump.php HTTP/1.0\r\nHost: localhost\r\n\r\n"),
        raw("HTTP/1.0 flushes", "GET /output.php?do=flush HTTP/1.0\r\nHost: localhost\r\n\r\n"),
        raw(
            "HTTP/1.0 POST",
            "POST /dump.php HTTP/1.0\r\nHost: localhost\r\nContent-Length: 3\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\na=1",
        ),
        raw(
            "absolute form",
            "GET http://localhost/dump.php?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ),
        Case::one("HEAD of fatal", Request::new("HEAD", "/errors.php?do=fatal")).fails(),
        raw("lower-case method", "get /dump.php HTTP/1.1\r\nHost: localhost\r\n\r\n").differs(
            "methods are any token (RFC 9110): \
             a method that nobody knows is the application's to refuse",
            Is::Own(200, &["\"string REQUEST_METHOD\": \"get\""]),
        ),
        raw("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").differs(
            "a request to the server as a whole (RFC 9110) is answered by it",
            Is::Own(200, &["allow: "]),
        ),
    ]);
    Theme { name: "methods", cases }
}
