//! A Redis that accepts connections but does not respond, and jobs with much output.

use super::shared::{ids, start};
use super::{PUSHES, RUNS, Site, eventually, figures, one, push, wait_for_figure};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Redis, family, kill};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;
/// Longer than any wait of the server.
const PATIENCE: Duration = Duration::from_mins(1);

/// Sends a request, and returns the connection that waits for its response.
fn send(server: &samovar_testkit::Server, target: &str) -> Client {
    let mut client = Client::try_connect(server.address(), PATIENCE).expect("a connection");
    let body = json!({ "payload": "uncertain" }).to_string();
    client.send(&Request::post(target, "application/json", body).bytes());
    client
}

fn text(mut client: Client) -> Value {
    let text = client.try_read(false).expect("a response").text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn stopped_redis_delays_only_pushes_and_fails_them_clearly() {
    let site = Site::new(&format!(
        "<?php
         if (isset($_GET['plain'])) {{ exit('plain'); }}
         if (isset($_GET['depth'])) {{
             try {{ echo json_encode(Samovar\\queue('work')->depth()); }}
             catch (Throwable $e) {{ echo json_encode([get_class($e), $e->getMessage()]); }}
             exit;
         }}
         {PUSHES}"
    ));
    std::fs::write(site.at("public/file.txt"), "a file").expect("a file");
    let redis = Redis::durable();
    let server = start(&site, &redis, "");
    let first = one(&server, &json!(1));
    wait_for_figure(&server, "done_total", 1);
    // A job that runs while Redis is stopped.
    let running = one(&server, &json!({ "do": "wait" }));
    site.wait_for(2);
    kill(redis.pid(), SIGSTOP);
    // One of two workers waits for the push.
    for target in ["/", "/?depth=1"] {
        let waiting = send(&server, target);
        for _ in 0..50 {
            assert_eq!(server.get("/?plain=1").text(), "plain");
            assert_eq!(server.get("/file.txt").text(), "a file");
        }
        let refused = text(waiting);
        assert_eq!(refused[0], "RuntimeException", "{refused}");
        let why = refused[1].as_str().unwrap_or_default();
        assert!(
            why.contains("did not respond in time") || why.contains("does not respond"),
            "{why}"
        );
    }
    // More pushes than workers.
    let waiting: Vec<Client> = (0..4).map(|_| send(&server, "/")).collect();
    assert_eq!(server.get("/file.txt").text(), "a file");
    for client in waiting {
        let refused = text(client);
        assert_eq!(refused[0], "RuntimeException", "{refused}");
    }
    assert_eq!(server.get("/?plain=1").text(), "plain");
    // Its result is stored when Redis is back.
    site.go();
    assert!(server.status()["health"].is_object());
    kill(redis.pid(), SIGCONT);
    let last = eventually("a push after the stop", || {
        push(&server, "/", &json!({ "payload": "last" })).as_i64()
    });
    let ran = eventually("the last job", || {
        Some(site.ran()).filter(|ran| ran.iter().any(|job| job[0] == last))
    });
    let certain: BTreeSet<i64> = [first, running, last].into();
    assert!(certain.is_subset(&ids(&ran).into_iter().collect()), "{ran:?}");
    wait_for_figure(&server, "ready", 0);
    wait_for_figure(&server, "running", 0);
    assert_eq!(figures(&server)["dead"], 0);
    server.stop();
}

/// The output of a job is discarded, and that on stderr is limited in the log.
#[test]
fn gigabyte_of_output_of_a_job_uses_no_memory() {
    let site = Site::new(&format!("<?php {PUSHES}"));
    let floods = RUNS.replace(
        "'throw' =>",
        "'flood' => (function () {
             for ($i = 0; $i < 1024; $i++) { echo str_repeat('x', 1 << 20); }
             ob_start();
             for ($i = 0; $i < 256; $i++) { echo str_repeat('x', 1 << 10); }
         })(),
         'throw' =>",
    );
    assert_ne!(floods, RUNS);
    std::fs::write(site.at("jobs/work.php"), floods).expect("a script");
    let server = site.start("workers = 1");
    one(&server, &json!(1));
    wait_for_figure(&server, "done_total", 1);
    let before = family::own_memory_bytes(server.pid()).expect("it runs");
    one(&server, &json!({ "do": "flood" }));
    wait_for_figure(&server, "done_total", 2);
    let after = family::own_memory_bytes(server.pid()).expect("it runs");
    assert!(after < before + (32 << 20), "{before} → {after}");
    assert_eq!(site.ran().len(), 2);
    server.stop();
}
