//! `samovar includes`: files that the requests of each route include, and the start that all routes
//! share.

use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const INDEX: &str = "<?php
require __DIR__ . '/boot.php';
if ($_SERVER['REQUEST_URI'] === '/a') {
    new A();
} else {
    require __DIR__ . '/b.php';
}
echo 'ok';
";
const BOOT: &str = "<?php
spl_autoload_register(function ($class) { require __DIR__ . \"/$class.php\"; });
require __DIR__ . '/lib.php';
";

fn includes(server: &Server, flags: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("includes").arg("--control").arg(server.control()).args(flags);
    command.output().expect("the binary runs")
}

fn app(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, php) in files {
        fs::write(folder.path().join(name), php).expect("a file");
    }
    folder
}

/// Waits until this number of requests was recorded.
fn recorded(server: &Server, requests: u64, flags: &[&str]) -> Value {
    eventually("requests are recorded", || {
        let output = includes(server, &[&["--json"], flags].concat());
        let response: Value = serde_json::from_slice(&output.stdout).ok()?;
        (response["requests"] == requests).then_some(response)
    })
}

fn names(of: &Value) -> Vec<String> {
    let files = of["files"].as_array().expect("files");
    let name = |file: &Value| file["file"].as_str()?.rsplit('/').next().map(str::to_owned);
    files.iter().filter_map(name).collect()
}

#[test]
fn files_of_whole_scripts_are_listed_by_route() {
    let app = app(&[
        ("index.php", INDEX),
        ("boot.php", BOOT),
        ("lib.php", "<?php function lib() {}"),
        ("A.php", "<?php class A {}"),
        ("b.php", "<?php $end = hrtime(true) + 20_000_000; while (hrtime(true) < $end) {}"),
    ]);
    let server = Server::at(app.path().join("index.php")).workers(1).start();
    let output = includes(&server, &[]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.contains("no request was recorded yet"), "{why}");
    for path in ["/a", "/b", "/b", "/a"] {
        assert_eq!(server.get(path).text(), "ok");
    }
    // A worker records its first two requests.
    let all = recorded(&server, 2, &[]);
    assert_eq!(names(&all)[..3], ["index.php", "boot.php", "lib.php"], "{all:#}");
    let files = all["files"].as_array().expect("files");
    let find = |name: &str| {
        let found = files.iter().find(|f| f["file"].as_str().is_some_and(|f| f.ends_with(name)));
        found.unwrap_or_else(|| panic!("{name}: {all:#}"))
    };
    let (class, file) = (find("/A.php"), find("/b.php"));
    assert_eq!((&class["class"], &class["requests"]), (&"A".into(), &1.into()), "{all:#}");
    assert!(file["place"].as_str().is_some_and(|p| p.ends_with("/index.php:6")), "{all:#}");
    assert!(file["own_ns"].as_u64() >= Some(20_000_000), "{all:#}");
    assert_eq!(all["warmup"][0], "/b", "{all:#}");
    let at = |file: usize| files[file]["at_ns"].as_u64().expect("a time");
    assert!(at(0) < at(1) && at(1) < at(2), "{all:#}");
    let shared = &all["shared"];
    let best = &shared["candidates"][0];
    assert!(best["file"].as_str().is_some_and(|f| f.ends_with("/boot.php")), "{shared:#}");
    assert_eq!((&best["files"], &shared["files_shared"]), (&3.into(), &3.into()));
    let one = recorded(&server, 2, &["--route", "/b"]);
    assert_eq!(names(&one), ["index.php", "boot.php", "lib.php", "b.php"], "{one:#}");
    let text = String::from_utf8_lossy(&includes(&server, &[]).stdout).into_owned();
    assert!(text.contains("2 requests were recorded") && text.contains("/A.php  for A"), "{text}");
    let output = includes(&server, &["--route", "/c"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("`/c`") && why.contains("hint: recorded routes: /a, /b"), "{why}");
}

#[test]
fn files_of_boot_and_of_requests_after_checkpoint_are_listed() {
    let index = "<?php require __DIR__ . '/early.php'; Samovar\\checkpoint(); require __DIR__ . \
                 '/late.php'; echo 'ok';";
    let app = app(&[("index.php", index), ("early.php", "<?php"), ("late.php", "<?php")]);
    let server = Server::at(app.path().join("index.php")).workers(1).start();
    assert_eq!(server.get("/x").text(), "ok");
    let boot = recorded(&server, 1, &["--route", "(boot)"]);
    assert!(names(&boot).contains(&"early.php".to_owned()), "{boot:#}");
    let request = recorded(&server, 1, &["--route", "/x"]);
    assert_eq!(names(&request), ["late.php"], "{request:#}");
}

/// A script that ends early, fails, or forks must not leave an open record.
#[test]
fn scripts_that_end_in_unusual_ways_are_recorded() {
    let index = "<?php require __DIR__ . '/lib.php';
switch ($_SERVER['REQUEST_URI']) {
    case '/exit': exit('ok');
    case '/fatal': undefined_function();
    default: require __DIR__ . '/missing.php';
}";
    let app = app(&[("index.php", index), ("lib.php", "<?php")]);
    let server = Server::at(app.path().join("index.php")).workers(1).start();
    assert_eq!(server.get("/exit").text(), "ok");
    assert!(server.get("/fatal").text().contains("undefined_function"));
    let all = recorded(&server, 2, &[]);
    assert_eq!(names(&all), ["index.php", "lib.php"], "{all:#}");
    assert!(server.get("/").text().contains("missing.php"));
    assert_eq!(server.get("/exit").text(), "ok");
}
