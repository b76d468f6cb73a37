//! FrankenPHP's userland contract: worker scripts written for it run as they are.

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, Start, eventually, workspace};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

fn script(name: &str) -> Start {
    Server::at(workspace().join("tests/apps/frankenphp").join(name)).relinked()
}

/// One worker, so that every request meets what the former one left.
fn pages() -> Start {
    script("index.php").workers(1)
}

fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e}: {} {}", response.status, response.text()))
}

/// Visits of this worker's memory, and its process.
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
fn a_worker_script_of_the_documentation_runs_unchanged() {
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
fn superglobals_are_the_requests() {
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
fn what_the_loop_does_between_requests_reaches_no_client() {
    let server = pages().start();
    assert_eq!(server.get("/stray").text(), "");
    let next = server.get("/globals");
    assert_eq!(json_of(&next)["between"], json!(["stray", "/stray", null]));
    assert_eq!(next.header("x-stray"), None);
    server.wait_for_log("stray output between requests");
}

#[test]
fn headers_are_read_sent_and_listed() {
    let server = pages().start();
    let answer = server.client().request(&Request::get("/headers").header("X-Mine", "yes"));
    let seen = json_of(&answer);
    assert_eq!(seen["asked"]["X-Mine"], "yes");
    assert_eq!((&seen["same"], &seen["alias"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&seen["answered"]["X-One"], &seen["answered"]["X-Two"]),
        (&json!("1"), &json!("b"))
    );
    assert_eq!(answer.all("x-two"), ["a", "b"]);
    let sent = server.get("/send");
    assert_eq!((sent.status, sent.text().as_str()), (202, "[1,false,0,true,0]"));
    assert_eq!(sent.header("link"), Some("</style.css>; rel=preload"), "the headers stay");
}

#[test]
fn early_hints_come_before_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    let server = pages().start();
    let mut client = server.client();
    // The script waits for a file that is made when its hints are here.
    let target = format!("/hints?until={}", go.display());
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let hints = client.read_head().expect("early hints");
    assert_eq!(hints.status, 103);
    assert_eq!(hints.headers, [("link".to_owned(), "</style0.css>; rel=preload".to_owned())]);
    std::fs::write(&go, "").expect("our own folder");
    let answer = client.read(false);
    assert_eq!((answer.status, answer.text().as_str()), (200, "done"));
    assert_eq!((answer.header("x-told"), answer.header("link")), (Some("1"), None));
}

/// The links of each of the early hints, and the answer.
fn with_hints(client: &mut Client) -> (Vec<usize>, Response) {
    let (hints, answer) = client.read_with_interim(false).expect("an answer");
    assert!(hints.iter().all(|h| h.status == 103) && answer.complete);
    (hints.iter().map(|hint| hint.all("link").len()).collect(), answer)
}

#[test]
fn early_hints_keep_their_place_between_answers() {
    let server = pages().workers(2).start();
    let mut client = server.client();
    // Pipelined behind an answer that fills all buffers, and read late.
    let ask = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    client
        .send(&[ask("/hints?bytes=8000000"), ask("/hints?times=3&ms=10"), ask("/hints")].concat());
    std::thread::sleep(Duration::from_millis(300));
    let (hints, large) = with_hints(&mut client);
    assert_eq!((hints.len(), large.body.len()), (1, 8_000_004));
    let (hints, answer) = with_hints(&mut client);
    assert_eq!(hints, [1, 2, 3], "each with all so far");
    assert_eq!((answer.text().as_str(), answer.header("x-told")), ("done", Some("1,1,1")));
    assert_eq!(with_hints(&mut client).0.len(), 1);
    let (hints, answer) = {
        client.send(&ask("/hints"));
        with_hints(&mut client)
    };
    assert_eq!((hints.len(), answer.status), (1, 200), "the connection goes on");
}

#[test]
fn early_hints_that_cannot_be_sent_do_no_harm() {
    let server = pages().start();
    // The connection's own, and none of a kind that is to be sent.
    for status in [100, 101] {
        let answer = server.get(&format!("/hints?status={status}"));
        assert_eq!((answer.status, answer.header("x-told")), (200, Some("3")), "{status}");
    }
    // HTTP/1.0 has no interim answers.
    let mut old = server.client();
    old.send(b"GET /hints HTTP/1.0\r\n\r\n");
    assert_eq!(with_hints(&mut old).0, [0usize; 0]);
    // Some proxies take them for the answer.
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
        let (hints, answer) = with_hints(&mut client);
        let told = answer.header("x-told");
        assert_eq!((hints.len(), told), (expected, Some("1")), "{settings}, {header}");
    }
    // After the answer has begun it is too late; the head it began with had the link.
    let mut late = server.client();
    late.send(b"GET /hints?early=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let (hints, answer) = with_hints(&mut late);
    assert_eq!((hints, answer.text().as_str()), (vec![1], "early 3 done"));
    // More than there is room for: those beyond are left out.
    let mut much = server.client();
    much.send(b"GET /hints?times=400 HTTP/1.1\r\nHost: a\r\n\r\n");
    let (hints, answer) = with_hints(&mut much);
    assert!(hints.len() > 10 && hints.len() < 400, "{}", hints.len());
    let told = answer.header("x-told").expect("what was told").split(',');
    assert_eq!(told.filter(|t| *t == "1").count(), hints.len());
    assert_eq!(answer.text(), "done");
}

#[test]
fn an_answer_is_finished_before_its_request() {
    let server = pages().start();
    assert_eq!(server.get("/finish").text(), "answered");
    server.wait_for_log("finished: [true,false]");
    assert_eq!(visit(&server).0, 1);
}

#[test]
fn the_worker_lives_on_after_exit_and_exceptions() {
    let server = pages().start();
    let (_, pid) = visit(&server);
    for (path, status, text) in [
        ("/exit", 200, "before"),
        ("/throw", 500, "thrown in the handler"),
        ("/return", 200, "echoed"),
        ("/nest", 200, "frankenphp_handle_request() called while handling a request"),
        ("/nowhere", 404, ""),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(text), "{path}: {}", answer.text());
    }
    assert!(server.get("/throw-late").text().starts_with("before"));
    assert_eq!(visit(&server), (2, pid));
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn the_worker_outlives_a_client_that_leaves() {
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
fn requests_leave_no_memory_behind() {
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
fn the_callback_and_the_loop_may_be_of_any_kind() {
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
fn after_a_fatal_error_a_fresh_worker_goes_on() {
    let server = pages().start();
    for path in ["/fatal", "/memory"] {
        let (_, pid) = visit(&server);
        let answer = server.get(path);
        assert_eq!(answer.status, 500, "{path}: {}", answer.text());
        let (visits, next) = visit(&server);
        assert_eq!(visits, 1, "{path}");
        assert_ne!(next, pid, "{path}");
    }
    assert_eq!(server.status()["image"]["refork_reasons"]["fatal"], 2);
}

#[test]
fn a_loop_that_ends_makes_room_for_a_fresh_worker() {
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
fn a_loop_limit_loses_no_request_under_load() {
    const CLIENTS: usize = 8;
    const REQUESTS: usize = 60;
    let server = script("hello.php").workers(2).env("MAX_REQUESTS", "5").start();
    let address = server.address();
    let client = |n: usize| {
        std::thread::spawn(move || {
            let mut client = Client::connect(address);
            for i in 0..REQUESTS {
                let answer = client.get(&format!("/?name={n}-{i}"));
                assert_eq!(answer.status, 200);
                assert!(answer.text().starts_with(&format!("Hello {n}-{i}, ")), "{answer:?}");
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
fn with_rollback_every_1_no_state_lives_on() {
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
        let answer = server.get(path);
        assert!(!path.starts_with("/dirty") || answer.text() == "1", "{}", answer.text());
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
fn with_rollback_every_3_state_lives_for_three_requests() {
    let server = pages().args(["--rollback-every", "3"]).start();
    let (visits, pids): (Vec<_>, HashSet<_>) = (0..7).map(|_| visit(&server)).unzip();
    assert_eq!(visits, [1, 2, 3, 1, 2, 3, 1]);
    assert_eq!(pids.len(), 1);
    server.get("/break");
    assert_eq!(visit(&server).0, 1, "a loop may end before it is rolled back");
}

#[test]
fn what_is_logged_has_level_context_and_request() {
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
    server.wait_for_log("\"message\":\"broken\""); // The last one.
    let log = server.log();
    let line = log.lines().find(|line| line.contains("is high")).expect("a line");
    let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!((&event["level"], &event["context"]["used"]), (&json!("warn"), &json!(12)));
    assert!(event["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{line}");
}

#[test]
fn a_script_beside_the_application_is_no_worker() {
    let server = Server::app("frankenphp").workers(1).start();
    let text = r#"["frankenphp_handle_request() called while not in worker mode",null]"#;
    assert_eq!(server.get("/beside.php").text(), text);
    assert_eq!(visit(&server).0, 1);
    let php = "<?php echo json_encode($_SERVER['FRANKENPHP_WORKER'] ?? null);";
    assert_eq!(Server::script(php).start().get("/").text(), "null");
}

#[test]
fn a_call_in_an_included_file_is_found_out_by_the_first_request() {
    let server = script("included.php").workers(1).start();
    assert!(server.get("/?name=Ann").text().starts_with("Hello Ann, "), "{}", server.log());
    let booted = eventually("a resident worker", || {
        let text = server.get("/").text();
        (model(&server) == "resident").then_some(text)
    });
    assert!(booted.starts_with("Hello world, "), "{booted}");
}

#[test]
fn environment_and_settings_can_say_that_it_is_a_worker_script() {
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
fn warm_up_requests_go_through_the_callback() {
    let server = pages().args(["--warmup", "/"]).start();
    assert_eq!(visit(&server).0, 2);
}

#[test]
fn a_boot_that_cannot_be_shared_is_repeated_by_each_worker() {
    let php = "<?php $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $n = 0;
        while ($n < 2 && frankenphp_handle_request(function () use (&$n) { echo ++$n; }));";
    let server = Server::script(php).workers(1).start();
    let answers: Vec<String> = (0..5).map(|_| server.get("/").text()).collect();
    assert_eq!(answers, ["1", "2", "1", "2", "1"], "{}", server.log());
    assert_eq!(server.status()["image"]["refork_reasons"]["end"], 2);
}

#[test]
fn a_script_that_ends_while_a_fiber_holds_its_request_ends_both() {
    for rollback in ["0", "1"] {
        // As in production: an error that is not shown is a status.
        let start = script("fiber.php").workers(1).define("output_buffering", "4096");
        let start = start.define("display_errors", "0");
        let server = start.args(["--rollback-every", rollback]).start();
        for (path, status) in
            [("/", 200), ("/exit", 200), ("/", 200), ("/throw", 500), ("/memory", 500), ("/", 200)]
        {
            let shut_down = server.log().matches("the request is shut down").count();
            let response = server.get(path);
            assert_eq!(response.status, status, "{path}: {}", server.log());
            // Beyond the memory limit PHP gives up its output buffers.
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
