//! A database connection opened above the checkpoint: each worker has its own. State that a request
//! leaves on it or removes from it does not reach the next request.

use crate::response_isolation::differential::tail;
use samovar_testkit::MariaDb;
use samovar_testkit::{Server, eventually};

/// The path of the database's socket is in the environment, so it is known at boot.
const SCRIPT: &str = r#"<?php
mysqli_report(MYSQLI_REPORT_OFF);
$database = new mysqli(null, 'root', '', '', 0, getenv('DATABASE_SOCKET'));
$database->query('CREATE DATABASE IF NOT EXISTS tea');
$database->select_db('tea');
$database->query('CREATE TABLE IF NOT EXISTS cups (n INT) ENGINE=InnoDB');
Samovar\checkpoint();
switch ($_SERVER['REQUEST_URI']) {
    case '/ask':
        $found = $database->query("SELECT 'mine'");
        echo $found ? json_encode($found->fetch_all()) : $database->error;
        break;
    case '/sent':
        $database->query("SELECT SLEEP(0.05), 'secret'", MYSQLI_ASYNC);
        break;
    case '/half-read':
        $database->real_query("SELECT 'secret' UNION SELECT 2 UNION SELECT 3");
        $database->use_result()->fetch_row();
        exit;
    case '/transaction':
        $database->begin_transaction();
        $database->query('INSERT INTO cups VALUES (77)');
        exit;
    case '/count':
        echo $database->query('SELECT count(*) FROM cups')->fetch_row()[0];
        break;
    case '/close':
        $database->close();
        break;
    case '/id':
        echo $database->thread_id;
        break;
    case '/kill':
        $other = new mysqli(null, 'root', '', '', 0, getenv('DATABASE_SOCKET'));
        $other->query("KILL {$database->thread_id}");
        break;
}
"#;

fn start(database: &MariaDb, workers: usize) -> Server {
    let socket = database.socket().display().to_string();
    let start = Server::script(SCRIPT).workers(workers).env("DATABASE_SOCKET", &socket);
    let server = start.start();
    eventually("workers that have booted", || {
        let status = server.status();
        let is_booted = |w: &serde_json::Value| w["model"] == "checkpoint";
        status["workers"].as_array()?.iter().all(is_booted).then_some(())
    });
    server
}

#[test]
fn database_connection_is_kept_per_worker() {
    let database = MariaDb::start();
    let server = start(&database, 1);
    let id = server.get("/id").text();
    assert_eq!(server.get("/ask").text(), r#"[["mine"]]"#);
    assert_eq!(server.get("/id").text(), id, "no request has closed it");
    let status = server.status();
    assert_eq!(status["image"]["mode"], "worker", "{status}");
    let finding = &status["image"]["findings"][0];
    assert_eq!((&finding["kind"], &finding["action"]), (&"connection".into(), &"worker".into()));
    server.stop();
}

#[test]
fn connection_state_does_not_persist_into_next_request() {
    let database = MariaDb::start();
    let server = start(&database, 1);
    let mut wrong = Vec::new();
    for leaves in ["/sent", "/half-read", "/transaction", "/close", "/kill"] {
        server.get(leaves);
        let (response, count) = (server.get("/ask").text(), server.get("/count").text());
        if (response.as_str(), count.as_str()) != (r#"[["mine"]]"#, "0") {
            wrong.push(format!("after {leaves}: {response}, {count} cups"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), tail(&server.log()));
    server.stop();
}
