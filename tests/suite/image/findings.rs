//! Preflight findings: conditions of the boot that prevent sharing the image, and the fallback for
//! each.

use crate::image::{image, script, silent, thrice};
use samovar_testkit::{MariaDb, eventually};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

const FFI: &str =
    "$c = FFI::cdef('int epoll_create1(int); typedef unsigned long t; unsigned sleep(unsigned);
    int pthread_create(t *, void *, unsigned (*)(unsigned), long); int inotify_init(void);');";

#[test]
fn unshareable_state_is_a_finding_with_action() {
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
            "$f = fopen(__DIR__ . '/lock', 'c'); flock($f, LOCK_SH | LOCK_NB);",
            "lock",
            "worker",
            "worker",
        ),
        (
            "$f = fopen(__DIR__ . '/lock', 'c'); flock($f, LOCK_EX | LOCK_NB);",
            "lock",
            "script",
            "script",
        ),
        ("$s = stream_socket_server('tcp://127.0.0.1:0');", "listener", "note", "shared"),
        (
            "$s = socket_create(AF_INET, SOCK_STREAM, 0); socket_bind($s, '127.0.0.1');",
            "connection",
            "worker",
            "worker",
        ),
        ("pcntl_alarm(1000);", "timer", "script", "script"),
        (&format!("{FFI} $c->epoll_create1(0);"), "kernel-object", "script", "script"),
        (&thread, "thread", "script", "script"),
        (
            "pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1]); posix_kill(getmypid(), SIGUSR1);",
            "signal",
            "script",
            "script",
        ),
        (
            "$c = FFI::cdef('void *mmap(void *, size_t, int, int, int, long);');
             $c->mmap(null, 4096, 3, 0x21, -1, 0);",
            "memory",
            "note",
            "shared",
        ),
        (
            "$c = FFI::cdef('long syscall(long, const char *, const char *, char *, long, int);');
             $c->syscall(php_uname('m') === 'aarch64' ? 217 : 248, 'user', 'tea', 'x', 1, -2);",
            "key",
            "note",
            "shared",
        ),
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
        // Resources opened through FFI, and signals, are found without their place in the code.
        if kind != "kernel-object" && kind != "signal" {
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
        // Some requests end their worker; the status then shows its successor.
        let shown = eventually("a worker", || {
            server.status()["workers"][0]["model"].as_str().map(str::to_owned)
        });
        assert_eq!(shown, model, "{boot}");
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
fn encrypted_connection_in_boot_causes_script_mode() {
    let tls = tls_server::start();
    let php = format!(
        "$o = ['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]];
         $s = stream_socket_client('tls://127.0.0.1:{}', $e, $m, 5,
             STREAM_CLIENT_CONNECT, stream_context_create($o));
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
        let port = crate::image::silent().1;
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

/// In a container stderr is a pipe, under systemd a socket. Loggers open `php://stderr` during the
/// boot.
#[test]
fn stderr_opened_in_boot_is_no_finding() {
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

/// Data that the boot received remains in the image, so the finding names its source. Opening a
/// connection alone is no query.
#[test]
fn data_received_in_boot_is_a_finding() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.expect("a connection");
                let mut line = [0; 64];
                while stream.read(&mut line).is_ok_and(|n| n > 0) {
                    stream.write_all(b"the answer\n").expect("it listens");
                }
            });
        }
    });
    let server = script(&format!(
        "$c = stream_socket_client('tcp://{address}');
         foreach ([1, 2, 3] as $i) {{ fwrite($c, \"question $i\\n\"); $said = fgets($c); }}
         fclose($c);
         Samovar\\checkpoint(); echo $said;"
    ))
    .start();
    assert_eq!(thrice(&server, "/"), "the answer\n");
    let image = image(&server);
    assert_eq!(image["mode"], "shared");
    let found = image["findings"].as_array().expect("a list");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["kind"], &found[0]["action"]), (&"data".into(), &"note".into()));
    let what = format!("the responses to 3 requests (33 bytes) from a connection to {address}");
    assert_eq!(found[0]["what"], what.as_str());
    let line = format!("{}", found[0]);
    assert!(line.contains("index.php:3"), "{line}");
    server.stop();

    let database = MariaDb::start();
    let connect = format!(
        "$c = new PDO('mysql:unix_socket={};charset=utf8mb4', 'root'); $c->exec('SET @a = 1');",
        database.socket().display()
    );
    for (asks, expected) in [("", 0), ("$c->query('SELECT 1')->fetchAll();", 1)] {
        let server = script(&format!("{connect}{asks} Samovar\\checkpoint(); echo 1;")).start();
        thrice(&server, "/");
        let image = self::image(&server);
        let of_data = |found: &&Value| found["kind"] == "data";
        let found = image["findings"].as_array().expect("a list");
        assert_eq!(found.iter().filter(of_data).count(), expected, "{asks}: {found:?}");
    }
}

/// The rollback restores the file position, so each request would overwrite the text of the last
/// one.
#[test]
fn file_opened_for_overwriting_in_boot_is_a_finding() {
    for (how, expected) in [("w", 1), ("a", 0), ("r", 0)] {
        let server = script(&format!(
            "touch(__DIR__ . '/log'); $f = fopen(__DIR__ . '/log', '{how}'); \
             Samovar\\checkpoint(); echo 1;"
        ))
        .start();
        thrice(&server, "/");
        let image = image(&server);
        let found = image["findings"].as_array().expect("a list");
        let files = found.iter().filter(|f| f["kind"] == "file" && f["action"] == "note");
        assert_eq!(files.count(), expected, "{how}: {found:?}");
        assert_eq!(image["mode"], "shared", "{how}");
    }
}
