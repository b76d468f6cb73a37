//! `samovar leaks`: planted leaks are reported with their line and meaning, and clean applications
//! have no findings.

mod growth;
mod mix;
mod planted;
mod stage;

use samovar_testkit::{eventually, family, kill, processes_naming};
use serde_json::Value;
use stage::{CLEAN, LEAKS, WRONG_USE, application, command, leaks, problems, report, text};
use std::process::Stdio;

const SIGTERM: i32 = 15;

/// Each leak is in a separate resident application. How long growth is followed to tell a leak from
/// a cache is a matter of `mix`.
#[test]
fn each_planted_leak_is_reported() {
    let mut wrong = Vec::new();
    for leak in planted::LEAKS {
        let folder = application(&planted::resident(leak.above, leak.handler));
        let (code, report) = report(&folder, &["--times", "5", "--times-max", "25"]);
        if let Err(why) = leak.is_named(code, &report) {
            wrong.push(format!("{}: {why}\n{report:#}", leak.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(planted::LEAKS.len() >= 25);
}

#[test]
fn clean_application_has_no_findings() {
    let mut wrong = Vec::new();
    for (above, handler) in planted::CLEAN {
        for php in [planted::resident(above, handler), planted::below(above, handler)] {
            let folder = application(&php);
            let (code, report) = report(&folder, &["--urls", "/", "/b?x=1", "--times", "5"]);
            if code != Some(CLEAN) || !problems(&report).is_empty() {
                wrong.push(format!("{php}\n{report:#}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// State left below a checkpoint is compared with the image, although it is rolled back.
#[test]
fn state_left_below_checkpoint_is_reported() {
    let above = "class Cart { static array $things = []; static ?string $owner = null; }
        function counter() { static $n = 0; return ++$n; }";
    let handler = "Cart::$things[] = 'tea'; Cart::$owner = bin2hex(random_bytes(4)); counter();
        date_default_timezone_set('Asia/Tokyo'); ini_set('precision', '5'); echo 'done';";
    let folder = application(&planted::below(above, handler));
    let (code, report) = report(&folder, &["--times", "4"]);
    assert_eq!((code, &report["model"]), (Some(LEAKS), &"checkpoint".into()), "{report:#}");
    let of = |name: &str| {
        let all = report["findings"].as_array().into_iter().flatten();
        let found = all.filter(|f| f["name"] == name).map(|f| f["verdict"].clone());
        found.collect::<Vec<_>>()
    };
    assert_eq!(of("Cart::$things"), ["kept"], "{report:#}");
    assert_eq!(of("Cart::$owner"), ["carries"], "{report:#}");
    assert_eq!(of("counter() $n"), ["kept"], "{report:#}");
    assert_eq!(of("date_default_timezone_get"), ["put_back"], "{report:#}");
    assert_eq!(of("precision"), ["put_back"], "{report:#}");
}

/// The loop is in the script itself. Its model is unknown until the first request.
#[test]
fn leak_in_frankenphp_worker_script_is_reported() {
    let folder = application(
        "class Hub { static array $seen = []; }
         $answer = function () { Hub::$seen[] = random_bytes(8); echo 'hello'; };
         while (frankenphp_handle_request($answer)) { }",
    );
    let (code, report) = report(&folder, &["--times", "5"]);
    assert_eq!((code, &report["model"]), (Some(LEAKS), &"resident".into()), "{report:#}");
    assert_eq!(problems(&report), ["Hub::$seen"], "{report:#}");
}

/// The proposed line for samovar.toml contains the targets that load all the rest, and no others.
#[test]
fn files_loaded_by_requests_yield_warmup_line() {
    let folder = application(
        "spl_autoload_register(fn ($class) => require __DIR__ . \"/$class.inc\");
         Samovar\\checkpoint();
         match (strtok($_SERVER['REQUEST_URI'], '?')) {
             '/one' => new One, '/both' => [new One, new Two], default => null,
         };
         echo 'done';",
    );
    for class in ["One", "Two"] {
        let file = folder.path().join(format!("{class}.inc"));
        std::fs::write(file, format!("<?php class {class} {{ }}")).expect("ours");
    }
    let urls = ["--urls", "/", "/one", "/both", "--times", "3"];
    let (_, report) = report(&folder, &urls);
    let expected = serde_json::json!([{ "target": "/both", "loads": 2 }]);
    assert_eq!(report["warmup"], expected, "{report:#}");
    let said = text(&leaks(folder.path(), &urls));
    assert!(said.contains("warmup = [\"/both\"]"), "{said}");
    // With the proposed line, nothing is left to report.
    std::fs::write(folder.path().join("samovar.toml"), "warmup = [\"/both\"]\n").expect("ours");
    let (_, report) = stage::report(&folder, &urls);
    assert_eq!(report["warmup"], Value::Array(Vec::new()), "{report:#}");
}

#[test]
fn failing_requests_are_reported() {
    for (handler, said) in [
        ("static $n = 0; if ($n++ > 0) { undefined_function(); }", "after another one at first"),
        ("ini_set('memory_limit', '8M'); str_repeat('x', 1 << 26);", "a fatal error"),
    ] {
        let folder = application(&planted::resident("", handler));
        let (code, report) = report(&folder, &["--times", "3"]);
        assert_eq!(code, Some(LEAKS), "{report:#}");
        let failures = report["failures"].to_string();
        assert!(failures.contains(said), "{report:#}");
    }
    let folder = application("echo 'no checkpoint';");
    let output = leaks(folder.path(), &["--times", "3"]);
    assert_eq!(output.status.code(), Some(WRONG_USE), "{}", text(&output));
    assert!(text(&output).contains("nothing to examine"), "{}", text(&output));
    for (args, said) in
        [(&["--times", "2"][..], "--times"), (&["--urls", "x"], "`x` cannot be requested")]
    {
        let output = leaks(folder.path(), args);
        assert_eq!(output.status.code(), Some(WRONG_USE), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(said), "{args:?}: {}", text(&output));
    }
}

/// Tables larger than the limits are truncated, and the report is still produced.
#[test]
fn large_application_is_checked_partially() {
    let folder = application(&planted::resident(
        "class Big { static array $rows = []; static array $own = []; }
         for ($i = 0; $i < 150000; $i++) { Big::$rows[$i >> 10][] = [$i, [$i, 'x']]; }",
        "Big::$own[] = str_repeat('y', 100); echo 'done';",
    ));
    let few = ["--times", "4", "--times-max", "6", "-d", "memory_limit=512M"];
    let (code, report) = report(&folder, &few);
    assert_eq!((code, &report["incomplete"]), (Some(LEAKS), &true.into()), "{report:#}");
    assert!(problems(&report).contains(&"Big::$own".to_owned()), "{report:#}");
}

#[test]
fn server_and_folder_of_leaks_end_with_the_command() {
    let folder = application(&planted::resident("", "touch(__DIR__ . '/sessions/asked');"));
    let mut running = command(folder.path(), &["--times", "1000", "--urls", "/", "/a", "/b"]);
    let mut running = running.stderr(Stdio::null()).spawn().expect("the binary runs");
    let asked = folder.path().join("sessions/asked");
    eventually("a request", || asked.exists().then_some(()));
    kill(running.id().cast_signed(), SIGTERM);
    running.wait().expect("it was started here");
    eventually("no server", || processes_naming(folder.path()).is_empty().then_some(()));
    assert!(!family::run().is_empty());
}
