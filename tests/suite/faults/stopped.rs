//! Stopped processes, and scripts that continue without a client: they are detected and replaced.

use crate::faults::stage::{
    app, assert_serves, create, file_of, is_alive, is_hello, parent_of, wait_for_busy,
    wait_for_ends, wait_for_in_flight, workers_in,
};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};

/// The shortest permitted timeout.
const WATCHDOG: [&str; 2] = ["--watchdog-timeout", "3s"];

fn wait_for_idle(server: &Server, count: usize) -> Vec<i32> {
    eventually(&format!("{count} idle workers"), || {
        Some(workers_in(server, "idle")).filter(|idle| idle.len() == count)
    })
}

#[test]
fn stopped_idle_workers_are_skipped_and_replaced() {
    let server = app().workers(4).args(WATCHDOG).args(["--queue-timeout", "2s"]).start();
    let workers = wait_for_idle(&server, 4);
    let stopped = &workers[..3];
    for pid in stopped {
        server.stop_process(*pid);
    }
    for _ in 0..6 {
        let response = server.get("/hello");
        assert!(is_hello(&response), "{response:?}\n{}", server.log());
    }
    wait_for_ends(stopped);
    let now = wait_for_idle(&server, 4);
    assert!(now.contains(&workers[3]), "the one that ran was left alone: {now:?}");
    assert_eq!(server.status()["worker_restarts_total"], 3);
    assert_eq!(server.status()["kills_reasons"]["watchdog"], 3);
    server.wait_for_log("no heartbeat of");
    server.stop();
}

#[test]
fn running_idle_workers_are_not_killed() {
    let server = app().workers(3).args(WATCHDOG).start();
    let workers = wait_for_idle(&server, 3);
    // Longer than the watchdog timeout.
    let since = std::time::Instant::now();
    eventually("six seconds of silence", || (since.elapsed().as_secs() >= 6).then_some(()));
    assert_eq!(wait_for_idle(&server, 3), workers);
    server.pause();
    std::thread::sleep(std::time::Duration::from_secs(4));
    server.resume();
    assert_serves(&server, "after a standstill of the server's own");
    assert_eq!(server.status()["worker_restarts_total"], 0, "{}", server.log());
    server.stop();
}

#[test]
fn stopped_template_is_replaced() {
    let server = app().workers(2).args(WATCHDOG).start();
    let template = parent_of(wait_for_idle(&server, 2)[0]);
    server.stop_process(template);
    assert_serves(&server, "its workers are there");
    wait_for_ends(&[template]);
    eventually("a new generation", || {
        let status = server.status();
        (status["generation"] == 2 && status["workers"].as_array()?.len() == 2).then_some(())
    });
    assert_serves(&server, "with a new template");
    server.stop();
}

/// The server once waited forever for a template that was stopped before it had started PHP.
#[test]
fn template_stopped_during_start_is_replaced() {
    let server = app().workers(1).args(WATCHDOG).args(["--boot-timeout", "3s"]).start();
    let template = parent_of(wait_for_idle(&server, 1)[0]);
    server.kill_worker(template);
    // Stopped only when it runs the worker binary. Until then it is a fork of the server, which
    // waits for it in std's spawn.
    let is_next = |pid: &i32| *pid != template && is_alive(*pid) && runs_worker_binary(*pid);
    let next =
        eventually("the next template", || children_of(server.pid()).into_iter().find(is_next));
    server.stop_process(next);
    wait_for_ends(&[next]);
    assert_serves(&server, "with the one after it");
    server.stop();
}

fn runs_worker_binary(pid: i32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("samovar-php"))
}

fn children_of(pid: i32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn stopped_image_process_is_replaced() {
    let script = "<?php Samovar\\checkpoint(); echo getmypid();";
    let server = Server::script(script).workers(2).args(WATCHDOG).start();
    let workers = wait_for_idle(&server, 2);
    let image = parent_of(workers[0]);
    let template = parent_of(image);
    assert_eq!(parent_of(template), server.pid(), "an image process between template and worker");
    server.stop_process(image);
    server.kill_worker(workers[0]);
    wait_for_ends(&[image]);
    server.wait_for_log("no heartbeat of the image process");
    for worker in wait_for_idle(&server, 2) {
        assert_eq!(parent_of(parent_of(worker)), template, "booted by the same template");
    }
    assert!(is_alive(template));
    assert_eq!(server.get("/").status, 200);
    server.stop();
}

#[test]
fn order_lost_by_stopped_image_process_is_repeated() {
    let script = "<?php Samovar\\checkpoint(); if ($_GET) { posix_kill(posix_getppid(), SIGSTOP); \
                  } echo 'up';";
    let server = Server::script(script).workers(2).args(WATCHDOG).start();
    for _ in 0..3 {
        let workers = wait_for_idle(&server, 2);
        let image = parent_of(workers[0]);
        // The death is reported, and the order for a successor goes to an image process that has
        // just been stopped.
        server.kill_worker(workers[0]);
        server.get("/?stop=1");
        wait_for_ends(&[image]);
        assert_eq!(server.get("/").text(), "up");
    }
    wait_for_idle(&server, 2);
    server.stop();
}

#[test]
fn script_after_response_is_ended_at_after_timeout() {
    let server = app().workers(1).args(["--post-response-timeout", "1s"]).start();
    let target = format!("/finish?file={}", file_of(&server, "never").display());
    let mut client = server.client();
    let response = client.get(&target);
    assert_eq!((response.text().as_str(), response.complete), ("the client has this", true));
    let worker = wait_for_busy(&server);
    assert!(is_hello(&client.get("/hello")), "by the next worker");
    wait_for_ends(&[worker]);
    server.wait_for_log("limit=\"timeouts.post_response\"");
    assert!(server.log().contains(&format!("request=\"GET {target}\"")), "{}", server.log());
    assert_eq!(server.status()["post_response_timeouts_total"], 1);
    wait_for_in_flight(&server, 0);
    server.stop();
}

/// The return to the image closes descriptors that a request left open. `close` of a socket with
/// `SO_LINGER` blocks.
#[test]
fn worker_hanging_in_rollback_is_replaced() {
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = deaf.local_addr().expect("an address").port();
    let script = format!(
        "<?php Samovar\\checkpoint();
        if (isset($_GET['hang'])) {{
            $c = FFI::cdef('int socket(int, int, int); int connect(int, const char *, unsigned);
                int setsockopt(int, int, int, const char *, unsigned);
                long send(int, const char *, unsigned long, int);');
            $socket = $c->socket(2, 1, 0);
            $c->connect($socket, pack('vnNx8', 2, {port}, 0x7f000001), 16);
            $c->setsockopt($socket, 1, 13, pack('VV', 1, 100000), 8);
            while ($c->send($socket, str_repeat('x', 1 << 16), 1 << 16, 0x40) > 0);
        }}
        echo 'up';"
    );
    // Disables the timeout of scripts that continue after their response.
    let server = Server::script(&script)
        .define("ffi.enable", "true")
        .workers(1)
        .args(WATCHDOG)
        .args(["--post-response-timeout", "0"])
        .start();
    let worker = wait_for_idle(&server, 1)[0];
    assert_eq!(server.get("/?hang").text(), "up");
    wait_for_ends(&[worker]);
    server.wait_for_log("no heartbeat of");
    assert_eq!(server.get("/").text(), "up");
    server.stop();
}

#[test]
fn script_after_response_may_exceed_response_timeout() {
    let server = app().workers(1).args(["--response-timeout", "1s"]).start();
    let file = file_of(&server, "go");
    let done = file_of(&server, "go.done");
    let response = server.get(&format!("/finish?file={}", file.display()));
    assert!(response.complete, "{response:?}");
    let worker = wait_for_busy(&server);
    // Longer than the response timeout, which ended with the response.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    create(&file);
    eventually("the end of the script", || done.exists().then_some(()));
    assert_eq!(wait_for_idle(&server, 1), [worker]);
    server.stop();
}

#[test]
fn request_without_client_ends_at_after_timeout() {
    let limits = ["--response-timeout", "0", "--post-response-timeout", "1s"];
    let server = app().workers(1).args(limits).start();
    let mut client = server.client();
    client.send(&Request::get("/sleep?ms=600000").bytes());
    let worker = wait_for_busy(&server);
    drop(client);
    assert!(is_hello(&server.get("/hello")), "{}", server.log());
    wait_for_ends(&[worker]);
    assert_eq!(server.status()["post_response_timeouts_total"], 1);
    server.stop();
}

/// As in php-fpm: `timeouts.response` applies only to the request that does not continue without
/// its client.
#[test]
fn script_ignoring_user_abort_continues_beyond_response_timeout() {
    for (ini, lasting, mortal) in [("0", "&ignore=1", ""), ("1", "", "&ignore=0")] {
        let start = app().workers(2).define("ignore_user_abort", ini);
        let server = start.args(["--response-timeout", "2s"]).start();
        let (file, never) = (file_of(&server, "go"), file_of(&server, "never"));
        let mut client = server.client();
        client.send(&Request::get(&format!("/outlive?file={}{lasting}", file.display())).bytes());
        let survivor = wait_for_busy(&server);
        drop(client);
        let mut client = server.client();
        client.send(&Request::get(&format!("/outlive?file={}{mortal}", never.display())).bytes());
        eventually("both run", || (workers_in(&server, "busy").len() == 2).then_some(()));
        drop(client);
        server.wait_for_log("limit=\"timeouts.response\"");
        create(&file);
        let done = file_of(&server, "go.done");
        eventually("the end of the script", || done.exists().then_some(()));
        eventually("it is idle", || workers_in(&server, "idle").contains(&survivor).then_some(()));
        server.stop();
    }
}

#[test]
fn script_ignoring_user_abort_ends_at_request_timeout() {
    let limits = ["--response-timeout", "2s", "--request-timeout", "1s"];
    let server = app().workers(1).args(limits).start();
    let never = file_of(&server, "never");
    let mut client = server.client();
    client.send(&Request::get(&format!("/outlive?ignore=1&file={}", never.display())).bytes());
    wait_for_busy(&server);
    drop(client);
    server.wait_for_log("limit=\"timeouts.request\"");
    server.stop();
}

/// The first boot never ends: in the image process, in its rehearsal, or in a worker that boots
/// separately.
#[test]
fn endless_boot_is_aborted_and_retried() {
    let hangs = "if (@mkdir(__DIR__ . '/hung')) { sleep(3600); }";
    // An open pipe above the checkpoint: each worker boots separately, after the image process.
    let hangs_later = "$child = popen('cat', 'w'); if (!@mkdir(__DIR__ . '/booted') && \
                       @mkdir(__DIR__ . '/hung')) { sleep(3600); }";
    for (boot, prewarm_boot, said) in [
        (hangs, "false", "the application did not boot in time"),
        (hangs, "true", "the application did not boot in time"),
        (hangs_later, "false", "no heartbeat of"),
    ] {
        let server =
            Server::script(&format!("<?php {boot} Samovar\\checkpoint(); echo getmypid();"))
                .workers(1)
                .args(WATCHDOG)
                .args(["--boot-timeout", "1s", "--prewarm-boot", prewarm_boot])
                .start();
        server.wait_for_log(said);
        eventually("a worker", || (!workers_in(&server, "idle").is_empty()).then_some(()));
        assert_eq!(server.get("/").status, 200, "{}", server.log());
        server.stop();
    }
}
