//! Periods without requests, and periods in which the server itself is stopped.
//!
//! The front once computed a new connection's age from a clock that only its sweeps set. These
//! pause while there is no connection. The first connection after an idle hour was therefore an
//! hour old when it was accepted, and was closed.

use crate::faults::stage::{app, assert_serves, is_alive, is_hello, wait_for_busy};
use samovar_testkit::eventually;
use samovar_testkit::http::Request;
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_millis(300);
/// Longer than the idle timeout.
const QUIET: Duration = Duration::from_millis(900);

/// Lets time pass, which is the subject of these tests.
fn pass(span: Duration) {
    let since = Instant::now();
    while let Some(left) = span.checked_sub(since.elapsed()) {
        std::thread::sleep(left);
    }
}

#[test]
fn first_request_after_idle_period_is_served() {
    let server = app().workers(1).args(["--idle-timeout", "300ms"]).start();
    for round in 0..3 {
        eventually("a round in which we were not slow ourselves", || {
            assert_serves(&server, "before the quiet");
            eventually("no connection", || (server.status()["connections"] == 0).then_some(()));
            pass(QUIET);
            let since = Instant::now();
            let mut client = server.client();
            // The request follows its connection after a few sweeps.
            pass(IDLE / 2);
            let response = client.try_request(&Request::get("/hello"));
            let is_served = response.as_ref().is_ok_and(is_hello);
            // On a busy machine the connection may really have been idle for too long.
            assert!(is_served || since.elapsed() >= IDLE, "round {round}: {response:?}");
            is_served.then_some(())
        });
    }
    server.stop();
}

#[test]
fn paused_server_closes_no_connection() {
    let times = ["--idle-timeout", "4s", "--header-timeout", "4s", "--response-timeout", "4s"];
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
    assert!(server.log().contains("the front was suspended"), "{}", server.log());
    server.stop();
}
