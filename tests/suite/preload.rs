//! `samovar preload`: a preload file of the files that requests use, which loads without a warning
//! and changes no response, and a reason for each file that cannot be preloaded.

use crate::frameworks::laravel::Copy;
use samovar_testkit::copy::copy_of;
use samovar_testkit::{Server, binary, workspace};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const INDEX: &str = r"<?php
spl_autoload_register(function ($class) {
    $file = __DIR__ . '/src/' . strtr($class, '\\', '/') . '.php';
    if (is_file($file)) { require $file; }
});
require __DIR__ . '/functions.php';
$config = require __DIR__ . '/config.php';
if (!class_exists('Dynamic', false)) { eval('class Dynamic { public $n = 1; }'); }
require __DIR__ . '/src/Conditional.php';
if ($_SERVER['REQUEST_URI'] === '/rare') { new Rare(); }
require_once __DIR__ . '/cache/Container.php';
ob_start();
new App\Child();
new Alias();
new Printed();
new OfDynamic();
new OfOfDynamic();
ob_end_clean();
echo implode(' ', [$config['name'], helper(), class_exists('Alias2', false) ? 'alias' : 'no alias',
    (new App\Child())->hello(), App\Level::High->value]);
";

/// Name, content.
const FILES: &[(&str, &str)] = &[
    ("functions.php", "<?php function helper() { return 'helped'; }"),
    ("config.php", "<?php return ['name' => 'app'];"),
    ("src/App/Child.php", "<?php namespace App;\nfinal class Child extends Base { use Polite; }"),
    ("src/App/Base.php", "<?php namespace App;\nabstract class Base implements Greets {}"),
    ("src/App/Greets.php", "<?php namespace App;\ninterface Greets { function hello(); }"),
    (
        "src/App/Polite.php",
        "<?php namespace App;\ntrait Polite { function hello() { return 'hello'; } }",
    ),
    ("src/App/Level.php", "<?php namespace App;\nenum Level: string { case High = 'high'; }"),
    ("src/Alias.php", "<?php\nclass Alias {}\nclass_alias('Alias', 'Alias2');"),
    ("src/Conditional.php", "<?php\nif (!class_exists('Conditional')) { class Conditional {} }"),
    ("src/Printed.php", "<?php class Printed {} ?>\n\n<p>"),
    ("src/OfDynamic.php", "<?php class OfDynamic extends Dynamic {}"),
    ("src/OfOfDynamic.php", "<?php class OfOfDynamic extends OfDynamic {}"),
    ("src/Rare.php", "<?php class Rare {}"),
    ("cache/Container.php", "<?php class Container {}"),
];

fn app() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, php) in [("index.php", INDEX)].iter().chain(FILES) {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, php).expect("a file");
    }
    folder
}

fn preload(folder: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("preload").arg("index.php").args(flags).current_dir(folder);
    if samovar_testkit::is_root() {
        command.arg("--allow-root");
    }
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names(report: &Value, folder: &Path) -> Vec<String> {
    let files = report["files"].as_array().expect("files");
    let name = |file: &Value| {
        let file = file["file"].as_str().expect("a file").to_owned();
        file.trim_start_matches(&*folder.to_string_lossy()).to_owned()
    };
    files.iter().map(name).collect()
}

/// Starts a server with the preload file.
fn preloaded(folder: &Path) -> Server {
    let file = folder.join("preload.php");
    Server::at(folder.join("index.php"))
        .workers(1)
        .define("opcache.preload", &file.to_string_lossy())
        .define("opcache.preload_user", "root")
        .start()
}

#[test]
fn preload_file_has_parents_first_and_reason_for_each_other_file() {
    let app = app();
    let folder = fs::canonicalize(app.path()).expect("the folder");
    let urls = ["--urls", "/", "/a", "/rare", "--times", "2"];
    let output = preload(&folder, &[&urls[..], &["--json"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let files = names(&report, &folder);
    let at = |name: &str| {
        let found = files.iter().position(|file| file.ends_with(name));
        found.unwrap_or_else(|| panic!("{name}: {report:#}"))
    };
    assert!(at("/Greets.php") < at("/Base.php") && at("/Base.php") < at("/Child.php"));
    assert!(at("/Polite.php") < at("/Child.php"));
    let _both = (at("/Level.php"), at("/functions.php"));
    assert_eq!(files.len(), 6, "{report:#}");
    let reason = |name: &str| {
        let left = report["left_out"].as_array().expect("a list");
        let found = left.iter().find(|it| it["file"].as_str().is_some_and(|f| f.ends_with(name)));
        found.and_then(|it| it["reason"].as_str()).unwrap_or_default().to_owned()
    };
    for (name, why) in [
        ("/index.php", "line 2 runs code when the file is included: spl_autoload_register()"),
        ("/config.php", "line 1 returns a value"),
        ("/Alias.php", "line 3 runs code when the file is included: class_alias()"),
        ("/Conditional.php", "line 2 declares under a condition (`if`)"),
        ("/Printed.php", "line 1 prints: text outside of PHP"),
        ("/OfDynamic.php", "PHP: Warning: Can't preload unlinked class OfDynamic: Unknown parent"),
        (
            "/OfOfDynamic.php",
            "PHP: Warning: Can't preload unlinked class OfOfDynamic: Unknown parent",
        ),
        ("/Rare.php", "33 % of the requests include it"),
        ("/Container.php", "it is part of a cache"),
    ] {
        assert!(reason(name).starts_with(why), "{name}: `{}`", reason(name));
    }
    assert!(report["measured"]["gain"]["before_us"].as_f64() > Some(0.0), "{report:#}");
    assert!(report["measured"]["after"]["opcache_bytes"].as_u64() > Some(0), "{report:#}");

    let plain = Server::at(folder.join("index.php")).workers(1).start().get("/").text();
    assert_eq!(plain, "app helped alias hello high");
    let server = preloaded(&folder);
    assert_eq!([server.get("/").text(), server.get("/rare").text()], [&*plain, &*plain]);
    let written = fs::read_to_string(folder.join("preload.php")).expect("the preload file");
    assert!(written.contains("__DIR__ . '/src/App/Base.php', // 100 %"), "{written}");
    assert!(written.contains("class_alias()"), "{written}");
    let left: Vec<_> =
        fs::read_dir(&folder).expect("a folder").flatten().map(|f| f.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn preload_file_of_running_server_replaces_only_its_own_file() {
    let app = app();
    let folder = fs::canonicalize(app.path()).expect("the folder");
    let server = Server::at(folder.join("index.php")).workers(1).start();
    server.get("/");
    server.get("/rare");
    samovar_testkit::eventually("requests are recorded", || {
        let mut command = Command::new(binary());
        command.args(["includes", "--json", "--control"]).arg(server.control());
        let output = command.output().expect("the binary runs");
        let all: Value = serde_json::from_slice(&output.stdout).ok()?;
        (all["requests"] == 2).then_some(())
    });
    let control = server.control().display().to_string();
    let flags = ["--live", "--control", &control, "--times", "2", "--share", "0.4"];
    fs::write(folder.join("preload.php"), "<?php // by hand").expect("a file");
    let output = preload(&folder, &flags);
    let why = text(&output.stderr);
    assert!(!output.status.success() && why.contains("was not written by"), "{why}");
    fs::remove_file(folder.join("preload.php")).expect("it is ours");
    for _again in 0..2 {
        let output = preload(&folder, &flags);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("2 requests of 2 routes include 15 files"), "{said}");
        assert!(said.contains("7 files are preloaded by "), "{said}");
    }
}

/// Routes include one file or the other. PHP ends a request that declares a preloaded name again.
#[test]
fn names_that_two_files_declare_are_not_preloaded() {
    let app = tempfile::tempdir().expect("a folder");
    let index = "<?php $way = $_SERVER['REQUEST_URI'] === '/b' ? 'b' : 'a';
        require __DIR__ . '/Always.php'; require __DIR__ . \"/impl_$way.php\";
        require __DIR__ . \"/functions_$way.php\"; echo Impl::NAME, named();";
    for (name, php) in [
        ("index.php", index),
        ("Always.php", "<?php class Always {}"),
        ("impl_a.php", "<?php class Impl { const NAME = 'a'; }"),
        ("impl_b.php", "<?php class Impl { const NAME = 'b'; }"),
        ("functions_a.php", "<?php function named() { return 'a'; }"),
        ("functions_b.php", "<?php function named() { return 'b'; }"),
    ] {
        fs::write(app.path().join(name), php).expect("a file");
    }
    let flags = ["--times", "2", "--json", "--urls", "/a", "/b"];
    let output = preload(app.path(), &flags);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(names(&report, &fs::canonicalize(app.path()).expect("it")), ["/Always.php"]);
    let server = preloaded(app.path());
    assert_eq!([server.get("/a").text(), server.get("/b").text()], ["aa", "bb"]);
}

/// No plan knows about `eval()`.
#[test]
fn preload_file_that_breaks_a_request_is_not_written() {
    let app = tempfile::tempdir().expect("a folder");
    let index = "<?php if ($_SERVER['REQUEST_URI'] === '/b') { eval('class Impl {}'); }
        else { require __DIR__ . '/Impl.php'; } echo 'fine';";
    fs::write(app.path().join("index.php"), index).expect("a file");
    fs::write(app.path().join("Impl.php"), "<?php class Impl {}").expect("a file");
    let output = preload(app.path(), &["--times", "2", "--urls", "/a", "/b"]);
    let why = text(&output.stderr);
    assert!(!output.status.success() && !app.path().join("preload.php").exists(), "{why}");
    let status = "/b fails with the changes: status 500 instead of 200; ";
    assert!(why.contains(status) && why.contains("Cannot declare class Impl"), "{why}");
}

/// A release is often served through a link, and its successor has another folder.
#[test]
fn paths_are_relative_to_the_folder_that_a_link_names() {
    let app = app();
    let folder = fs::canonicalize(app.path()).expect("the folder");
    std::os::unix::fs::symlink(&folder, folder.join("current")).expect("a link");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let output = preload(&folder, &["--output", "pipe"]);
    let why = text(&output.stderr);
    assert!(!output.status.success() && why.contains("is no regular file"), "{why}");
    let output = preload(&folder, &["--output", "current/preload.php", "--times", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = fs::read_to_string(folder.join("preload.php")).expect("the preload file");
    assert!(written.contains("__DIR__ . '/src/App/Base.php'"), "{written}");
    assert!(!written.contains(&format!("    '{}", folder.display())), "{written}");
}

#[test]
fn application_without_declarations_has_nothing_to_preload() {
    let app = tempfile::tempdir().expect("a folder");
    fs::write(app.path().join("index.php"), "<?php echo 'ok';").expect("a file");
    let output = preload(app.path(), &["--times", "2"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(said.contains("nothing can be preloaded"), "{said}");
    assert!(!app.path().join("preload.php").exists());
}

/// The boot takes 10 ms, and both routes share it. A checkpoint after `same.php` would be later,
/// but the request has been read before.
#[test]
fn checkpoint_is_advised_after_shared_start() {
    let app = tempfile::tempdir().expect("a folder");
    let index = "<?php require __DIR__ . '/boot.php'; \
                 $path = $_SERVER['REQUEST_URI']; require __DIR__ . '/same.php'; \
                 require __DIR__ . ($path === '/a' ? '/a.php' : '/b.php');";
    let boot = "<?php $end = hrtime(true) + 10_000_000; while (hrtime(true) < $end) {}";
    for (name, php) in [
        ("index.php", index),
        ("boot.php", boot),
        ("a.php", "a"),
        ("b.php", "b"),
        ("same.php", "<?php"),
    ] {
        fs::write(app.path().join(name), php).expect("a file");
    }
    let flags = ["--checkpoint", "--times", "2", "--urls", "/a", "/b"];
    let output = preload(app.path(), &[&flags[..], &["--json"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let file = report["file"].as_str().unwrap_or_default();
    assert!(file.ends_with("/boot.php"), "{report:#}");
    let gain = report["measured"]["gain"]["percent"].as_f64();
    assert!(gain > Some(50.0), "{report:#}");
    let output = preload(app.path(), &["--checkpoint", "--urls", "/a"]);
    let said = text(&output.stdout);
    assert!(
        output.status.code() == Some(1) && said.contains("hint: pass several --urls"),
        "{said}"
    );
}

/// Writes a preload file for an application, and serves it with it: PHP warns about no file, and
/// the pages stay the same.
fn check_framework(folder: &Path, paths: &[&str], env: &[(&str, &str)]) {
    let mut command = Command::new(binary());
    command.args(["preload", "public/index.php", "--times", "2", "--json", "--urls"]).args(paths);
    if samovar_testkit::is_root() {
        command.arg("--allow-root");
    }
    let output = command.current_dir(folder).envs(env.iter().copied()).output();
    let output = output.expect("the binary runs");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let files = report["files"].as_array().expect("files");
    assert!(files.len() > 100, "{report:#}");
    assert_eq!(report["failures"], serde_json::json!([]));
    let start = |preloads: bool| {
        let mut start = Server::at(folder.join("public/index.php")).workers(1);
        for (name, value) in env {
            start = start.env(name, value);
        }
        if preloads {
            let file = folder.join("preload.php");
            start = start.define("opcache.preload", &file.to_string_lossy());
            start = start.define("opcache.preload_user", "root");
        }
        start.start()
    };
    let (plain, preloaded) = (start(false), start(true));
    for path in paths {
        let (before, after) = (plain.get(path), preloaded.get(path));
        assert_eq!((before.status, after.status), (200, 200), "{path}: {}", after.text());
        // Tokens differ in each response, also in their length.
        let page = |text: String| -> Vec<String> {
            text.lines().filter(|line| !line.contains("token")).map(str::to_owned).collect()
        };
        assert_eq!(page(before.text()), page(after.text()), "{path}");
    }
    let log = preloaded.log();
    assert!(!log.contains("PHP Warning") && !log.contains("preload"), "{log}");
}

#[test]
fn symfony_preload_file_loads_without_warning() {
    let copy = copy_of(&workspace().join("examples/symfony"));
    let paths = ["/message", "/api/square/12", "/countdown/2"];
    check_framework(copy.path(), &paths, &[("APP_ENV", "prod")]);
}

#[test]
fn laravel_preload_file_loads_without_warning() {
    let copy = Copy::new("file");
    check_framework(copy.path(), &["/", "/api/echo"], &[]);
}
