//! Actions of a request that no rollback undoes: the worker is replaced, and no other request is
//! affected.

use crate::image::{image, mode, script, silent, thrice};
use samovar_testkit::http::Request;
use samovar_testkit::{WATCHDOG, eventually};
use std::io::{Read as _, Write as _};

#[test]
fn kept_connection_is_reused_and_dead_one_replaces_worker() {
    let (listener, port) = silent();
    let (tell, is_closed) = std::sync::mpsc::channel();
    let database = std::thread::spawn(move || {
        let mut connections = 0;
        // One connection of the image process, which detects that it cannot be shared, and one of
        // each worker.
        for client in listener.incoming().take(3) {
            let mut client = client.expect("a connection");
            connections += 1;
            // The first worker's connection is closed after three requests, the other one at the
            // end of the test.
            let mut question = [0u8; 1];
            for n in 0.. {
                if connections == 2 && n == 3 || client.read(&mut question).unwrap_or(0) == 0 {
                    break;
                }
                client.write_all(format!("{connections}\n").as_bytes()).expect("it is read");
            }
            drop(client);
            tell.send(connections).expect("the test goes on");
        }
    });
    let server = script(&format!(
        "$s = stream_socket_client('tcp://127.0.0.1:{port}'); Samovar\\checkpoint();
         fwrite($s, '?'); echo trim(fgets($s)), ' ', $_POST['a'] ?? ''; Samovar\\kept($s);"
    ))
    .args(["--prewarm-boot", "false"])
    .start();
    assert_eq!(thrice(&server, "/"), "2 ");
    while is_closed.recv_timeout(WATCHDOG).expect("the first worker's is closed") != 2 {}
    // These requests are not repeatable. One would be lost with its worker if the dead connection
    // were detected too late.
    for _ in 0..3 {
        let response = server.client().request(&Request::form("/", "a=b"));
        assert_eq!((response.status, response.text().as_str()), (200, "3 b"));
    }
    assert_eq!(image(&server)["refork_reasons"]["connection"], 1);
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
    database.join().expect("the silent server");
}

#[test]
fn irreversible_change_replaces_worker_and_loses_no_request() {
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

/// Taking one semaphore and releasing another, in two sets, does not balance.
#[test]
fn held_semaphore_is_not_balanced_by_another() {
    let server = script(
        "$a = ftok(__FILE__, 'a'); $b = ftok(__FILE__, 'b');
         Samovar\\checkpoint();
         $ffi = FFI::cdef('int semget(int, int, int); int semop(int, void *, size_t);
             struct op { unsigned short num; short op; short flg; };');
         $change = function ($key, $by) use ($ffi) {
             $op = $ffi->new('struct op'); $op->op = $by;
             return $ffi->semop($ffi->semget($key, 1, 01600), FFI::addr($op), 1);
         };
         if (isset($_GET['even'])) { $change($a, 1); $change($a, -1); }
         if (isset($_GET['odd'])) {
             $change($a, 1); $change($b, 1); $change($b, -1); $change($b, 1); $change($a, 1); }
         if (isset($_GET['cross'])) { $change($a, -1); $change($b, 1); }
         if (isset($_GET['end'])) { sem_remove(sem_get($a)); sem_remove(sem_get($b)); }
         echo 1;",
    )
    .define("ffi.enable", "1")
    .start();
    let reforks = || image(&server)["refork_reasons"]["lock"].as_u64().unwrap_or(0);
    thrice(&server, "/?even");
    assert_eq!(reforks(), 0);
    server.get("/?odd");
    eventually("a fresh fork", || (reforks() == 1).then_some(()));
    server.get("/?cross");
    eventually("another fresh fork", || (reforks() == 2).then_some(()));
    server.get("/?end");
}

/// libc closes directory streams itself, so the server sees no call.
#[test]
fn directory_closed_by_request_replaces_worker() {
    let server = script(
        "mkdir(__DIR__ . '/d'); touch(__DIR__ . '/d/a'); touch(__DIR__ . '/d/b');
         $d = opendir(__DIR__ . '/d');
         Samovar\\checkpoint();
         if (isset($_GET['close'])) {
             closedir($d);
             exit('closed');
         }
         rewinddir($d);
         for ($n = 0; readdir($d) !== false; $n++);
         echo $n;",
    )
    .args(["--prewarm-boot", "false"])
    .start();
    for turn in 1..=3 {
        assert_eq!(thrice(&server, "/"), "4");
        assert_eq!(server.get("/?close").text(), "closed");
        eventually("a fresh fork", || {
            (image(&server)["refork_reasons"]["descriptor"] == turn).then_some(())
        });
    }
    assert_eq!(image(&server)["refork_total"], 3);
}

/// libc also closes pipes of `popen` itself.
#[test]
fn pipe_closed_by_request_replaces_worker() {
    let server = script(
        "$p = popen('exec cat > /dev/null', 'w');
         Samovar\\checkpoint();
         if (isset($_GET['close'])) { pclose($p); exit('closed'); }
         echo json_encode(@fwrite($p, 'x')), getmypid();",
    )
    .start();
    for turn in 1..=2 {
        let open = eventually("a booted worker", || {
            let text = server.get("/").text();
            (mode(&server) == "worker").then_some(text)
        });
        assert!(open.starts_with('1'), "{open}");
        assert_eq!(server.get("/?close").text(), "closed");
        let after = server.get("/").text();
        assert!(after.starts_with('1') && after != open, "{turn}: {after}");
    }
}
