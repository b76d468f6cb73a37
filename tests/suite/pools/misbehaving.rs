//! One pool fails in every way; all requests of the other pool must succeed.

use super::{API, BLOG, Sites, pool, workers};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, binary, eventually, kill};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const SIGSTOP: i32 = 19;
/// Number of requests to the shop during each fault.
const REQUESTS: usize = 40;

/// Checks that the shop responds to all requests.
fn shop_responses(server: &Server, during: &str) {
    let mut client = server.client();
    for _ in 0..REQUESTS {
        let response = client.get("/");
        assert_eq!((response.status, response.text().as_str()), (200, "shop / 64M"), "{during}");
    }
}

/// Checks that the shop has lost no worker and no request, rejected none, and has not booted again.
fn shop_is_untouched(server: &Server, before: &[i32], after: &str) {
    assert_eq!(workers(server, "default"), before, "{after}");
    let shop = pool(server, "default");
    for name in [
        "rejected_total",
        "responses_5xx_total",
        "retries_total",
        "timeouts_total",
        "worker_restarts_total",
        "workers_recycled_total",
    ] {
        assert_eq!(shop[name], 0, "{after}: {name} of {shop}");
    }
    assert_eq!(shop["generation"], 1, "{after}");
}

fn send(server: &Server, target: &str) -> Client {
    send_to(server, target, "localhost")
}

fn send_to(server: &Server, target: &str, host: &str) -> Client {
    let mut client = server.client();
    client.send(&Request::get(target).header("Host", host).bytes());
    client
}

fn waits_until(file: &Path) -> String {
    format!("/api/x?until={}", file.display())
}

#[test]
fn stuck_workers_and_full_queue_affect_own_pool_only() {
    let sites = Sites::new();
    // Queued requests wait until the end of the test.
    let limits = "[pool.limits]\nqueue_max = 16\n[pool.timeouts]\nqueue = '10m'\n";
    let server = sites.server(&format!("{API}{limits}")).start();
    let before = workers(&server, "default");
    let go = sites.path("go");
    // One request runs, fifteen fill the ring, and one more waits for a slot.
    let mut stuck = vec![send(&server, &waits_until(&go))];
    eventually("a busy worker", || (pool(&server, "api")["busy"] == 1).then_some(()));
    stuck.extend((0..16).map(|_| send(&server, &waits_until(&go))));
    eventually("a full queue", || (server.client().get("/api/x").status == 503).then_some(()));
    shop_responses(&server, "the queue of the other pool is full");
    assert!(server.log().contains("pool=\"api\""), "{}", server.log());
    assert_eq!(pool(&server, "default")["rejected_total"], 0);
    assert!(pool(&server, "api")["rejected_total"].as_u64() >= Some(1));
    std::fs::write(&go, "").expect("our own file");
    let statuses: Vec<u16> = stuck.iter_mut().map(|client| client.read(false).status).collect();
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(workers(&server, "default"), before, "nobody was replaced");
    server.stop();
}

#[test]
fn loops_memory_and_deaths_affect_own_pool_only() {
    let sites = Sites::new();
    let times = "[pool.timeouts]\nresponse = '500ms'\ngrace = '500ms'\n";
    let limits = "[pool.limits]\nmemory_ceiling = '256M'\n";
    let server = sites.server(&format!("{API}{times}{BLOG}{limits}")).start();
    let before = workers(&server, "default");
    for (target, host, status) in [
        ("/api/x?loop", "localhost", 504),
        ("/x?eat", "blog.example", 502),
        ("/x?die", "blog.example", 502),
    ] {
        let mut client = send_to(&server, target, host);
        shop_responses(&server, target);
        assert_eq!(client.read(false).status, status, "{target}");
        let plain = Request::get(target.split('?').next().expect("a path")).header("Host", host);
        eventually(target, || (server.client().request(&plain).status == 200).then_some(()));
    }
    // The limits apply to the pool only: the shop's scripts may run longer.
    let go = sites.path("go");
    let mut slow = send(&server, &format!("/?until={}", go.display()));
    assert_eq!(server.get("/api/x?loop").status, 504);
    std::fs::write(&go, "").expect("our own file");
    assert_eq!(slow.read(false).status, 200);
    assert_eq!(workers(&server, "default"), before, "nobody was replaced");
    assert_eq!(pool(&server, "default")["responses_5xx_total"], 0);
    assert!(pool(&server, "blog")["worker_restarts_total"].as_u64() >= Some(1));
    server.stop();
}

#[test]
fn stopped_workers_children_and_long_bodies_affect_own_pool_only() {
    let sites = Sites::new();
    let times = "[pool.timeouts]\nresponse = '500ms'\ngrace = '500ms'\n";
    let server = sites.server(&format!("{API}{times}{BLOG}")).start();
    let before = workers(&server, "default");
    let [api] = workers(&server, "api")[..] else { panic!("one worker") };
    let mut stopped = send(&server, &waits_until(&sites.path("never")));
    eventually("a busy worker", || (pool(&server, "api")["busy"] == 1).then_some(()));
    kill(api, SIGSTOP);
    shop_responses(&server, "a worker of the other pool is stopped");
    assert_eq!(stopped.read(false).status, 504);
    eventually("another worker", || (server.get("/api/x").status == 200).then_some(()));
    shop_is_untouched(&server, &before, "a worker was stopped");

    // Children that continue for a while.
    let mut forking = send_to(&server, "/x?fork", "blog.example");
    shop_responses(&server, "the other pool forks");
    assert_eq!(forking.read(false).status, 200);
    shop_is_untouched(&server, &before, "the other pool has forked");

    // A response of 30 MB that is not read, and a body of 20 MB that arrives slowly.
    let mut taking = send_to(&server, "/x?big", "blog.example");
    let mut giving = server.client();
    let body = vec![b'x'; 20_000_000];
    let request = Request::post("/x", "text/plain", body).header("Host", "blog.example").bytes();
    let (first, rest) = request.split_at(10_000_000);
    giving.send(first);
    shop_responses(&server, "long bodies of the other pool are on their way");
    giving.send(rest);
    assert_eq!(giving.read(false).status, 200);
    let response = taking.read(false);
    assert_eq!((response.status, response.body.len() > 30_000_000), (200, true));
    shop_is_untouched(&server, &before, "the other pool had long bodies");

    let mut logging = send_to(&server, "/x?log", "blog.example");
    shop_responses(&server, "the other pool fills the log");
    assert_eq!(logging.read(false).status, 200);
    shop_is_untouched(&server, &before, "the other pool has filled the log");
    server.stop();
}

/// Repeated deaths of a pool's processes cause repeated boots of its own application only.
#[test]
fn repeated_worker_deaths_affect_own_pool_only() {
    let sites = Sites::new();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    let before = workers(&server, "default");
    for round in 0..10 {
        for target in ["/api/x?die", "/x?die"] {
            let host = if target.starts_with("/api") { "localhost" } else { "blog.example" };
            let mut dying = send_to(&server, target, host);
            shop_responses(&server, target);
            // Replacements after repeated deaths are delayed, so there may be no worker in time.
            let status = dying.read(false).status;
            assert!([502, 503].contains(&status), "{round}: {target}: {status}");
        }
    }
    shop_is_untouched(&server, &before, "workers of both others have died again and again");
    for (target, host) in [("/api/x", "localhost"), ("/x", "blog.example")] {
        let request = Request::get(target).header("Host", host);
        eventually(target, || (server.client().request(&request).status == 200).then_some(()));
    }
    server.stop();
}

#[test]
fn crashing_boot_affects_own_pool_only() {
    let sites = Sites::new();
    let good = std::fs::read_to_string(sites.path("api/index.php")).expect("our own file");
    let dying = "<?php posix_kill(getmypid(), SIGKILL); Samovar\\serve(fn () => 'up');";
    sites.rewrite("api/index.php", dying);
    let settings = "[pool.timeouts]\nboot = '1s'\n";
    let server = sites.server(&format!("{API}{settings}")).define("opcache.enable", "0").start();
    assert_eq!(server.get("/api/x").status, 502);
    shop_responses(&server, "the other pool's application dies");
    sites.rewrite("api/index.php", &good);
    let config = server.folder().join("samovar.toml");
    let text = std::fs::read_to_string(&config).expect("the settings");
    std::fs::write(&config, text.replace("boot = '1s'", "boot = '1m'")).expect("our own file");
    server.reload_with(["--pool", "api", "--force"]).expect("a reload");
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    assert_eq!(pool(&server, "default")["generation"], 1);
    server.stop();
}

#[test]
fn pool_that_cannot_start_is_retried_while_others_serve() {
    let sites = Sites::new();
    let (fake, real) = (sites.path("samovar-php"), binary().with_file_name("samovar-php"));
    let (ok, real) = (sites.path("ok"), real.display().to_string());
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec '{real}' --version\n[ -e '{}' ] || exit \
         3\nexec '{real}' \"$@\"\n",
        ok.display()
    );
    sites.rewrite("samovar-php", &text);
    std::fs::set_permissions(&fake, PermissionsExt::from_mode(0o755)).expect("our own file");
    let own = API.replace("workers = 1", "workers = 1\nphp_binary = 'FOLDER/samovar-php'");
    let queue = "[pool.timeouts]\nqueue = '300ms'\n";
    let start = sites.server(&format!("{own}{queue}")).args(["--admin", "127.0.0.1:0"]);
    let server = start.start();
    server.wait_for_log("the pool cannot run");
    let admin = server.status()["admin"][0].as_str().expect("an address").parse().expect("one");
    let ready = |path: &str| {
        let response = Client::connect(admin).get(path);
        (response.status, response.text())
    };
    let not = "not ready\npool default: ready\npool api: no worker has booted yet\n";
    assert_eq!(ready("/ready"), (503, not.to_owned()));
    assert_eq!(ready("/ready?pool=default"), (200, "ready\n".to_owned()));
    assert_eq!(ready("/ready?pool=api").0, 503);
    assert!(server.log().contains("exited with status 3"), "{}", server.log());
    shop_responses(&server, "the other pool does not start");
    assert_eq!(server.get("/api/x").status, 503);
    let refused = server.reload().expect_err("a pool that does not start");
    assert!(refused.contains("pool `api`") && !refused.contains("pool `default`"), "{refused}");
    let status = pool(&server, "api");
    assert!(status["failed"] == true && status["generation"] == 0, "{status}");
    shop_responses(&server, "the other pool does not start");
    assert_eq!(pool(&server, "default")["generation"], 2, "it was reloaded all the same");
    std::fs::write(ok, "").expect("our own file");
    server.reload_with(["--pool", "api"]).expect("a reload");
    // Requests of this pool have a short queue timeout.
    let is_there = || server.get("/api/x").text() == "api /api/x 77M";
    eventually("the application of the pool", || is_there().then_some(()));
    assert_eq!(pool(&server, "api")["failed"], false);
    eventually("readiness", || (ready("/ready").0 == 200).then_some(()));
    server.stop();
}
