//! `samovar doctor`: names the planted fault of an application, is silent for healthy ones, and
//! reports which facts are missing.

use crate::frameworks::laravel;
use crate::frameworks::shop::{Model, Shop};
use crate::request_accounting::bench::{MODELS, ask, figures, serving, started};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, binary, eventually, workspace};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Checks that find settings of the tests (the admin listener requires no token), and checks that
/// depend on the machine or on the date.
const OF_TESTS: &str = "display-errors,php-version,assertions,cpu-delay,cpu-stolen,backlog,\
                        cpu-throttled,composer-dev,queue-time,swapping,exposed";
/// Number of requests of a test.
const REQUESTS: u64 = 40;

fn doctor(args: &[&str]) -> Output {
    Command::new(binary()).arg("doctor").args(args).output().expect("the binary runs")
}

fn of_server(server: &Server, args: &[&str]) -> Output {
    let control = server.control().display().to_string();
    doctor(&[&["--control", &control], args].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The finding of a check.
fn finding(server: &Server, code: &str) -> Value {
    let examined = json(&of_server(server, &["--json"]));
    let all = examined["findings"].as_array().expect("a list");
    let found = all.iter().find(|found| found["code"] == code);
    found.unwrap_or_else(|| panic!("{code} is not in {examined:#}")).clone()
}

fn contains(finding: &Value, key: &str, text: &str) {
    let value = finding[key].as_str().unwrap_or_default();
    assert!(value.contains(text), "`{text}` is not in {key} of {finding:#}");
}

/// Sends requests for this path, and waits until the route counts them.
fn visit(server: &Server, path: &str, route: &str) {
    for _ in 0..REQUESTS {
        server.get(path);
    }
    figures(server, route, REQUESTS);
}

/// Checks that nothing at or above a warning is found.
fn is_silent(server: &Server, name: &str) {
    let output = of_server(server, &["--json", "--ignore", OF_TESTS]);
    let examined = json(&output);
    assert_eq!(
        (output.status.code(), &examined["ok"]),
        (Some(0), &Value::Bool(true)),
        "{name}: {examined:#}"
    );
    assert!(
        examined["passed"].as_array().is_some_and(|all| all.len() > 30),
        "{name}: {examined:#}"
    );
}

#[test]
fn repeated_statement_is_found_with_its_line_and_measured_time() {
    const WORK: &str = r"
        Samovar\route('list');
        $db = new PDO('sqlite::memory:');
        $one = $db->prepare('SELECT :id');
        for ($n = 0; $n < 30; $n++) {
            $one->execute(['id' => $n]);
        }
    ";
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        visit(&server, "/", "list");
        let found = finding(&server, "n-plus-one");
        contains(&found, "text", "list runs one statement up to 30 times per request: SELECT");
        contains(&found, "place", "index.php:");
        contains(&found, "gain", " per request");
        server.stop();
    }
}

#[test]
fn files_sent_by_php_sleeps_and_memory_are_found() {
    const WORK: &str = r"
        $path = strtok($_SERVER['REQUEST_URI'], '?');
        if ($path === '/big') { echo strlen(str_repeat('x', 56 << 20)); }
        if ($path === '/slow') { usleep(3_000); }
        if ($path === '/loud') { trigger_error('planted', E_USER_NOTICE); }
        echo 'done';
    ";
    let server = started(serving("script", WORK).workers(2), "script");
    for path in ["/logo.png", "/slow", "/loud", "/big"] {
        visit(&server, path, &format!("index.php {path}"));
    }
    contains(&finding(&server, "static-through-php"), "place", "index.php /logo.png");
    contains(&finding(&server, "sleeps"), "place", "index.php /slow");
    contains(&finding(&server, "memory-limit-near"), "value", " of 64 MiB");
    contains(&finding(&server, "php-messages"), "value", "0.2 per request");
    server.stop();
}

#[test]
fn wait_for_session_of_same_visitor_is_found() {
    const WORK: &str = r"
        Samovar\route('cart');
        session_id('planted'); session_start(); usleep(20_000);
    ";
    let server = started(serving("script", WORK).workers(4), "script");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                (0..10).for_each(|_| drop(client.request(&Request::get("/"))));
            });
        }
    });
    figures(&server, "cart", REQUESTS);
    contains(&finding(&server, "session-lock"), "text", "cart waits for the lock of its session");
    server.stop();
}

#[test]
fn settings_of_serving_php_are_checked() {
    let define = |start: Start, settings: &[(&str, &str)]| {
        settings.iter().fold(start, |start, (name, value)| start.define(name, value))
    };
    let planted = [
        ("opcache.enable", "0"),
        ("zlib.output_compression", "1"),
        ("session.auto_start", "1"),
        ("memory_limit", "-1"),
        ("open_basedir", "/"),
    ];
    let server = define(Server::script("<?php echo 1;").workers(1), &planted).start();
    for code in [
        "display-errors",
        "opcache-off",
        "output-compression",
        "session-auto-start",
        "memory-limit-none",
        "realpath-cache",
    ] {
        finding(&server, code);
    }
    let output = of_server(&server, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("  problem  visitors see PHP's error messages: display_errors = 1"),
        "{text}"
    );
    assert!(text.contains("\n           hint: set display_errors = false"), "{text}");
    let passed = of_server(&server, &["--fail-on", "never"]);
    assert_eq!(passed.status.code(), Some(0));
    server.stop();
}

#[test]
fn another_pool_is_checked_with_its_own_settings() {
    let pool = "[[pool]]\nname = 'blog'\nmatch = '/blog/*'\nworkers = 1\n\
                [pool.php]\nmemory_limit = '-1'\n";
    let server = Server::script("<?php echo 1;").workers(1).config(pool).start();
    let found = finding(&server, "memory-limit-none");
    assert_eq!(found["pool"], "blog", "{found:#}");
    server.stop();
}

#[test]
fn reload_changes_the_checked_settings() {
    let start = Server::script("<?php echo 1;").workers(1);
    let file = start.folder().join("root/.user.ini");
    let server = start.define("opcache.enable", "0").start();
    finding(&server, "opcache-off");
    // Without a new generation of workers the facts stay those of the serving PHP.
    std::fs::write(&file, "memory_limit = -1\n").expect("our own folder");
    server.reload().expect("the same application");
    let examined = json(&of_server(&server, &["--json"]));
    let is_there = |code: &str| {
        examined["findings"].as_array().is_some_and(|all| all.iter().any(|f| f["code"] == code))
    };
    assert!(is_there("opcache-off") && !is_there("memory-limit-none"), "{examined:#}");
    server.stop();
}

#[test]
fn deleted_root_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let release = folder.path().join("release");
    std::fs::create_dir(&release).expect("our own folder");
    std::fs::write(release.join("index.php"), "<?php echo 1;").expect("our own file");
    let server = Server::at(&release).workers(1).start();
    std::fs::rename(&release, folder.path().join("old")).expect("our own folder");
    contains(&finding(&server, "root-missing"), "place", "/release");
    server.stop();
}

#[test]
fn healthy_application_has_no_finding_in_each_model() {
    for model in MODELS {
        let server = started(serving(model, "echo 'hello';").workers(2), model);
        for _ in 0..REQUESTS {
            server.get("/");
        }
        figures(&server, "index.php /", REQUESTS);
        is_silent(&server, model);
        let examined = json(&of_server(&server, &["--json"]));
        let not = examined["not_checked"].as_array().expect("a list");
        let of_routes = not.iter().find(|not| not["code"] == "n-plus-one");
        assert!(of_routes.is_none(), "{model}: {examined:#}");
        assert!(ask(&server, "/").contains("samovar doctor"), "{model}: the dashboard names it");
        server.stop();
    }
}

#[test]
fn symfony_shop_has_no_finding_in_each_model() {
    for model in [Model::Script, Model::Checkpoint, Model::Resident] {
        let shop = Shop::install(None);
        let server = shop.serve_with(model, "admin = '127.0.0.1:0'\n");
        for _ in 0..REQUESTS {
            assert_eq!(server.get("/").status, 200);
        }
        is_silent(&server, "symfony");
        server.stop();
    }
}

#[test]
fn laravel_notes_have_no_finding() {
    for way in [laravel::RUNTIME, laravel::OCTANE] {
        let notes = laravel::Copy::new("file");
        let server = notes.serve_with(&way, "admin = '127.0.0.1:0'\n");
        for _ in 0..REQUESTS {
            server.get("/");
        }
        is_silent(&server, "laravel");
        server.stop();
    }
}

#[test]
fn application_that_does_not_run_is_checked() {
    let hello = workspace().join("examples/hello").display().to_string();
    let output = doctor(&[&hello, "--json", "--ignore", OF_TESTS]);
    let examined = json(&output);
    assert_eq!(output.status.code(), Some(0), "{examined:#}");
    let passed = examined["passed"].as_array().expect("a list");
    assert!(passed.iter().any(|code| code == "xdebug"), "PHP was queried: {examined:#}");
    let not = examined["not_checked"].as_array().expect("a list");
    assert!(not.iter().any(|not| not["code"] == "n-plus-one"), "{examined:#}");
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("samovar.toml");
    std::fs::create_dir(folder.path().join("public")).expect("our own folder");
    std::fs::write(folder.path().join("public/index.php"), "<?php echo 1;").expect("our own file");
    std::fs::write(&settings, "root = 'public'\n[php]\ndisplay_errors = true\n").expect("a file");
    let output = doctor(&["--config", &settings.display().to_string(), "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found = json(&output);
    let codes = found["findings"].as_array().expect("a list");
    assert!(codes.iter().any(|found| found["code"] == "display-errors"), "{found:#}");
    assert!(!Path::new(&folder.path().join("samovar.sock")).exists());
}

#[test]
fn missing_server_and_wrong_flags_exit_with_2() {
    let output = doctor(&["--control", "/nowhere/samovar.sock"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot reach the server") && error.contains("hint: "), "{error}");
    let output = doctor(&["/nowhere/public"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    for wrong in [["--ignore", "opcache-fool"], ["--fail-on", "always"]] {
        let output = doctor(&wrong);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
    }
}

#[test]
fn list_explains_all_checks() {
    let output = doctor(&["--list"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("  opcache-full "), "{text}");
    let rows = json(&doctor(&["--list", "--json"]));
    assert!(rows.as_array().is_some_and(|rows| rows.len() >= 60), "{rows:#}");
    let explained = Command::new(binary()).args(["explain", "opcache-full"]).output();
    let explained = String::from_utf8_lossy(&explained.expect("it runs").stdout).into_owned();
    assert!(explained.contains("opcache's memory is full or nearly full"), "{explained}");
}

#[test]
fn server_that_starts_is_examined_without_wrong_findings() {
    let server = Server::script("<?php echo 1;").workers(1).start();
    eventually("its facts", || {
        let output = of_server(&server, &["--json", "--ignore", OF_TESTS]);
        let examined = json(&output);
        assert_eq!(examined["findings"], serde_json::json!([]), "{examined:#}");
        let not = examined["not_checked"].as_array()?;
        let is_known = |code: &str| !not.iter().any(|not| not["code"] == code);
        (is_known("opcache-off") && is_known("xdebug")).then_some(())
    });
    server.stop();
}
