//! Growth while processes die, the application is reloaded, the template ends.

use crate::elastic::stage::{
    Crowd, Gate, MODELS, server, server_with_idle, wait_for_workers, workers,
};
use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually, family};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// GETs that sleep, by so many clients, while `disturb` goes on; none is lost.
fn all_are_answered(server: &Server, clients: usize, disturb: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    let address = server.address();
    thread::scope(|scope| {
        let ask = || {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let answer = Client::connect(address).get("/?sleep=20");
                assert_eq!((answer.status, answer.complete), (200, true), "{answer:?}");
                count += 1;
            }
            count
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        disturb();
        stop.store(true, Ordering::Relaxed);
        let counts = threads.into_iter().map(|thread| thread.join().expect("all were answered"));
        assert!(counts.sum::<u32>() > 0);
    });
}

#[test]
fn kills_while_it_grows_lose_no_get() {
    for (model, body) in [MODELS[0], MODELS[2]] {
        let server = server(body).args(["--workers", "1..40", "--retries-max", "10"]).start();
        all_are_answered(&server, 24, || {
            let (mut killed, mut most, mut answered) = (0, 0, 0);
            eventually(&format!("{model}: growth under kills"), || {
                let status = server.status();
                let workers = status["workers"].as_array()?;
                most = most.max(workers.len());
                // One for each ten that were answered: faster, and nobody would get anything done.
                let requests = status["requests_total"].as_u64()?;
                let victim =
                    workers.get(killed % workers.len().max(1)).filter(|_| requests >= answered);
                if let Some(pid) = victim.and_then(|worker| worker["pid"].as_i64()) {
                    server.kill_worker(i32::try_from(pid).ok()?);
                    (killed, answered) = (killed + 1, requests + 10);
                }
                (killed >= 40 && most >= 10).then_some(())
            });
        });
        wait_for_workers(&server, 1);
        server.stop();
    }
}

#[test]
fn the_template_dies_while_it_grows() {
    for (model, body) in [MODELS[0], MODELS[2]] {
        let server = server(body).args(["--workers", "1..40", "--retries-max", "10"]).start();
        all_are_answered(&server, 24, || {
            eventually(&format!("{model}: growth"), || (workers(&server) >= 8).then_some(()));
            let before = server.status()["generation"].as_u64();
            let template = family::children_of(server.pid())[0];
            server.kill_worker(template);
            eventually(&format!("{model}: another template, and growth again"), || {
                let status = server.status();
                let serve = status["workers"].as_array()?.len();
                (status["generation"].as_u64() > before && serve >= 8).then_some(())
            });
        });
        server.stop();
    }
}

#[test]
fn a_reload_takes_over_with_as_many_as_are_busy() {
    // Long enough for a look at the new ones before they go.
    let server = server_with_idle(MODELS[2].1, "10s").args(["--workers", "1..40"]).start();
    let (gate, later) = (Gate::new(), Gate::new());
    let crowd = Crowd::ask(&server, 20, &gate.target());
    gate.wait_for(20, &server);
    let said = server.reload();
    assert!(said.is_ok(), "{said:?}\n{}", server.log());
    let status = server.status();
    let generation = status["generation"].as_u64();
    let all = status["workers"].as_array().expect("a list");
    let new = all.iter().filter(|worker| worker["generation"].as_u64() == generation).count();
    assert!((20..=21).contains(&new), "{status}");
    let others = Crowd::ask(&server, 30, &later.target());
    later.wait_for(30, &server);
    gate.open();
    crowd.answered(&server);
    later.open();
    others.answered(&server);
    wait_for_workers(&server, 1);
    server.stop();
}

#[test]
fn workers_are_recycled_while_their_number_changes() {
    let server = server(MODELS[0].1).args(["--workers", "1..40", "--requests-max", "5"]).start();
    all_are_answered(&server, 16, || {
        eventually("growth and successors", || {
            let status = server.status();
            let recycled = status["workers_recycled_total"].as_u64()?;
            (recycled >= 2 && status["workers"].as_array()?.len() >= 8).then_some(())
        });
    });
    wait_for_workers(&server, 1);
    server.stop();
}
