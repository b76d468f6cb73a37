//! The end: a drain loses no request, waits no longer than it may, and leaves nothing behind.

use crate::faults::stage::{
    Load, app, create, file_of, is_hello, processes_of, read_when_there, wait_for_busy,
    wait_for_ends, wait_for_in_flight, workers_in,
};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Begins a request that waits for a file and queues another behind it.
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
fn a_drain_loses_no_request_and_leaves_nothing_behind() {
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
    let answer = running.read(false);
    assert_eq!((answer.status, answer.text().as_str()), (200, "waited"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(is_hello(&queued.read(false)));
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    wait_for_ends(&everybody);
    assert!(!server.control().exists(), "the control socket is removed");
}

#[test]
fn a_drain_under_load_answers_everything_it_accepted() {
    let mut server = app().workers(2).start();
    let load = Load::start(server.address(), 1, &Request::get("/sleep?ms=2"));
    let address = server.address();
    let clients: Vec<_> = (0..6)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut answered = 0;
                // Until the server says that it closes, as it must before it does.
                loop {
                    let answer = client.request(&Request::form("/sleep?ms=2", "a=b"));
                    assert_eq!((answer.status, answer.complete), (200, true), "{answer:?}");
                    answered += 1;
                    if answer.header("connection") == Some("close") {
                        return answered;
                    }
                }
            })
        })
        .collect();
    eventually("load", || (server.status()["requests_total"].as_u64()? > 50).then_some(()));
    load.stop.store(true, Ordering::Relaxed);
    for answer in load.stop() {
        assert!(answer.is_ok_and(|a| a.text() == "slept"));
    }
    server.terminate();
    for client in clients {
        assert!(client.join().expect("every request is answered") > 0);
    }
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_drain_ends_with_its_timeout() {
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
fn a_second_signal_does_not_wait_for_requests() {
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
fn stop_waits_until_the_server_has_gone() {
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
fn nothing_outlives_a_killed_server() {
    let mut server = app().workers(2).start();
    let everybody = processes_of(&server);
    server.kill_worker(server.pid());
    assert_eq!(server.wait(), None, "killed");
    wait_for_ends(&everybody);
}

/// Work behind an answer has begun; it ends when the file is there.
fn begin_work(server: &Server) -> (PathBuf, PathBuf) {
    let go = file_of(server, "go");
    let answer = server.get(&format!("/finish?file={}", go.display()));
    assert_eq!((answer.status, answer.text().as_str()), (200, "the client has this"));
    let done = file_of(server, "go.done");
    (go, done)
}

#[test]
fn a_drain_waits_for_work_behind_an_answer() {
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
fn work_that_outlasts_the_drain_is_ended_and_told_of() {
    let mut server =
        app().workers(2).args(["--drain-timeout", "500ms", "--grace-timeout", "100ms"]).start();
    let everybody = processes_of(&server);
    let (_go, done) = begin_work(&server);
    // One that hears nothing is killed.
    let mut deaf = server.client();
    deaf.send(&Request::get("/signal?signal=19").bytes());
    eventually("two busy workers", || (workers_in(&server, "busy").len() == 2).then_some(()));
    deaf.abort();
    server.terminate();
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    wait_for_ends(&everybody);
    assert!(!done.exists());
    for said in [
        "scripts went on without a client when the drain time-out ended; they are told to end",
        "request=\"GET /finish?file=",
        "request=\"GET /signal?signal=19\"",
        "limit=\"timeouts.drain\"",
        "its script went on for longer than timeouts.drain while the server stopped",
    ] {
        server.wait_for_log(said);
    }
}
