//! Each item of tests/apps/isolation/items: look, leak, look again.
//!
//! Rolled back, the second look sees what the first saw. In the resident model, where nothing is
//! rolled back, the leak is real: or the test would prove nothing.

use crate::isolation::stage;
use crate::isolation::stage::{ask, json, reforks};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start};
use serde_json::{Value, json};
use std::fmt;

/// Fewer would mean that this PHP lacks half of its extensions.
const ITEMS_MIN: usize = 150;

/// What a request does to its process for good.
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

/// Where nothing is rolled back, all that was leaked is held at once.
fn start(front: &str) -> Start {
    stage::start(front).define("memory_limit", "512M")
}

struct Item {
    name: String,
    /// In the resident model: kept, or tidied away by the reset.
    kept: bool,
    /// Whether a new process must take over; `None`: either way is right.
    refork: Option<bool>,
}

/// What an item saw, and where.
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
fn nothing_is_left_below_a_checkpoint() {
    rolled_back(start("checkpoint.php"));
}

#[test]
fn nothing_is_left_by_a_handler_that_is_rolled_back() {
    rolled_back(start("rollback.php"));
}

#[test]
fn nothing_is_left_on_an_old_kernel() {
    rolled_back(start("checkpoint.php").without_pagemap_scan());
}

#[test]
fn nothing_is_left_without_opcache() {
    rolled_back(start("checkpoint.php").define("opcache.enable", "0"));
}

#[test]
fn nothing_is_left_of_compiled_functions() {
    let start = start("checkpoint.php").define("opcache.jit_buffer_size", "16M");
    rolled_back(start.define("opcache.jit", "function"));
}

#[test]
fn every_leak_is_real_where_nothing_is_rolled_back() {
    let server = start("resident.php").workers(1).start();
    let (broken, items): (Vec<_>, Vec<_>) =
        items(&server).into_iter().partition(|item| item.refork != Some(false));
    let mut wrong: Vec<_> = items.iter().filter_map(|item| unlike(&server, item)).collect();
    for item in broken {
        // These leave nothing that others could be tried on.
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
    // What a worker does once in its life, it has done.
    ask(server, "/all");
    let all = ask(server, "/all")["value"].clone();
    items.iter().flat_map(|item| left(server, item, &all)).collect()
}

fn items(server: &Server) -> Vec<Item> {
    println!("not tried: {}", ask(server, "/missing")["value"]);
    let answer = ask(server, "/items");
    let traits = answer["value"].as_object().expect("items by name");
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
    let answer = serde_json::from_slice(&response.body).unwrap_or_else(|_| json!(response.text()));
    Sight {
        value: json!([answer.get("value").unwrap_or(&answer), response.all("x-leak")]),
        pid: answer["pid"].as_i64().unwrap_or(-1),
        request: answer["request"].as_i64().unwrap_or(-1),
    }
}

/// What is wrong with an item where each request is rolled back.
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

/// A leak that another item sees than the one that made it.
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

/// Whether no worker of any model takes another request after it (crates/worker/csrc/rollback/stain.c).
fn is_stain(item: &Item) -> bool {
    item.name.strip_prefix("kernel/").is_some_and(|name| STAINS.contains(&name))
}

/// What is wrong with an item where nothing is rolled back. The leak is real: the request that makes it sees it, and so
/// does the next, unless it must not be run in such a process at all.
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
fn uploads_are_gone() {
    for front in ["checkpoint.php", "rollback.php", "resident.php"] {
        let server = start(front).workers(1).start();
        let request = Request::post("/uploads", "multipart/form-data; boundary=b", UPLOAD);
        let sent = json(&server.client().request(&request))["value"].clone();
        let file = sent["sent"][0].as_str().expect("a temporary file").to_owned();
        assert_eq!(sent["is_uploaded"], true, "{front}: {sent}");
        assert_eq!(sent["folder"], json!([file]), "{front}: {sent}");
        // Another file of that name was uploaded by nobody.
        std::fs::write(&file, "dirt").expect("it is gone, its folder is not");
        let after = ask(&server, &format!("/uploads?file={file}"))["value"].clone();
        assert_eq!(after["sent"], json!([]), "{front}: {after}");
        assert_eq!(after["is_uploaded"], false, "{front}: {after}");
        std::fs::remove_file(&file).expect("our own file");
        assert_eq!(ask(&server, &format!("/uploads?file={file}"))["value"]["folder"], json!([]));
    }
}
