//! Xdebug, loaded for one server only: its `develop` mode, and its step debugger, in each execution
//! model.

use super::{Bench, developed};
use crate::frameworks::shop::Model;
use samovar_testkit::eventually;
use samovar_testkit::http::{Request, Response};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const EXTENSION: (&str, &str) = ("zend_extension", "xdebug.so");
/// Number of requests to each worker.
const REQUESTS: usize = 3;

#[test]
fn xdebug_develop_mode_works_in_script_model() {
    develops(Model::Script);
}

#[test]
fn xdebug_develop_mode_works_in_resident_model() {
    develops(Model::Resident);
}

#[test]
fn xdebug_develop_mode_works_in_checkpoint_model() {
    develops(Model::Checkpoint);
}

/// Each request has its own session, which ends with the request.
#[test]
fn xdebug_starts_session_per_request_in_script_model() {
    let (bench, ide) = debugged(Model::Script, "yes");
    for request in 1..=REQUESTS {
        breaks(&bench, &ide, request);
        assert_eq!(ide.sessions(), request, "{}", bench.server.log());
        eventually("the session's end", || (ide.ended() == request).then_some(()));
    }
}

/// Xdebug starts a session with the first function call of a process, here during the boot. The
/// session stays open, and each request stops at the breakpoints set then.
#[test]
fn xdebug_keeps_boot_session_in_resident_model() {
    let (bench, ide) = debugged(Model::Resident, "yes");
    let sessions = ide.sessions();
    for request in 1..=REQUESTS {
        breaks(&bench, &ide, request);
        assert_eq!(ide.sessions(), sessions, "{}", bench.server.log());
    }
    finds_connection(&bench);
}

/// Below a checkpoint, the session uses a connection opened above it, with a protocol unknown to
/// the server. A worker that used it is replaced, and the boot of its successor starts a new
/// session.
#[test]
fn xdebug_starts_session_per_boot_in_checkpoint_model() {
    let (bench, ide) = debugged(Model::Checkpoint, "yes");
    for request in 1..=REQUESTS {
        let sessions = ide.sessions();
        breaks(&bench, &ide, request);
        eventually("the successor's session", || (ide.sessions() > sessions).then_some(()));
    }
    finds_connection(&bench);
}

/// A cookie or a parameter requests a session, as sent by a browser extension.
#[test]
fn xdebug_trigger_starts_session_per_request_in_script_model() {
    connects_if_asked(Model::Script);
}

/// The boot has no session. So no open connection prevents sharing the image, and no worker is
/// replaced because of one.
#[test]
fn xdebug_trigger_starts_session_per_request_in_checkpoint_model() {
    let status = connects_if_asked(Model::Checkpoint).server.status();
    assert_eq!(status["image"]["findings"].to_string(), "[]", "{status}");
    assert_eq!(status["image"]["refork_total"], 0, "{status}");
}

/// A worker's session starts with the first request for one.
#[test]
fn xdebug_trigger_starts_one_lasting_session_in_resident_model() {
    let (bench, ide) = debugged(Model::Resident, "trigger");
    assert_eq!(bench.server.get("/ways/json").status, 200);
    assert_eq!((ide.sessions(), ide.breaks()), (0, 0));
    for request in 1..=REQUESTS {
        asks(&bench, "XDEBUG_SESSION=ide");
        assert_eq!((ide.sessions(), ide.breaks()), (1, request));
    }
}

fn connects_if_asked(model: Model) -> Bench {
    let (bench, ide) = debugged(model, "trigger");
    for request in 1..=REQUESTS {
        asks(&bench, "XDEBUG_TRIGGER=ide");
        assert_eq!((ide.sessions(), ide.breaks()), (request, request), "{}", bench.server.log());
        asks(&bench, "SESSION=none");
        assert_eq!((ide.sessions(), ide.breaks()), (request, request), "{}", bench.server.log());
    }
    bench
}

fn asks(bench: &Bench, cookie: &str) {
    let request = Request::get("/ways/json").header("Cookie", cookie);
    assert_eq!(bench.server.client().request(&request).status, 200, "{}", bench.server.log());
}

fn finds_connection(bench: &Bench) {
    let findings = bench.server.status()["image"]["findings"].to_string();
    assert!(findings.contains("connection"), "{findings}");
}

/// Sends a request and checks that it stopped at the breakpoint once more, and got its response.
fn breaks(bench: &Bench, ide: &Ide, request: usize) {
    let page = bench.server.get("/ways/json");
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(ide.breaks(), request, "{}", bench.server.log());
}

/// Checks that pages, dumps and errors have Xdebug's form, in repeated requests.
fn develops(model: Model) {
    let define = [EXTENSION, ("xdebug.mode", "develop")];
    let bench = Bench::of(developed(), model, &define);
    for name in ["first", "second", "third"] {
        let page = bench.server.get("/");
        assert_eq!(page.status, 200, "{}", page.text());
        assert!(page.text().contains("Sfjs.loadToolbar"), "{}", page.text());
        let dump = bench.server.get(&format!("/ways/dd?name={name}"));
        assert!(dump.text().contains(&format!(">{name}</span>")), "{}", dump.text());
        shows_dump(&bench.server.get(&format!("/ways/var_dump?name={name}")), name);
        let error = bench.server.get("/ways/boom");
        assert_eq!(error.status, 500);
        assert!(error.text().contains("src/Controller/WaysController.php:"), "{}", error.text());
    }
    let status = bench.server.status();
    assert_eq!(status["worker_restarts_total"], 0, "{status}\n{}", bench.server.log());
}

/// Checks for Xdebug's form of `var_dump()`, with file and line.
fn shows_dump(page: &Response, name: &str) {
    let text = page.text();
    assert!(text.contains("class='xdebug-var-dump'"), "{text}");
    assert!(text.contains("WaysController.php:"), "{text}");
    assert!(text.contains(name), "{text}");
}

/// Starts a shop with one worker, and a debugging client for its Xdebug. `start_with_request` is
/// `yes` or `trigger`.
fn debugged(model: Model, start_with_request: &str) -> (Bench, Ide) {
    let shop = developed();
    let ide = Ide::listen(shop.path());
    let define = [
        EXTENSION,
        ("xdebug.mode", "debug"),
        // Since version 3.4, Xdebug listens on a control socket. A listening socket in the boot is
        // a finding.
        ("xdebug.control_socket", "no"),
        ("xdebug.start_with_request", start_with_request),
        ("xdebug.client_port", &ide.port.to_string()),
    ];
    (Bench::of(shop, model, &define), ide)
}

#[derive(Default)]
struct Seen {
    sessions: usize,
    breaks: usize,
    ended: usize,
}

/// A `DBGp` client: sets one breakpoint, and continues whenever a session stops.
struct Ide {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

impl Ide {
    fn listen(application: &Path) -> Ide {
        let file = application.join("src/Controller/WaysController.php");
        let text = std::fs::read_to_string(&file).expect("a file of the application");
        let line = text.lines().position(|l| l.contains("$request->getSession()->set('asked'"));
        let line = line.expect("the line that is to be stopped at") + 1;
        let breakpoint =
            format!("breakpoint_set -i 1 -t line -f file://{} -n {line}\0", file.display());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (breakpoint, seen) = (breakpoint.clone(), Arc::clone(&shared));
                // The thread ends together with the debugged process.
                std::thread::spawn(move || converse(stream, &breakpoint, &seen));
            }
        });
        Ide { port, seen }
    }

    fn sessions(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).sessions
    }

    fn breaks(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).breaks
    }

    fn ended(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).ended
    }
}

/// Handles one session. A message of Xdebug consists of a length, a zero byte, a document, and a
/// zero byte.
fn converse(mut stream: TcpStream, breakpoint: &str, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
    let mut message = Vec::new();
    while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&message).into_owned();
        message.clear();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let response = if text.contains("<init ") {
            seen.sessions += 1;
            breakpoint
        } else if text.contains("command=\"breakpoint_set\"") {
            assert!(!text.contains("<error"), "{text}");
            "run -i 2\0"
        } else if text.contains("status=\"break\"") {
            seen.breaks += 1;
            "run -i 2\0"
        } else if text.contains("status=\"stopping\"") {
            seen.ended += 1;
            "run -i 2\0"
        } else {
            continue;
        };
        drop(seen);
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}
