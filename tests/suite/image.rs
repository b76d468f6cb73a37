//! The image process, its fallbacks, and its entries in `samovar status`.
//!
//! State that requests must not leak is the subject of isolation.rs. These tests cover the creation
//! of an image, and the reasons that end a worker.

mod boot_globals;
mod extensions;
mod findings;
mod leaving;
mod request_reads;
mod requests;

use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::net::TcpListener;

/// One worker, so that each request meets the state left by the previous one.
fn script(php: &str) -> Start {
    Server::script(&format!("<?php\n{php}")).workers(1)
}

fn image(server: &Server) -> Value {
    server.status()["image"].clone()
}

fn mode(server: &Server) -> String {
    image(server)["mode"].as_str().unwrap_or("none").to_owned()
}

/// Sends three requests. Their responses must be equal.
fn thrice(server: &Server, target: &str) -> String {
    let first = server.get(target).text();
    for _ in 0..2 {
        assert_eq!(server.get(target).text(), first, "{target}");
    }
    first
}

/// A server that accepts connections and sends nothing.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

#[test]
fn checkpoint_at_any_depth_shares_image() {
    let below = "$n++; echo \"$n \", $_GET['a'] ?? '-';";
    for (name, php) in [
        ("top", format!("$n = 1; Samovar\\checkpoint(); {below}")),
        ("function", format!("function f() {{ $n = 1; Samovar\\checkpoint(); {below} }} f();")),
        (
            "method in a closure in array_map",
            format!(
                "class A {{ function f($n) {{ Samovar\\checkpoint(); {below} }} }}
                 array_map(fn ($n) => (new A())->f($n), [1]);"
            ),
        ),
        (
            "generator",
            format!(
                "function g() {{ $n = 1; Samovar\\checkpoint(); yield 1; {below} }}
                 foreach (g() as $x) {{}}"
            ),
        ),
        (
            "fiber",
            format!(
                "$f = new Fiber(function () {{
                     $n = 1; Samovar\\checkpoint(); Fiber::suspend(); {below} }});
                 $f->start(); $f->resume();"
            ),
        ),
        ("eval", format!("eval('$n = 1; Samovar\\checkpoint();'); {below}")),
    ] {
        let server = script(&php).start();
        assert_eq!(thrice(&server, "/?a=b"), "2 b", "{name}");
        assert_eq!(mode(&server), "shared", "{name}");
        assert_eq!(server.status()["workers"][0]["model"], "checkpoint", "{name}");
        server.stop();
    }
}

#[test]
fn output_and_headers_above_checkpoint_are_in_every_response() {
    let server = script(
        "header('X-Above: yes'); http_response_code(203); setcookie('boot', '1'); echo 'above ';
         ob_start(fn ($text) => strtoupper($text)); echo 'in a buffer ';
         Samovar\\checkpoint();
         header('X-Below: ' . $_GET['n']); echo 'below';",
    )
    .start();
    for n in ["1", "2"] {
        let response = server.get(&format!("/?n={n}"));
        assert_eq!((response.status, response.text().as_str()), (203, "above IN A BUFFER BELOW"));
        assert_eq!(
            (response.header("x-above"), response.header("x-below")),
            (Some("yes"), Some(n))
        );
        assert_eq!(response.all("set-cookie"), ["boot=1"]);
    }
    let long = script(
        "echo str_repeat('x', 10000); Samovar\\checkpoint(); echo headers_sent() ? 'sent' : 'no';",
    );
    let server = long.start();
    assert!(thrice(&server, "/").ends_with("xsent"), "as if the whole script ran");
}

#[test]
fn checkpoint_in_other_script_is_ignored() {
    let server =
        script("$n = 0; Samovar\\checkpoint(); Samovar\\checkpoint(); echo ++$n, getmypid();")
            .start();
    let beside =
        "<?php static $n = 0; Samovar\\checkpoint(); echo 'beside ', ++$n, isset($_GET['a']);";
    std::fs::write(server.folder().join("root/beside.php"), beside).expect("our own folder");
    thrice(&server, "/");
    assert_eq!(thrice(&server, "/beside.php?a=1"), "beside 11");
    let other = "<?php Samovar\\serve(fn () => 'serves', 1);";
    std::fs::write(server.folder().join("root/serves.php"), other).expect("our own folder");
    assert_eq!(thrice(&server, "/serves.php"), "serves");
    assert_eq!(image(&server)["refork_total"], 0, "no worker leaves for it");
}

#[test]
fn checkpoint_in_included_file_is_found_by_first_request() {
    let server = script("require __DIR__ . '/inc.inc';").start();
    let inc = "<?php $n = 0; Samovar\\checkpoint(); echo ++$n;";
    std::fs::write(server.folder().join("root/inc.inc"), inc).expect("our own folder");
    assert_eq!(server.get("/").text(), "1");
    eventually("the image", || {
        assert_eq!(server.get("/").text(), "1");
        (server.status()["workers"][0]["model"] == "checkpoint" && mode(&server) == "shared")
            .then_some(())
    });
    assert_eq!(image(&server)["refork_reasons"]["checkpoint"], 1);
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

/// The worker that calls `serve()` within a request has booted for that visitor. No other visitor
/// may get this boot.
#[test]
fn input_of_first_visitor_is_not_in_image() {
    let server = script("require __DIR__ . '/inc.inc';").start();
    let inc = "<?php $who = $_GET['who'] ?? 'nobody'; Samovar\\serve(fn () => $who);";
    std::fs::write(server.folder().join("root/inc.inc"), inc).expect("our own folder");
    assert_eq!(server.get("/?who=ann").text(), "ann");
    eventually("a worker that was booted ahead", || {
        let text = server.get("/?who=bob").text();
        assert!(["bob", "nobody"].contains(&text.as_str()), "{text}");
        (text == "nobody").then_some(())
    });
}

#[test]
fn checkpoint_after_works_with_unchanged_application() {
    let app = "$n = 0; require_once 'boot.inc'; require_once 'boot.inc'; \
        echo ++$n, ' ', $booted, ' ', f(), count(debug_backtrace());";
    let start = script(app);
    let root = start.folder().join("root");
    let boot = "<?php $booted = ($booted ?? 0) + 1; \
        function f() { static $k = 0; return ++$k; } return 7;";
    std::fs::write(root.join("boot.inc"), boot).expect("our own folder");
    let server = start.args(["--checkpoint-after", "boot.inc"]).start();
    assert_eq!(thrice(&server, "/"), "1 1 10");
    assert_eq!(mode(&server), "shared");
    server.stop();

    let start = script("echo 'never included';");
    std::fs::write(start.folder().join("root/boot.inc"), boot).expect("our own folder");
    let server = start.args(["--checkpoint-after", "boot.inc"]).start();
    server.wait_for_log("ended without including");
    assert_eq!(thrice(&server, "/"), "never included");

    let (code, log) = script("").args(["--checkpoint-after", "nowhere.php"]).refuse();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("does not name a file"), "{log}");
}

#[test]
fn warmup_keeps_loaded_classes_and_discards_output() {
    let loader = "spl_autoload_register(function ($c) { if ($c === 'Lazy') { \
        eval('class Lazy { public static $n = 0; }'); error_log('loaded'); } });";
    let server = script(&format!(
        "{loader} Samovar\\warmup(function () {{
             echo 'unseen'; header('X-Unseen: 1'); http_response_code(500);
             session_start(); new Lazy(); Lazy::$n = 5;
             throw new Exception('not fatal');
         }});
         Samovar\\checkpoint();
         echo class_exists('Lazy', false) ? 'there ' : 'missing ', ++Lazy::$n, session_status();"
    ))
    .start();
    assert_eq!(
        thrice(&server, "/"),
        "there 61",
        "state that the application's own warm-up leaves is kept"
    );
    let response = server.get("/");
    assert_eq!((response.status, response.header("x-unseen")), (200, None));
    assert!(server.log().contains("the warm-up threw Exception: not fatal"), "{}", server.log());
    assert_eq!(server.stop().matches("loaded").count(), 1);

    let below = "if ($_SERVER['REQUEST_URI'] === '/warm?a=1' && $_GET['a'] === '1') {
                 new Lazy(); Lazy::$n = 9; }
         echo class_exists('Lazy', false) ? 'there ' . Lazy::$n : 'missing';";
    let start = script(&format!("{loader} Samovar\\checkpoint(); {below}"));
    let server = start.args(["--warmup", "/warm?a=1", "--warmup", "/other"]).start();
    assert_eq!(thrice(&server, "/"), "there 0", "classes, and not what the request did with them");
    server.stop();

    let start = script(&format!("{loader} Samovar\\serve(function () {{ {below} }}, 1);"));
    let server = start.args(["--warmup", "/warm?a=1"]).start();
    assert_eq!(thrice(&server, "/"), "there 9", "a handler's own state is kept");
}

/// A pattern cached by PHP takes less time than a new one of the same length. The shortest times of
/// several requests are compared, because a request may wait for a core in between.
#[test]
fn warmup_keeps_compiled_patterns() {
    const REQUESTS: usize = 9;
    let pattern = format!("/^({})+x", "[a-z]|[0-9]b|".repeat(400));
    for locale in ["C", "C.UTF-8"] {
        let below = format!(
            "setlocale(LC_ALL, '{locale}');
             function took($pattern) {{
                 $from = hrtime(true); preg_match($pattern, 'abc'); return hrtime(true) - $from; }}
             $new = took('{pattern}' . hrtime(true) . '$/u');
             echo took('{pattern}$/u'), ' ', $new, ' ', setlocale(LC_CTYPE, 0);"
        );
        let serve = || script(&format!("Samovar\\checkpoint(); {below}"));
        let is_cached = |server: &Server| {
            let (mut shortest, mut shortest_of_new) = (u64::MAX, u64::MAX);
            for _ in 0..REQUESTS {
                let text = server.get("/").text();
                let words: Vec<_> = text.split(' ').collect();
                let [took, new, effective] = words[..] else { panic!("{text}") };
                assert_eq!(effective, locale);
                shortest = shortest.min(took.parse().expect("nanoseconds"));
                shortest_of_new = shortest_of_new.min(new.parse().expect("nanoseconds"));
            }
            4 * shortest < shortest_of_new
        };
        assert!(!is_cached(&serve().start()), "locale {locale}");
        let warm = serve().args(["--warmup", "/"]).start();
        assert!(is_cached(&warm), "locale {locale}: {}", warm.log());
    }
}

/// PHP leaves the script's folder at the script's end. Code that runs after it sees that; code of
/// the next request does not.
#[test]
fn code_after_script_end_has_working_directory_of_php_fpm() {
    let ends = "register_shutdown_function($say)|$GLOBALS['o'] = new Ends|\
        ob_start(fn ($t) => $t . $say())|\
        set_error_handler($say)|\
        @ini_set('iconv.output_encoding', 'nonsense'); set_error_handler($say); \
        ob_start('ob_iconv_handler'); echo '.'|\
        session_set_save_handler(new Ends); session_start()|1|\
        Samovar\\async(function () use ($say) { try { sleep(9); } finally { $say(); } })";
    for end in ends.split('|') {
        let server = script(&format!(
            "class Ends extends SessionHandler {{
                function __destruct() {{ say(); }}
                function write($id, $data): bool {{ return true; }}
             }}
             function say() {{ return file_put_contents(getenv('ENDS'), getcwd()); }}
             $say = function () {{ say(); }};
             Samovar\\checkpoint();
             echo getcwd() === __DIR__ ? 'here' : getcwd(); {end};"
        ));
        let said = server.folder().join("said");
        let server = server.env("ENDS", &said.display().to_string()).start();
        for _ in 0..3 {
            let _ = std::fs::remove_file(&said);
            assert!(server.get("/").text().starts_with("here"), "{end}");
            let is_seen = !end.starts_with("set_error") && end != "1";
            eventually("the end", || (is_seen == said.exists()).then_some(()));
            if is_seen {
                let there = std::fs::read_to_string(&said).expect("it exists");
                let own = std::env::current_dir().expect("the server's too");
                assert_eq!(std::path::Path::new(&there), own, "{end}");
            }
        }
        server.stop();
    }
}

#[test]
fn serve_rolls_back_at_configured_interval() {
    let handler = "$n = 0; Samovar\\serve(function () use (&$n) {
        static $k = 0; $k++; $n++;
        if (isset($_GET['fatal'])) { trigger_error('as fatal as it gets', E_USER_ERROR); }
        if (isset($_GET['grow'])) { $GLOBALS['big'] = str_repeat('x', 40 << 20); }
        echo \"$n $k\";
    }, EVERY);";
    for (every, counts) in [("1", "1 1, 1 1, 1 1, 1 1"), ("3", "1 1, 2 2, 3 3, 1 1")] {
        let server = script(&handler.replace("EVERY", every)).start();
        let pids = server.worker_pids();
        let responses: Vec<_> = (0..4).map(|_| server.get("/").text()).collect();
        assert_eq!(responses.join(", "), counts);
        for target in ["/?fatal=1", "/?grow=1"] {
            assert_eq!(server.get(target).status, if target == "/?grow=1" { 200 } else { 500 });
            assert_eq!(server.get("/").text(), "1 1", "after {target}, rollbackEvery {every}");
        }
        assert_eq!(server.worker_pids(), pids, "a rollback needs no new process");
        assert_eq!(server.status()["workers"][0]["model"], "checkpoint");
        server.stop();
    }
    let server = script("Samovar\\serve(fn () => 1, -1);").start();
    assert!(server.get("/").text().contains("must be greater than or equal to 0"));
}

/// A change to a server's start.
type Change = fn(Start) -> Start;

#[test]
fn rollback_works_with_each_php_and_kernel_configuration() {
    let php =
        "class A { public static $n = 0; } ini_set('precision', '12'); $list = range(1, 1000);
         Samovar\\checkpoint();
         A::$n++; $list[] = str_repeat('x', 3 << 20); ini_set('precision', '5');
         define('D', 1); putenv('LEAK=1');
         usort($list, fn ($a, $b) => strlen((string) $a) <=> strlen((string) $b));
         for ($i = 0, $sum = 0; $i < 20000; $i++) { $sum += $i % 7; }
         echo A::$n, count($list), $sum, class_exists('Preloaded') ? 'preloaded' : '';";
    let cases: [(&str, Change); 5] = [
        ("opcache", |s| s),
        ("no opcache", |s| s.define("opcache.enable", "0")),
        ("function JIT", |s| {
            s.define("opcache.jit", "function").define("opcache.jit_buffer_size", "16M")
        }),
        ("preload", |s| {
            let file = s.folder().join("preload.php");
            std::fs::write(&file, "<?php class Preloaded {}").expect("our own folder");
            s.define("opcache.preload", &file.display().to_string())
                .define("opcache.preload_user", "root")
        }),
        ("no PAGEMAP_SCAN", Start::without_pagemap_scan),
    ];
    for (name, change) in cases {
        let server = change(script(php)).start();
        let first = server.get("/");
        assert_eq!(first.status, 200, "{name}: {}", first.text());
        assert!(first.text().starts_with("110015999"), "{name}: {}", first.text());
        assert_eq!(first.text().contains("preloaded"), name == "preload");
        let pids = server.worker_pids();
        let mut client = server.client();
        for n in 0..300 {
            assert_eq!(client.get("/").text(), first.text(), "{name}, request {n}");
        }
        assert_eq!(server.worker_pids(), pids, "{name}");
        let status = image(&server);
        assert!(status["rollbacks_total"].as_u64() >= Some(300), "{name}: {status}");
        server.stop();
    }
}

#[test]
fn status_has_size_and_costs_of_image() {
    let server = script("Samovar\\checkpoint(); echo 'hello';").workers(2).start();
    for _ in 0..20 {
        server.get("/");
    }
    let status = image(&server);
    for key in ["bytes", "regions", "boot_ms", "hot_pages", "rollback_us_p50", "rollback_us_p99"] {
        assert!(status[key].as_f64().is_some_and(|n| n > 0.0), "{key}: {status}");
    }
    assert_eq!((&status["shared"], &status["refork_total"]), (&true.into(), &0.into()), "{status}");
    assert_eq!(status["findings"], serde_json::json!([]));
    let script = Server::script("<?php echo 1;").start();
    assert_eq!(script.status()["image"], Value::Null);
}
