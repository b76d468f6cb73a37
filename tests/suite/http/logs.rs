//! Lines of the access log, and the id of a request.

use crate::http::app;
use crate::request_accounting::bench::{MODELS, serving, started};
use samovar_testkit::eventually;
use samovar_testkit::http::Request;
use serde_json::Value;

#[test]
fn request_id_reaches_php_response_and_log() {
    let server = app().args(["--access-log", "-", "--access-log-format", "json"]).start();
    let long = "x".repeat(129);
    for (sent, is_taken) in [
        (Some("my-id_1:2/3"), true),
        (Some("forged\" id"), false),
        (Some(long.as_str()), false),
        (Some(""), false),
        (None, false),
    ] {
        let mut request = Request::get("/log");
        if let Some(id) = sent {
            request = request.header("X-Request-Id", id);
        }
        let response = server.client().request(&request);
        let id = response.header("x-request-id").expect("every answer has an id").to_owned();
        assert_eq!(sent == Some(id.as_str()), is_taken, "{sent:?} became {id}");
        assert!(is_taken || id.len() == 32, "{id}");
        assert_eq!(response.text(), id, "{sent:?}: $_SERVER");
        server.wait_for_log(&format!("request_id={id} logged by the script"));
        eventually("the access log", || {
            server.stdout().contains(&format!("\"request_id\":\"{id}\"")).then_some(())
        });
    }
    // Clients receive an ID set by the application; the log keeps the server's ID.
    let own = Request::get("/own-id").header("X-Request-Id", "ours");
    let response = server.client().request(&own);
    assert_eq!((response.all("x-request-id"), response.text().as_str()), (vec!["theirs"], "ours"));
    eventually("the access log", || server.stdout().contains(":\"ours\"").then_some(()));
    // The server's own responses have one, too.
    assert!(server.get("/%zz").header("x-request-id").is_some());
}

#[test]
fn access_log_has_usage_of_request() {
    let server = app().args(["--access-log", "-", "--access-log-format", "json"]).start();
    let request = Request::form("/work?q=%22a%22", "a=b")
        .header("User-Agent", "quote\" back\\slash \u{1f980}")
        .header("Referer", "http://from/?a=\t1");
    assert_eq!(server.client().request(&request).status, 200);
    let line = eventually("a line", || server.stdout().lines().next().map(str::to_owned));
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    for (key, value) in [
        ("method", Value::from("POST")),
        ("remote", "127.0.0.1".into()),
        ("status", 200.into()),
        ("protocol", "HTTP/1.1".into()),
        ("user_agent", "quote\" back\\slash \u{1f980}".into()),
        ("referer", "http://from/?a=\t1".into()),
        ("attempts", 1.into()),
        ("aborted", false.into()),
    ] {
        assert_eq!(line[key], value, "{key}: {line}");
    }
    for key in ["duration_ms", "cpu_ms", "memory_bytes", "bytes"] {
        assert!(line[key].as_f64().is_some_and(|n| n > 0.0), "{key}: {line}");
    }
    assert!(line["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{line}");
    assert!(line["uri"].as_str().is_some_and(|uri| uri.starts_with("/work?q=")), "{line}");
    assert!(line["time"].as_str().is_some_and(|t| t.len() > 19 && t.ends_with('Z')), "{line}");
}

#[test]
fn access_log_has_route_wait_and_model_of_measured_request() {
    for model in MODELS {
        let work = "if ($_SERVER['QUERY_STRING'] === 'name') {
                Samovar\\route(\"show \\\"42\\\"\\ncell?token=abc\");
            }
            usleep(20_000);
            echo 'ok';";
        let log = ["--access-log", "-", "--access-log-format", "json"];
        let server = started(serving(model, work).args(log), model);
        let line = |id: &str| {
            let found = eventually("a line", || {
                let text = server.stdout();
                text.lines().find(|line| line.contains(&format!("\"{id}\""))).map(str::to_owned)
            });
            serde_json::from_str::<Value>(&found).unwrap_or_else(|e| panic!("{e}: {found}"))
        };
        for (path, id, route) in [
            ("/items/42?a=b", "derived", "index.php /items/{n}"),
            ("/items/42?name", "named", "show \"42\"\ncell?(redacted)"),
        ] {
            let request = Request::get(path).header("X-Request-Id", id);
            assert_eq!(server.client().request(&request).text(), "ok");
            let line = line(id);
            assert_eq!((&line["route"], &line["model"]), (&route.into(), &model.into()), "{line}");
            let wait = line["wait_ms"].as_f64().expect("a number");
            assert!(wait >= 20.0 && wait <= line["duration_ms"].as_f64().unwrap(), "{line}");
        }
    }
}

#[test]
fn access_log_without_measured_requests_derives_route() {
    let server = app().args(["--access-log", "-", "--access-log-format", "json"]).start();
    server.get("/items/42");
    let line = eventually("a line", || server.stdout().lines().next().map(str::to_owned));
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(
        (&line["route"], &line["model"]),
        (&"index.php /items/{n}".into(), &"script".into())
    );
    assert_eq!(line["wait_ms"], Value::Null, "no worker reports it: {line}");
}

#[test]
fn combined_access_log_has_standard_format() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_string_lossy().into_owned();
    let server = app().args(["--access-log", &path]).start();
    let request =
        Request::get("/a?b=c").header("User-Agent", "a\"b\\c").header("Referer", "http://from/");
    assert_eq!(server.client().request(&request.header("X-Request-Id", "my-id")).status, 200);
    server.get("/no-agent");
    let log = eventually("two lines", || {
        let text = std::fs::read_to_string(&path).ok()?;
        (text.lines().count() >= 2).then_some(text)
    });
    let last = log.lines().last().expect("a line");
    assert!(last.starts_with("127.0.0.1 - - ["), "{last}");
    assert!(last.contains("] \"GET /no-agent HTTP/1.1\" 200 16 \"-\" \"-\" "), "{last}");
    assert!(last.contains("cpu=") && last.contains("memory="), "{last}");
    let first = log.lines().next().expect("a line");
    assert!(first.contains(" \"http://from/\" \"a\\x22b\\x5Cc\" "), "escaped: {first}");
    assert!(first.ends_with(" model=script route=\"index.php /a\" id=my-id"), "{first}");
}
