//! Workers and templates that are killed, exit or hang: others serve requests, and a death costs
//! one request.

use crate::faults::stage::{
    Load, app, assert_serves, create, file_of, is_hello, parent_of, processes_of, wait_for_busy,
    wait_for_ends, wait_for_in_flight, workers_in,
};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, WATCHDOG, eventually};
use std::time::{Duration, Instant};

/// Duration of the load while workers are killed.
const SIEGE: Duration = Duration::from_secs(3);

/// Kills one worker after another for [`SIEGE`]. Returns their number.
fn kill_workers(server: &Server) -> usize {
    let start = Instant::now();
    let mut killed = 0;
    while start.elapsed() < SIEGE {
        let pids = server.worker_pids();
        if let Some(pid) = pids.get(killed * 7 % pids.len().max(1)) {
            server.kill_worker(*pid);
            killed += 1;
        }
        // Sets the rate of worker deaths; not a wait for a condition.
        std::thread::sleep(Duration::from_millis(150));
    }
    killed
}

#[test]
fn gets_succeed_while_workers_are_killed() {
    let server = app().workers(4).start();
    let load = Load::start(server.address(), 6, &Request::get("/hello"));
    let killed = kill_workers(&server);
    let responses = load.stop();
    let failed: Vec<_> =
        responses.iter().filter(|a| !a.as_ref().is_ok_and(is_hello)).take(3).collect();
    assert!(failed.is_empty(), "of {}: {failed:?}\n{}", responses.len(), server.log());
    let status = server.status();
    assert!(killed > 5 && responses.len() > 100, "{killed} kills, {} answers", responses.len());
    eventually("the count of restarts", || {
        (server.status()["worker_restarts_total"].as_u64()? >= killed as u64 / 2).then_some(())
    });
    assert_eq!(status["generation"], 1, "the template lives: {status}");
    wait_for_in_flight(&server, 0);
    server.stop();
}

#[test]
fn post_of_killed_worker_gets_502_and_keeps_connection() {
    let server = app().workers(4).start();
    let post = Request::form("/sleep?ms=5", "a=b");
    let load = Load::start(server.address(), 6, &post);
    let killed = kill_workers(&server);
    let responses = load.stop();
    for response in &responses {
        let response = response.as_ref().expect("every POST is answered on its connection");
        assert!(matches!(response.status, 200 | 502) && response.complete, "{response:?}");
        assert_ne!(response.header("connection"), Some("close"), "{response:?}");
    }
    let lost = responses.iter().filter(|a| a.as_ref().is_ok_and(|a| a.status == 502)).count();
    assert!(lost > 0, "{killed} workers were killed under {} POSTs", responses.len());
    assert!(lost <= killed, "a death costs one request: {lost} lost, {killed} killed");
    server.stop();
}

#[test]
fn response_502_is_sent_at_worker_death_without_timeout() {
    let server = app().workers(1).start();
    let mut client = server.client();
    client.send(&Request::form("/sleep?ms=600000", "a=b").bytes());
    server.kill_worker(wait_for_busy(&server));
    let lost = client.read(false);
    assert_eq!((lost.status, lost.complete), (502, true));
    assert!(is_hello(&client.get("/hello")), "on the same connection");
    let status = server.status();
    assert_eq!(
        (&status["retries_total"], &status["worker_restarts_total"]),
        (&0.into(), &1.into())
    );
}

#[test]
fn get_is_retried_at_most_twice() {
    let server = app().workers(1).start();
    let mut client = server.client();
    client.send(&Request::get("/sleep?ms=600000").bytes());
    let mut killed = 0;
    for _ in 0..3 {
        killed = eventually("its next worker", || {
            workers_in(&server, "busy").into_iter().find(|pid| *pid != killed)
        });
        server.kill_worker(killed);
    }
    assert_eq!(client.read(false).status, 502);
    assert_eq!(server.status()["retries_total"], 2);
    assert!(is_hello(&client.get("/hello")));
}

/// Number of workers lost to a GET of a page that ends its worker by `signal`. The response is 502.
fn workers_lost_to(server: &Server, page: &str, signal: i32) -> u64 {
    let restarts = || server.status()["worker_restarts_total"].as_u64().expect("a number");
    let before = restarts();
    assert_eq!(server.get(&format!("/signal{page}?signal={signal}")).status, 502);
    eventually("all workers", || (server.worker_pids().len() == 2).then_some(()));
    restarts() - before
}

/// A crashing GET once took three workers, and their successors waited for up to 5 s. Two such
/// requests a second blocked all others.
#[test]
fn crashing_page_is_retried_less_and_blocks_no_other_page() {
    let server = app().workers(2).start();
    assert_eq!(workers_lost_to(&server, "", 11), 2, "once more, on a worker that is in order");
    for _ in 0..8 {
        assert_eq!(workers_lost_to(&server, "", 11), 1, "this page is known for it");
    }
    assert_eq!(workers_lost_to(&server, "/other", 11), 2, "another page is not");
    // A SIGKILL is attributed to another process until the same request dies of it again.
    assert_eq!(workers_lost_to(&server, "/killed", 9), 3);
    assert_eq!(workers_lost_to(&server, "/killed", 9), 1);
    assert_serves(&server, "after the crashes");
    server.stop();
}

#[test]
fn repeated_crashes_are_summarized_in_log() {
    let server = app().workers(2).start();
    let said = |what: &str| server.log().matches(what).count() as u64;
    eventually("most are left out", || {
        assert_eq!(server.get("/signal?signal=11").status, 502);
        let deaths = server.status()["worker_restarts_total"].as_u64()?;
        let lines =
            said(": worker was killed by signal 11").max(said("requests lost their worker"));
        (lines > 0 && deaths > lines + 20).then_some(())
    });
    // The next line of the log contains the number of omitted lines.
    eventually("they are counted", || {
        assert_eq!(server.get("/signal?signal=11").status, 502);
        let log = server.log();
        let mut lines =
            log.lines().filter(|line| line.contains(": worker was killed by signal 11"));
        lines
            .any(|line| line.contains("suppressed=") && !line.contains("suppressed=0"))
            .then_some(())
    });
    server.stop();
}

#[test]
fn worker_death_after_first_bytes_truncates_response() {
    let server = app().workers(1).start();
    let file = file_of(&server, "go");
    let mut client = server.client();
    client.send(&Request::get(&format!("/half?file={}", file.display())).bytes());
    let head = client.read_head().expect("the head was flushed");
    assert_eq!(head.status, 200);
    assert_eq!(client.read_chunk().expect("a chunk").as_deref(), Some(&b"half"[..]));
    create(&file);
    assert_eq!(client.read_chunk().expect("no more"), None, "cut, not ended");
    assert_serves(&server, "after a cut answer");
    assert_eq!(server.status()["retries_total"], 0, "the client had bytes already");
}

#[test]
fn script_ending_its_process_loses_own_request_only() {
    for (name, signal) in [("SIGSEGV", 11), ("SIGABRT", 6), ("SIGKILL", 9)] {
        let server = app().workers(2).start();
        let target = format!("/signal?signal={signal}");
        let lost = server.client().request(&Request::form(&target, "a=b"));
        assert_eq!(lost.status, 502, "{name}");
        assert_serves(&server, name);
        server.wait_for_log(&format!("was killed by signal {signal}"));
        eventually("two workers", || (server.worker_pids().len() == 2).then_some(()));
        server.stop();
    }
}

#[test]
fn termination_signal_to_worker_does_not_end_request() {
    // Ctrl-C and `kill -TERM -PGID` reach the workers, too. The front alone reacts to them.
    let server = app().workers(1).start();
    for signal in [15, 2, 1] {
        let response = server.get(&format!("/signal?signal={signal}"));
        assert_eq!(response.status, 200, "signal {signal}");
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn killed_template_is_replaced_without_failed_get() {
    let server = app().workers(3).start();
    let load = Load::start(server.address(), 6, &Request::get("/sleep?ms=2"));
    for generation in 1..=2 {
        let template = parent_of(server.worker_pid());
        server.kill_worker(template);
        eventually("a new generation", || {
            let status = server.status();
            let workers = status["workers"].as_array()?.len();
            (status["generation"] == generation + 1 && workers == 3).then_some(())
        });
        let before = server.status()["requests_total"].as_u64().expect("a number");
        eventually("requests", || {
            (server.status()["requests_total"].as_u64()? > before + 50).then_some(())
        });
    }
    let responses = load.stop();
    for response in &responses {
        assert!(
            response.as_ref().is_ok_and(|a| a.text() == "slept"),
            "{response:?}\n{}",
            server.log()
        );
    }
    let everybody = processes_of(&server);
    server.stop();
    wait_for_ends(&everybody);
}

#[test]
fn hanging_worker_is_replaced_while_others_serve() {
    for target in ["/loop", "/sleep?ms=600000", "/half?file=never"] {
        let limits = ["--response-timeout", "1s", "--grace-timeout", "0"];
        // These requests do not hang; they may only be late on a busy machine.
        let others = ["--path-timeout", "/hello=1m"];
        let server = app().workers(2).args(limits).args(others).start();
        let mut hung = server.client();
        hung.send(&Request::get(target).bytes());
        let pid = wait_for_busy(&server);
        let load = Load::start(server.address(), 2, &Request::get("/hello"));
        if target.starts_with("/half") {
            let response = hung.read(false);
            assert!(!response.complete, "silence in the middle: {response:?}");
        } else {
            let response = hung.read(false);
            assert_eq!((response.status, response.complete), (504, true), "{target}");
            assert!(is_hello(&hung.get("/hello")), "{target}: on the same connection");
        }
        wait_for_ends(&[pid]);
        for response in load.stop() {
            assert!(response.as_ref().is_ok_and(is_hello), "{target}: {response:?}");
        }
        eventually("its successor", || (workers_in(&server, "idle").len() == 2).then_some(()));
        let status = server.status();
        assert_eq!(status["worker_restarts_total"], 1, "{target}: {status}");
        server.stop();
    }
}

#[test]
fn script_sending_output_may_exceed_response_timeout() {
    let server = app().workers(1).args(["--response-timeout", "2s"]).start();
    let response = server.get("/drip?n=10&ms=300");
    assert_eq!((response.status, response.complete), (200, true));
    assert_eq!(response.text().lines().count(), 10);
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn test_watchdog_exceeds_longest_backoff() {
    // The longest backoff is 5 s (crates/supervisor/src/workers.rs).
    assert!(WATCHDOG > Duration::from_secs(10));
}

/// A failed upgrade of a package leaves the worker of another version next to a running server.
#[test]
fn replaced_worker_binary_is_not_used_after_death_of_template() {
    let start = app().workers(2);
    let worker = start.folder().join("samovar-php");
    std::fs::copy(samovar_testkit::binary().with_file_name("samovar-php"), &worker)
        .expect("a copy");
    let server = start.args(["--php-binary", &worker.display().to_string()]).start();
    let other = worker.with_extension("new");
    std::fs::copy("/bin/false", &other).expect("our own folder");
    std::fs::rename(&other, &worker).expect("our own folder");
    let template = parent_of(server.worker_pid());
    server.kill_worker(template);
    eventually("a new template", || (server.status()["generation"] == 2).then_some(()));
    assert_serves(&server, "after the death of the template");
    // A reload takes the binary of the path, which is none.
    server.reload().expect_err("the other binary is no worker");
    assert_serves(&server, "after a failed reload");
    server.stop();
}
