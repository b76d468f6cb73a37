//! The pool grows by as many workers as are blocked, and shrinks when they are idle.

use crate::elastic::stage::{
    Crowd, Gate, MODELS, cores, scaling, server, wait_for_reason, wait_for_workers, workers,
};
use samovar_testkit::{Server, eventually};

#[test]
fn blocked_requests_add_workers_that_leave_when_idle() {
    for (model, body) in MODELS {
        let server = server(body).args(["--workers", "1..64"]).start();
        let gate = Gate::new();
        let crowd = Crowd::ask(&server, 30, &gate.target());
        gate.wait_for(30, &server);
        let found = workers(&server);
        assert!((30..=32).contains(&found), "{model}: {found} for 30 requests");
        gate.open();
        crowd.responded(&server);
        wait_for_workers(&server, 1);
        let status = server.status();
        let totals =
            ["workers_added_total", "workers_removed_total"].map(|key| status[key].as_u64());
        assert!(totals[0] >= Some(29) && totals[0] == totals[1], "{model}: {status}");
        assert_eq!(status["worker_restarts_total"], 0, "{model}: {}", server.log());
        let log = server.stop();
        assert!(log.contains("reason=waiting") || log.contains("\"waiting\""), "{model}: {log}");
    }
}

#[test]
fn three_hundred_blocked_requests_get_three_hundred_workers() {
    let server = server(MODELS[2].1).args(["--workers", "1..300"]).start();
    let gate = Gate::new();
    let crowd = Crowd::ask(&server, 305, &gate.target());
    gate.wait_for(300, &server);
    wait_for_reason(&server, "max");
    gate.open();
    eventually("the last five", || (gate.waiting() == 5).then_some(()));
    gate.open();
    crowd.responded(&server);
    wait_for_workers(&server, 1);
    server.stop();
}

#[test]
fn computing_requests_add_no_workers() {
    let server = server(MODELS[0].1).args(["--workers", "1..64"]).start();
    for _ in 0..4 {
        Crowd::ask(&server, 32, "/?compute=20").responded(&server);
        let found = workers(&server);
        // Other processes may keep the cores busy, so one more worker may be added, but not one per
        // waiting request.
        assert!(found <= 2 * cores() + 2, "{found} workers compute: {}", server.status());
    }
    server.stop();
}

#[test]
fn fixed_worker_count_does_not_change() {
    let server = server(MODELS[0].1).workers(3).start();
    let gate = Gate::new();
    let crowd = Crowd::ask(&server, 8, &gate.target());
    gate.wait_for(3, &server);
    assert_eq!(workers(&server), 3);
    assert_eq!(server.status()["scaling"], serde_json::json!([]));
    for _ in 0..2 {
        gate.open();
        eventually("more at the gate", || (gate.waiting() > 0).then_some(()));
    }
    eventually("the last", || {
        gate.open();
        (server.status()["in_flight"] == 0).then_some(())
    });
    crowd.responded(&server);
    server.stop();
}

#[test]
fn script_workers_next_to_application_scale_separately() {
    let server = server(MODELS[1].1).args(["--workers", "1..16"]).start();
    let other = server.folder().join("root/other.php");
    std::fs::write(other, format!("<?php {}\nwork();", crate::elastic::stage::WORK))
        .expect("our folder");
    let gate = Gate::new();
    let crowd = Crowd::ask(&server, 10, &format!("/other.php{}", &gate.target()[1..]));
    gate.wait_for(10, &server);
    let lines = server.status()["scaling"].clone();
    assert_eq!((&lines[0]["kind"], &lines[0]["workers"]), (&"any".into(), &1.into()), "{lines}");
    assert_eq!(lines[1]["kind"], "scripts", "{lines}");
    gate.open();
    crowd.responded(&server);
    wait_for_workers(&server, 2);
    server.stop();
}

#[test]
fn scaling_reason_is_in_status_and_log() {
    let server = server(MODELS[0].1).args(["--workers", "1..3", "--admin", "127.0.0.1:0"]).start();
    let gate = Gate::new();
    let crowd = Crowd::ask(&server, 6, &gate.target());
    gate.wait_for(3, &server);
    wait_for_reason(&server, "max");
    let line = scaling(&server);
    assert_eq!([&line["min"], &line["max"], &line["workers"]], [1, 3, 3], "{line}");
    eventually("the reason, with how many wait", || {
        said(&server)
            .contains("workers 3 of 1 to 3: workers.max is reached (queued 3")
            .then_some(())
    });
    server.wait_for_log("no worker is added: workers.max is reached");
    gate.open();
    eventually("the others", || (gate.waiting() == 3).then_some(()));
    gate.open();
    crowd.responded(&server);
    server.stop();
}

fn said(server: &Server) -> String {
    let mut command = std::process::Command::new(samovar_testkit::binary());
    let output = command.args(["status", "--control"]).arg(server.control()).output();
    String::from_utf8(output.expect("the binary runs").stdout).expect("text")
}
