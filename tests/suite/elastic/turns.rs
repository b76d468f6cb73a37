//! However many workers there are, as many run as may; and whoever holds a turn for ever holds up nobody.

use crate::elastic::stage::{Crowd, Gate, MODELS, server};
use samovar_testkit::{Server, eventually};

/// Eight workers of which one may run.
fn start(body: &str) -> Server {
    server(body).workers(8).args(["--workers-running-max", "1"]).start()
}

#[test]
fn who_waits_does_not_run() {
    for (_, body) in MODELS {
        let server = start(body);
        let gate = Gate::new();
        let crowd = Crowd::ask(&server, 8, &gate.target());
        gate.wait_for(8, &server);
        gate.open();
        crowd.answered(&server);
        server.stop();
    }
}

#[test]
fn a_sleep_is_a_wait() {
    let server = start(MODELS[0].1);
    Crowd::ask(&server, 8, "/?sleep=50").answered(&server);
    server.stop();
}

#[test]
fn a_long_computation_lets_others_run_after_a_while() {
    let server = start(MODELS[0].1);
    let go = server.folder().join("go");
    let crowd = Crowd::ask(&server, 2, &format!("/?until={}", go.display()));
    eventually("both compute", || (busy(&server) == 2).then_some(()));
    assert_eq!(server.get("/").status, 200);
    assert_eq!(busy(&server), 2, "they compute yet");
    std::fs::write(go, "").expect("our own folder");
    crowd.answered(&server);
    server.stop();
}

#[test]
fn a_stopped_worker_and_a_dead_one_hold_no_turn() {
    let server = start(MODELS[0].1);
    for is_stopped in [true, false] {
        let go = server.folder().join(format!("go-{is_stopped}"));
        let slow = Crowd::ask(&server, 1, &format!("/?until={}", go.display()));
        let pid = eventually("it computes", || busy_pid(&server));
        if is_stopped {
            server.stop_process(pid);
            Crowd::ask(&server, 12, "/").answered(&server);
        }
        // Its request is run again by another.
        server.kill_worker(pid);
        Crowd::ask(&server, 12, "/").answered(&server);
        std::fs::write(go, "").expect("our own folder");
        slow.answered(&server);
    }
    server.stop();
}

#[test]
fn who_was_stopped_while_it_slept_keeps_no_turn() {
    for (model, body) in MODELS {
        let server = start(body);
        // The one that ran last is woken for the next request, and its turn is the only one.
        let last: i32 = server.get("/").text().trim().parse().expect("a process");
        server.stop_process(last);
        let next = server.get("/").text();
        assert_ne!(next, last.to_string(), "{model}: it is stopped");
        Crowd::ask(&server, 12, "/").answered(&server);
        // The end of the server would wait for it.
        server.kill_worker(last);
        server.stop();
    }
}

fn busy(server: &Server) -> usize {
    let status = server.status();
    let workers = status["workers"].as_array().expect("a list");
    workers.iter().filter(|worker| worker["state"] == "busy").count()
}

fn busy_pid(server: &Server) -> Option<i32> {
    let status = server.status();
    let busy = status["workers"].as_array()?.iter().find(|w| w["state"] == "busy")?;
    i32::try_from(busy["pid"].as_i64()?).ok()
}
