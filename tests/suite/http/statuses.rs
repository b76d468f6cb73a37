//! Statuses that scripts set: reason phrases, unknown codes, and errors after them.

use samovar_testkit::Server;
use samovar_testkit::http::Request;

/// nginx with php-fpm sends the same phrases.
#[test]
fn reason_phrase_of_script_is_sent() {
    let server = Server::script("<?php eval($_SERVER['HTTP_X_RUN']);").start();
    for (run, status, reason) in [
        ("header('HTTP/1.1 418 Short And Stout');", 418, "Short And Stout"),
        ("header('HTTP/1.0 404 Gone Fishing');", 404, "Gone Fishing"),
        ("header('Status: 403 Not For You');", 403, "Not For You"),
        ("header('HTTP/1.1 404 Not Found');", 404, "Not Found"),
        ("header('HTTP/1.1 599 Odd');", 599, "Odd"),
        ("header('HTTP/1.1 404');", 404, "Not Found"),
        ("header('HTTP/1.1 200 Super');", 200, "OK"),
        ("http_response_code(404);", 404, "Not Found"),
        ("http_response_code(599);", 599, ""),
        ("header('HTTP/1.1 404 Gone Fishing'); http_response_code(403);", 404, "Gone Fishing"),
    ] {
        let response = server.client().request(&Request::get("/").header("X-Run", run));
        assert_eq!((response.status, response.reason.as_str()), (status, reason), "{run}");
    }
}

/// As in php-fpm, an error changes only a status of 200.
#[test]
fn status_set_before_uncaught_exception_stays() {
    const RUN: &str = "function run(): void {\n\
        ini_set('display_errors', '0');\n\
        if ($_GET['status']) { http_response_code((int) $_GET['status']); }\n\
        if ($_GET['how'] === 'exception') { throw new Exception('unseen'); }\n\
        undefined_function();\n}\n";
    for (model, end) in [
        ("script", "run();"),
        ("checkpoint", "Samovar\\checkpoint(); run();"),
        ("resident", "Samovar\\serve('run');"),
        ("loop", "while (frankenphp_handle_request('run')) {}"),
    ] {
        let server = Server::script(&format!("<?php {RUN}{end}")).start();
        for how in ["exception", "error"] {
            for (set, status) in [(404, 404), (201, 201), (0, 500)] {
                let response = server.get(&format!("/?how={how}&status={set}"));
                assert_eq!(response.status, status, "{model} {how} {set}: {}", response.text());
            }
        }
    }
}

#[test]
fn invalid_header_and_short_response_are_logged_with_their_request() {
    let server = Server::script("<?php eval($_SERVER['HTTP_X_RUN']);").start();
    let run = |path: &str, code: &str| {
        let request = Request::get(path).header("X-Run", code).header("X-Request-Id", &path[1..]);
        server.client().request(&request)
    };
    let response = run("/odd", "header('X-\u{c9}: v'); header('X-A: b'); echo 'body';");
    assert_eq!((response.status, response.header("x-a")), (200, Some("b")));
    server.wait_for_log("dropped an invalid response header");
    server.wait_for_log("request_id=\"odd\"");
    let response = run("/short", "header('Content-Length: 10'); echo 'body';");
    assert!(!response.complete, "{response:?}");
    server.wait_for_log("request=\"GET /short\" request_id=\"short\"");
    server.wait_for_log("fewer bytes than its `Content-Length` header declares");
}
