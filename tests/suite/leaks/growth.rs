//! A server whose resident workers grow names what does, in its log, long before memory is short.

use samovar_testkit::{Server, eventually};
use std::time::Instant;

/// More than it takes: 64 KiB each, of steps of 1 MiB.
const REQUESTS: usize = 400;
/// Half of the memory that it may have: on a busy machine the log comes behind the requests.
const REQUESTS_MAX: usize = 4000;
const SAID: &str = "the memory of this worker grows: ";
const KEEPS: &str = "this worker keeps more and more: ";

fn serve(above: &str, handler: &str) -> Server {
    let php = format!("<?php\n{above}\nSamovar\\serve(function () {{ {handler} }});\n");
    let start = Server::script(&php).workers(1).define("memory_limit", "512M");
    start.args(["--growth-bytes-max", "8M"]).start()
}

/// Under load, which leaves no second for it.
#[test]
fn a_worker_that_is_never_idle_names_what_grows() {
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
        let growth = &server.status()["growth"][0];
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

/// What the kernel keeps for it, by what it is: descriptors, mapped files, children; with the line that opened the last one.
#[test]
fn a_worker_that_keeps_more_and_more_of_the_kernel_names_it() {
    std::thread::scope(|scope| {
        // At once: it is mostly pauses.
        for (handler, named, unit) in [
            ("Kept::$all[] = fopen(__FILE__, 'r');", "/index.php +", "descriptors"),
            ("Kept::$all[] = tmpfile();", "/php* +", "descriptors"),
            (
                "Kept::$all[] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);",
                "a connection to a unix socket +",
                "descriptors",
            ),
            (
                "$piece = shmop_open(0, 'n', 0600, 4096); shmop_delete($piece); Kept::$all[] = $piece;",
                "/SYSV* (deleted) +",
                "mappings",
            ),
            (
                // Its pipe is kept, too: with the worker the children end.
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
    // Two steps of 16 each, and a pause behind each: children are counted, and mappings, when it has nothing else to do.
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

/// What is opened and closed again, and what is opened once.
#[test]
fn a_worker_that_gives_back_what_it_opens_says_nothing() {
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

/// Between requests, when it has nothing else to do.
#[test]
fn an_idle_worker_names_what_grows() {
    let server =
        serve("function f() { static $kept = []; $kept[] = str_repeat('x', 65536); }", "f();");
    let mut client = server.client();
    // Two steps, and a pause behind each: so few that nothing is counted without one.
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

/// What is built up once, and what is collected, is no growth.
#[test]
fn a_worker_that_does_not_grow_says_nothing() {
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
