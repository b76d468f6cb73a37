//! `samovar boot`: reports known time and memory by file, lists files that requests still load, and
//! advises lines that prevent this.

use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A file whose own code takes 30 ms, one that keeps 5 MiB, and a class autoloader.
const BURN: &str = "<?php $end = hrtime(true) + 30_000_000; while (hrtime(true) < $end) {}";
const KEEP: &str = "<?php $GLOBALS['kept'] = str_repeat('x', 5 << 20);";
const AUTOLOAD: &str = "<?php
spl_autoload_register(function ($class) {
    $file = __DIR__ . \"/src/$class.php\";
    if (is_file($file)) { require $file; }
});
";
const MS: i64 = 1_000_000;

fn boot(server: &Server, flags: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("boot").arg("--control").arg(server.control()).args(flags);
    command.output().expect("the binary runs")
}

/// Waits for the report `{"boot": …, "lazy": …}`.
fn explained(server: &Server) -> Value {
    eventually("a boot that is told", || {
        let output = boot(server, &["--json"]);
        let response: Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(response["explained"].clone())
    })
}

fn text(server: &Server) -> String {
    String::from_utf8_lossy(&boot(server, &[]).stdout).into_owned()
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder.join("src")).expect("a folder");
    for (name, php) in files {
        fs::write(folder.join(name), php).expect("a file");
    }
}

/// Creates an application of these files; the front controller is `index.php`.
fn app(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), files);
    folder
}

fn of<'a>(list: &'a Value, key: &str, end: &str) -> Option<&'a Value> {
    let found = |row: &&Value| row[key].as_str().is_some_and(|name| name.ends_with(end));
    list.as_array()?.iter().find(found)
}

fn number(of: &Value, path: &str) -> i64 {
    of.pointer(path).and_then(Value::as_i64).unwrap_or_else(|| panic!("{path} of {of:#}"))
}

#[test]
fn boot_report_lists_time_and_memory_by_file() {
    let index = format!(
        "{AUTOLOAD}require __DIR__ . '/outer.php';\nnew Early();\nSamovar\\checkpoint();\necho \
         'ok';"
    );
    let app = app(&[
        ("index.php", &index),
        ("outer.php", "<?php require __DIR__ . '/burn.php'; require __DIR__ . '/keep.php';"),
        ("burn.php", BURN),
        ("keep.php", KEEP),
        ("src/Early.php", "<?php class Early {}"),
    ]);
    let server = Server::at(app.path().join("index.php")).workers(1).start();
    assert_eq!(server.get("/").text(), "ok");
    let explained = explained(&server);
    let boot = &explained["boot"];
    let files = &boot["files"];
    let file = |name: &str| of(files, "file", name).unwrap_or_else(|| panic!("{name}: {files:#}"));
    assert_eq!(number(boot, "/files_all"), 5, "{files:#}");
    assert!(number(file("/burn.php"), "/own/wall_ns") >= 30 * MS, "{files:#}");
    let kept = number(file("/keep.php"), "/own/bytes");
    assert!((5 << 20..6 << 20).contains(&kept), "{kept}");
    // An including file has the cost of the included ones in its total, and little of its own.
    let outer = file("/outer.php");
    assert!(number(outer, "/total/wall_ns") >= 30 * MS && number(outer, "/total/bytes") >= 5 << 20);
    assert!(number(outer, "/own/bytes") < 1 << 20, "{outer:#}");
    let inner: i64 =
        ["/burn.php", "/keep.php"].iter().map(|n| number(file(n), "/total/wall_ns")).sum();
    assert!(number(outer, "/total/wall_ns") >= inner, "{files:#}");
    assert_eq!(file("/src/Early.php")["class"], "Early");
    assert!(file("/burn.php")["place"].as_str().is_some_and(|at| at.ends_with("/outer.php:1")));
    // The parts add up to the whole, and the rehearsal has compiled all files.
    let parts = boot["parts"].as_array().expect("parts");
    for key in ["/cost/wall_ns", "/cost/cpu_ns", "/cost/bytes"] {
        let sum: i64 = parts.iter().map(|part| number(part, key)).sum();
        assert_eq!(sum, number(boot, &key.replace("/cost", "/all")), "{key}");
    }
    assert_eq!(number(boot, "/rehearsal/compiled"), 5);
    assert!(number(boot, "/rehearsal/all/wall_ns") >= 30 * MS);
    assert!(number(file("/src/Early.php"), "/cold_ns") > 0, "{files:#}");
    let said = text(&server);
    assert!(
        said.contains("/src/Early.php  for Early") && said.contains("prewarm boot before it"),
        "{said}"
    );
}

const LAZY: &str = "
if ($_SERVER['REQUEST_URI'] === '/lazy') {
    echo (new Lazy())->said();
    require_once __DIR__ . '/functions.php';
    echo added(1);
} else {
    echo 'plain';
}";

fn lazy_app(above: &str) -> tempfile::TempDir {
    app(&[
        ("index.php", &format!("{AUTOLOAD}{above}\nSamovar\\checkpoint();{LAZY}")),
        ("functions.php", "<?php function added($x) { return $x + 1; }"),
        ("src/Lazy.php", "<?php class Lazy { function said() { return 'lazy'; } }"),
    ])
}

/// Only few requests are observed once a worker is no longer new.
const BETWEEN_LOOKS: usize = 64;

/// Sends requests until at least `requests` of them were observed.
fn looked_at(server: &Server, requests: i64) -> Value {
    eventually("requests that were looked at", || {
        for _ in 0..BETWEEN_LOOKS {
            server.get("/lazy");
        }
        let lazy = explained(server)["lazy"].clone();
        (number(&lazy, "/requests") >= requests).then_some(lazy)
    })
}

#[test]
fn advised_warmup_lines_prevent_loading_in_requests() {
    let app = lazy_app("");
    // The files are new; without this setting opcache would not cache them for two seconds.
    let at = Server::at(app.path().join("index.php")).workers(1);
    let server = at.define("opcache.file_update_protection", "0").start();
    assert_eq!(server.get("/").text(), "plain");
    assert_eq!(server.get("/lazy").text(), "lazy2");
    let lazy = looked_at(&server, 5);
    let file = |lazy: &Value, name: &str| of(&lazy["files"], "file", name).cloned();
    let class = file(&lazy, "/src/Lazy.php").expect("the class's file");
    assert_eq!((&class["class"], &class["path"]), (&"Lazy".into(), &"/lazy".into()));
    assert_eq!(class["requests"], lazy["loading"]);
    assert_eq!(class["compiled"], 1, "opcache has it from then on");
    assert!(number(&class, "/cost/wall_ns") > 0);
    assert_eq!(lazy["classes"], lazy["loading"], "each has declared one");
    let advice = &lazy["advice"];
    assert_eq!(advice["setting"], r#"warmup = ["/lazy"]"#);
    assert_eq!(
        advice["classes"],
        r"Samovar\warmup(fn () => array_map('class_exists', [\Lazy::class]));"
    );
    let functions = app.path().canonicalize().expect("it is there").join("functions.php");
    let require = format!("require_once '{}';", functions.display());
    assert_eq!(advice["files"], serde_json::json!([require]));
    drop(server);

    // Both pieces of advice, copied literally.
    let setting = advice["setting"].as_str().expect("a line");
    let classes = advice["classes"].as_str().expect("a line");
    for (above, config) in [(require.clone(), setting), (format!("{require}\n{classes}"), "")] {
        let app = lazy_app(&above.replace(&*functions.to_string_lossy(), "functions.php"));
        let index = app.path().join("index.php");
        let server = Server::at(&index).workers(1).config(config).start();
        // Requests that load nothing are reported in batches.
        let lazy = looked_at(&server, 16);
        assert_eq!(
            (&lazy["loading"], &lazy["files"]),
            (&0.into(), &serde_json::json!([])),
            "{lazy:#}"
        );
        assert!(text(&server).contains("no file is left to warm up"));
        assert_eq!(server.get("/lazy").text(), "lazy2");
    }
}

#[test]
fn boot_report_exists_for_each_model_with_image() {
    let serve = |every: usize| {
        format!(
            "{AUTOLOAD}new Early();\nSamovar\\serve(function () {{ new Lazy(); echo 'ok'; }}, \
             {every});"
        )
    };
    for (index, requests) in [(serve(0), false), (serve(1), true), (serve(5), true)] {
        let classes =
            [("src/Early.php", "<?php class Early {}"), ("src/Lazy.php", "<?php class Lazy {}")];
        let app = app(&[&classes[..], &[("index.php", &*index)]].concat());
        let server = Server::at(app.path().join("index.php")).workers(1).start();
        assert_eq!(server.get("/").text(), "ok");
        let boot = explained(&server)["boot"].clone();
        assert!(of(&boot["files"], "file", "/src/Early.php").is_some(), "{boot:#}");
        if requests {
            let lazy = looked_at(&server, 30);
            let class = of(&lazy["files"], "class", "Lazy").expect("it is loaded below the image");
            // Only the first request after each return to the image loads the class; the following
            // ones already have it.
            let every = if index.contains("}, 5)") { 5 } else { 1 };
            let (loads, all) = (number(class, "/loads"), number(&lazy, "/requests"));
            assert!((all / every - 2..=all / every + 2).contains(&loads), "{lazy:#}");
        }
    }
    let server = Server::script("<?php echo 'whole';").workers(1).start();
    assert_eq!(server.get("/").text(), "whole");
    let refused = boot(&server, &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said.contains("no application has been booted before") && said.contains("hint: "),
        "{said}"
    );
}

#[test]
fn unusual_includes_before_checkpoint_keep_responses_correct() {
    // The checkpoint is two files deep. The files before it: one without code, one that is compiled
    // and not run, one that throws, one that fails to compile, one that returns from within a
    // fiber.
    let app = app(&[
        ("index.php", "<?php $n = 7; echo require __DIR__ . '/one.php'; echo \"<$n>\";"),
        (
            "one.php",
            "<?php
            try { include __DIR__ . '/throws.php'; } catch (Exception $e) { $n++; }
            try { include __DIR__ . '/broken.php'; } catch (ParseError $e) { $n++; }
            $fiber = new Fiber(function () { include __DIR__ . '/suspends.php'; });
            $fiber->start();
            function_exists('opcache_compile_file')
                && @opcache_compile_file(__DIR__ . '/compiled.php');
            include __DIR__ . '/empty.php';
            include __DIR__ . '/two.php';
            $fiber->resume();
            return 'one' . $n;",
        ),
        (
            "two.php",
            "<?php include __DIR__ . '/empty.php'; Samovar\\checkpoint(); include __DIR__ \
                     . '/below.php'; $n++;",
        ),
        (
            "below.php",
            "<?php if ($_SERVER['REQUEST_URI'] === '/exit') { exit('left'); } try { \
                       include __DIR__ . '/throws.php'; } catch (Exception $e) { echo 'caught '; \
                       }",
        ),
        ("throws.php", "<?php throw new Exception('thrown');"),
        ("broken.php", "<?php if (;"),
        ("suspends.php", "<?php Fiber::suspend(1); $GLOBALS['resumed'] = 1;"),
        ("compiled.php", "<?php function compiled() {}"),
        ("empty.php", "<?php"),
    ]);
    for opcache in ["1", "0"] {
        let index = app.path().join("index.php");
        let server = Server::at(index).workers(1).define("opcache.enable", opcache).start();
        for _ in 0..20 {
            assert_eq!(server.get("/").text(), "caught one10<10>");
            assert_eq!(server.get("/exit").text(), "left");
        }
        let lazy = looked_at(&server, 8);
        assert!(of(&lazy["files"], "file", "/below.php").is_some(), "{lazy:#}");
        let boot = explained(&server)["boot"].clone();
        assert!(of(&boot["files"], "file", "/throws.php").is_some(), "{boot:#}");
    }
}

#[test]
fn untraced_boot_lists_expensive_functions() {
    let app = app(&[(
        "index.php",
        "<?php class Kernel { static function boot() { burn(300); rest(); } }
        function burn($ms) { $end = hrtime(true) + $ms * 1000000; while (hrtime(true) < $end) { } }
        function rest() { usleep(200000); }
        Kernel::boot(); Samovar\\checkpoint(); echo 'ok';",
    )]);
    let server = Server::at(app.path().join("index.php")).workers(1).start();
    // The server must first find out how to read PHP's memory, which takes a while. From then on
    // each boot is sampled.
    let found = eventually("the boot's functions", || {
        let found = explained(&server);
        let is_there = |name| of(&found["functions"], "function", name).is_some();
        let is_whole = is_there("burn") && is_there("usleep");
        if !is_whole {
            server.reload().expect("it boots");
        }
        is_whole.then_some(found)
    });
    let functions = &found["functions"];
    let total =
        |name: &str| number(of(functions, "function", name).expect("it was seen"), "/total_ns");
    let both = total("burn") + total("usleep");
    assert!(both > 0 && total("Kernel::boot") >= both, "{functions:#}");
    assert!(total("rest") >= total("usleep"), "{functions:#}");
    // Times are wall-clock time of the rehearsal and the boot. A late sample may count for more
    // than it lasted.
    let all =
        number(&found["boot"], "/all/wall_ns") + number(&found["boot"], "/rehearsal/all/wall_ns");
    assert!(total("{main}") <= all + all / 2, "{functions:#}\n{all}");
    assert!(text(&server).contains("Kernel::boot  "), "{}", text(&server));
}

#[test]
fn traced_boot_yields_call_graph() {
    let app = app(&[(
        "index.php",
        "<?php function busy($n) { $s = 0; while ($n--) { $s += strlen((string) $n); } return $s; }
        function boots() { return busy(1000) + busy(2000); }
        boots(); Samovar\\checkpoint(); echo 'ok';",
    )]);
    let config = "[profile]\ntrace_key = 'a key of a good length'\n";
    let server = Server::at(app.path().join("index.php")).workers(1).config(config).start();
    let graph: Value = eventually("the boot's call graph", || {
        let mut command = Command::new(binary());
        command.args(["calls", "--json", "--route", "(boot)", "--control"]).arg(server.control());
        serde_json::from_slice(&command.output().expect("the binary runs").stdout).ok()
    });
    let function = |name: &str| of(&graph["functions"], "name", name).expect("it was called");
    assert_eq!((number(function("boots"), "/calls"), number(function("busy"), "/calls")), (1, 2));
    assert!(number(function("boots"), "/wall") >= number(function("busy"), "/wall"));
}

#[test]
fn boot_report_lists_findings() {
    let app = app(&[("index.php", "<?php\n$a = $_GET['page'] ?? 1;\nSamovar\\checkpoint();")]);
    let server = Server::at(app.path().join("index.php")).workers(1).start();
    assert_eq!(server.get("/").status, 200);
    explained(&server);
    let shown = text(&server);
    assert!(
        shown.contains("findings of the boot:\n  request: reads of request data: $_GET"),
        "{shown}"
    );
    let json: Value = serde_json::from_slice(&boot(&server, &["--json"]).stdout).expect("JSON");
    assert_eq!(json["findings"][0]["kind"], "request", "{json}");
    assert!(of(&json["findings"], "where", "index.php:2").is_some(), "{json}");
}
