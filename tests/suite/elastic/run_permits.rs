//! Run permits: at most the configured number of workers run at the same time. A worker that keeps
//! its permit does not block the others.

use crate::elastic::stage::{Crowd, Gate, MODELS, server};
use samovar_testkit::{Server, eventually};

/// Starts eight workers, one of which may run.
fn start(body: &str) -> Server {
    server(body).workers(8).args(["--workers-running-max", "1"]).start()
}

#[test]
fn blocked_worker_releases_run_permit() {
    for (_, body) in MODELS {
        let server = start(body);
        let gate = Gate::new();
        let crowd = Crowd::ask(&server, 8, &gate.target());
        gate.wait_for(8, &server);
        gate.open();
        crowd.responded(&server);
        server.stop();
    }
}

#[test]
fn sleeping_worker_releases_run_permit() {
    let server = start(MODELS[0].1);
    Crowd::ask(&server, 8, "/?sleep=50").responded(&server);
    server.stop();
}

#[test]
fn long_computation_loses_run_permit_after_limit() {
    let server = start(MODELS[0].1);
    let go = server.folder().join("go");
    let crowd = Crowd::ask(&server, 2, &format!("/?until={}", go.display()));
    eventually("both compute", || (busy(&server) == 2).then_some(()));
    assert_eq!(server.get("/").status, 200);
    assert_eq!(busy(&server), 2, "they compute yet");
    std::fs::write(go, "").expect("our own folder");
    crowd.responded(&server);
    server.stop();
}

#[test]
fn stopped_or_dead_worker_loses_run_permit() {
    let server = start(MODELS[0].1);
    for is_stopped in [true, false] {
        let go = server.folder().join(format!("go-{is_stopped}"));
        let slow = Crowd::ask(&server, 1, &format!("/?until={}", go.display()));
        let pid = eventually("it computes", || busy_pid(&server));
        if is_stopped {
            server.stop_process(pid);
            Crowd::ask(&server, 12, "/").responded(&server);
        }
        // Another worker runs its request again.
        server.kill_worker(pid);
        Crowd::ask(&server, 12, "/").responded(&server);
        std::fs::write(go, "").expect("our own folder");
        slow.responded(&server);
    }
    server.stop();
}

#[test]
fn worker_stopped_while_idle_loses_run_permit() {
    for (model, body) in MODELS {
        let server = start(body);
        // The worker that ran last is woken for the next request, and holds the only permit.
        let last: i32 = server.get("/").text().trim().parse().expect("a process");
        server.stop_process(last);
        let next = server.get("/").text();
        assert_ne!(next, last.to_string(), "{model}: it is stopped");
        Crowd::ask(&server, 12, "/").responded(&server);
        // The server's stop would wait for it.
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
