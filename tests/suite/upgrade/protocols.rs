//! An upgrade as seen by clients of each protocol: TLS with HTTP/1.1 and HTTP/2, FastCGI, a socket
//! of the service manager.

use super::SCRIPT;
use samovar_testkit::http::Client;
use samovar_testkit::http2::{self, Connection, DATA, END_STREAM, GOAWAY};
use samovar_testkit::{Certificate, Server, eventually};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

const ROUNDS: usize = 3;
/// Number of responses of each kind that a round waits for.
const MORE: usize = 2;

/// Sends requests repeatedly, each on a new connection, and ends at the first failure.
struct Asking {
    what: &'static str,
    responded: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Asking {
    fn start(
        what: &'static str,
        over: &Arc<AtomicBool>,
        ask: impl Fn() -> String + Send + 'static,
    ) -> Asking {
        let (responded, over) = (Arc::<AtomicUsize>::default(), Arc::clone(over));
        let count = Arc::clone(&responded);
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let response = ask();
                assert!(response.ends_with("page GET"), "{what}: {response}");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Asking { what, responded, thread }
    }

    fn wait_for_more(&self) {
        let wanted = self.responded.load(Ordering::Relaxed) + MORE;
        eventually(&format!("answers to {}", self.what), || {
            assert!(!self.thread.is_finished(), "{} was let down", self.what);
            (self.responded.load(Ordering::Relaxed) >= wanted).then_some(())
        });
    }
}

/// Complete output, including errors.
fn said_by(command: &mut Command) -> String {
    let output = command.output().expect("it is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stderr) + &text(&output.stdout)
}

fn curl(version: &'static str, url: String) -> impl Fn() -> String {
    move || said_by(Command::new("curl").args(["-sS", "-k", "-m", "60", version, &url]))
}

fn over_fastcgi(address: SocketAddr, script: String) -> impl Fn() -> String {
    move || {
        let mut command = Command::new("cgi-fcgi");
        command.args(["-bind", "-connect", &address.to_string()]).env_clear();
        said_by(command.env("REQUEST_METHOD", "GET").env("SCRIPT_FILENAME", &script))
    }
}

#[test]
fn upgrade_loses_no_request_of_any_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = Certificate::own(folder.path(), "own", "DNS:localhost,IP:127.0.0.1");
    let fcgi = samovar_testkit::port();
    let server = Server::script(SCRIPT)
        .workers(2)
        .args(["--listen", "https://127.0.0.1:0", "--listen", &format!("fcgi://{fcgi}")])
        .args(["--tls-certificates", &certificate.chain.to_string_lossy()])
        .start();
    let secure = *server.addresses("https://").first().expect("it listens");
    let url = format!("https://{secure}/");
    let script = server.folder().join("root/index.php").to_string_lossy().into_owned();
    let over = Arc::<AtomicBool>::default();
    let all = [
        Asking::start("TLS and HTTP/1.1", &over, curl("--http1.1", url.clone())),
        Asking::start("TLS and HTTP/2", &over, curl("--http2", url)),
        Asking::start("FastCGI", &over, over_fastcgi(fcgi, script)),
    ];
    for round in 0..ROUNDS {
        all.iter().for_each(Asking::wait_for_more);
        server.upgrade([]).unwrap_or_else(|why| panic!("round {round}: {why}"));
        all.iter().for_each(Asking::wait_for_more);
        server.wait_for_predecessor();
    }
    over.store(true, Ordering::Relaxed);
    for asking in all {
        asking.thread.join().expect("nobody was let down");
    }
    server.stop();
}

/// Running requests of an HTTP/2 connection get their responses, and GOAWAY makes the client send
/// further requests on another connection.
#[test]
fn http2_connection_gets_goaway_and_its_responses() -> io::Result<()> {
    let php = "<?php
        if (isset($_GET['file'])) {
            file_put_contents(\"$_GET[file].here\", 'x');
            while (!file_exists($_GET['file'])) {
                usleep(2000);
                clearstatcache();
            }
        }
        echo 'page ', $_SERVER['REQUEST_METHOD'];";
    let server = Server::script(php).workers(2).start();
    let file = server.folder().join("gate");
    let mut client = Connection::open(server.address())?;
    client.get(1, &format!("/?file={}", file.display()))?;
    eventually("it runs", || server.folder().join("gate.here").exists().then_some(()));
    let mut idle = Connection::open(server.address())?;
    idle.get(1, "/")?;
    assert_eq!(idle.wait_for(DATA).expect("an answer").payload, b"page GET");
    std::thread::scope(|scope| {
        // The command returns when the new server serves requests. The old one waits for its
        // running requests.
        let upgrade = scope.spawn(|| server.upgrade([]));
        let told = client.wait_for(GOAWAY).expect("it is told");
        assert_eq!(told.payload[4..8], [0; 4], "there is no error: {told:?}");
        idle.wait_for(GOAWAY).expect("so is who asks for nothing");
        assert!(idle.wait_for(DATA).is_none(), "and its connection ends");
        upgrade.join().expect("no panic").expect("an upgrade");
    });
    assert_eq!(Client::connect(server.address()).get("/").text(), "page GET");
    std::fs::write(&file, "x")?;
    let mut body = Vec::new();
    while let Some(frame) = client.next_frame() {
        assert_ne!(frame.kind, http2::RST_STREAM, "{frame:?}");
        if frame.kind == DATA {
            body.extend_from_slice(&frame.payload);
            if frame.flags & END_STREAM != 0 {
                break;
            }
        }
    }
    assert_eq!(body, b"page GET");
    server.wait_for_predecessor();
    assert!(client.wait_for(DATA).is_none());
    server.stop();
    Ok(())
}

/// The manager keeps the descriptor, regardless of the listening server.
#[test]
fn upgrade_passes_on_socket_of_service_manager() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let server = Server::script(SCRIPT).workers(1).inherit(&listener).start();
    let over = Arc::<AtomicBool>::default();
    let asking = Asking::start("the manager's socket", &over, move || {
        Client::connect(address).get("/").text()
    });
    for _ in 0..ROUNDS {
        asking.wait_for_more();
        server.upgrade([]).expect("an upgrade");
        assert_eq!(server.address(), address);
        asking.wait_for_more();
        server.wait_for_predecessor();
    }
    over.store(true, Ordering::Relaxed);
    asking.thread.join().expect("nobody was let down");
    server.stop();
}
