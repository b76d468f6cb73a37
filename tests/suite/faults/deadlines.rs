//! Request timeouts, in each model: the client gets an error, the script is ended or killed, and
//! the log names the call in which it was blocked.

use crate::faults::stage::{is_alive, wait_for_ends};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually};
use std::path::Path;

/// Behaviour of each page, by its path. `?file` names the file that the page writes.
const PAGES: &str = r#"
function leave(string $word): void
{
    file_put_contents($_GET['file'], $word, FILE_APPEND);
}

function page(): void
{
    set_time_limit(0);
    register_shutdown_function(fn () => isset($_GET['file']) && leave('shutdown '));
    switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
        case '/loop':
            for ($n = 0; ; $n++) {
            }
        case '/sleep':
            sleep(600);
            leave('slept ');
            break;
        case '/deaf':
            // The closed connection ends it; the signal comes in its shutdown function.
            pcntl_sigprocmask(SIG_BLOCK, [SIGVTALRM]);
            register_shutdown_function(function () {
                pcntl_sigprocmask(SIG_UNBLOCK, [SIGVTALRM]);
                leave('interruptible ');
            });
        case '/drip':
            for ($n = 0; ; $n++) {
                echo "drip $n\n";
                flush();
                usleep(20000);
            }
        case '/lock':
            // A wait that begins again whatever interrupts it, as in a library.
            $lock = fopen($_GET['lock'], 'c');
            while (!flock($lock, LOCK_EX)) {
                for ($n = 0; $n < 1; $n += 0) {
                    if (flock($lock, LOCK_EX)) {
                        break;
                    }
                }
            }
            break;
        case '/connect':
            $stream = stream_socket_client($_GET['peer']);
            stream_set_timeout($stream, 3600);
            leave('reads ');
            fread($stream, 10);
            leave('read ');
            break;
        case '/pgsql':
            new PDO("pgsql:host=127.0.0.1;port=$_GET[port];dbname=shop;sslmode=disable",
                'shop', 'secret');
            break;
        case '/mysql':
            new PDO("mysql:host=127.0.0.1;port=$_GET[port];dbname=shop", 'shop', 'secret');
            break;
        case '/curl':
            curl_exec(curl_init("http://127.0.0.1:$_GET[port]/"));
            break;
        case '/regex':
            ini_set('pcre.backtrack_limit', '2000000000');
            ini_set('pcre.jit', '0');
            preg_match('/^(a|a|a|a)*$/', str_repeat('a', 60) . 'b');
            break;
        case '/stop':
            posix_kill(getmypid(), SIGSTOP);
            break;
        case '/caught':
            try {
                for ($n = 0; ; $n++) {
                }
            } catch (\Throwable) {
                leave('caught ');
            }
            break;
        case '/extend':
            $granted = [Samovar\extend_deadline(3), Samovar\extend_deadline(3600)];
            for ($begin = microtime(true); microtime(true) - $begin < 1.2;) {
                usleep(10000);
            }
            echo json_encode($granted);
            break;
        case '/endless':
            Samovar\extend_deadline(3600);
            sleep(600);
            break;
        case '/finish':
            echo 'the client has this';
            fastcgi_finish_request();
            sleep(600);
            break;
        default:
            echo 'hello from ', getmypid();
    }
}
"#;

const MODELS: [(&str, &str); 3] = [
    ("script", "page();"),
    ("resident", "Samovar\\serve(fn () => page());"),
    ("checkpoint", "Samovar\\checkpoint(); page();"),
];

fn app(call: &str) -> Start {
    Server::script(&format!("<?php {PAGES} {call}"))
        .workers(2)
        .args(["--response-timeout", "0"])
        .define("output_buffering", "0")
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn assert_serves(server: &Server, when: &str) {
    for _ in 0..4 {
        let response = server.get("/hello");
        assert!(
            response.text().starts_with("hello from "),
            "{when}: {response:?}\n{}",
            server.log()
        );
    }
}

#[test]
fn script_over_timeout_is_ended_and_runs_shutdown_functions() {
    for (model, call) in MODELS {
        // Only the endless scripts have a short timeout, so that a busy machine delays no other
        // request beyond its timeout.
        let server = app(call)
            .args(["--request-timeout", "500ms", "--grace-timeout", "1m"])
            .args(["--path-timeout", "/hello=1m", "--path-timeout", "/drip=2s"])
            .args(["--path-timeout", "/deaf=2s"])
            .start();
        for page in ["loop", "sleep", "drip", "deaf", "caught"] {
            let file = server.folder().join(format!("left-{page}"));
            let response = server.get(&format!("/{page}?file={}", file.display()));
            let ends = if page == "deaf" { "shutdown interruptible " } else { "shutdown " };
            if page == "drip" || page == "deaf" {
                assert!(
                    !response.complete && response.text().starts_with("drip 0"),
                    "{response:?}"
                );
            } else {
                assert_eq!((response.status, response.complete), (504, true), "{model} {page}");
            }
            eventually(&format!("{model} {page}: its shutdown function"), || {
                (text_of(&file) == ends).then_some(())
            });
            server.wait_for_log(&format!("request=\"GET /{page}?file={}", file.display()));
            assert_serves(&server, page);
        }
        server.wait_for_log("limit=\"timeouts.request\"");
        server.wait_for_log("This request exceeded its time limit (timeouts.request)");
        server.wait_for_log("computing, in no system call");
        server.wait_for_log("in sleep");
        server.wait_for_log("sleep() [internal] < page() ");
        let status = server.status();
        assert_eq!(status["overrun_kills_total"], 0, "{model}: {status}");
        assert_eq!(status["worker_restarts_total"], 0, "{model}: {status}\n{}", server.log());
        server.stop();
    }
}

#[test]
fn script_that_does_not_end_in_grace_time_is_killed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let peer = listener.local_addr().expect("an address");
    for (model, call) in MODELS {
        let limits = ["--request-timeout", "1s", "--grace-timeout", "500ms"];
        let server = app(call).args(limits).args(["--path-timeout", "/hello=1m"]).start();
        let held = server.folder().join("held");
        let lock = std::fs::File::create(&held).expect("our own folder");
        lock.lock().expect("nobody else has it");
        let left = server.folder().join("left");
        let file = left.display();
        for (page, blocked) in [
            (format!("/connect?peer=tcp://{peer}&file={file}"), format!("a connection to {peer}")),
            ("/regex?".to_owned(), "computing".to_owned()),
            ("/stop?".to_owned(), "stopped by".to_owned()),
        ] {
            let response = server.get(&page);
            assert_eq!((response.status, response.complete), (504, true), "{model} {page}");
            server.wait_for_log(&blocked);
            let id = response.header("x-request-id").expect("each answer has one").to_owned();
            server.wait_for_log(&format!("request_id=\"{id}\""));
        }
        assert_eq!(text_of(&left), "reads ", "{model}");
        eventually("all three are killed", || {
            (server.status()["worker_restarts_total"] == 3).then_some(())
        });
        assert_eq!(server.status()["overrun_kills_total"], 3, "{model}");
        // A wait for a lock is interrupted, and the script ends without a kill.
        let response = server.get(&format!("/lock?lock={}", held.display()));
        assert_eq!(response.status, 504, "{model}");
        server.wait_for_log("in flock of descriptor");
        server.wait_for_log(&held.display().to_string());
        assert_serves(&server, model);
        server.stop();
    }
}

/// Libraries that wait for a database or a service, and resume the wait after each interruption.
#[test]
fn hanging_library_call_is_ended_and_log_names_peer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let peer = listener.local_addr().expect("an address");
    for (model, call) in MODELS {
        let limits = ["--request-timeout", "1s", "--grace-timeout", "500ms"];
        let server = app(call).args(limits).args(["--path-timeout", "/hello=1m"]).start();
        for library in ["pgsql", "mysql", "curl"] {
            let target = format!("/{library}?port={}", peer.port());
            let response = server.get(&target);
            assert_eq!((response.status, response.complete), (504, true), "{model} {library}");
            let line = eventually(&format!("{model} {library}: its line"), || {
                let log = server.log();
                let request = format!("request=\"GET {target}\"");
                log.lines().find(|line| line.contains(&request)).map(str::to_owned)
            });
            let named = format!("a connection to {peer}");
            assert!(line.contains(&named), "{model} {library}: {line}");
            eventually(&format!("{model} {library}: its end"), || {
                let workers = server.status()["workers"].as_array()?.clone();
                workers.iter().all(|worker| worker["state"] == "idle").then_some(())
            });
        }
        assert_serves(&server, model);
        server.stop();
    }
}

#[test]
fn path_timeout_overrides_response_timeout() {
    let server = app("page();")
        .args(["--response-timeout", "500ms", "--path-timeout", "/loop*=2s", "--path-timeout"])
        .args(["/sleep=0", "--grace-timeout", "0", "--drain-timeout", "1s"])
        .start();
    let mut forever = server.client();
    forever.send(&Request::get("/sleep").bytes());
    let begin = std::time::Instant::now();
    assert_eq!(server.get("/loop").status, 504);
    assert!(begin.elapsed().as_millis() >= 2000, "its own time, not the answer's");
    // The status may list the killed worker until it is reaped.
    let pid = eventually("one worker that is busy", || {
        let workers = server.status()["workers"].as_array().expect("a list").clone();
        let mut busy = workers.iter().filter(|worker| worker["state"] == "busy");
        let pid = busy.next()?["pid"].as_i64()?;
        busy.next()
            .is_none()
            .then(|| i32::try_from(pid).expect("small"))
            .filter(|pid| is_alive(*pid))
    });
    drop(forever);
    server.kill_worker(pid);
    server.stop();
}

#[test]
fn script_can_extend_its_timeout() {
    for (model, call) in MODELS {
        let server = app(call)
            .args(["--response-timeout", "500ms", "--request-timeout", "700ms"])
            .args(["--extended-timeout", "4s", "--path-timeout", "/hello=1m"])
            .start();
        let response = server.get("/extend");
        assert_eq!((response.status, response.text().as_str()), (200, "[3,4]"), "{model}");
        let begin = std::time::Instant::now();
        assert_eq!(server.get("/endless").status, 504, "{model}");
        assert!(begin.elapsed().as_millis() >= 3900, "{model}: as long as it was granted");
        assert_serves(&server, model);
        server.stop();
    }
}

#[test]
fn script_after_response_is_ended_at_timeout() {
    for (model, call) in MODELS {
        let limits = ["--post-response-timeout", "500ms", "--grace-timeout", "1m"];
        let server = app(call).workers(1).args(limits).start();
        let file = server.folder().join("left");
        let response = server.get(&format!("/finish?file={}", file.display()));
        assert_eq!((response.text().as_str(), response.complete), ("the client has this", true));
        server.wait_for_log("limit=\"timeouts.post_response\"");
        eventually(&format!("{model}: its shutdown function"), || {
            (text_of(&file) == "shutdown ").then_some(())
        });
        assert_serves(&server, model);
        assert_eq!(server.status()["post_response_timeouts_total"], 1);
        assert_eq!(server.status()["overrun_kills_total"], 0);
        server.stop();
    }
}

#[test]
fn late_timeout_ends_no_other_request() {
    // Many requests end at the moment of their timeout. All other requests must succeed.
    let limits = ["--path-timeout", "/sleep=100ms", "--grace-timeout", "1m"];
    let server = app("page();").args(limits).start();
    for _ in 0..30 {
        let mut slow = server.client();
        slow.send(&Request::get("/sleep").bytes());
        for _ in 0..3 {
            let response = server.get("/hello");
            assert_eq!(response.status, 200, "{response:?}\n{}", server.log());
        }
        assert_eq!(slow.read(false).status, 504);
    }
    let everybody: Vec<i32> = crate::faults::stage::workers_in(&server, "idle");
    server.stop();
    wait_for_ends(&everybody);
}
