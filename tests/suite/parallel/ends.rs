//! Requests that end while tasks wait in the middle of an operation: no state of them is left.

use crate::parallel::peers::{MODELS, Peers, ask};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};
use std::path::PathBuf;

const ROUNDS: usize = 6;
const ENDS: [&str; 9] = [
    "exit",
    "exit in a task",
    "fatal",
    "fatal in a task",
    "memory",
    "exception",
    "return",
    "shutdown",
    "cancel",
];

/// Descriptors of the worker, except those that it always has.
pub(crate) fn open(server: &Server) -> Vec<String> {
    let folder = format!("/proc/{}/fd", server.worker_pid());
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = files
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|path: PathBuf| path.display().to_string())
        .map(|name| name.split(':').next().unwrap_or_default().to_owned())
        // Entries of its own process, without the number.
        .map(|name| if name.starts_with("/proc/") { "/proc".to_owned() } else { name })
        .collect();
    names.sort();
    names
}

pub(crate) fn stacks(server: &Server) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", server.worker_pid()));
    maps.unwrap_or_default().lines().count()
}

fn end(server: &Server, how: &str) {
    let target = format!("/end?how={}", how.replace(' ', "+"));
    if how == "abort" {
        let mut client = server.client();
        client.send(&Request::get(&target).bytes());
        let _ = client.read_head();
        return;
    }
    server.get(&target);
}

fn connections(server: &Server) -> u64 {
    let told = ask(server, "/rule?name=connections");
    told.as_u64().unwrap_or_else(|| panic!("a number: {told}"))
}

#[test]
fn ended_tasks_leave_no_state() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).start();
        ask(&server, "/rule?name=keys");
        let before = open(&server);
        let mut mapped = 0;
        for how in ENDS {
            for _ in 0..ROUNDS {
                end(&server, how);
            }
            mapped = mapped.max(stacks(&server));
        }
        for how in ["limit", "abort"] {
            end(&server, how);
        }
        nothing_is_left(&server, model, &before);
        assert!(stacks(&server) <= mapped + 40, "{model}: stacks of tasks stay mapped");
        server.stop();
    }
}

fn nothing_is_left(server: &Server, model: &str, before: &[String]) {
    eventually(&format!("{model}: all connections are closed"), || {
        (connections(server) <= 2).then_some(())
    });
    eventually(&format!("{model}: the worker holds nothing"), || {
        ask(server, "/rule?name=keys");
        (open(server) == before).then_some(())
    });
}

/// The server's own timeout ends the request during a wait, together with its tasks.
#[test]
fn request_over_timeout_ends_its_tasks() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).args(["--response-timeout", "1s"]).start();
        // On a busy machine the first request may exceed the timeout.
        eventually("a request in time", || {
            (server.get("/rule?name=keys").status == 200).then_some(())
        });
        let response = server.get("/end?how=overtime");
        assert_eq!(response.status, 504, "{model}: {}", response.text());
        server.wait_for_log("This request exceeded its time limit");
        eventually(&format!("{model}: all connections are closed"), || {
            (connections(&server) <= 2).then_some(())
        });
        server.stop();
    }
}
