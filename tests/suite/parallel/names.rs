//! Tasks that resolve names: libc blocks meanwhile, and the other tasks continue nevertheless.

use crate::parallel::dns::Dns;
use crate::parallel::ends::open;
use crate::parallel::peers::{MODELS, ask};
use samovar_testkit::{Server, eventually};
use serde_json::{Value, json};

/// The same number as in `tests/apps/parallel/names.php`.
const JOBS: usize = 100;
/// Minimum number of concurrent queries, even on a busy machine. In a sequence it would be one.
const AT_ONCE: usize = 8;

fn names(server: &Server, what: &str) -> Value {
    ask(server, &format!("/names?what={}", what.replace(' ', "+")))
}

fn expected(i: usize) -> Value {
    match i % 4 {
        0 => json!(format!(".{i}")),
        1 => json!(format!("/{i}")),
        2 => json!(format!("n{i}")),
        _ => json!({"sin_port": 80, "sin_addr": format!("10.0.0.{i}")}),
    }
}

/// Child processes of the worker.
fn children(server: &Server) -> String {
    let pid = server.worker_pid();
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default()
}

#[test]
fn names_are_resolved_concurrently() {
    let Some(dns) = Dns::start() else {
        eprintln!("libc asks port 53 of /etc/resolv.conf alone: this needs root, and to mount");
        return;
    };
    for model in MODELS {
        let server = dns.asked_by(server(model)).start();
        dns.most_at_once();
        let told = names(&server, "jobs");
        for i in 0..JOBS {
            assert_eq!(told[i], expected(i), "{model} {i}: {told}");
        }
        let most = dns.most_at_once();
        assert!(most >= AT_ONCE, "{model}: {most} of {JOBS} at once");
        let told = names(&server, "alike");
        assert_eq!(told[0], told[1][0], "{model}");
        assert_eq!(told[0], told[1][1], "{model}");
        assert_eq!(told[0][0], "10.0.0.1", "{model}: {told}");
        let late = "Samovar\\TimeoutException";
        let cancelled = "Samovar\\CancelledException";
        assert_eq!(names(&server, "given up"), json!([late, cancelled, "10.0.0.1"]), "{model}");
        assert_eq!(names(&server, "not seen"), json!([["10.0.0.1", -1], 0]), "{model}");
        let told = names(&server, "killed");
        assert_eq!(told[0][0], "10.0.0.1", "{model}: {told}");
        assert_eq!(told[0][1], "10.0.0.2", "{model}: {told}");
        assert_eq!((&told[1], &told[2]), (&json!(["10.0.0.3"]), &json!([])), "{model}: {told}");
        let told = names(&server, "forked");
        assert_eq!(told, json!([["10.0.0.1", "child 10.0.0.2\n9"], []]), "{model}");
        assert_eq!(names(&server, "own"), json!(["10.0.0.7", true, []]), "{model}");
        server.stop();
    }
}

#[test]
fn name_resolution_stops_with_its_request() {
    let Some(dns) = Dns::start() else { return };
    for model in MODELS {
        let server = dns.asked_by(server(model)).start();
        names(&server, "own");
        let before = open(&server);
        for what in ["left", "exit", "fatal", "leaves its own"] {
            let response = server.get(&format!("/names?what={}", what.replace(' ', "+")));
            assert!(!response.text().contains("not reached"), "{model} {what}");
            eventually(&format!("{model} {what}: nobody is left"), || {
                (children(&server).is_empty() && open(&server) == before).then_some(())
            });
        }
        assert_eq!(names(&server, "own")[0], "10.0.0.7", "{model}");
        server.stop();
    }
}

fn server(model: &str) -> samovar_testkit::Start {
    let start = Server::app("parallel").workers(1).env("MODEL", model);
    if model == "script" { start.args(["--disable-checkpoint"]) } else { start }
}
