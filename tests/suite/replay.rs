//! `samovar record` and `samovar replay`: recorded requests run again in each execution model, with
//! the same response, the same failure, without traces in the application's figures.

mod clients;
mod debugger;
mod refusals;

use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, binary, eventually};
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Command, Output};

/// The body of the application, which each model wraps.
const HANDLER: &str = r#"
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    if ($path === '/throw') { throw new LogicException('broken on purpose'); }
    if ($path === '/die') { posix_kill(getmypid(), SIGKILL); }
    if ($path === '/count') { echo $GLOBALS['runs'] = ($GLOBALS['runs'] ?? 0) + 1; return; }
    if ($path === '/slow') { usleep(60_000); }
    if ($path === '/time') { echo "same\nnow=", hrtime(true), "\nsame"; return; }
    if ($path === '/bytes') {
        echo "\xff\x00\x1b[2J", str_repeat('x', (int) $_GET['long']);
        return;
    }
    if ($path === '/listen') { fgets(stream_socket_client('tcp://' . $_GET['to'])); return; }
    if ($path === '/effect') {
        $at = $_GET['at'];
        match ($_GET['way']) {
            'system()' => FFI::cdef('int system(const char *);')->system("touch $at"),
            'execve()' => pcntl_exec('/usr/bin/touch', [$at]),
            'named pipe' => fwrite(fopen($at, 'r+'), 'x'),
            'message' => @msg_send(msg_get_queue((int) $at), 1, 'x', false, false),
        };
        return;
    }
    if ($path === '/connect') {
        $socket = @stream_socket_client('tcp://' . $_GET['to'], $code, $why, 5);
        $sent = $socket ? fwrite($socket, "hello\n") : "error $code";
        $ran = @shell_exec('echo program');
        echo json_encode([$sent, $ran]);
        return;
    }
    header('X-Custom: yes');
    setcookie('sid', bin2hex(random_bytes(8)));
    header('Content-Type: text/plain');
    $body = file_get_contents('php://input');
    echo json_encode([
        $_SERVER['REQUEST_METHOD'], $_SERVER['REQUEST_URI'], $_GET, $_POST, $_COOKIE,
        $_SERVER['HTTP_X_NAME'] ?? null, $_SERVER['HTTP_AUTHORIZATION'] ?? null,
        $_SERVER['REMOTE_ADDR'], strlen($body), hash('sha256', $body), $_FILES['f']['size'] ?? null,
        str_repeat('long ', 60_000 * (int) isset($_GET['long'])),
    ]);
"#;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Script,
    Checkpoint,
    Resident,
}

const MODELS: [Model; 3] = [Model::Script, Model::Checkpoint, Model::Resident];

fn builder(model: Model) -> Start {
    let php = match model {
        Model::Script => format!("<?php {HANDLER}"),
        Model::Checkpoint => {
            format!("<?php $GLOBALS['booted'] = getmypid(); Samovar\\checkpoint(); {HANDLER}")
        }
        Model::Resident => format!("<?php Samovar\\serve(function () {{ {HANDLER} }});"),
    };
    Server::script(&php).workers(1).define("display_errors", "0")
}

fn samovar(server: &Server, words: &[&str]) -> Output {
    let (command, rest) = words.split_first().expect("a command");
    let mut samovar = Command::new(binary());
    samovar.arg(command).arg("--control").arg(server.control()).args(rest);
    samovar.output().expect("the binary runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", out(output), err(output));
    out(output)
}

fn record(server: &Server, flags: &[&str]) {
    done(&samovar(server, &[&["record"], flags].concat()));
}

/// Waits until a number of requests is recorded: a request ends after its client has the response.
fn recorded(server: &Server, count: usize) -> Vec<Value> {
    eventually("recorded requests", || {
        let text = done(&samovar(server, &["record", "--json"]));
        let all: Value = serde_json::from_str(&text).expect("JSON");
        all["requests"].as_array().filter(|all| all.len() == count).cloned()
    })
}

fn replay(server: &Server, flags: &[&str]) -> (Option<i32>, Value) {
    let output = samovar(server, &[&["replay", "--json"], flags].concat());
    let text = out(&output);
    let json = serde_json::from_str(&text);
    (output.status.code(), json.unwrap_or_else(|_| panic!("{text}{}", err(&output))))
}

/// Decodes base64.
fn base64(of: &Value) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = of.as_str().unwrap_or_default().trim_end_matches('=');
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.bytes() {
        let digit = digits.iter().position(|digit| *digit == byte).expect("base64");
        (bits, count) = (bits << 6 | digit as u32, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8(bytes).expect("text")
}

fn big_form() -> Request {
    Request::form("/form", &("a=1&text=".to_owned() + &"x".repeat(100_000)))
}

#[test]
fn recorded_requests_have_the_same_response_in_each_model() {
    for model in MODELS {
        let server = builder(model).start();
        record(&server, &["--count", "10"]);
        let requests = [
            Request::get("/page?a=1&b[]=2").header("X-Name", "x"),
            Request::form("/form?q=1", "a=1&b=2"),
            big_form(),
            Request::get("/page?long=1"),
        ];
        let expected = requests.map(|request| server.client().request(&request).text());
        let all = recorded(&server, expected.len());
        for (one, expected) in all.iter().zip(expected) {
            let id = one["id"].to_string();
            let (code, response) = replay(&server, &[&id]);
            assert_eq!(
                (code, &response["same"]),
                (Some(0), &true.into()),
                "{model:?} {response:#}"
            );
            let bytes = response["response"]["bytes"].as_u64();
            assert_eq!(bytes, Some(expected.len() as u64), "{model:?}");
            let body = base64(&response["response"]["body"]);
            assert!(expected.starts_with(&body) && !body.is_empty(), "{model:?}");
        }
    }
}

#[test]
fn failed_requests_fail_in_the_same_way() {
    for model in MODELS {
        let server = builder(model).start();
        record(&server, &["--failed"]);
        assert_eq!(server.get("/fine").status, 200);
        assert_eq!(server.get("/throw").status, 500);
        let request = Request::form("/die", "");
        assert_eq!(server.client().request(&request).status, 502);
        let all = recorded(&server, 2);
        for (one, status) in all.iter().zip([500, 502]) {
            assert_eq!(one["status"], status, "{model:?}");
            let (code, response) = replay(&server, &[&one["id"].to_string()]);
            assert_eq!(code, Some(0), "{model:?} {response:#}");
            assert_eq!(response["response"]["status"], status, "{model:?}");
            let died = (status == 502).then_some("the worker died");
            assert_eq!(response["lost"].as_str(), died, "{model:?}");
        }
        assert_eq!(server.get("/fine").status, 200, "{model:?}");
    }
}

#[test]
fn replay_is_invisible_to_the_application() {
    for model in MODELS {
        let server = builder(model).start();
        record(&server, &["--path", "/count"]);
        assert_eq!(server.get("/count").text(), "1");
        recorded(&server, 1);
        let before = server.status();
        let (code, response) = replay(&server, &["1"]);
        assert_eq!(code, Some(0), "{model:?}: a fresh fork of the image: {response:#}");
        let workers: Vec<_> = before["workers"].as_array().expect("workers").iter().collect();
        assert!(workers.iter().all(|worker| worker["pid"] != response["pid"]), "{model:?}");
        let pid = response["pid"].clone();
        let after = eventually("the end of the replay's worker", || {
            let after = server.status();
            let workers = after["workers"].as_array()?;
            (!workers.iter().any(|worker| worker["pid"] == pid)).then_some(after.clone())
        });
        for key in ["requests_total", "worker_restarts_total", "worker_reforks_total"] {
            assert_eq!(before[key], after[key], "{model:?} {key}");
        }
        let expected = if model == Model::Resident { "2" } else { "1" };
        assert_eq!(server.get("/count").text(), expected, "{model:?}");
    }
}

#[test]
fn differences_are_shown_and_masked() {
    let server = builder(Model::Script).start();
    record(&server, &["--count", "1"]);
    server.get("/time");
    recorded(&server, 1);
    let differs = samovar(&server, &["replay", "1"]);
    assert_eq!(differs.status.code(), Some(1));
    let text = out(&differs);
    assert!(text.contains("body: differs from line 2 on\n  - now="), "{text}");
    assert!(text.ends_with("The response differs.\n"), "{text}");
    let same = done(&samovar(&server, &["replay", "1", "--mask", "now=*"]));
    assert!(same.ends_with("The response is the same.\n"), "{same}");
    let body = done(&samovar(&server, &["replay", "1", "--mask", "now=*", "--body", "-"]));
    assert!(body.starts_with("same\nnow="), "{body}");
}

#[test]
fn body_is_printed_as_it_is_up_to_the_kept_length() {
    let server = builder(Model::Script).start();
    for (id, long) in [("1", 0), ("2", 300_000)] {
        record(&server, &["--count", "1"]);
        server.get(&format!("/bytes?long={long}"));
        recorded(&server, id.parse().expect("a number"));
        let output = samovar(&server, &["replay", id, "--body", "-"]);
        assert!(output.stdout.starts_with(b"\xff\0\x1b[2J"), "{output:?}");
        let is_cut = err(&output).contains("only the first 262144 of 300006 bytes");
        assert_eq!(is_cut, long > 0, "{}", err(&output));
    }
}

#[test]
fn secrets_are_replaced_unless_they_are_requested() {
    let config = "[insight]\nredact = ['shibboleth']\n";
    let server = builder(Model::Script).config(config).start();
    let request = Request::form("/form?token=t0psecret&page=2", "password=t0psecret&a=visible")
        .header("Cookie", "sid=t0psecret")
        .header("Authorization", "Bearer t0psecret")
        .header("X-Shibboleth", "t0psecret")
        .header("X-Name", "visible");
    record(&server, &["--count", "1"]);
    server.client().request(&request);
    recorded(&server, 1);
    let shown = done(&samovar(&server, &["record", "show", "1"]));
    assert!(!shown.contains("t0psecret") && shown.contains("visible"), "{shown}");
    for name in ["cookie sid", "header authorization", "query token", "field password"] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    let output = samovar(&server, &["replay", "1"]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(1), "the response depends on the values: {text}");
    assert!(text.contains("replaced  ") && text.contains("--with-secrets"), "{text}");
    record(&server, &["--count", "1", "--with-secrets"]);
    server.client().request(&request);
    recorded(&server, 2);
    assert_eq!(replay(&server, &["2"]).0, Some(0));
}

#[test]
fn network_is_refused_unless_the_method_is_safe() {
    for model in MODELS {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let target = format!("/connect?to={}", listener.local_addr().expect("an address"));
        let server = builder(model).start();
        record(&server, &["--count", "2"]);
        let allowed = "[6,\"program\\n\"]";
        assert_eq!(server.get(&target).text(), allowed, "{model:?}");
        server.client().request(&Request::form(&target, ""));
        recorded(&server, 2);
        let body = |id: &str, flags: &[&str]| {
            let (_, response) = replay(&server, &[&[id], flags].concat());
            (base64(&response["response"]["body"]), response["network_refused"].as_bool())
        };
        let refused = ("[\"error 13\",false]".to_owned(), Some(true));
        let allowed = (allowed.to_owned(), Some(false));
        assert_eq!(body("1", &[]), allowed, "{model:?}");
        assert_eq!(body("2", &["--network", "allow"]), allowed, "{model:?}");
        assert_eq!(body("2", &[]), refused, "{model:?}");
        assert_eq!(body("1", &["--network", "refuse"]), refused, "{model:?}");
        let log = server.log();
        assert!(log.contains("replay: a connection to 127.0.0.1:"), "{model:?} {log}");
    }
}

#[test]
fn call_graph_of_a_replay_has_its_functions() {
    for model in MODELS {
        let server = builder(model).start();
        record(&server, &["--count", "1"]);
        server.get("/slow");
        recorded(&server, 1);
        let (code, response) = replay(&server, &["1", "--trace"]);
        assert_eq!(code, Some(0), "{model:?} {response:#}");
        let functions = response["graph"]["functions"].as_array().expect("functions");
        let slow = functions.iter().find(|function| function["name"] == "usleep");
        let calls = slow.map(|function| function["calls"].as_u64());
        assert_eq!(calls, Some(Some(1)), "{model:?}");
        let text = done(&samovar(&server, &["replay", "1", "--trace"]));
        assert!(text.contains("usleep"), "{text}");
    }
}

#[test]
fn profile_of_a_replay_has_its_functions() {
    for model in MODELS {
        let server = builder(model).start();
        record(&server, &["--count", "1"]);
        server.get("/slow");
        recorded(&server, 1);
        let text = done(&samovar(&server, &["replay", "1", "--profile"]));
        assert!(text.contains("usleep") && text.contains("the serving image"), "{model:?} {text}");
        let file = server.folder().join("flames.svg");
        let output = samovar(&server, &["replay", "1", "--profile", "-o", &file.to_string_lossy()]);
        done(&output);
        let svg = std::fs::read_to_string(&file).expect("a picture");
        assert!(svg.contains("<svg") && svg.contains("usleep"), "{model:?}");
    }
}

#[test]
fn limits_and_wrong_commands_have_clear_errors() {
    let server = builder(Model::Script).start();
    let body = "x".repeat(300_000);
    record(&server, &["--count", "1"]);
    server.client().request(&Request::post("/big", "text/plain", body));
    let all = recorded(&server, 1);
    assert_eq!((&all[0]["is_cut"], &all[0]["body_bytes"]), (&true.into(), &300_000.into()));
    let list = done(&samovar(&server, &["record"]));
    assert!(list.contains("(body cut)"), "{list}");
    for (words, code, expected) in [
        (&["replay", "1"][..], 1, "too long to be recorded (300000 bytes)"),
        (&["replay", "7"], 1, "there is no recorded request 7"),
        (&["record", "show", "7"], 1, "there is no recorded request 7"),
        (&["record", "rm", "7"], 1, "there is no recorded request 7"),
        (&["record", "stop"], 1, "there is no recording"),
        (&["record", "--count", "0"], 1, "--count takes 1 to 1000"),
        (&["record", "--for", "48h"], 1, "--for takes 1s to 24h"),
        (&["record", "show"], 2, "needs an ID"),
        (&["record", "stop", "3"], 2, "takes no ID"),
        (&["record", "ls", "--failed"], 2, "does not take --failed"),
        (&["replay", "1", "--mask", "*"], 2, "matches everything or nothing"),
        (&["replay", "1", "--mask", "a\nb\u{1b}"], 2, "no line end"),
        (&["replay", "1", "-o", "x.svg"], 2, "needs --trace or --profile"),
        (&["replay", "1", "--xdebug=host"], 1, "too long to be recorded"),
        (&["replay", "1", "--xdebug", "--network", "refuse"], 2, "needs network"),
    ] {
        let output = samovar(&server, words);
        let text = err(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(expected), "{words:?}: {text}");
    }
    record(&server, &["rm"]);
    recorded(&server, 0);
}

#[test]
fn conditions_select_requests() {
    let server = builder(Model::Script).start();
    record(&server, &["--path", "/s*", "--slow", "50ms"]);
    for path in ["/slow", "/short", "/page"] {
        server.get(path);
    }
    let all = recorded(&server, 1);
    assert_eq!(all[0]["target"], "/slow");
    let list = done(&samovar(&server, &["record"]));
    assert!(list.starts_with("recording: slow (from 50 ms) requests of /s*, 19 more"), "{list}");
    assert!(done(&samovar(&server, &["record", "stop"])).contains("has ended"));
    server.get("/slow");
    recorded(&server, 1);
}

#[test]
fn requests_of_pools_run_in_their_pool() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.php"), "<?php echo 'pool ', PHP_SAPI;").expect("it");
    let pool = format!(
        "[[pool]]\nname = 'api'\nmatch = '/api/*'\nroot = '{}'\nworkers = 1\n",
        folder.path().display()
    );
    let server = builder(Model::Checkpoint).config(&pool).start();
    record(&server, &["--count", "2"]);
    let texts = ["/api/x", "/page"].map(|path| server.get(path).text());
    let all = recorded(&server, 2);
    assert_eq!(all[0]["pool"], "api");
    for (id, text) in ["1", "2"].iter().zip(texts) {
        let (code, response) = replay(&server, &[id]);
        assert_eq!(code, Some(0), "{response:#}");
        assert_eq!(base64(&response["response"]["body"]), text);
    }
}

#[test]
fn replay_after_a_reload_runs_the_new_release() {
    let server = builder(Model::Checkpoint).start();
    record(&server, &["--count", "1"]);
    server.get("/page");
    recorded(&server, 1);
    server.reload().expect("a reload");
    assert_eq!(replay(&server, &["1"]).0, Some(0));
}
