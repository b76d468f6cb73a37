//! A libphp other than the installed one (`php_engine`). A copy of the installed file is sufficient
//! for the server's part. The tests do not run `make php-engine`, which takes minutes.

use samovar_testkit::{Server, binary, eventually, workspace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Prints whether PHP and its child programs can see how libphp was loaded, and checks that pages
/// work.
const PAGE: &str = r"<?php
    $booted = array_sum(range(1, 100));
    Samovar\checkpoint();
    echo json_encode([
        $booted, getenv('LD_PRELOAD'), $_ENV['LD_PRELOAD'] ?? null,
        shell_exec('echo $LD_PRELOAD'), mt_rand(),
    ]);
";

fn worker() -> PathBuf {
    binary().with_file_name("samovar-php")
}

/// Facts that a worker reports about the given libphp.
fn facts(engine: Option<&Path>) -> Value {
    let mut command = Command::new(worker());
    command.arg("--engine").envs(engine.map(|engine| ("LD_PRELOAD", engine)));
    serde_json::from_slice(&command.output().expect("the worker runs").stdout).expect("JSON")
}

fn installed() -> PathBuf {
    facts(None)["file"].as_str().expect("a path").into()
}

/// A copy of the installed libphp with some texts replaced. Each new text is at most as long as the
/// old one.
fn copy(folder: &Path, name: &str, texts: &[(&[u8], &[u8])]) -> PathBuf {
    let mut bytes = std::fs::read(installed()).expect("libphp");
    for (from, to) in texts {
        let at = bytes.windows(from.len()).position(|window| window == *from);
        let at = at.unwrap_or_else(|| panic!("{} is in libphp", String::from_utf8_lossy(from)));
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    let file = folder.join(name);
    std::fs::write(&file, bytes).expect("our own folder");
    file
}

fn text(path: &Path) -> String {
    path.to_str().expect("our own name").to_owned()
}

fn folder() -> TempDir {
    TempDir::with_prefix("samovar-engine-").expect("a temporary folder")
}

fn check(engine: &Path) -> Output {
    let mut command = Command::new(binary());
    command.arg("check").arg(workspace().join("examples/hello/public"));
    command.args(["--listen", "127.0.0.1:0", "--allow-root", "--php-engine"]).arg(engine);
    command.output().expect("the binary runs")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn configured_libphp_is_used_by_workers() {
    let folder = folder();
    let engine = copy(folder.path(), "libphp-of-our-own.so", &[]);
    let start = Server::script(PAGE).workers(1).relinked();
    let server = start.args(["--php-engine", &text(&engine)]).start();
    let mut drawn = Vec::new();
    for _ in 0..3 {
        let said: Value = serde_json::from_str(&server.get("/").text()).expect("JSON");
        let (seen, random) = said.as_array().expect("an array").split_at(4);
        assert_eq!(Value::from(seen), serde_json::json!([5050, false, null, "\n"]));
        drawn.push(random[0].clone());
    }
    // The seed comes from the worker's own function, which replaces libphp's.
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2], "a rollback gives the same: {drawn:?}");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", server.worker_pid()));
    let maps = maps.expect("a worker's memory");
    let files: Vec<_> = maps.lines().filter(|line| line.contains("libphp")).collect();
    assert!(files.iter().all(|line| line.ends_with(&text(&engine))), "{files:#?}");
    assert!(!files.is_empty());
    let status = server.status();
    assert_eq!(status["engine"]["file"], text(&engine));
    assert_eq!(status["php"], facts(None)["php"]);
    assert_eq!(
        status["linking"]["state"],
        if cfg!(target_arch = "x86_64") { "direct" } else { "off" }
    );
    let shown =
        Command::new(binary()).arg("status").arg("--control").arg(server.control()).output();
    let shown = words(&shown.expect("the binary runs"));
    assert!(shown.contains(&format!(" in {}", text(&engine))), "{shown}");

    // A missing or replaced file fails a reload, and has no other effect.
    std::fs::write(folder.path().join("new"), "no library").expect("our own folder");
    std::fs::rename(folder.path().join("new"), &engine).expect("our own folder");
    let why = server.reload().expect_err("it is no library");
    assert!(why.contains("as the PHP engine"), "{why}");
    assert_eq!(server.get("/").status, 200);
    std::fs::remove_file(&engine).expect("our own file");
    let why = server.reload().expect_err("it is gone");
    assert!(why.contains("does not exist"), "{why}");
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn installed_libphp_needs_no_setting() {
    let server = Server::script(PAGE).workers(1).start();
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.status()["engine"], Value::Null);
}

#[test]
fn incompatible_libphp_is_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("words.so"), "these are words, and no library").expect("our own folder");
    std::fs::write(at("other.c"), "int tea(void) { return 1; }").expect("our own folder");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC"]).arg(at("other.c")).arg("-o").arg(at("other.so"));
    assert!(compiler.status().expect("a C compiler").success());
    let told = facts(None);
    let (php, api) = (told["php"].as_str().expect("a text"), told["api"].as_str().expect("a text"));
    let version = format!("X-Powered-By: PHP/{php}");
    let older = format!("{}0", &version[..version.len() - 1]);
    let threads = api.replace("NTS", "XTS");
    let older = copy(folder.path(), "older.so", &[(version.as_bytes(), older.as_bytes())]);
    let threads = copy(folder.path(), "threads.so", &[(api.as_bytes(), threads.as_bytes())]);
    // The replacement for `libphp.so` has the same length, so that it overwrites no other name.
    let named = copy(folder.path(), "libphp-named.so", &[(b"\0libphp.so\0", b"\0libtea.so\0")]);
    for (engine, why) in [
        (at("no-such.so"), &["does not exist"][..]),
        (at(""), &["is not a file"]),
        (at("words.so"), &["cannot be preloaded", "PHP was loaded from `", "hint: "]),
        (at("other.so"), &["PHP was loaded from `", "hint: "]),
        (older, &["its PHP is ", "this worker was built for ", "hint: "]),
        (threads, &["it is built as `", "hint: "]),
        (named, &["was loaded too", "hint: "]),
    ] {
        let said = check(&engine);
        let words = words(&said);
        assert!(!said.status.success(), "{}: {words}", engine.display());
        for word in why {
            assert!(words.contains(word), "{}: `{word}` is missing in:\n{words}", engine.display());
        }
    }
    let (code, log) = Server::at(workspace().join("examples/hello/public"))
        .args(["--php-engine", &text(&at("other.so"))])
        .refuse();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("as the PHP engine"), "{log}");
}

/// Debian's security updates do not change PHP's version number.
#[test]
fn engine_older_than_installed_libphp_is_reported() {
    const LONG: &[u8] = b"This program is free software; you can redistribute it and/or modify";
    let folder = folder();
    let of = |beside: &str| format!("samovar-php-engine: 8.2.0-1 beside {beside}\0").into_bytes();
    let built = facts(None)["build_id"].as_str().expect("a text").to_owned();
    assert!(built.len() >= 16, "libphp has a build id: {built}");
    let former = copy(folder.path(), "former.so", &[(LONG, &of("0123abcd"))]);
    let said = check(&former);
    let shown = words(&said);
    assert!(said.status.success(), "it is a warning: {shown}");
    for word in ["warning  engine: ", "built from 8.2.0-1", "was replaced since", "make php-engine"]
    {
        assert!(shown.contains(word), "`{word}` is missing in:\n{shown}");
    }
    let server = Server::at(workspace().join("examples/hello/public"))
        .workers(1)
        .args(["--php-engine", &text(&former)])
        .start();
    server.wait_for_log("php_engine: the installed libphp ");
    assert_eq!(server.status()["engine"]["source"], "8.2.0-1");
    for (name, stamp) in [("current.so", Some(of(&built))), ("copy.so", None)] {
        let stamp = stamp.as_deref().map(|stamp| (LONG, stamp));
        let said = words(&check(&copy(folder.path(), name, stamp.as_slice())));
        assert!(said.contains("ok       engine: "), "{name}: {said}");
    }
}

/// An engine binds its own symbols at link time, except those that the worker also defines.
#[test]
fn engine_recipe_lists_symbols_replaced_by_worker() {
    let names = |file: &Path| {
        let mut command = Command::new("nm");
        command.args(["-D", "--defined-only", "--format=posix"]).arg(file);
        let listed = String::from_utf8(command.output().expect("binutils").stdout).expect("names");
        let names = listed.lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    let both: Vec<_> = names(&worker()).intersection(&names(&installed())).cloned().collect();
    let list = workspace().join("scripts/php-engine/own.list");
    let list = std::fs::read_to_string(list).expect("the recipe");
    let listed: Vec<_> = list
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|n| *n != "}")
        .collect();
    assert_eq!(both, listed, "scripts/php-engine/own.list");
    // A variable with a copy in the program would differ from the engine's variable.
    let relocations = Command::new("readelf").arg("-rW").arg(worker()).output();
    let relocations = String::from_utf8_lossy(&relocations.expect("binutils").stdout).into_owned();
    assert!(!relocations.contains("_COPY"), "the worker has copies of libphp's variables");
}

#[test]
fn enabled_jit_is_warned_about() {
    let folder = folder();
    let own = folder.path().join("99-own.ini");
    std::fs::write(&own, "opcache.jit = 1255\nopcache.jit_buffer_size = 16M\n").expect("our own");
    let (own, room) = (text(&own), "opcache.jit_buffer_size=16M");
    let scanned = format!(":{}", folder.path().display());
    for (flags, scanned, mode) in [
        (&[][..], None, None),
        (&["-d", "opcache.jit=tracing"], None, None),
        (&["-d", room, "-d", "opcache.jit=off"], None, None),
        (&["-d", room, "-d", "opcache.jit=tracing"], None, Some("tracing")),
        // Debian's file for opcache is read after this one, and sets `off`.
        (&["--php-ini", &own], None, None),
        (&[], Some(&scanned), Some("1255")),
        (&["-d", "opcache.jit=disable"], Some(&scanned), None),
        (&["-d", "opcache.enable=0"], Some(&scanned), None),
    ] {
        let scanned = scanned.map_or("", |folder| folder);
        let mut command = Command::new(binary());
        command.arg("check").arg(workspace().join("examples/hello/public")).args(flags);
        command.args(["--listen", "127.0.0.1:0", "--allow-root"]).env("PHP_INI_SCAN_DIR", scanned);
        if scanned.is_empty() {
            command.env_remove("PHP_INI_SCAN_DIR");
        }
        let checked = words(&command.output().expect("the binary runs"));
        let mut server = Server::script(PAGE).workers(1);
        if !scanned.is_empty() {
            server = server.env("PHP_INI_SCAN_DIR", scanned);
        }
        let server = flags.iter().fold(server, |server, flag| server.args([*flag])).start();
        assert_eq!(server.get("/").status, 200);
        assert_eq!(told_mode(&checked).as_deref(), mode, "{flags:?} {scanned}: {checked}");
        match mode {
            Some(mode) => eventually("the log says so, too", || {
                told_mode(&server.log()).filter(|told| told == mode).map(drop)
            }),
            // A warning would have been logged before the first worker started.
            None => assert_eq!(told_mode(&server.log()), None, "{flags:?} {scanned}"),
        }
    }
}

/// JIT mode named by a warning in this text.
fn told_mode(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("(`opcache.jit=")?;
    rest.split_once('`').map(|(mode, _)| mode.to_owned())
}
