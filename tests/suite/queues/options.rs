//! `pushMany()` with options of single jobs.

use super::{Site, figures, push, queue, wait_for_figure};
use serde_json::{Value, json};

/// Pushes with the named arguments of `pushMany()`.
const PUSHES: &str = "<?php
    $arguments = json_decode(file_get_contents('php://input'), true);
    try {
        echo json_encode(Samovar\\queue('work')->pushMany(...$arguments));
    } catch (Throwable $e) {
        echo json_encode([get_class($e), $e->getMessage()]);
    }
";

#[test]
fn single_jobs_have_their_own_options() {
    let site = Site::new(PUSHES);
    let server = site.start("workers = 1");
    queue(&server, &["pause", "work"]);
    let arguments = json!({
        "payloads": {
            "0": "first", "1": "once", "2": "twice", "a": "plain", "b": { "do": "throw" },
        },
        "attempts": 2,
        "options": {
            "0": { "priority": 7, "key": null },
            "1": { "key": "u", "uniqueFor": 60 },
            "2": { "key": "u", "uniqueFor": 60.5, "delay": 0.01 },
            "b": { "key": "k", "attempts": 1 },
        },
    });
    let ids = push(&server, "/", &arguments);
    let found: Vec<bool> = ids.as_array().expect("ids").iter().map(Value::is_i64).collect();
    assert_eq!(found, [true, true, false, true, true], "{ids}");
    queue(&server, &["resume", "work"]);
    wait_for_figure(&server, "done_total", 3);
    wait_for_figure(&server, "dead", 1);
    let ran: Vec<Value> = site.ran().iter().map(|job| json!([job[4], job[3]])).collect();
    let expected =
        json!([["first", null], ["once", "u"], ["plain", null], [{ "do": "throw" }, "k"]]);
    assert_eq!(json!(ran), expected);
    server.stop();
}

#[test]
fn wrong_options_throw_and_nothing_is_stored() {
    let site = Site::new(PUSHES);
    let server = site.start("");
    for (options, class, words) in [
        (json!([{ "kye": "k" }]), "ValueError", "no option kye"),
        (json!([["k"]]), "ValueError", "must have names"),
        (json!(["k"]), "TypeError", "must be an array, not string"),
        (json!([{ "key": 7 }]), "TypeError", "key of a job must be a string or null, not int"),
        (json!([{ "delay": "7" }]), "TypeError", "delay of a job must be a number of seconds"),
        (json!([{ "delay": -7 }]), "ValueError", "delay must be"),
        (json!([{ "priority": 1.5 }]), "TypeError", "priority of a job must be an integer"),
        (json!([{ "attempts": -1 }]), "ValueError", "attempts must not"),
        (json!([{ "uniqueFor": 7 }]), "ValueError", "needs a key"),
        (json!({ "2": { "key": "k" } }), "ValueError", "a key that payloads does not have"),
    ] {
        let thrown = push(&server, "/", &json!({ "payloads": [1, 2], "options": options }));
        assert_eq!(thrown[0], class, "{options}: {thrown}");
        assert!(thrown[1].as_str().is_some_and(|text| text.contains(words)), "{thrown}");
    }
    assert_eq!(figures(&server)["pushed_total"], 0);
    server.stop();
}
