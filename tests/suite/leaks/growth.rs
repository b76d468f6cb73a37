//! Growing resident workers: the server's log names the growing object long before memory is short.

use samovar_testkit::{Server, eventually};
use std::time::Instant;

/// More than required: each request adds 64 KiB, and a step is 1 MiB.
const REQUESTS: usize = 400;
/// Corresponds to half of the permitted memory. On a busy machine the log lags behind the requests.
const REQUESTS_MAX: usize = 4000;
const SAID: &str = "memory growth in a worker: ";
const KEEPS: &str = "resource growth in a worker: ";

fn serve(above: &str, handler: &str) -> Server {
    let php = format!("<?php\n{above}\nSamovar\\serve(function () {{ {handler} }});\n");
    let start = Server::script(&php).workers(1).define("memory_limit", "512M");
    start.args(["--growth-bytes-max", "8M"]).start()
}

/// Under constant load, so that the worker is never idle for a second.
#[test]
fn busy_worker_reports_growing_object() {
    for (above, handler, named) in [
        (
            "class Registry {\n  const A = 1;\n  public static array $items = [];\n}",
            "Registry::$items[] = str_repeat('x', 65536);",
            "Registry::$items +",
        ),
        (
            "class Box { public array $all = []; }\n$box = new Box;",
            "$GLOBALS['box']->all[] = str_repeat('x', 65536);",
            "$box->all +",
        ),
        (
            "gc_disable(); class Ring { public $a; public $b; }",
            "$r = new Ring; $r->a = $r; $r->b = str_repeat('x', 65536);",
            "Ring +",
        ),
    ] {
        let server = serve(above, handler);
        let mut client = server.client();
        let said = (0..REQUESTS_MAX).any(|n| {
            assert_eq!(client.get("/").status, 200);
            n % 20 == 0 && server.log().contains(SAID)
        });
        eventually("the log", || server.log().contains(SAID).then_some(()));
        let log = server.log();
        let line = log.lines().find(|line| line.contains(SAID)).unwrap_or_default();
        assert!(said && line.contains(named), "{named}: {log}");
        assert!(line.contains("1 per request"), "{line}");
        let growth = &eventually("the status", || {
            let growth = server.status()["growth"][0].clone();
            growth.is_object().then_some(growth)
        });
        assert!(growth["name"].as_str().is_some_and(|n| n.contains(named.trim_end_matches(" +"))));
        assert_eq!((&growth["generation"], &growth["workers"]), (&1.into(), &1.into()), "{growth}");
        if above.starts_with("class Registry") {
            assert_eq!(
                (&growth["grown"], &growth["unit"]),
                (&growth["requests"], &"elements".into())
            );
            assert!(
                growth["place"].as_str().is_some_and(|at| at.ends_with("index.php:4")),
                "{growth}"
            );
            assert!(line.contains("index.php:4"), "{line}");
            assert!(line.contains(" 65"), "bytes of each: {line}");
        }
    }
}

/// Kernel objects kept by the worker: descriptors, mapped files, children. The log names the line
/// that opened the last one.
#[test]
fn worker_reports_growing_kernel_objects() {
    std::thread::scope(|scope| {
        // In parallel, because most of the time is waiting.
        for (handler, named, unit) in [
            ("Kept::$all[] = fopen(__FILE__, 'r');", "/index.php +", "descriptors"),
            ("Kept::$all[] = tmpfile();", "/php* +", "descriptors"),
            (
                "Kept::$all[] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);",
                "a connection to a unix socket +",
                "descriptors",
            ),
            (
                "$piece = shmop_open(0, 'n', 0600, 4096); shmop_delete($piece); Kept::$all[] = \
                 $piece;",
                "/SYSV* (deleted) +",
                "mappings",
            ),
            (
                // The pipe is kept, too, so that the children end together with the worker.
                "Kept::$all[] = [proc_open(['cat'], [['pipe', 'r']], $pipes), $pipes];",
                "child processes +",
                "processes",
            ),
        ] {
            scope.spawn(move || names_what_it_keeps(handler, named, unit));
        }
    });
}

fn names_what_it_keeps(handler: &str, named: &str, unit: &str) {
    let server = serve("class Kept { public static array $all = []; }", handler);
    let mut client = server.client();
    // Two steps of 16 each, with a pause after each: children and mappings are counted only while
    // the worker is idle.
    let (mut sent, mut rested) = (0, Instant::now());
    let line = eventually("what it keeps", || {
        if sent % 40 != 0 || rested.elapsed().as_millis() > 2500 {
            assert_eq!(client.get("/").status, 200);
            sent += 1;
            rested = Instant::now();
        }
        let log = server.log();
        let mut lines = log.lines().filter(|line| line.contains(KEEPS));
        lines.find(|line| line.contains(named) && line.contains(unit)).map(str::to_owned)
    });
    assert!(line.contains("opened in ") && line.contains("index.php:3"), "{line}");
    let growth = eventually("it is told, too", || {
        let growth = server.status()["growth"].as_array()?.clone();
        growth.into_iter().find(|found| found["unit"] == unit)
    });
    assert!(growth["place"].as_str().is_some_and(|at| at.ends_with("index.php:3")), "{growth}");
}

/// Descriptors that are closed again, and descriptors opened once.
#[test]
fn worker_that_closes_descriptors_reports_no_growth() {
    let server = serve(
        "class Pool { public static array $all = []; }",
        "$f = tmpfile(); fwrite($f, 'x'); fclose($f);
         for ($n = count(Pool::$all); $n < 40; $n++) { Pool::$all[] = fopen(__FILE__, 'r'); }
         pclose(popen('true', 'r'));",
    );
    let mut client = server.client();
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/").status, 200);
    }
    let log = server.stop();
    assert!(!log.contains(KEEPS), "{log}");
}

/// The check between requests, while the worker is idle.
#[test]
fn idle_worker_reports_growing_object() {
    let server =
        serve("function f() { static $kept = []; $kept[] = str_repeat('x', 65536); }", "f();");
    let mut client = server.client();
    // Two steps, with a pause after each. These few requests are not checked without a pause.
    let (mut sent, mut rested) = (0, Instant::now());
    eventually("what grows", || {
        if sent % 20 != 0 || rested.elapsed().as_millis() > 2500 {
            client.get("/");
            sent += 1;
            rested = Instant::now();
        }
        server.log().contains("f() $kept +").then_some(())
    });
}

/// Data built once and garbage that is collected are not growth.
#[test]
fn stable_worker_reports_no_growth() {
    let server = serve(
        "class Cache { static ?string $all = null; } class Ring { public $a; public $b; }",
        "Cache::$all ??= str_repeat('x', 3 << 20);
         $r = new Ring; $r->a = $r; $r->b = str_repeat('x', 65536); echo strlen(Cache::$all);",
    );
    let mut client = server.client();
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/").text(), "3145728");
    }
    let log = server.stop();
    assert!(!log.contains(SAID), "{log}");
}
