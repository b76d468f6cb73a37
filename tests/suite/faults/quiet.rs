//! Time that passes without requests, and time in which the server itself does not run.
//!
//! The front used to take a new connection's age from a clock that only its sweeps set, and these rest while there is
//! no connection: the first one after a quiet hour was an hour old when it was accepted, and cut.

use crate::faults::stage::{app, assert_serves, is_alive, is_hello, wait_for_busy};
use samovar_testkit::eventually;
use samovar_testkit::http::Request;
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_millis(300);
/// Longer than that.
const QUIET: Duration = Duration::from_millis(900);

/// Lets time pass, which is what these tests are about.
fn pass(span: Duration) {
    let since = Instant::now();
    while let Some(left) = span.checked_sub(since.elapsed()) {
        std::thread::sleep(left);
    }
}

#[test]
fn the_first_request_after_a_quiet_time_is_answered() {
    let server = app().workers(1).args(["--idle-timeout", "300ms"]).start();
    for round in 0..3 {
        eventually("a round in which we were not slow ourselves", || {
            assert_serves(&server, "before the quiet");
            eventually("no connection", || (server.status()["connections"] == 0).then_some(()));
            pass(QUIET);
            let since = Instant::now();
            let mut client = server.client();
            // The request comes a few sweeps after its connection.
            pass(IDLE / 2);
            let answer = client.try_request(&Request::get("/hello"));
            let is_served = answer.as_ref().is_ok_and(is_hello);
            // On a busy machine the connection may truly have been idle for too long.
            assert!(is_served || since.elapsed() >= IDLE, "round {round}: {answer:?}");
            is_served.then_some(())
        });
    }
    server.stop();
}

#[test]
fn a_server_that_stood_still_cuts_nobody() {
    let times = ["--idle-timeout", "4s", "--header-timeout", "4s", "--answer-timeout", "4s"];
    let server = app().workers(2).args(times).start();
    let mut idle = server.client();
    assert!(is_hello(&idle.get("/hello")));
    let mut begun = server.client();
    begun.send(b"GET /hello HTTP/1.1\r\nHost: t\r\nX-Half: ");
    let mut busy = server.client();
    busy.send(&Request::get("/sleep?ms=5500").bytes());
    let worker = wait_for_busy(&server);
    server.pause();
    pass(Duration::from_secs(5));
    server.resume();
    pass(Duration::from_millis(300));
    assert!(is_alive(worker), "its time was not over");
    begun.send(b"x\r\n\r\n");
    assert!(is_hello(&begun.read(false)), "a head that was on its way");
    assert!(is_hello(&idle.get("/hello")), "a connection that was idle");
    assert_eq!(busy.read(false).status, 200, "a request that ran");
    assert!(server.log().contains("the front stood still"), "{}", server.log());
    server.stop();
}
