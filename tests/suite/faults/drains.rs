//! The drain at the server's stop: it loses no request, respects its timeout, and leaves no
//! process.

use crate::faults::stage::{
    Load, app, create, file_of, is_hello, processes_of, read_when_there, wait_for_busy,
    wait_for_ends, wait_for_in_flight, workers_in,
};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Starts a request that waits for a file, and queues another one after it.
fn begin_two(server: &Server) -> (PathBuf, Client, Client) {
    let go = file_of(server, "go");
    let mut running = server.client();
    running.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(server);
    let mut queued = server.client();
    queued.send(&Request::form("/hello", "a=b").bytes());
    wait_for_in_flight(server, 2);
    (go, running, queued)
}

#[test]
fn drain_serves_pending_requests_and_leaves_no_process() {
    let mut server = app().workers(1).start();
    let everybody = processes_of(&server);
    let mut idle = server.client();
    assert!(is_hello(&idle.get("/hello")));
    let (go, mut running, mut queued) = begin_two(&server);
    server.terminate();
    eventually("new connections are refused", || {
        std::net::TcpStream::connect(server.address()).err()
    });
    assert!(idle.is_closed(), "who waits for nothing is let go");
    assert_eq!(server.status()["draining"], true);
    create(&go);
    let response = running.read(false);
    assert_eq!((response.status, response.text().as_str()), (200, "waited"));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(is_hello(&queued.read(false)));
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    wait_for_ends(&everybody);
    assert!(!server.control().exists(), "the control socket is removed");
}

#[test]
fn drain_under_load_serves_all_accepted_requests() {
    let mut server = app().workers(2).start();
    let load = Load::start(server.address(), 1, &Request::get("/sleep?ms=2"));
    let address = server.address();
    let clients: Vec<_> = (0..6)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut responded = 0;
                // The server must announce the close with a `Connection: close` header before it
                // closes.
                loop {
                    let response = client.request(&Request::form("/sleep?ms=2", "a=b"));
                    assert_eq!((response.status, response.complete), (200, true), "{response:?}");
                    responded += 1;
                    if response.header("connection") == Some("close") {
                        return responded;
                    }
                }
            })
        })
        .collect();
    eventually("load", || (server.status()["requests_total"].as_u64()? > 50).then_some(()));
    load.stop.store(true, Ordering::Relaxed);
    for response in load.stop() {
        assert!(response.is_ok_and(|a| a.text() == "slept"));
    }
    server.terminate();
    for client in clients {
        assert!(client.join().expect("every request is answered") > 0);
    }
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn drain_ends_at_drain_timeout() {
    let mut server = app().workers(1).args(["--drain-timeout", "500ms"]).start();
    let everybody = processes_of(&server);
    let (_go, mut running, _queued) = begin_two(&server);
    server.terminate();
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    assert!(running.try_read(false).is_err(), "cut");
    wait_for_ends(&everybody);
    server.wait_for_log("still in flight");
}

#[test]
fn second_signal_ends_drain_at_once() {
    let mut server = app().workers(1).args(["--drain-timeout", "10m"]).start();
    let everybody = processes_of(&server);
    let (_go, mut running, _queued) = begin_two(&server);
    server.terminate();
    eventually("the drain", || (server.status()["draining"] == true).then_some(()));
    server.terminate();
    assert!(server.wait().is_some(), "it ends: {}", server.log());
    assert_ne!(running.try_read(false).map_or(0, |a| a.status), 200);
    wait_for_ends(&everybody);
}

#[test]
fn stop_command_waits_for_server_exit() {
    let mut server = app().workers(1).start();
    let everybody = processes_of(&server);
    let (go, mut running, mut queued) = begin_two(&server);
    let binary = std::fs::read_link(format!("/proc/{}/exe", server.pid())).expect("it runs");
    let mut stop = std::process::Command::new(binary)
        .args(["stop", "--control"])
        .arg(server.control())
        .spawn()
        .expect("the binary runs");
    eventually("the drain", || (server.status()["draining"] == true).then_some(()));
    assert!(stop.try_wait().expect("our own child").is_none(), "it waits");
    create(&go);
    assert_eq!(running.read(false).text(), "waited");
    assert!(is_hello(&queued.read(false)));
    assert!(stop.wait().expect("our own child").success());
    assert_eq!(server.wait(), Some(0));
    wait_for_ends(&everybody);
}

#[test]
fn killed_server_leaves_no_process() {
    let mut server = app().workers(2).start();
    let everybody = processes_of(&server);
    server.kill_worker(server.pid());
    assert_eq!(server.wait(), None, "killed");
    wait_for_ends(&everybody);
}

/// Starts a script that continues after its response until the file `go` exists. Returns the paths
/// of `go` and of the file that the script writes at its end.
fn begin_work(server: &Server) -> (PathBuf, PathBuf) {
    let go = file_of(server, "go");
    let response = server.get(&format!("/finish?file={}", go.display()));
    assert_eq!((response.status, response.text().as_str()), (200, "the client has this"));
    let done = file_of(server, "go.done");
    (go, done)
}

#[test]
fn drain_waits_for_script_after_response() {
    let mut server = app().workers(1).args(["--drain-timeout", "10m"]).start();
    let (go, done) = begin_work(&server);
    server.terminate();
    eventually("the drain", || (server.status()["draining"] == true).then_some(()));
    assert!(server.ended().is_none(), "it waits: {}", server.log());
    create(&go);
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    assert_eq!(read_when_there(&done), "and the script went on");
}

#[test]
fn script_exceeding_drain_timeout_is_killed_and_logged() {
    let mut server =
        app().workers(2).args(["--drain-timeout", "500ms", "--grace-timeout", "100ms"]).start();
    let everybody = processes_of(&server);
    let (_go, done) = begin_work(&server);
    // A worker that does not react to signals is killed.
    let mut deaf = server.client();
    deaf.send(&Request::get("/signal?signal=19").bytes());
    eventually("two busy workers", || (workers_in(&server, "busy").len() == 2).then_some(()));
    deaf.abort();
    server.terminate();
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    wait_for_ends(&everybody);
    assert!(!done.exists());
    for said in [
        "scripts without a client still running at the end of the drain timeout; they are aborted",
        "request=\"GET /finish?file=",
        "request=\"GET /signal?signal=19\"",
        "limit=\"timeouts.drain\"",
        "its script exceeded timeouts.drain while the server stopped",
    ] {
        server.wait_for_log(said);
    }
}
