//! Several front threads in a whole server: each model, each kind of listener, killed workers, and
//! the final counters.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Certificate, Server, Start, eventually};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const THREADS: usize = 3;
const CLIENTS: usize = 2 * THREADS;
const ROUNDS: usize = 5;

const BODY: &str = "if ($_SERVER['REQUEST_URI'] === '/die') { posix_kill(getmypid(), SIGKILL); } \
                    echo $_SERVER['REQUEST_URI'], ' ', strlen(file_get_contents('php://input'));";

fn several(start: Start) -> Start {
    start.workers(2).args(["--front-threads", "3"])
}

/// Threads of the server that serve connections.
fn threads(server: &Server) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("a process");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let names = tasks.filter_map(name).map(|name| name.trim().to_owned());
    let mut fronts: Vec<_> = names.filter(|name| name.starts_with("front")).collect();
    fronts.sort();
    fronts
}

/// Sends requests on connections of all threads, and kills workers in between.
fn ask(server: &Server) {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(server.address())).collect();
    for round in 0..ROUNDS {
        for (number, client) in clients.iter_mut().enumerate() {
            let target = format!("/{round}/{number}");
            let request = Request::post(&target, "text/plain", "x".repeat(100_000 * (number % 2)));
            let response = client.request(&request);
            let expected = format!("{target} {}", 100_000 * (number % 2));
            assert_eq!((response.status, response.text()), (200, expected));
        }
        let dying = Request::post("/die", "text/plain", "x");
        assert_eq!(clients[round].request(&dying).status, 502);
    }
    let asked = CLIENTS * ROUNDS + ROUNDS;
    eventually("all are over", || (server.status()["in_flight"] == 0).then_some(()));
    let status = server.status();
    assert_eq!(status["requests_total"], asked, "{status}");
    assert_eq!(status["connections"], CLIENTS, "{status}");
    assert_eq!(threads(server), ["front", "front-2", "front-3"]);
}

#[test]
fn disable_checkpoint_are_served_by_several_front_threads() {
    let server = several(Server::script(&format!("<?php {BODY}"))).start();
    ask(&server);
    server.stop();
}

#[test]
fn checkpoint_requests_are_served_by_several_front_threads() {
    let server = several(Server::script(&format!("<?php Samovar\\checkpoint(); {BODY}"))).start();
    ask(&server);
    server.stop();
}

#[test]
fn resident_requests_are_served_by_several_front_threads() {
    let script = format!("<?php Samovar\\serve(function () {{ {BODY} }});");
    let server = several(Server::script(&script)).start();
    ask(&server);
    server.stop();
}

#[test]
fn unix_socket_connections_are_distributed_to_front_threads() {
    let start = several(Server::script(&format!("<?php {BODY}")));
    let path = start.folder().join("web.sock");
    let listen = format!("unix:{}", path.display());
    let server = start.args(["--listen", &listen]).start();
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
    for client in &mut clients {
        client.write_all(b"GET /u HTTP/1.0\r\nHost: t\r\n\r\n").expect("room");
    }
    for client in &mut clients {
        let mut said = String::new();
        client.read_to_string(&mut said).expect("an answer and its end");
        assert!(said.starts_with("HTTP/1.") && said.ends_with("/u 0"), "{said}");
    }
    server.stop();
    assert!(!path.exists(), "its file goes with it");
}

#[test]
fn few_cores_use_one_front_thread() {
    let server = Server::script("<?php echo 1;").workers(1).start();
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 16) {
        assert_eq!(threads(&server), ["front"]);
    }
    let wrong = server.folder().join("wrong.toml");
    std::fs::write(&wrong, "front_threads = 17\n").expect("our own folder");
    let checked = std::process::Command::new(samovar_testkit::binary())
        .args(["check", "--config"])
        .arg(&wrong)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(!checked.status.success() && said.contains("from 1 to 16"), "{said}");
    server.stop();
}

/// Starts a TLS client that keeps its connection open. Also returns how its session began: `New` or
/// `Reused`.
fn stays(address: &str, session: &Path) -> (Child, String) {
    let mut client = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-connect", address, "-sess_in"])
        .arg(session)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let told = BufReader::new(client.stdout.take().expect("a pipe"));
    let line = told.lines().map_while(Result::ok).find(|line| line.contains(", Cipher is "));
    let line = line.expect("a handshake");
    (client, line.split(',').next().unwrap_or_default().to_owned())
}

/// A session ticket is valid in every thread, also in those that did not issue it.
#[test]
fn tls_session_is_resumed_by_each_front_thread() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let own = Certificate::own(folder.path(), "own", "DNS:localhost,IP:127.0.0.1");
    let chain = own.chain.display().to_string();
    let secure = ["--listen", "https://127.0.0.1:0", "--tls-certificates", &chain];
    let server = several(Server::script("<?php echo 1;")).args(secure).start();
    let address = server.addresses("https://")[0].to_string();
    let session = folder.path().join("session");
    let first = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-connect", &address, "-sess_out"])
        .arg(&session)
        .stdin(Stdio::null())
        .output()
        .expect("openssl runs");
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    for _ in 0..2 {
        // Open connections are distributed evenly, so each thread has some of them.
        let all: Vec<_> = (0..CLIENTS).map(|_| stays(&address, &session)).collect();
        let began: Vec<_> = all.iter().map(|(_, began)| began.as_str()).collect();
        assert_eq!(began, ["Reused"; CLIENTS]);
        for (mut client, _) in all {
            client.kill().expect("our own process");
            client.wait().expect("our own process");
        }
        server.reload().expect("it reloads");
    }
    server.stop();
}
