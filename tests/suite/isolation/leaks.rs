//! Each item of tests/apps/isolation/items: look, leak, look again.
//!
//! After a rollback the second look must see the same as the first. The resident model has no
//! rollback, so there the leak must be visible. Otherwise the test would prove nothing.

use crate::isolation::stage;
use crate::isolation::stage::{ask, json, reforks};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start};
use serde_json::{Value, json};
use std::fmt;

/// A lower number would mean that this PHP lacks half of its extensions.
const ITEMS_MIN: usize = 150;

/// Permanent changes of a request to its process.
const STAINS: &[&str] = &[
    "alarm",
    "groups",
    "limit",
    "name",
    "namespace",
    "no-new-privileges",
    "priority",
    "root",
    "session",
    "signal-mask",
    "signal-pending",
    "user",
];

const UPLOAD: &str = "--b\r\n\
    Content-Disposition: form-data; name=\"file\"; filename=\"tea\"\r\n\r\n\
    green\r\n--b--\r\n";

/// Without a rollback, all leaks are held at the same time and need more memory.
fn start(front: &str) -> Start {
    stage::start(front).define("memory_limit", "512M")
}

struct Item {
    name: String,
    /// Whether the resident model keeps the state; otherwise its reset removes it.
    kept: bool,
    /// Whether a new process must take over; `None` if both results are correct.
    refork: Option<bool>,
}

/// Value that an item saw, with its process and request.
#[derive(Clone)]
struct Sight {
    value: Value,
    pid: i64,
    request: i64,
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}, its request {})", self.value, self.pid, self.request)
    }
}

#[test]
fn checkpoint_leaves_no_state() {
    rolled_back(start("checkpoint.php"));
}

#[test]
fn rolled_back_handler_leaves_no_state() {
    rolled_back(start("rollback.php"));
}

#[test]
fn checkpoint_on_old_kernel_leaves_no_state() {
    rolled_back(start("checkpoint.php").without_pagemap_scan());
}

#[test]
fn checkpoint_without_opcache_leaves_no_state() {
    rolled_back(start("checkpoint.php").define("opcache.enable", "0"));
}

#[test]
fn checkpoint_with_jit_leaves_no_state() {
    let start = start("checkpoint.php").define("opcache.jit_buffer_size", "16M");
    rolled_back(start.define("opcache.jit", "function"));
}

#[test]
fn each_leak_is_visible_without_rollback() {
    let server = start("resident.php").workers(1).start();
    let (broken, items): (Vec<_>, Vec<_>) =
        items(&server).into_iter().partition(|item| item.refork != Some(false));
    let mut wrong: Vec<_> = items.iter().filter_map(|item| unlike(&server, item)).collect();
    for item in broken {
        // After these no other item can be tested in the same process.
        let server = start("resident.php").workers(1).start();
        wrong.extend(unlike(&server, &item));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn rolled_back(start: Start) {
    let server = start.workers(1).start();
    let wrong = all_wrong(&server);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let status = server.status();
    assert_eq!(status["worker_restarts_total"], 0, "{status}");
    assert_eq!(status["image"]["mode"], "shared", "{status}");
    server.stop();
}

fn all_wrong(server: &Server) -> Vec<String> {
    let items = items(server);
    // One-time actions of a worker are done before the first look.
    ask(server, "/all");
    let all = ask(server, "/all")["value"].clone();
    items.iter().flat_map(|item| left(server, item, &all)).collect()
}

fn items(server: &Server) -> Vec<Item> {
    println!("not tried: {}", ask(server, "/missing")["value"]);
    let response = ask(server, "/items");
    let traits = response["value"].as_object().expect("items by name");
    let item = |(name, traits): (&String, &Value)| Item {
        name: name.clone(),
        kept: traits["resident"] == "kept",
        refork: traits["refork"].as_bool(),
    };
    let items: Vec<_> = traits.iter().map(item).collect();
    assert!(items.len() >= ITEMS_MIN, "{} items", items.len());
    items
}

fn see(server: &Server, what: &str, item: &Item) -> Sight {
    let response = server.get(&format!("/{what}?item={}", item.name));
    let body = serde_json::from_slice(&response.body).unwrap_or_else(|_| json!(response.text()));
    Sight {
        value: json!([body.get("value").unwrap_or(&body), response.all("x-leak")]),
        pid: body["pid"].as_i64().unwrap_or(-1),
        request: body["request"].as_i64().unwrap_or(-1),
    }
}

/// Faults of an item where each request is rolled back.
fn left(server: &Server, item: &Item, all: &Value) -> Vec<String> {
    let former_reforks = reforks(server);
    let before = see(server, "look", item);
    let leak = see(server, "leak", item);
    let after = see(server, "look", item);
    let mut wrong = Vec::new();
    let mut expect = |right: bool, what: &str| {
        if !right {
            wrong.push(format!("{}: {what}: {before} → {leak} → {after}", item.name));
        }
    };
    expect(before.value == after.value, "it leaks");
    expect(leak.value != before.value, "it does nothing");
    expect([before.request, leak.request, after.request] == [1, 1, 1], "not its first request");
    if item.refork == Some(true) {
        expect(before.pid != after.pid, "the same process");
        expect(reforks(server) > former_reforks, "not counted");
    } else if item.refork == Some(false) {
        expect(before.pid == after.pid, "another process");
    }
    wrong.extend(left_of_others(server, item, all));
    wrong
}

/// Leaks that other items see.
fn left_of_others(server: &Server, item: &Item, all: &Value) -> Vec<String> {
    let now = ask(server, "/all")["value"].clone();
    let values = all.as_object().expect("values by name").iter();
    let changed = values.filter(|(name, value)| now[name.as_str()] != **value);
    changed
        .map(|(name, value)| {
            format!("{} leaks into {name}: {value} became {}", item.name, now[name.as_str()])
        })
        .collect()
}

/// Whether a worker of any model takes no further request after this item
/// (crates/worker/csrc/rollback/taint.c).
fn is_stain(item: &Item) -> bool {
    item.name.strip_prefix("kernel/").is_some_and(|name| STAINS.contains(&name))
}

/// Fault of an item without rollback. The leak must be visible in the request that makes it, and in
/// the next one, unless no request may run in such a process.
fn unlike(server: &Server, item: &Item) -> Option<String> {
    let before = see(server, "look", item);
    let leak = see(server, "leak", item);
    let after = see(server, "look", item);
    let is_other = after.pid != leak.pid;
    let what = match (item.kept, before.value == after.value) {
        _ if leak.value == before.value => "it does nothing",
        (_, false) if is_stain(item) => "the next request meets it",
        (_, true) if is_stain(item) && !is_other => "the process takes another request",
        (_, true) if is_stain(item) => return None,
        (true, true) => "the leak is not real",
        (false, false) => "the reset leaves it",
        _ if before.request >= after.request => "not the same process",
        _ => return None,
    };
    Some(format!("{}: {what}: {before} → {leak} → {after}", item.name))
}

#[test]
fn uploads_are_removed_after_request() {
    for front in ["checkpoint.php", "rollback.php", "resident.php"] {
        let server = start(front).workers(1).start();
        let request = Request::post("/uploads", "multipart/form-data; boundary=b", UPLOAD);
        let sent = json(&server.client().request(&request))["value"].clone();
        let file = sent["sent"][0].as_str().expect("a temporary file").to_owned();
        assert_eq!(sent["is_uploaded"], true, "{front}: {sent}");
        assert_eq!(sent["folder"], json!([file]), "{front}: {sent}");
        // This file of the same name was not uploaded.
        std::fs::write(&file, "dirt").expect("it is gone, its folder is not");
        let after = ask(&server, &format!("/uploads?file={file}"))["value"].clone();
        assert_eq!(after["sent"], json!([]), "{front}: {after}");
        assert_eq!(after["is_uploaded"], false, "{front}: {after}");
        std::fs::remove_file(&file).expect("our own file");
        assert_eq!(ask(&server, &format!("/uploads?file={file}"))["value"]["folder"], json!([]));
    }
}
