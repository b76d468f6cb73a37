//! Files are not rolled back: data that a request has written stays. Memory after a rollback must
//! not treat the older file as the current one. A database opened above the checkpoint is the
//! hardest case: the library caches its pages and locks it.

use crate::isolation::stage::{ask, start};
use samovar_testkit::Server;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Rows that two clients write concurrently.
const ROWS: usize = 400;

fn serve(journal: &str, workers: usize) -> Server {
    start("database.php").workers(workers).env("ISOLATION_JOURNAL", journal).start()
}

#[test]
fn database_opened_in_boot_has_all_rows_in_each_request() {
    for journal in ["delete", "truncate", "persist", "wal"] {
        let server = serve(journal, 2);
        // A database in WAL mode is always locked, so two processes cannot share it.
        let mode = if journal == "wal" { "worker" } else { "shared" };
        assert_eq!(server.status()["image"]["mode"], mode, "{journal}");
        std::thread::scope(|scope| {
            for client in 0..2 {
                let server = &server;
                scope.spawn(move || write(server, client, journal));
            }
        });
        let rows = ask(&server, "/count");
        assert_eq!(rows, json!([ROWS, ROWS, "ok", journal]), "{journal}");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{journal}");
    }
}

/// Each written row is visible to the next request, in any worker.
fn write(server: &Server, client: usize, journal: &str) {
    let mut connection = server.client();
    for n in 0..ROWS / 2 {
        let row = format!("{client}-{n}");
        let response = connection.get(&format!("/write?row={row}")).text();
        assert_eq!(response, "\"written\"", "{journal}");
        let seen = connection.get(&format!("/read?row={row}")).text();
        assert_eq!(seen, "\"1\"", "{journal}: {row}");
    }
}

#[test]
fn open_transaction_ends_with_its_request() {
    for journal in ["delete", "wal"] {
        for through in ["pdo", "sqlite3"] {
            let server = serve(journal, 2);
            for n in 0..4 {
                ask(&server, &format!("/leave?row={n}&through={through}"));
                let rows = ask(&server, "/count");
                assert_eq!(rows, json!([n, n, "ok", journal]), "{journal}, {through}");
                // Otherwise it would wait for the lock, and fail.
                let response = server.get(&format!("/write?row={n}")).text();
                assert_eq!(response, "\"written\"", "{journal}, {through}, {n}");
            }
        }
    }
}

#[test]
fn log_opened_in_boot_is_appended_to() {
    let server = start("database.php").workers(2).env("ISOLATION_JOURNAL", "delete").start();
    let lines: HashSet<String> = (0..50).map(|n| format!("line {n}")).collect();
    for line in &lines {
        ask(&server, &format!("/log?line={}", line.replace(' ', "%20")));
    }
    let log = ask(&server, "/logged");
    let logged = log.as_array().expect("lines").iter().filter_map(Value::as_str);
    assert_eq!(logged.map(str::to_owned).collect::<HashSet<_>>(), lines);
}
