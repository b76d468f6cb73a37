//! Xdebug, loaded for one server alone: its `develop` mode in each execution model, and what of its step
//! debugger each model gives.

use super::{Bench, developed};
use crate::frameworks::shop::Model;
use samovar_testkit::eventually;
use samovar_testkit::http::{Request, Response};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const EXTENSION: (&str, &str) = ("zend_extension", "xdebug.so");
/// How often each worker is asked.
const REQUESTS: usize = 3;

#[test]
fn debug_xdebug_develops_in_script() {
    develops(Model::Script);
}

#[test]
fn debug_xdebug_develops_in_resident() {
    develops(Model::Resident);
}

#[test]
fn debug_xdebug_develops_in_checkpoint() {
    develops(Model::Checkpoint);
}

/// A session for each request, which ends with it.
#[test]
fn debug_xdebug_connects_for_each_request_in_script() {
    let (bench, ide) = debugged(Model::Script, "yes");
    for request in 1..=REQUESTS {
        breaks(&bench, &ide, request);
        assert_eq!(ide.sessions(), request, "{}", bench.server.log());
        eventually("the session's end", || (ide.ended() == request).then_some(()));
    }
}

/// Xdebug begins a session with the first function of a process: here the boot's. It stays, and each
/// request stops at the breakpoints that were set then.
#[test]
fn debug_xdebug_keeps_the_boots_session_in_resident() {
    let (bench, ide) = debugged(Model::Resident, "yes");
    let sessions = ide.sessions();
    for request in 1..=REQUESTS {
        breaks(&bench, &ide, request);
        assert_eq!(ide.sessions(), sessions, "{}", bench.server.log());
    }
    finds_connection(&bench);
}

/// Below a checkpoint the session is a connection made above, in a language that nobody here knows: who has spoken on it
/// makes room, and the successor's boot has a session of its own.
#[test]
fn debug_xdebug_begins_a_session_with_each_boot_in_checkpoint() {
    let (bench, ide) = debugged(Model::Checkpoint, "yes");
    for request in 1..=REQUESTS {
        let sessions = ide.sessions();
        breaks(&bench, &ide, request);
        eventually("the successor's session", || (ide.sessions() > sessions).then_some(()));
    }
    finds_connection(&bench);
}

/// A cookie or a parameter asks for it, as a browser's extension sends it.
#[test]
fn debug_xdebug_connects_for_each_request_that_asks_in_script() {
    connects_if_asked(Model::Script);
}

/// The boot had no session, so no connection stands against a shared image, and none ends a worker.
#[test]
fn debug_xdebug_connects_for_each_request_that_asks_in_checkpoint() {
    let status = connects_if_asked(Model::Checkpoint).server.status();
    assert_eq!(status["image"]["findings"].to_string(), "[]", "{status}");
    assert_eq!(status["image"]["refork_total"], 0, "{status}");
}

/// A worker's session begins with the first request that asks for one.
#[test]
fn debug_xdebug_keeps_the_session_of_the_first_request_that_asks_in_resident() {
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

/// One request more has stopped once more, and was answered.
fn breaks(bench: &Bench, ide: &Ide, request: usize) {
    let page = bench.server.get("/ways/json");
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(ide.breaks(), request, "{}", bench.server.log());
}

/// Pages, dumps and errors are Xdebug's, request after request.
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

/// `var_dump()` as Xdebug has it, with file and line.
fn shows_dump(page: &Response, name: &str) {
    let text = page.text();
    assert!(text.contains("class='xdebug-var-dump'"), "{text}");
    assert!(text.contains("WaysController.php:"), "{text}");
    assert!(text.contains(name), "{text}");
}

/// A worker of a shop whose Xdebug is to connect to a debugging client: `yes`, or `trigger`.
fn debugged(model: Model, start_with_request: &str) -> (Bench, Ide) {
    let shop = developed();
    let ide = Ide::listen(shop.path());
    let define = [
        EXTENSION,
        ("xdebug.mode", "debug"),
        // Since 3.4 it listens for tools, and a boot that listens is a finding.
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

/// A client of `DBGp`: sets one breakpoint, and goes on from wherever a session stops.
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
                // It ends when the process that it debugs does.
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

/// One session. What Xdebug sends is a length, a zero byte, a document, a zero byte.
fn converse(mut stream: TcpStream, breakpoint: &str, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
    let mut message = Vec::new();
    while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&message).into_owned();
        message.clear();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = if text.contains("<init ") {
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
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
