//! Growth while processes die, the application is reloaded, or the template ends.

use crate::elastic::stage::{
    Crowd, Gate, MODELS, server, server_with_idle, wait_for_workers, workers,
};
use samovar_testkit::SetOnDrop;
use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually, family};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Sends GETs to a sleeping script from `clients` threads while `disturb` runs. No request may be
/// lost.
fn all_are_responded(server: &Server, clients: usize, disturb: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    let address = server.address();
    thread::scope(|scope| {
        let _over = SetOnDrop(&stop);
        let ask = || {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let response = Client::connect(address).get("/?sleep=20");
                assert_eq!((response.status, response.complete), (200, true), "{response:?}");
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
fn worker_kills_during_growth_lose_no_get() {
    for (model, body) in [MODELS[0], MODELS[2]] {
        let server = server(body).args(["--workers", "1..40", "--retries-max", "10"]).start();
        all_are_responded(&server, 24, || {
            let (mut killed, mut most, mut responded) = (0, 0, 0);
            eventually(&format!("{model}: growth under kills"), || {
                let status = server.status();
                let workers = status["workers"].as_array()?;
                most = most.max(workers.len());
                // Kills one worker per ten responses; a higher rate would stop all progress.
                let requests = status["requests_total"].as_u64()?;
                let victim =
                    workers.get(killed % workers.len().max(1)).filter(|_| requests >= responded);
                if let Some(pid) = victim.and_then(|worker| worker["pid"].as_i64()) {
                    server.kill_worker(i32::try_from(pid).ok()?);
                    (killed, responded) = (killed + 1, requests + 10);
                }
                (killed >= 40 && most >= 10).then_some(())
            });
        });
        wait_for_workers(&server, 1);
        server.stop();
    }
}

#[test]
fn template_death_during_growth_loses_no_get() {
    for (model, body) in [MODELS[0], MODELS[2]] {
        let server = server(body).args(["--workers", "1..40", "--retries-max", "10"]).start();
        all_are_responded(&server, 24, || {
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
fn reload_starts_as_many_workers_as_were_busy() {
    // Long enough to inspect the new workers before they are removed.
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
    crowd.responded(&server);
    later.open();
    others.responded(&server);
    wait_for_workers(&server, 1);
    server.stop();
}

#[test]
fn recycling_during_growth_loses_no_get() {
    let server = server(MODELS[0].1).args(["--workers", "1..40", "--requests-max", "5"]).start();
    all_are_responded(&server, 16, || {
        eventually("growth and successors", || {
            let status = server.status();
            let recycled = status["workers_recycled_total"].as_u64()?;
            (recycled >= 2 && status["workers"].as_array()?.len() >= 8).then_some(())
        });
    });
    wait_for_workers(&server, 1);
    server.stop();
}
