//! Limits of growth: memory and processes.

use crate::elastic::stage::{
    Crowd, Gate, MODELS, server, wait_for_reason, wait_for_workers, workers,
};
use samovar_testkit::{Cgroup, Server, eventually};

/// Opens the gate until all requests have responses.
fn let_through(gate: &Gate, server: &Server, crowd: Crowd) {
    eventually("all through the gate", || {
        gate.open();
        (server.status()["in_flight"] == 0).then_some(())
    });
    crowd.responded(server);
}

#[test]
fn memory_limit_stops_growth() {
    let server =
        server(MODELS[0].1).args(["--workers", "1..64", "--workers-memory-max", "4M"]).start();
    let gate = Gate::new();
    let crowd = Crowd::ask(&server, 20, &gate.target());
    wait_for_reason(&server, "memory");
    let found = workers(&server);
    assert!((2..20).contains(&found), "{found}: {}", server.status());
    let own = server.status()["scaling"][0]["own_bytes"].as_u64();
    assert!(own < Some(8 << 20), "not much more than it may be: {own:?}");
    let_through(&gate, &server, crowd);
    server.stop();
}

#[test]
fn process_limit_stops_growth_with_few_retries() {
    let group = match Cgroup::create("pids") {
        Ok(group) => group,
        Err(why) => return println!("skipped: {why}"),
    };
    let server = server(MODELS[0].1).args(["--workers", "1..64"]).group(&group).start();
    let used = group.number(["pids.current", "pids.current"]).expect("a number");
    group.limit(["pids.max", "pids.max"], &(used + 4).to_string());
    let gate = Gate::new();
    let crowd = Crowd::ask(&server, 20, &gate.target());
    wait_for_reason(&server, "fork_failed");
    server.wait_for_log("the system could not create a process");
    let found = workers(&server);
    assert!((2..=5).contains(&found), "{found}: {}", server.status());
    let refused = server.log().matches("cannot fork a worker").count();
    assert!(refused <= 10, "{refused} tries: {}", server.log());
    let_through(&gate, &server, crowd);
    wait_for_workers(&server, 1);
    server.stop();
}
