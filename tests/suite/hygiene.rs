//! The resident model: a request does not see state of earlier requests, regardless of how they
//! ended. State that the application set at boot or keeps in its statics persists.

use samovar_testkit::http::{Request, Response};
use samovar_testkit::{Server, Start, eventually, php};
use serde_json::{Value, json};
use std::path::PathBuf;

/// One worker, so that each request meets the state left by the previous one.
fn hygiene() -> Start {
    let start = Server::app("hygiene").workers(1);
    start.env("HYGIENE_LOG", "/dev/null").define("variables_order", "EGPCS")
}

fn messages() -> Server {
    Server::app("messages").workers(1).define("post_max_size", "8M").start()
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e}: {} {}", response.status, response.text()))
}

fn file_of(server: &Server, name: &str) -> PathBuf {
    server.folder().join(name)
}

fn text_of(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn report(server: &Server) -> Value {
    json_of(&server.get("/report"))
}

/// Lines of two reports that differ.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let lines = before.as_object().expect("a report").iter();
    let differ = lines.filter(|(key, value)| after[key.as_str()] != **value);
    differ.map(|(key, value)| format!("{key}: {value} became {}", after[key.as_str()])).collect()
}

/// A request creates more possible roots than PHP's collection threshold. The collector does not
/// run during a request, unless the code calls it.
#[test]
fn garbage_cycles_are_collected_between_requests() {
    let server = Server::script(
        "<?php class Cycle {
             public $own; static $ended = 0; function __destruct() { self::$ended++; } }
         Samovar\\serve(function () {
             $runs = gc_status()['runs']; $ended = Cycle::$ended;
             for ($i = 0; $i < 15000; $i++) { $cycle = new Cycle; $cycle->own = $cycle; }
             $meanwhile = [gc_status()['runs'] - $runs, Cycle::$ended - $ended];
             echo json_encode([$meanwhile, $ended, isset($_GET['ask']) ? gc_collect_cycles() : 0]);
         });",
    )
    .workers(1)
    .start();
    eventually("a collection", || {
        let response = json_of(&server.get("/"));
        assert_eq!(response[0], json!([0, 0]), "in the middle of a request");
        (response[1].as_u64()? >= 14_999).then_some(())
    });
    let asked = json_of(&server.get("/?ask"))[2].as_u64();
    assert!(asked.is_some_and(|found| found >= 14_999), "{asked:?}");
}

#[test]
fn request_state_does_not_persist_into_next_request() {
    let server = hygiene().start();
    let clean = report(&server);
    let names = json_of(&server.get("/names"));
    let mut wrong = Vec::new();
    for name in names.as_array().expect("a list").iter().filter_map(Value::as_str) {
        let log = file_of(&server, "soiled");
        let encoded = name.replace(' ', "%20");
        server.get(&format!("/soil?name={encoded}&log={}", log.display()));
        let soiled: Value = serde_json::from_str(&text_of(&log)).expect("a report");
        let line = name.split(':').next().unwrap_or_default();
        assert_ne!(soiled[line], clean[line], "{name} does what it says");
        let left = differences(&clean, &report(&server));
        if !left.is_empty() {
            wrong.push(format!("after `{name}`: {}", left.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}

#[test]
fn request_input_does_not_persist_into_next_request() {
    let server = hygiene().start();
    let clean = report(&server);
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\nx\r\n\
                     --b\r\nContent-Disposition: form-data; name=\"p\"\r\n\r\ny\r\n--b--\r\n";
    for (line, request) in [
        ("get", Request::get("/report?a=1")),
        ("post", Request::form("/report", "a=1")),
        ("post", Request::post("/report", "multipart/form-data; boundary=b", multipart)),
        ("files", Request::post("/report", "multipart/form-data; boundary=b", multipart)),
        ("cookie", Request::get("/report").header("Cookie", "a=1; BOOTSESSION=abc")),
        ("server", Request::get("/report").header("X-Dirt", "1")),
        ("input", Request::post("/report", "text/plain", "some text")),
        ("auth", Request::get("/report").header("Authorization", "Basic dTpw")),
        ("request", Request::form("/report?a=1", "b=2")),
    ] {
        let seen = json_of(&server.client().request(&request));
        assert_ne!(seen[line], clean[line], "{line}: {seen}");
        assert_eq!(differences(&clean, &report(&server)), [""; 0], "{line}");
    }
}

#[test]
fn requests_start_from_boot_state() {
    let server = hygiene().start();
    let clean = report(&server);
    for (line, expected) in [
        ("precision", json!("7")),
        ("memory_limit", json!("48M")),
        ("time_limit", json!("3")),
        ("locale", json!("C.UTF-8")),
        ("umask", json!(0o027)),
        ("encoding", json!("ISO-8859-1")),
        ("timezone", json!("Europe/Berlin")),
        ("loader", json!("Hygiene\\nothing")),
        ("context", json!({"http": {"user_agent": "boot"}})),
        ("error_handler", json!("Hygiene\\bootErrors")),
        ("exception_handler", json!("Hygiene\\bootExceptions")),
        ("session_name", json!("BOOTSESSION")),
        ("session_status", json!(1)),
        ("status", json!(200)),
        ("buffers", json!(1)),
        ("error_get_last", Value::Null),
        ("connection", json!(0)),
    ] {
        assert_eq!(clean[line], expected, "{line}");
    }
    assert_eq!(clean["session_params"]["path"], "/boot");
    assert_eq!(clean["putenv"], json!([false, "yes", true]));
    assert!(clean["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("tests/apps/hygiene")));
    let warned = server.get("/warn");
    assert_eq!(warned.header("x-boot-error"), Some("Undefined variable $undefined"));
    let thrown = server.get("/throw");
    assert_eq!((thrown.status, thrown.text().as_str()), (418, "boot handles: thrown"));
    // Requests do not run the boot's shutdown function.
    let log = file_of(&server, "log");
    let mut ending = hygiene().env("HYGIENE_LOG", &log.to_string_lossy()).start();
    ending.get("/");
    ending.get("/");
    assert_eq!(text_of(&log), "", "the application has not ended");
    ending.terminate();
    assert_eq!(ending.wait(), Some(0));
    assert_eq!(text_of(&log), "after serve\nboot's shutdown function\n");
}

#[test]
fn statics_and_globals_persist() {
    let server = hygiene().start();
    let counts: Vec<_> = (0..3).map(|_| server.get("/counter").text()).collect();
    assert_eq!(counts, ["1 1", "2 2", "3 3"]);
    server.get("/exit");
    server.get("/throw");
    server.get("/throw-unhandled");
    assert_eq!(server.get("/counter").text(), "7 7", "no request of these ended the application");
}

#[test]
fn next_request_is_served_after_any_end() {
    for (target, status, text, logged, is_booted_anew) in [
        ("/exit", 200, "before shutdown", "", false),
        ("/exit?with=bye", 200, "beforebye shutdown", "", false),
        ("/throw?before=output", 418, "outputboot handles: thrown", "", false),
        ("/throw-unhandled", 500, "nobody handles this", "nobody handles this", false),
        ("/throw-late", 200, "sent", "too late", false),
        ("/fatal", 500, "as fatal as it gets", "as fatal as it gets", true),
        ("/memory", 500, "Allowed memory size", "Allowed memory size", true),
        ("/time", 500, "Maximum execution time", "Maximum execution time", true),
    ] {
        let server = hygiene().define("html_errors", "0").start();
        let clean = report(&server);
        let pid = server.worker_pids();
        let ended = server.get(target);
        assert_eq!(ended.status, status, "{target}: {}", ended.text());
        assert!(ended.text().contains(text), "{target}: {}", ended.text());
        if !logged.is_empty() {
            server.wait_for_log(logged);
        }
        let counts = server.get("/counter").text();
        let expected = if is_booted_anew { "1 1" } else { "3 3" };
        assert_eq!(counts, expected, "{target}");
        assert_eq!(differences(&clean, &report(&server)), [""; 0], "{target}");
        assert_eq!(server.worker_pids() != pid, is_booted_anew, "{target}: a fresh fork");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{target}: nothing died");
        // A second time has the same result.
        assert_eq!(server.get(target).status, status, "{target} again");
        assert_eq!(server.get("/").text(), "at home", "{target} again");
        server.stop();
    }
}

#[test]
fn fatal_error_without_display_errors_has_empty_body() {
    let server = hygiene().define("display_errors", "0").start();
    for target in ["/throw-unhandled", "/memory", "/fatal"] {
        let ended = server.get(target);
        assert_eq!((ended.status, ended.text().as_str()), (500, ""), "{target}");
    }
    assert_eq!(server.get("/").text(), "at home");
}

#[test]
fn time_limit_applies_to_own_request_only() {
    let server = hygiene().start();
    // The boot set 3 s; the limit of 1 s of one request does not apply to the next.
    assert_eq!(server.get("/time").status, 500);
    for _ in 0..3 {
        assert_eq!(server.get("/").text(), "at home");
    }
    assert_eq!(report(&server)["time_limit"], "3");
}

#[test]
fn shutdown_functions_and_destructors_run_once_in_own_request() {
    let server = hygiene().start();
    let log = file_of(&server, "log");
    assert_eq!(server.get(&format!("/shutdown?log={}", log.display())).text(), "main");
    server.get("/");
    server.get("/");
    assert_eq!(text_of(&log), "shutdown\nnested shutdown\n");
    let log = file_of(&server, "log2");
    assert_eq!(server.get(&format!("/destruct?log={}", log.display())).text(), "main");
    server.get("/");
    assert_eq!(text_of(&log), "destructed\n");
}

#[test]
fn header_callback_applies_to_own_request_only() {
    let server = hygiene().start();
    let first = server.get("/callback");
    assert_eq!((first.header("x-dirt"), first.text().as_str()), (Some("callback"), "called back"));
    let second = server.get("/");
    assert_eq!((second.header("x-dirt"), second.text().as_str()), (None, "at home"));
}

#[test]
fn uploaded_files_are_removed_after_request() {
    let server = hygiene().start();
    let body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"n\"\r\n\r\n\
                content\r\n--b--\r\n";
    let request = Request::post("/upload", "multipart/form-data; boundary=b", body);
    let uploaded = json_of(&server.client().request(&request));
    assert_eq!((&uploaded[1], &uploaded[2]), (&json!(true), &json!("content")));
    let file = uploaded[0].as_str().expect("a path");
    let later = server.get(&format!("/is-uploaded?file={file}"));
    assert_eq!(json_of(&later), json!([false, false]));
    assert_eq!(std::fs::read_dir(server.folder().join("uploads")).expect("ours").count(), 0);
}

#[test]
fn session_follows_its_cookie() {
    let server = hygiene().start();
    let first = server.get("/session");
    let cookies = first.all("set-cookie");
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert!(cookies[0].starts_with("BOOTSESSION=") && cookies[0].contains("path=/boot"));
    let again = Request::get("/session").header("Cookie", &first.cookies());
    assert_eq!(server.client().request(&again).text(), "2");
    let other = server.get("/session");
    assert_eq!(other.text(), "1");
    assert_ne!(other.cookies(), first.cookies());
    assert_eq!(server.client().request(&again).text(), "3");
}

#[test]
fn retained_input_stream_reads_no_later_body() {
    let server = hygiene().start();
    let ask =
        |text: &str| server.client().request(&Request::post("/input", "text/plain", text)).text();
    assert_eq!(ask("first"), "1 first open");
    assert_eq!(ask("second"), "2 second closed");
}

#[test]
fn nested_serve_call_throws() {
    let server = hygiene().start();
    let text = server.get("/nested").text();
    assert!(text.starts_with("Error: ") && text.contains("nested"), "{text}");
    assert_eq!(server.get("/").text(), "at home");
}

#[test]
fn finished_request_continues_and_leaves_no_state() {
    let server = hygiene().start();
    let clean = report(&server);
    let log = file_of(&server, "log");
    assert_eq!(server.get(&format!("/finish?log={}", log.display())).text(), "early");
    eventually("the late part", || (text_of(&log) == "late").then_some(()));
    assert_eq!(differences(&clean, &report(&server)), [""; 0]);
}

#[test]
fn other_scripts_run_as_scripts_next_to_resident_application() {
    let server = hygiene().start();
    assert_eq!(server.get("/counter").text(), "1 1");
    for _ in 0..2 {
        let other = json_of(&server.get("/other.php"));
        assert_eq!(other["runs"], 1, "each request runs it anew: {other}");
        assert_eq!(other["class"], false, "{other}");
        assert_eq!(other["globals"], false, "{other}");
        assert_ne!(other["precision"], "7", "the application's boot is not its own: {other}");
        let app = server.status()["workers"][0]["pid"].clone();
        assert_ne!(other["pid"], app, "it runs in a worker of its own");
    }
    assert_eq!(server.get("/counter").text(), "2 2");
    let status = server.status();
    let models: Vec<_> = status["workers"].as_array().expect("a list").iter().collect();
    let of = |model: &str| models.iter().filter(|w| w["model"] == model).count();
    assert_eq!((of("resident"), of("script")), (1, 1), "{status}");
    server.stop();
}

#[test]
fn request_object_has_all_request_data() {
    let server = messages();
    let request = Request::form("/all?a=1&b[]=2", "c=3&d[x]=4")
        .header("Host", "shop.example:81")
        .header("X-Test", "yes")
        .header("Cookie", "e=5")
        .header("X-Request-Id", "my-id");
    let all = json_of(&server.client().request(&request));
    let expected = json!({
        "method": "POST",
        "uri": "/all?a=1&b[]=2",
        "path": "/all",
        "queryString": "a=1&b[]=2",
        "protocol": "HTTP/1.1",
        "host": "shop.example",
        "isSecure": false,
        "remoteAddress": "127.0.0.1",
        "id": "my-id",
        "header": "yes",
        "header absent": null,
        "header default": "other",
        "headers": "yes",
        "query": {"a": "1", "b": ["2"]},
        "form": {"c": "3", "d": {"x": "4"}},
        "cookies": {"e": "5"},
        "files": [],
        "body": "c=3&d[x]=4",
        "attribute": [1],
        "attribute default": 7,
        "attributes": {"seen": [1]},
        "server": "POST",
    });
    assert_eq!(differences(&expected, &all), [""; 0]);
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\nxyz\
                     \r\n--b--\r\n";
    let request = Request::post("/all", "multipart/form-data; boundary=b", multipart);
    assert_eq!(json_of(&server.client().request(&request))["files"], json!({"f": 3}));
    let all = json_of(&server.get("/all"));
    assert_eq!(
        (&all["form"], &all["cookies"], &all["files"]),
        (&json!([]), &json!([]), &json!([]))
    );
}

#[test]
fn request_body_is_readable_as_stream() {
    let server = messages();
    let body: Vec<u8> = (0..1_000_000u32).map(|n| b'a' + (n % 23) as u8).collect();
    let put = |target: &str| {
        let mut request = Request::new("PUT", target).body(body.clone());
        request = request.header("Content-Type", "application/octet-stream");
        server.client().request(&request).text()
    };
    let text = String::from_utf8(body.clone()).expect("letters");
    assert_eq!(put("/stream-body"), server_md5(&text));
}

/// Computes the MD5 with PHP, so that the test needs no implementation of it.
fn server_md5(text: &str) -> String {
    let script = "<?php echo md5(stream_get_contents(STDIN));";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, input) = (folder.path().join("md5.php"), folder.path().join("input"));
    std::fs::write(&file, script).expect("our own folder");
    std::fs::write(&input, text).expect("our own folder");
    let input = std::fs::File::open(input).expect("just written");
    let output = std::process::Command::new(php::program("php")).arg(&file).stdin(input).output();
    String::from_utf8(output.expect("PHP's command line is there").stdout).expect("hex digits")
}

#[test]
fn request_object_is_empty_after_its_request() {
    let server = messages();
    let keep = Request::form("/keep?a=1", "b=2").header("Cookie", "c=3").header("X-Test", "yes");
    assert_eq!(server.client().request(&keep).text(), "kept");
    let other = Request::form("/inert?secret=1", "secret=2").header("X-Test", "other");
    let kept = json_of(&server.client().request(&other));
    for line in ["method", "uri", "path", "queryString", "host", "remoteAddress", "id", "body"] {
        assert_eq!(kept[line], "", "{line}");
    }
    for line in ["query", "form", "cookies", "files"] {
        assert_eq!(kept[line], json!([]), "{line}");
    }
    for line in ["header", "headers", "server"] {
        assert_eq!(kept[line], Value::Null, "{line}");
    }
    assert_eq!(kept["attribute"], "kept", "what the application attached is its own");
    assert!(kept["bodyStream"].as_str().is_some_and(|text| text.contains("over")), "{kept}");
}

#[test]
fn handler_return_value_becomes_response() {
    let server = messages();
    for (target, status, body) in [
        ("/", 200, "at home"),
        ("/new", 201, "made"),
        ("/defaults", 200, "[200,[],\"\"]"),
        ("/getters", 200, "[404,{\"X\":\"y\"},[\"a\"]]"),
        ("/array", 200, "one text 3"),
        ("/generator", 200, "piece 0\npiece 1\npiece 2\n"),
        ("/iterator", 200, "ab"),
        ("/stream", 200, &"0123456789".repeat(50_000)),
        ("/echo", 200, "echoed"),
        ("/both", 200, "echoed, returned"),
        ("/empty", 204, ""),
    ] {
        let response = server.get(target);
        assert_eq!((response.status, response.complete), (status, true), "{target}");
        assert!(
            response.text() == body,
            "{target}: {}",
            &response.text()[..response.text().len().min(99)]
        );
    }
    let made = server.get("/new");
    assert_eq!(made.header("x-one"), Some("1"));
    assert_eq!(made.all("x-many"), ["a", "b"]);
    assert!(made.header("content-type").is_some_and(|t| t.starts_with("text/x-test")));
    let both = server.get("/header-and-response");
    assert_eq!((both.header("x-by-header"), both.header("x-by-response")), (Some("1"), Some("1")));
    assert_eq!(both.cookies(), "c=v");
    let plain = server.get("/");
    for name in ["x-one", "x-many", "x-by-header", "set-cookie"] {
        assert_eq!(plain.header(name), None, "{name} was another's");
    }
}

#[test]
fn generator_response_is_streamed() {
    let server = messages();
    let file = file_of(&server, "gate");
    let mut client = server.client();
    client.send(&Request::get(&format!("/gated?file={}", file.display())).bytes());
    for n in 0..3 {
        // The piece is created only now, so no buffer can have held it back.
        std::fs::write(file.with_extension(n.to_string()), "").expect("our own folder");
        if n == 0 {
            assert_eq!(client.read_head().expect("a head").status, 200);
        }
        let chunk = client.read_chunk().expect("a piece").expect("a piece");
        assert_eq!(String::from_utf8_lossy(&chunk), format!("piece {n}\n"));
    }
    assert_eq!(client.read_chunk().expect("the end"), Some(Vec::new()));
}

#[test]
fn invalid_response_gets_500_and_is_logged() {
    let server = messages();
    for (target, logged) in [
        ("/return-int", "int returned"),
        ("/return-array", "array returned"),
        ("/return-true", "returned"),
        ("/return-object", "stdClass"),
        ("/list-header", "name => value"),
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 500, "{target}: {}", response.text());
        server.wait_for_log(logged);
        assert_eq!(server.get("/").text(), "at home", "after {target}");
    }
    let injected = server.get("/bad-header");
    assert_eq!(injected.header("x-injected"), None, "{injected:?}");
    let failed = server.get("/failing");
    assert!(failed.text().starts_with("a piece\n"), "{failed:?}");
    server.wait_for_log("no more pieces");
    let errors = json_of(&server.get("/bad"));
    for (name, class) in [
        ("body", "TypeError"),
        ("status", "ValueError"),
        ("status high", "ValueError"),
        ("headers", "TypeError"),
        ("construct", "Error"),
        ("clone", "Error"),
        ("serialize", "Exception"),
        ("property", "Error"),
    ] {
        assert_eq!(errors[name], class, "{name}: {errors}");
    }
}
