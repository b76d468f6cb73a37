//! The image process, its fall-backs, and what `samovar status` says about them.
//!
//! What requests cannot leak stands in isolation.rs; here is how an image comes about, and what ends a worker.

use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;

/// One worker, so that every request meets what the former one left.
fn script(php: &str) -> Start {
    Server::script(&format!("<?php\n{php}")).workers(1)
}

fn image(server: &Server) -> Value {
    server.status()["image"].clone()
}

fn mode(server: &Server) -> String {
    image(server)["mode"].as_str().unwrap_or("none").to_owned()
}

/// Three answers, which must be equal.
fn thrice(server: &Server, target: &str) -> String {
    let first = server.get(target).text();
    for _ in 0..2 {
        assert_eq!(server.get(target).text(), first, "{target}");
    }
    first
}

#[test]
fn a_checkpoint_may_stand_at_any_depth() {
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
                "$f = new Fiber(function () {{ $n = 1; Samovar\\checkpoint(); Fiber::suspend(); {below} }});
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
fn output_and_headers_of_above_are_every_answers() {
    let server = script(
        "header('X-Above: yes'); http_response_code(203); setcookie('boot', '1'); echo 'above ';
         ob_start(fn ($text) => strtoupper($text)); echo 'in a buffer ';
         Samovar\\checkpoint();
         header('X-Below: ' . $_GET['n']); echo 'below';",
    )
    .start();
    for n in ["1", "2"] {
        let answer = server.get(&format!("/?n={n}"));
        assert_eq!((answer.status, answer.text().as_str()), (203, "above IN A BUFFER BELOW"));
        assert_eq!((answer.header("x-above"), answer.header("x-below")), (Some("yes"), Some(n)));
        assert_eq!(answer.all("set-cookie"), ["boot=1"]);
    }
    let long = script(
        "echo str_repeat('x', 10000); Samovar\\checkpoint(); echo headers_sent() ? 'sent' : 'no';",
    );
    let server = long.start();
    assert!(thrice(&server, "/").ends_with("xsent"), "as if the whole script ran");
}

#[test]
fn only_the_front_controller_has_a_checkpoint() {
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
fn a_checkpoint_in_an_included_file_is_found_by_the_first_request() {
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

/// The worker that meets `serve()` in a request has booted for that visitor: no other may have its boot.
#[test]
fn what_the_first_visitor_brings_is_nobody_elses() {
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
fn checkpoint_after_needs_no_change_of_the_application() {
    let app = "$n = 0; require_once 'boot.inc'; require_once 'boot.inc'; echo ++$n, ' ', $booted, ' ', f(), count(debug_backtrace());";
    let start = script(app);
    let root = start.folder().join("root");
    let boot = "<?php $booted = ($booted ?? 0) + 1; function f() { static $k = 0; return ++$k; } return 7;";
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
    assert!(log.contains("names no file"), "{log}");
}

#[test]
fn warm_up_leaves_what_it_loads_and_nothing_else() {
    let loader = "spl_autoload_register(function ($c) { if ($c === 'Lazy') { eval('class Lazy { public static $n = 0; }'); error_log('loaded'); } });";
    let server = script(&format!(
        "{loader} Samovar\\warmup(function () {{
             echo 'unseen'; header('X-Unseen: 1'); http_response_code(500); session_start(); new Lazy(); Lazy::$n = 5;
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
    let answer = server.get("/");
    assert_eq!((answer.status, answer.header("x-unseen")), (200, None));
    assert!(server.log().contains("the warm-up threw Exception: not fatal"), "{}", server.log());
    assert_eq!(server.stop().matches("loaded").count(), 1);

    let below = "if ($_SERVER['REQUEST_URI'] === '/warm?a=1' && $_GET['a'] === '1') { new Lazy(); Lazy::$n = 9; }
         echo class_exists('Lazy', false) ? 'there ' . Lazy::$n : 'missing';";
    let start = script(&format!("{loader} Samovar\\checkpoint(); {below}"));
    let server = start.args(["--warmup", "/warm?a=1", "--warmup", "/other"]).start();
    assert_eq!(thrice(&server, "/"), "there 0", "classes, and not what the request did with them");
    server.stop();

    let start = script(&format!("{loader} Samovar\\serve(function () {{ {below} }}, 1);"));
    let server = start.args(["--warmup", "/warm?a=1"]).start();
    assert_eq!(thrice(&server, "/"), "there 9", "a handler's own state is kept");
}

#[test]
fn serve_rolls_back_as_often_as_it_is_told() {
    let handler = "$n = 0; Samovar\\serve(function () use (&$n) {
        static $k = 0; $k++; $n++;
        if (isset($_GET['fatal'])) { trigger_error('as fatal as it gets', E_USER_ERROR); }
        if (isset($_GET['grow'])) { $GLOBALS['big'] = str_repeat('x', 40 << 20); }
        echo \"$n $k\";
    }, EVERY);";
    for (every, counts) in [("1", "1 1, 1 1, 1 1, 1 1"), ("3", "1 1, 2 2, 3 3, 1 1")] {
        let server = script(&handler.replace("EVERY", every)).start();
        let pids = server.worker_pids();
        let answers: Vec<_> = (0..4).map(|_| server.get("/").text()).collect();
        assert_eq!(answers.join(", "), counts);
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

/// A server that accepts connections and sends nothing.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

const FFI: &str =
    "$c = FFI::cdef('int epoll_create1(int); typedef unsigned long t; unsigned sleep(unsigned);
    int pthread_create(t *, void *, unsigned (*)(unsigned), long); int inotify_init(void);');";

#[test]
fn what_cannot_be_shared_is_found_and_said() {
    let (_listener, port) = silent();
    let connection = format!("$s = stream_socket_client('tcp://127.0.0.1:{port}');");
    let thread = format!(
        "{FFI} $t = $c->new('t'); $c->pthread_create(FFI::addr($t), null, $c->sleep, 100);"
    );
    for (boot, kind, action, fall) in [
        (connection.as_str(), "connection", "worker", "worker"),
        ("$p = proc_open(['sleep', '100'], [['pipe', 'r']], $pipes);", "pipe", "worker", "worker"),
        ("$p = proc_open(['sleep', '100'], [], $pipes);", "child", "worker", "worker"),
        ("$p = popen('sleep 100', 'w');", "pipe", "worker", "worker"),
        ("$p = popen('sleep 100', 'w');", "child", "worker", "worker"),
        (
            "$f = fopen(__DIR__ . '/lock', 'c'); flock($f, LOCK_EX | LOCK_NB);",
            "lock",
            "worker",
            "worker",
        ),
        ("$s = stream_socket_server('tcp://127.0.0.1:0');", "listener", "note", "shared"),
        ("pcntl_alarm(1000);", "timer", "script", "script"),
        (&format!("{FFI} $c->epoll_create1(0);"), "kernel-object", "script", "script"),
        (&thread, "thread", "script", "script"),
    ] {
        let php = format!("$n = 0;\n{boot}\nSamovar\\checkpoint(); echo ++$n, ' ', $_GET['a'];");
        let server = script(&php).define("ffi.enable", "1").start();
        let status = image(&server);
        assert_eq!(status["mode"], fall, "{boot}: {status}; log: {}", server.log());
        let findings = status["findings"].as_array().expect("a list");
        let found = findings
            .iter()
            .find(|f| f["kind"] == kind)
            .unwrap_or_else(|| panic!("{boot}: {status}"));
        assert_eq!(found["action"], action, "{boot}");
        assert!(!found["advice"].as_str().unwrap_or_default().is_empty(), "{boot}");
        // What a foreign function opens, nobody sees.
        if kind != "kernel-object" {
            let place = found["where"].as_str().unwrap_or_default();
            assert!(
                place.ends_with("index.php:3") || place.ends_with("index.php:4"),
                "{boot}: {place}"
            );
        }
        for _ in 0..3 {
            assert_eq!(server.get("/?a=b").text(), "1 b", "{boot}: right all the same");
        }
        let model = if fall == "script" { "script" } else { "checkpoint" };
        assert_eq!(server.status()["workers"][0]["model"], model, "{boot}");
        drop(server);
        let (code, log) =
            script(&php).define("ffi.enable", "1").args(["--image-errors", kind]).ended();
        if action == "note" {
            continue;
        }
        assert_eq!(code, Some(1), "{boot}: {log}");
        assert!(log.contains("image_errors") && log.contains("hint:"), "{boot}: {log}");
    }
}

#[test]
fn an_encrypted_connection_is_never_rolled_back() {
    let tls = tls_server::start();
    let php = format!(
        "$o = ['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]];
         $s = stream_socket_client('tls://127.0.0.1:{}', $e, $m, 5, STREAM_CLIENT_CONNECT, stream_context_create($o));
         if (!$s) {{ die('no tls: ' . $m); }}
         Samovar\\checkpoint(); echo 'below';",
        tls.port
    );
    let server = script(&php).start();
    let status = image(&server);
    assert_eq!(status["mode"], "script", "{status}; {}", server.log());
    assert_eq!(status["findings"][0]["kind"], "tls");
    assert_eq!(thrice(&server, "/"), "below");
}

mod tls_server {
    use std::process::{Child, Command, Stdio};

    pub(super) struct Tls {
        pub(super) port: u16,
        child: Child,
        _folder: tempfile::TempDir,
    }

    impl Drop for Tls {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// OpenSSL's own test server, with a certificate made for it.
    pub(super) fn start() -> Tls {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (key, cert) = (folder.path().join("key"), folder.path().join("cert"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=localhost",
                "-keyout",
            ])
            .arg(&key)
            .arg("-out")
            .arg(&cert)
            .stderr(Stdio::null())
            .status();
        assert!(made.is_ok_and(|s| s.success()), "openssl makes a certificate");
        let port = super::silent().1;
        let child = Command::new("openssl")
            .args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-key"])
            .arg(&key)
            .arg("-cert")
            .arg(&cert)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl runs");
        samovar_testkit::eventually("the TLS server", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Tls { port, child, _folder: folder }
    }
}

#[test]
fn a_kept_connection_works_and_a_dead_one_reaches_no_request() {
    let (listener, port) = silent();
    let database = std::thread::spawn(move || {
        let mut connections = 0;
        // That of the image process, which sees that it cannot be shared, and one for each worker.
        for client in listener.incoming().take(3) {
            let mut client = client.expect("a connection");
            connections += 1;
            // The first worker's is closed after three questions, the other by the end of the test.
            let mut question = [0u8; 1];
            for n in 0.. {
                if connections == 2 && n == 3 || client.read(&mut question).unwrap_or(0) == 0 {
                    break;
                }
                client.write_all(format!("{connections}\n").as_bytes()).expect("it is read");
            }
        }
    });
    let server = script(&format!(
        "$s = stream_socket_client('tcp://127.0.0.1:{port}'); Samovar\\checkpoint();
         fwrite($s, '?'); echo trim(fgets($s)), ' ', $_POST['a'] ?? '';"
    ))
    .args(["--rehearse", "false"])
    .start();
    assert_eq!(thrice(&server, "/"), "2 ");
    // Not repeatable: it would be lost with a worker whose connection is found dead too late.
    for _ in 0..3 {
        let answer = server.client().request(&Request::form("/", "a=b"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "3 b"));
    }
    assert_eq!(image(&server)["refork_reasons"]["connection"], 1);
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
    database.join().expect("the silent server");
}

#[test]
fn what_a_rollback_cannot_undo_ends_the_worker_and_costs_no_request() {
    for (request, reason) in [
        (
            "proc_open(['sleep', '100'], [], $pipes); $GLOBALS['keep'] = 1; posix_kill(0, 0);",
            "child",
        ),
        ("fclose($GLOBALS['file']);", "descriptor"),
        ("posix_setsid(); posix_setpgid(0, 0);", "privileges"),
        ("posix_setgid(posix_getgid());", "privileges"),
        ("pcntl_setpriority(5);", "privileges"),
        (
            "$c = FFI::cdef('typedef unsigned long t; unsigned sleep(unsigned);
                int pthread_create(t *, void *, unsigned (*)(unsigned), long);');
             $t = $c->new('t'); $c->pthread_create(FFI::addr($t), null, $c->sleep, 100);",
            "thread",
        ),
    ] {
        let php = format!(
            "$file = fopen(__FILE__, 'r'); Samovar\\checkpoint();
             if ($_SERVER['REQUEST_URI'] === '/do') {{ {request} }} echo getmypid();"
        );
        let server = script(&php).define("ffi.enable", "1").start();
        let before = thrice(&server, "/");
        assert_eq!(server.get("/do").text(), before, "{request}: answered; {}", server.log());
        let after = thrice(&server, "/");
        assert_ne!(after, before, "{request}");
        let status = image(&server);
        assert_eq!(status["refork_reasons"][reason], 1, "{request}: {status}");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{request}");
        server.stop();
    }
}

/// How a server is to be started differently.
type Change = fn(Start) -> Start;

#[test]
fn it_works_however_php_and_the_kernel_are_configured() {
    let php = "class A { public static $n = 0; } ini_set('precision', '12'); $list = range(1, 1000);
         Samovar\\checkpoint();
         A::$n++; $list[] = str_repeat('x', 3 << 20); ini_set('precision', '5'); define('D', 1); putenv('LEAK=1');
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
fn status_says_what_an_image_is_and_costs() {
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

/// In a container stderr is a pipe, below systemd a socket; loggers open `php://stderr` while they boot.
#[test]
fn the_servers_own_stderr_may_be_open_above() {
    let server = script(
        "$log = fopen('php://stderr', 'a');
         Samovar\\checkpoint();
         fwrite($log, \"request {$_SERVER['REQUEST_URI']} is logged\\n\");
         echo 'hello';",
    )
    .workers(2)
    .start();
    for target in ["/1", "/2", "/3"] {
        assert_eq!(server.get(target).text(), "hello");
        server.wait_for_log(&format!("request {target} is logged"));
    }
    let image = image(&server);
    assert_eq!(
        (image["mode"].as_str(), image["findings"].to_string().as_str()),
        (Some("shared"), "[]")
    );
    assert_eq!(image["refork_total"], 0, "{image}");
}
