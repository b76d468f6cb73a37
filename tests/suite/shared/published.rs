//! Values that all workers read in place: unchanged since publication, replaced as a whole, and
//! kept for workers that are reading them.

use super::{MODELS, ask, crowd, number};
use samovar_testkit::SetOnDrop;
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually, workspace};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

fn start(model: &str) -> Start {
    at(Server::app("published"), model)
}

fn at(start: Start, model: &str) -> Start {
    let start = start.workers(3).env("MODEL", model);
    if model == "script" { start.args(["--disable-checkpoint"]) } else { start }
}

fn of_published(server: &Server, key: &str) -> i64 {
    number(&server.status()["shared"][key])
}

#[test]
fn published_value_is_read_unchanged() {
    for model in MODELS {
        let server = start(model).start();
        for _ in 0..3 {
            let same = ask(&server, "/everything");
            assert_eq!(same, json!([true, true, true, true, 500_500]), "{model}");
        }
        for response in crowd(&server, "/again", 3, 5) {
            assert_eq!(response, json!(true), "{model}");
        }
        assert_eq!(ask(&server, "/scalars"), json!([true, true, true, true, true, true, true]));
        assert_eq!(ask(&server, "/set?n=7"), json!([null, 7]), "{model}");
        let responses = crowd(&server, "/get", 6, 10);
        assert!(responses.iter().all(|response| response[0] == json!(7)), "{model}: all see it");
        assert_eq!(ask(&server, "/withdraw"), json!([null, null]), "{model}");
        assert_eq!(ask(&server, "/get")[0], json!(null), "{model}");
        // An equal value is no change: booted workers publish the same values as the others.
        let before = of_published(&server, "published_changes_total");
        ask(&server, "/everything");
        assert_eq!(of_published(&server, "published_changes_total"), before, "{model}");
    }
}

#[test]
fn request_keeps_published_value_it_started_with() {
    for model in MODELS {
        let server = start(model).start();
        ask(&server, "/set?n=1");
        for n in 2..6 {
            let response = ask(&server, &format!("/within?n={n}&at={}", server.address()));
            assert_eq!(response, json!([n - 1, n - 1, n]), "{model}");
            assert_eq!(ask(&server, "/get")[0], json!(n), "{model}: the next one sees the new one");
        }
    }
}

#[test]
fn rejected_value_reports_reason_and_place() {
    let server = start("script")
        .args(["--shared-published-value-bytes-max", "1M", "--shared-published-names-max", "20"])
        .start();
    let said = ask(&server, "/refusals");
    let check = |what: &str, class: &str, text: &str| {
        let found = said[what].as_str().unwrap_or_default();
        assert!(found.starts_with(class) && found.contains(text), "{what}: {found}");
    };
    check("object", "TypeError", "$value['a']['b'][1] is of type DateTime");
    check("closure", "TypeError", "$value is of type Closure");
    check("resource", "TypeError", "$value[3] is of type resource");
    check("reference", "TypeError", "$value['x'][0] is a reference");
    check("recursion", "TypeError", "$value['here'] is a reference");
    check("deep", "ValueError", "deeper than 128");
    check("no name", "ValueError", "1 to 256 bytes, not 0");
    check("long name", "ValueError", "not 257");
    check("large", "ValueError", "shared.published_value_bytes_max");
    check("long", "ValueError", "shared.published_value_bytes_max");
    assert_eq!(said["nothing of it"], json!(null));
    let names = ask(&server, "/names")[0].as_str().unwrap_or_default().to_owned();
    assert!(names.contains("RuntimeException") && names.contains("names_max"), "{names}");
    assert!(of_published(&server, "published_rejected_total") >= 3);
    assert_eq!(of_published(&server, "published_changes_total"), 20);
}

#[test]
fn killed_workers_leave_published_values_consistent() {
    for model in MODELS {
        // A small size, so that free memory is reused immediately. A resident worker frees nothing
        // during its life.
        let room = if model == "resident" { "1G" } else { "2M" };
        let server =
            start(model).env("BOOT", "no").args(["--shared-published-bytes-max", room]).start();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ends = SetOnDrop(&is_over);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        // A killed or starting worker has no expected response.
                        let response = server.get("/hammer");
                        assert!(response.status != 200 || response.text() == "[true]", "{model}");
                    }
                });
            }
            for _ in 0..6 {
                let before = of_published(&server, "published_changes_total");
                eventually("somebody publishes", || {
                    (of_published(&server, "published_changes_total") > before).then_some(())
                });
                if let Some(pid) = server.worker_pids().first() {
                    server.kill_worker(*pid);
                }
            }
        });
        assert_eq!(ask(&server, "/set?n=5"), json!([null, 5]), "{model}");
        assert_eq!(ask(&server, "/get")[0], json!(5), "{model}");
    }
}

/// A resident application may keep a value in a static variable, longer than any request.
#[test]
fn value_kept_by_resident_application_is_not_overwritten() {
    let server = start("resident").workers(1).args(["--shared-published-bytes-max", "4M"]).start();
    for n in 1..=4 {
        ask(&server, &format!("/set?n={n}"));
        ask(&server, "/keep");
    }
    // Enough to use the whole memory many times.
    let replaced = "/large?n=1";
    assert_eq!(ask(&server, replaced)[1], json!(20_000));
    assert_eq!(ask(&server, "/kept"), json!([1, 2, 3, 4]));
    assert!(of_published(&server, "published_stale_bytes") > 0, "it is held");
}

/// When such workers hold half of the memory, they are replaced, without a reload.
#[test]
fn workers_holding_too_much_memory_are_replaced() {
    let server = start("resident").args(["--shared-published-bytes-max", "2M"]).start();
    let mut pids = server.worker_pids();
    pids.sort_unstable();
    eventually("what is held is room again", || {
        for n in 0..4 {
            let response = server.get(&format!("/set?n={n}"));
            let _ = server.get(&format!("/large?n={}", n % 2));
            let _ = server.get("/replace");
            if response.status != 200 {
                return None;
            }
        }
        let mut now = server.worker_pids();
        now.sort_unstable();
        (of_published(&server, "published_changes_total") > 60).then_some(())
    });
}

#[test]
fn published_values_survive_deaths_and_reloads() {
    for model in MODELS {
        let app = copy_of(&workspace().join("tests/apps/published"));
        let server = at(Server::at(app.path()), model).start();
        ask(&server, "/set?n=3");
        for pid in server.worker_pids() {
            server.kill_worker(pid);
        }
        assert_eq!(ask(&server, "/get")[0], json!(3), "{model}");
        if model != "script" {
            let boot = json!({"of": "the boot"});
            assert_eq!(ask(&server, "/boot"), json!([boot, boot]), "{model}");
            ask(&server, "/replace?n=1");
            let now = json!({"of": "request 1"});
            // Free memory is reused immediately.
            for n in 10..20 {
                ask(&server, &format!("/set?n={n}"));
            }
            // A value read by the boot is unchanged in its variable.
            for response in crowd(&server, "/boot", 3, 4) {
                assert_eq!(response, json!([boot, now]), "{model}");
            }
        }
        ask(&server, "/set?n=3");
        server.reload().expect("the application boots");
        assert_eq!(ask(&server, "/get")[0], json!(3), "{model}");
        if model != "script" {
            let now = json!({"of": "request 1"});
            assert_eq!(ask(&server, "/boot"), json!([now, now]), "{model}: it boots with it");
        }
        // Memory held by the old generation is free again.
        eventually("nothing replaced is held", || {
            ask(&server, "/get");
            (of_published(&server, "published_stale_bytes") == 0).then_some(())
        });
    }
}

/// A value read by the boot stays for its workers. A thousand values published and replaced since
/// then do not.
#[test]
fn image_holds_only_values_it_has_read() {
    let server = start("checkpoint").args(["--shared-published-bytes-max", "1M"]).start();
    let boot = json!({"of": "the boot"});
    assert_eq!(ask(&server, "/boot"), json!([boot, boot]));
    for n in (0..1000).step_by(20) {
        assert_eq!(ask(&server, &format!("/churn?n={n}")), json!([0, n + 19]));
    }
    for pid in server.worker_pids() {
        server.kill_worker(pid);
    }
    assert_eq!(ask(&server, "/boot")[0], boot, "{}", server.log());
    eventually("only the boot's value is held", || {
        ask(&server, "/get");
        let held = of_published(&server, "published_stale_bytes");
        (0 < held && held < 2048).then_some(())
    });
    for response in crowd(&server, "/boot", 3, 4) {
        assert_eq!(response[0], boot);
    }
}

#[test]
fn files_are_published_at_start_and_reload() {
    let app = copy_of(&workspace().join("tests/apps/published"));
    let file = app.path().join("n.json");
    let write = |text: &str| std::fs::write(&file, text).expect("written");
    write(r#"{"n": 7, "5": [1.5, null], "deep": {"b": 1, "a": "é"}}"#);
    let publish = format!("n={}", file.display());
    let server =
        at(Server::at(app.path()), "checkpoint").args(["--shared-publish", &publish]).start();
    assert_eq!(ask(&server, "/get")[0], json!(7));
    assert_eq!(
        ask(&server, "/json"),
        json!(r#"{"n":7,"5":[1.5,null],"deep":{"b":1,"a":"\u00e9"}}"#)
    );
    for (text, why) in [(r#"{"n": "#, "not valid JSON"), ("[1] 2", "not valid JSON")] {
        write(text);
        let refused = server.reload().expect_err("the file is wrong");
        assert!(refused.contains(why) && refused.contains("n.json"), "{refused}");
        assert_eq!(ask(&server, "/get")[0], json!(7), "nothing has changed");
    }
    write(r#"{"n": 8}"#);
    server.reload().expect("the file is right");
    assert_eq!(ask(&server, "/get")[0], json!(8));
}

#[test]
fn forked_child_reads_published_values() {
    let server = start("script").extensions(&["pcntl", "posix"]).start();
    ask(&server, "/set?n=1");
    assert_eq!(ask(&server, "/fork"), json!([true]));
}

#[test]
fn published_values_are_in_status_and_metrics() {
    let server = start("checkpoint").args(["--admin", "127.0.0.1:0"]).start();
    ask(&server, "/set?n=1");
    for _ in 0..4 {
        ask(&server, "/get");
    }
    let status = server.status();
    let objects = status["shared"]["objects"].as_array().expect("a list");
    let find = |name: &str| -> &Value {
        let is_it = |object: &&Value| object["kind"] == "published" && object["name"] == name;
        objects.iter().find(is_it).expect("it is listed")
    };
    assert_eq!(find("n")["reads_total"], json!(5));
    assert!(number(&find("n")["bytes"]) >= 56, "{status}");
    assert_eq!(status["shared"]["published_bytes_max"], json!(64 << 20));
    let address =
        status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address");
    let metrics = Client::connect(address).request(&Request::get("/metrics")).text();
    for line in [
        "samovar_shared_published_reads_total{kind=\"published\",name=\"n\"} 5",
        "samovar_published_bytes_max 67108864",
        "samovar_published_rejected_total 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}
