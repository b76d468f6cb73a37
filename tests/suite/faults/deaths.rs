//! Workers and templates that are killed, end themselves or hang: others serve, and a death costs one
//! request.

use crate::faults::stage::{
    Load, app, assert_serves, create, file_of, is_hello, parent_of, processes_of, wait_for_busy,
    wait_for_ends, wait_for_in_flight, workers_in,
};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, WATCHDOG, eventually};
use std::time::{Duration, Instant};

/// How long load goes on while workers are killed.
const SIEGE: Duration = Duration::from_secs(3);

/// Kills one worker after another for [`SIEGE`]; says how many.
fn kill_workers(server: &Server) -> usize {
    let start = Instant::now();
    let mut killed = 0;
    while start.elapsed() < SIEGE {
        let pids = server.worker_pids();
        if let Some(pid) = pids.get(killed * 7 % pids.len().max(1)) {
            server.kill_worker(*pid);
            killed += 1;
        }
        // Not a wait for anything: the rate at which workers die.
        std::thread::sleep(Duration::from_millis(150));
    }
    killed
}

#[test]
fn no_get_fails_while_workers_are_killed() {
    let server = app().workers(4).start();
    let load = Load::start(server.address(), 6, &Request::get("/hello"));
    let killed = kill_workers(&server);
    let answers = load.stop();
    let failed: Vec<_> =
        answers.iter().filter(|a| !a.as_ref().is_ok_and(is_hello)).take(3).collect();
    assert!(failed.is_empty(), "of {}: {failed:?}\n{}", answers.len(), server.log());
    let status = server.status();
    assert!(killed > 5 && answers.len() > 100, "{killed} kills, {} answers", answers.len());
    eventually("the count of restarts", || {
        (server.status()["worker_restarts_total"].as_u64()? >= killed as u64 / 2).then_some(())
    });
    assert_eq!(status["generation"], 1, "the template lives: {status}");
    wait_for_in_flight(&server, 0);
    server.stop();
}

#[test]
fn a_post_whose_worker_dies_is_502_and_its_connection_lives_on() {
    let server = app().workers(4).start();
    let post = Request::form("/sleep?ms=5", "a=b");
    let load = Load::start(server.address(), 6, &post);
    let killed = kill_workers(&server);
    let answers = load.stop();
    for answer in &answers {
        let answer = answer.as_ref().expect("every POST is answered on its connection");
        assert!(matches!(answer.status, 200 | 502) && answer.complete, "{answer:?}");
        assert_ne!(answer.header("connection"), Some("close"), "{answer:?}");
    }
    let lost = answers.iter().filter(|a| a.as_ref().is_ok_and(|a| a.status == 502)).count();
    assert!(lost > 0, "{killed} workers were killed under {} POSTs", answers.len());
    assert!(lost <= killed, "a death costs one request: {lost} lost, {killed} killed");
    server.stop();
}

#[test]
fn the_502_comes_with_the_death_and_not_with_a_deadline() {
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
fn a_get_is_run_again_at_most_twice() {
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

/// A GET of a page that ends its worker by `signal`: 502, and how many workers that took.
fn workers_lost_to(server: &Server, page: &str, signal: i32) -> u64 {
    let restarts = || server.status()["worker_restarts_total"].as_u64().expect("a number");
    let before = restarts();
    assert_eq!(server.get(&format!("/signal{page}?signal={signal}")).status, 502);
    eventually("all workers", || (server.worker_pids().len() == 2).then_some(()));
    restarts() - before
}

/// A GET that crashed used to take three workers, and their successors waited for up to 5 s: two such requests a second
/// kept everybody from being served.
#[test]
fn a_page_that_crashes_takes_no_workers_from_others() {
    let server = app().workers(2).start();
    assert_eq!(workers_lost_to(&server, "", 11), 2, "once more, on a worker that is in order");
    for _ in 0..8 {
        assert_eq!(workers_lost_to(&server, "", 11), 1, "this page is known for it");
    }
    assert_eq!(workers_lost_to(&server, "/other", 11), 2, "another page is not");
    // A kill looks like somebody else's doing, until the same request dies of it once more.
    assert_eq!(workers_lost_to(&server, "/killed", 9), 3);
    assert_eq!(workers_lost_to(&server, "/killed", 9), 1);
    assert_serves(&server, "after the crashes");
    server.stop();
}

#[test]
fn a_flood_of_crashes_is_a_few_lines_of_the_log() {
    let server = app().workers(2).start();
    let said = |what: &str| server.log().matches(what).count() as u64;
    eventually("most are left out", || {
        assert_eq!(server.get("/signal?signal=11").status, 502);
        let deaths = server.status()["worker_restarts_total"].as_u64()?;
        let lines =
            said(": worker was killed by signal 11").max(said("requests lost their worker"));
        (lines > 0 && deaths > lines + 20).then_some(())
    });
    // How many these were comes with the next line.
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
fn a_death_after_the_first_bytes_cuts_the_answer() {
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
fn a_script_that_ends_its_process_costs_its_own_request_only() {
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
fn a_signal_to_all_processes_does_not_end_a_request() {
    // Ctrl-C and `kill -TERM -PGID` reach the workers too: stopping is the front's business.
    let server = app().workers(1).start();
    for signal in [15, 2, 1] {
        let answer = server.get(&format!("/signal?signal={signal}"));
        assert_eq!(answer.status, 200, "signal {signal}");
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn a_killed_template_is_replaced_and_no_get_fails() {
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
    let answers = load.stop();
    for answer in &answers {
        assert!(answer.as_ref().is_ok_and(|a| a.text() == "slept"), "{answer:?}\n{}", server.log());
    }
    let everybody = processes_of(&server);
    server.stop();
    wait_for_ends(&everybody);
}

#[test]
fn a_worker_that_hangs_is_replaced_while_others_serve() {
    for target in ["/loop", "/sleep?ms=600000", "/half?file=never"] {
        let limits = ["--answer-timeout", "1s", "--grace-timeout", "0"];
        // Who is merely late on a busy machine does not hang.
        let others = ["--path-timeout", "/hello=1m"];
        let server = app().workers(2).args(limits).args(others).start();
        let mut hung = server.client();
        hung.send(&Request::get(target).bytes());
        let pid = wait_for_busy(&server);
        let load = Load::start(server.address(), 2, &Request::get("/hello"));
        if target.starts_with("/half") {
            let answer = hung.read(false);
            assert!(!answer.complete, "silence in the middle: {answer:?}");
        } else {
            let answer = hung.read(false);
            assert_eq!((answer.status, answer.complete), (504, true), "{target}");
            assert!(is_hello(&hung.get("/hello")), "{target}: on the same connection");
        }
        wait_for_ends(&[pid]);
        for answer in load.stop() {
            assert!(answer.as_ref().is_ok_and(is_hello), "{target}: {answer:?}");
        }
        eventually("its successor", || (workers_in(&server, "idle").len() == 2).then_some(()));
        let status = server.status();
        assert_eq!(status["worker_restarts_total"], 1, "{target}: {status}");
        server.stop();
    }
}

#[test]
fn who_gives_signs_of_life_may_take_longer_than_the_answer_timeout() {
    let server = app().workers(1).args(["--answer-timeout", "2s"]).start();
    let answer = server.get("/drip?n=10&ms=300");
    assert_eq!((answer.status, answer.complete), (200, true));
    assert_eq!(answer.text().lines().count(), 10);
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn the_watchdog_is_longer_than_any_pause_between_restarts() {
    // The longest backoff is 5 s (crates/supervisor/src/workers.rs).
    assert!(WATCHDOG > Duration::from_secs(10));
}
