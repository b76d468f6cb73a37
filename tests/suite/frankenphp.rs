//! FrankenPHP's userland contract: worker scripts written for it run unchanged.

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, Start, eventually, workspace};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

fn script(name: &str) -> Start {
    Server::at(workspace().join("tests/apps/frankenphp").join(name)).relinked()
}

/// One worker, so that each request meets the state left by the previous one.
fn pages() -> Start {
    script("index.php").workers(1)
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e}: {} {}", response.status, response.text()))
}

/// Number of visits counted in this worker's memory, and its process ID.
fn visit(server: &Server) -> (u64, u64) {
    let text = server.get("/").text();
    let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
    let mut number = || numbers.next().unwrap_or_else(|| panic!("{text}\n{}", server.log()));
    (number(), number())
}

fn model(server: &Server) -> String {
    server.status()["workers"][0]["model"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn documented_frankenphp_worker_script_runs_unchanged() {
    let server = script("hello.php").workers(2).start();
    let first = server.get("/?name=Ann").text();
    assert!(first.starts_with("Hello Ann, booted at "), "{first}\n{}", server.log());
    assert_eq!(server.get("/").text(), first.replace("Ann", "world"), "one boot");
    assert_eq!(model(&server), "resident");
    server.wait_for_log("terminated after /?name=Ann");
    let log = server.stop();
    assert_eq!(log.matches(" shut down").count(), 2, "each worker cleans up: {log}");
}

#[test]
fn superglobals_hold_current_request() {
    let server = pages().start();
    let clean = json_of(&server.get("/globals"));
    assert_eq!(clean["worker"], "1");
    assert_eq!(clean["boot"], json!(["1", false, "index.php"]));
    assert_eq!((&clean["status"], &clean["abort"]), (&json!(200), &json!(1)));
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\nx\r\n\
                     --b\r\nContent-Disposition: form-data; name=\"p\"\r\n\r\ny\r\n--b--\r\n";
    for (key, request, expected) in [
        ("get", Request::get("/globals?a=1"), json!({"a": "1"})),
        ("request", Request::form("/globals?a=1", "b=2"), json!({"a": "1", "b": "2"})),
        ("post", Request::form("/globals", "b=2"), json!({"b": "2"})),
        ("cookie", Request::get("/globals").header("Cookie", "c=3"), json!({"c": "3"})),
        ("dirt", Request::get("/globals").header("X-Dirt", "4"), json!("4")),
        ("input", Request::post("/globals", "text/plain", "5"), json!("5")),
        (
            "files",
            Request::post("/globals", "multipart/form-data; boundary=b", multipart),
            json!({"f": "n"}),
        ),
    ] {
        let seen = json_of(&server.client().request(&request));
        assert_eq!(seen[key], expected, "{key}");
        assert_eq!(json_of(&server.get("/globals")), clean, "after {key}");
    }
    server.wait_for_log("no one reads what the boot puts out");
}

#[test]
fn output_between_requests_reaches_no_client() {
    let server = pages().start();
    assert_eq!(server.get("/stray").text(), "");
    let next = server.get("/globals");
    assert_eq!(json_of(&next)["between"], json!(["stray", "/stray", null]));
    assert_eq!(next.header("x-stray"), None);
    server.wait_for_log("stray output between requests");
}

#[test]
fn header_functions_read_send_and_list_headers() {
    let server = pages().start();
    let response = server.client().request(&Request::get("/headers").header("X-Mine", "yes"));
    let seen = json_of(&response);
    assert_eq!(seen["asked"]["X-Mine"], "yes");
    assert_eq!((&seen["same"], &seen["alias"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&seen["answered"]["X-One"], &seen["answered"]["X-Two"]),
        (&json!("1"), &json!("b"))
    );
    assert_eq!(response.all("x-two"), ["a", "b"]);
    let sent = server.get("/send");
    assert_eq!((sent.status, sent.text().as_str()), (202, "[1,false,0,true,0]"));
    assert_eq!(sent.header("link"), Some("</style.css>; rel=preload"), "the headers stay");
}

#[test]
fn early_hints_arrive_before_response() {
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    let server = pages().start();
    let mut client = server.client();
    // The script waits for a file, which is created when its hints have arrived.
    let target = format!("/hints?until={}", go.display());
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let hints = client.read_head().expect("early hints");
    assert_eq!(hints.status, 103);
    assert_eq!(hints.headers, [("link".to_owned(), "</style0.css>; rel=preload".to_owned())]);
    std::fs::write(&go, "").expect("our own folder");
    let response = client.read(false);
    assert_eq!((response.status, response.text().as_str()), (200, "done"));
    assert_eq!((response.header("x-told"), response.header("link")), (Some("1"), None));
}

/// Number of links in each of the early hints, and the response.
fn with_hints(client: &mut Client) -> (Vec<usize>, Response) {
    let (hints, response) = client.read_with_interim(false).expect("an answer");
    assert!(hints.iter().all(|h| h.status == 103) && response.complete);
    (hints.iter().map(|hint| hint.all("link").len()).collect(), response)
}

#[test]
fn early_hints_stay_in_order_with_pipelined_responses() {
    let server = pages().workers(2).start();
    let mut client = server.client();
    // Pipelined after a response that fills all buffers, and read late.
    let ask = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    client
        .send(&[ask("/hints?bytes=8000000"), ask("/hints?times=3&ms=10"), ask("/hints")].concat());
    std::thread::sleep(Duration::from_millis(300));
    let (hints, large) = with_hints(&mut client);
    assert_eq!((hints.len(), large.body.len()), (1, 8_000_004));
    let (hints, response) = with_hints(&mut client);
    assert_eq!(hints, [1, 2, 3], "each with all so far");
    assert_eq!((response.text().as_str(), response.header("x-told")), ("done", Some("1,1,1")));
    assert_eq!(with_hints(&mut client).0.len(), 1);
    let (hints, response) = {
        client.send(&ask("/hints"));
        with_hints(&mut client)
    };
    assert_eq!((hints.len(), response.status), (1, 200), "the connection goes on");
}

#[test]
fn unsendable_early_hints_are_dropped() {
    let server = pages().start();
    // Statuses of the connection itself, which a script must not send.
    for status in [100, 101] {
        let response = server.get(&format!("/hints?status={status}"));
        assert_eq!((response.status, response.header("x-told")), (200, Some("3")), "{status}");
    }
    // HTTP/1.0 has no interim responses.
    let mut old = server.client();
    old.send(b"GET /hints HTTP/1.0\r\n\r\n");
    assert_eq!(with_hints(&mut old).0, [0usize; 0]);
    // Some proxies take early hints for the response.
    for (settings, header, expected) in [
        ("", "", 1),
        ("", "X-Forwarded-For: 10.1.2.3\r\n", 0),
        ("", "Via: 1.1 edge\r\n", 0),
        ("early_hints = 'on'", "Via: 1.1 edge\r\n", 1),
        ("early_hints = 'off'", "", 0),
        ("trusted_proxies = ['127.0.0.0/8']", "", 0),
        ("early_hints = 'on'\ntrusted_proxies = ['127.0.0.0/8']", "", 1),
    ] {
        let server = pages().config(settings).start();
        let mut client = server.client();
        client.send(format!("GET /hints HTTP/1.1\r\nHost: a\r\n{header}\r\n").as_bytes());
        let (hints, response) = with_hints(&mut client);
        let told = response.header("x-told");
        assert_eq!((hints.len(), told), (expected, Some("1")), "{settings}, {header}");
    }
    // It is too late after the response has begun. Its head contained the link.
    let mut late = server.client();
    late.send(b"GET /hints?early=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let (hints, response) = with_hints(&mut late);
    assert_eq!((hints, response.text().as_str()), (vec![1], "early 3 done"));
    // Hints beyond the available space are left out.
    let mut much = server.client();
    much.send(b"GET /hints?times=400 HTTP/1.1\r\nHost: a\r\n\r\n");
    let (hints, response) = with_hints(&mut much);
    assert!(hints.len() > 10 && hints.len() < 400, "{}", hints.len());
    let told = response.header("x-told").expect("what was told").split(',');
    assert_eq!(told.filter(|t| *t == "1").count(), hints.len());
    assert_eq!(response.text(), "done");
}

#[test]
fn finished_response_is_sent_before_request_ends() {
    let server = pages().start();
    assert_eq!(server.get("/finish").text(), "answered");
    server.wait_for_log("finished: [true,false]");
    assert_eq!(visit(&server).0, 1);
}

#[test]
fn worker_survives_exit_and_exceptions() {
    let server = pages().start();
    let (_, pid) = visit(&server);
    for (path, status, text) in [
        ("/exit", 200, "before"),
        ("/throw", 500, "thrown in the handler"),
        ("/return", 200, "echoed"),
        ("/nest", 200, "frankenphp_handle_request() called while handling a request"),
        ("/nowhere", 404, ""),
    ] {
        let response = server.get(path);
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert!(response.text().contains(text), "{path}: {}", response.text());
    }
    assert!(server.get("/throw-late").text().starts_with("before"));
    assert_eq!(visit(&server), (2, pid));
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn worker_survives_client_disconnect() {
    let server = pages().define("output_buffering", "0").start();
    let (_, pid) = visit(&server);
    let mut client = server.client();
    client.send(&Request::get("/endless").bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    client.abort();
    server.wait_for_log("outlived its client");
    assert_eq!(visit(&server), (2, pid));
}

#[test]
fn requests_leak_no_memory() {
    let server = pages().start();
    let mut client = server.client();
    let mut bytes_after = |requests: usize| {
        for path in ["/globals?a=1", "/stray", "/dirty?with=", "/throw"] {
            (0..requests / 4).for_each(|_| drop(client.get(path)));
        }
        let text = client.get("/").text();
        text.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("bytes")
    };
    let (first, last) = (bytes_after(200), bytes_after(2000));
    assert!(last < first + 64 * 1024, "{first} became {last}");
}

#[test]
fn any_callable_and_loop_in_fiber_work() {
    let php = "<?php final class Any {
            public function __call(string $name, array $given) { echo $name, count($given); }
        }
        $fiber = new Fiber(function () {
            while (frankenphp_handle_request([new Any(), 'magic'])) {}
            error_log('again: ' . json_encode(frankenphp_handle_request(fn () => 1)));
        });
        $fiber->start();";
    for every in ["0", "1"] {
        let server = Server::script(php).workers(1).args(["--rollback-every", every]).start();
        for _ in 0..3 {
            assert_eq!(server.get("/").text(), "magic0", "{}", server.log());
        }
        assert!(server.stop().contains("again: false"), "rollback_every = {every}");
    }
}

#[test]
fn fatal_error_replaces_worker() {
    let server = pages().start();
    for path in ["/fatal", "/memory"] {
        let (_, pid) = visit(&server);
        let response = server.get(path);
        assert_eq!(response.status, 500, "{path}: {}", response.text());
        let (visits, next) = visit(&server);
        assert_eq!(visits, 1, "{path}");
        assert_ne!(next, pid, "{path}");
    }
    assert_eq!(server.status()["image"]["refork_reasons"]["fatal"], 2);
}

#[test]
fn ended_worker_loop_replaces_worker() {
    let server = pages().start();
    let (_, pid) = visit(&server);
    assert_eq!(visit(&server), (2, pid));
    assert_eq!(server.get("/break").status, 200);
    server.wait_for_log("the worker script ends");
    let (visits, next) = visit(&server);
    assert_eq!(visits, 1, "a fork of the image");
    assert_ne!(next, pid);
    assert_eq!(server.status()["image"]["refork_reasons"]["end"], 1);
}

#[test]
fn worker_loop_limit_loses_no_request_under_load() {
    const CLIENTS: usize = 8;
    const REQUESTS: usize = 60;
    let server = script("hello.php").workers(2).env("MAX_REQUESTS", "5").start();
    let address = server.address();
    let client = |n: usize| {
        std::thread::spawn(move || {
            let mut client = Client::connect(address);
            for i in 0..REQUESTS {
                let response = client.get(&format!("/?name={n}-{i}"));
                assert_eq!(response.status, 200);
                assert!(response.text().starts_with(&format!("Hello {n}-{i}, ")), "{response:?}");
            }
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    for client in clients {
        client.join().expect("every request has its answer");
    }
    let all = CLIENTS * REQUESTS;
    let ended = eventually("the last worker's end", || {
        let ended = server.status()["image"]["refork_reasons"]["end"].as_u64().unwrap_or(0);
        (ended as usize >= all / 5 - 2).then_some(ended)
    });
    assert!(ended as usize <= all / 5);
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn rollback_every_1_discards_state_after_each_request() {
    let server = pages().args(["--rollback-every", "1"]).start();
    let clean = server.get("/clean").text();
    let seen = json_of(&server.get("/clean"));
    assert_eq!((&seen["statics"], &seen["worker"]), (&json!([]), &json!("1")), "{clean}");
    let pids: HashSet<u64> = (0..5)
        .map(|_| {
            let (visits, pid) = visit(&server);
            assert_eq!(visits, 1);
            pid
        })
        .collect();
    assert_eq!(pids.len(), 1, "the same process each time");
    for path in ["/dirty?with=a", "/dirty?with=b", "/exit", "/throw", "/break", "/stray"] {
        let response = server.get(path);
        assert!(!path.starts_with("/dirty") || response.text() == "1", "{}", response.text());
        assert_eq!(server.get("/clean").text(), clean, "after {path}");
    }
    for path in ["/memory", "/fatal"] {
        assert_eq!(server.get(path).status, 500);
        assert_eq!(server.get("/clean").text(), clean, "after {path}");
    }
    assert_eq!(visit(&server).0, 1);
    assert!(pids.contains(&visit(&server).1), "no request has ended the worker");
    assert_eq!(model(&server), "checkpoint");
    assert!(server.status()["image"]["rollbacks_total"].as_u64() > Some(10));
}

#[test]
fn rollback_every_3_keeps_state_for_three_requests() {
    let server = pages().args(["--rollback-every", "3"]).start();
    let (visits, pids): (Vec<_>, HashSet<_>) = (0..7).map(|_| visit(&server)).unzip();
    assert_eq!(visits, [1, 2, 3, 1, 2, 3, 1]);
    assert_eq!(pids.len(), 1);
    server.get("/break");
    assert_eq!(visit(&server).0, 1, "a loop may end before it is rolled back");
}

#[test]
fn frankenphp_log_has_level_context_and_request_id() {
    let server = pages().start();
    assert_eq!(server.get("/log").text(), "logged");
    for text in [
        " [info] plain message\n",
        " [warn] memory\n    is high {\"used\":12,\"of\":{\"a\":1.5}}\n",
        " [error] broken {\"\u{fffd}\":null}\n",
    ] {
        server.wait_for_log(text);
    }
    assert!(!server.log().contains("for debugging"));
    let server = pages().args(["--log-format", "json", "--log-level", "debug"]).start();
    server.get("/log");
    server.wait_for_log("\"message\":\"for debugging\",\"context\":{\"n\":1}}");
    server.wait_for_log("\"message\":\"broken\""); // The last message.
    let log = server.log();
    let line = log.lines().find(|line| line.contains("is high")).expect("a line");
    let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!((&event["level"], &event["context"]["used"]), (&json!("warn"), &json!(12)));
    assert!(event["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{line}");
}

#[test]
fn other_script_is_not_in_worker_mode() {
    let server = Server::app("frankenphp").workers(1).start();
    let text = r#"["frankenphp_handle_request() called while not in worker mode",null]"#;
    assert_eq!(server.get("/beside.php").text(), text);
    assert_eq!(visit(&server).0, 1);
    let php = "<?php echo json_encode($_SERVER['FRANKENPHP_WORKER'] ?? null);";
    assert_eq!(Server::script(php).start().get("/").text(), "null");
}

#[test]
fn worker_call_in_included_file_is_detected_by_first_request() {
    let server = script("included.php").workers(1).start();
    assert!(server.get("/?name=Ann").text().starts_with("Hello Ann, "), "{}", server.log());
    let booted = eventually("a resident worker", || {
        let text = server.get("/").text();
        (model(&server) == "resident").then_some(text)
    });
    assert!(booted.starts_with("Hello world, "), "{booted}");
}

#[test]
fn environment_or_settings_declare_worker_script() {
    let says = |start: Start| start.env("FRANKENPHP_WORKER", "1");
    let is_set = |start: Start| start.config("compat = 'frankenphp'");
    let asked: [fn(Start) -> Start; 2] = [says, is_set];
    for ask in asked {
        let server = ask(script("included.php").workers(1)).start();
        assert!(server.get("/").text().starts_with("Hello world, "), "{}", server.log());
        assert_eq!(model(&server), "resident", "from the start");
    }
}

#[test]
fn warmup_requests_run_the_callback() {
    let server = pages().args(["--warmup", "/"]).start();
    assert_eq!(visit(&server).0, 2);
}

#[test]
fn unshareable_boot_is_repeated_by_each_worker() {
    let php = "<?php $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $n = 0;
        while ($n < 2 && frankenphp_handle_request(function () use (&$n) { echo ++$n; }));";
    let server = Server::script(php).workers(1).start();
    let responses: Vec<String> = (0..5).map(|_| server.get("/").text()).collect();
    assert_eq!(responses, ["1", "2", "1", "2", "1"], "{}", server.log());
    assert_eq!(server.status()["image"]["refork_reasons"]["end"], 2);
}

#[test]
fn script_end_within_fiber_ends_request_once() {
    for rollback in ["0", "1"] {
        // As in production: an error that is not displayed sets the status.
        let start = script("fiber.php").workers(1).define("output_buffering", "4096");
        let start = start.define("display_errors", "0");
        let server = start.args(["--rollback-every", rollback]).start();
        for (path, status) in
            [("/", 200), ("/exit", 200), ("/", 200), ("/throw", 500), ("/memory", 500), ("/", 200)]
        {
            let shut_down = server.log().matches("the request is shut down").count();
            let response = server.get(path);
            assert_eq!(response.status, status, "{path}: {}", server.log());
            // At the memory limit PHP discards its output buffers.
            let shown = path == "/memory" || response.text().starts_with("answered");
            assert!(shown, "{path}: {}", response.text());
            eventually("its shutdown function, once", || {
                let now = server.log().matches("the request is shut down").count();
                (now == shut_down + 1).then_some(())
            });
        }
        assert_eq!(server.status()["worker_restarts_total"], 0, "{}", server.log());
        let log = server.stop();
        assert!(!log.contains("signal 11"), "{log}");
    }
}
