//! Reloads, deaths, upgrades and the stop, of one pool and of all.

use super::{API, BLOG, Sites, pool, workers};
use samovar_testkit::eventually;
use samovar_testkit::http::{Client, Request};

fn parent(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
    line.trim().parse().expect("a number")
}

fn kill(pid: i32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

#[test]
fn pools_have_separate_models_and_settings() {
    let sites = Sites::new();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    for _ in 0..3 {
        assert_eq!(server.get("/a").text(), "shop /a 64M");
        assert_eq!(server.get("/api/a").text(), "api /api/a 77M");
        let blog = Request::get("/a").header("Host", "blog.example");
        assert_eq!(server.client().request(&blog).text(), "blog /a 64M");
    }
    let status = server.status();
    let models: Vec<(&str, &str)> = (status["workers"].as_array().expect("workers").iter())
        .filter_map(|worker| Some((worker["pool"].as_str()?, worker["model"].as_str()?)))
        .collect();
    for expected in [("default", "script"), ("api", "checkpoint"), ("blog", "resident")] {
        assert!(models.contains(&expected), "{models:?}");
    }
    assert_eq!(status["requests_total"], 9, "of all pools");
    for name in ["default", "api", "blog"] {
        assert_eq!(pool(&server, name)["requests_total"], 3, "{name}");
    }
    server.stop();
}

#[test]
fn reload_of_one_pool_leaves_others_unchanged() {
    let sites = Sites::new();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    let before = workers(&server, "default");
    let text = std::fs::read_to_string(sites.path("api/index.php")).expect("our own file");
    sites.rewrite("api/index.php", &text.replace("'api'", "'new'"));
    let said = server.reload_with(["--pool", "api"]).expect("a reload");
    assert!(said.starts_with("pool api: generation 2 serves"), "{said}");
    assert_eq!(server.get("/api/x").text(), "new /api/x 77M");
    assert_eq!(workers(&server, "default"), before);
    let refused = server.reload_with(["--pool", "nobody"]).expect_err("no such pool");
    assert!(
        refused.contains("there is no pool `nobody`") && refused.contains("`blog`"),
        "{refused}"
    );
    // A pool that fails to reload keeps its generation, and does not prevent the reload of others.
    sites.rewrite(
        "api/index.php",
        "<?php throw new Exception('no'); Samovar\\serve(fn () => 'up');",
    );
    let refused = server.reload().expect_err("one of them fails");
    assert!(refused.contains("pool `api`") && !refused.contains("pool `blog`"), "{refused}");
    assert_eq!(server.get("/api/x").text(), "new /api/x 77M");
    let generations =
        ["default", "api", "blog"].map(|name| pool(&server, name)["generation"].clone());
    assert_eq!(generations, [2, 2, 2]);
    server.stop();
}

#[test]
fn reload_applies_pool_settings_and_names_pending_ones() {
    let sites = Sites::new();
    let server = sites.server(API).start();
    let config = server.folder().join("samovar.toml");
    let text = std::fs::read_to_string(&config).expect("the settings");
    let text = text.replace("/api/*", "/v2/*").replace("77M", "88M");
    let text = format!("{text}\n[pool.limits]\nqueue_max = 64\n");
    std::fs::write(&config, &text).expect("our own file");
    let said = server.reload().expect("a reload");
    assert!(said.contains("`pool.api.limits.queue_max` has changed"), "{said}");
    assert_eq!(server.get("/v2/x").text(), "api /v2/x 88M");
    assert_eq!(server.get("/api/x").text(), "shop /api/x 64M");
    // A pool removed from the file remains until a restart.
    std::fs::write(&config, "").expect("our own file");
    let said = server.reload().expect("a reload");
    assert!(said.contains("`pool` has changed"), "{said}");
    assert!(server.get("/v2/x").text().starts_with("api "));
    server.stop();
}

#[test]
fn killed_template_affects_own_pool_only() {
    let sites = Sites::new();
    let server = sites.server(API).start();
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    let before = workers(&server, "default");
    let worker = workers(&server, "api")[0];
    // The parent of a booted worker is the image process, whose parent is the template.
    let template = parent(parent(worker));
    assert_ne!(template, server.pid());
    kill(template);
    for _ in 0..20 {
        assert_eq!(server.get("/x").text(), "shop /x 64M");
    }
    eventually("the next template's worker", || {
        let now = workers(&server, "api");
        (!now.is_empty() && !now.contains(&worker)).then_some(())
    });
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    assert_eq!(workers(&server, "default"), before);
    server.stop();
}

#[test]
fn upgrade_takes_over_all_pools() {
    let sites = Sites::new();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    let (first, old) = (server.pid(), workers(&server, "api"));
    server.upgrade([]).expect("an upgrade");
    assert_ne!(server.pid(), first);
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    assert_eq!(server.get("/x").text(), "shop /x 64M");
    assert_ne!(workers(&server, "api"), old);
    server.stop();
}

#[test]
fn stop_finishes_requests_of_all_pools() {
    let sites = Sites::new();
    let server = sites.server(API).start();
    let go = sites.path("go");
    let mut client = server.client();
    client.send(&Request::get(&format!("/api/x?until={}", go.display())).bytes());
    eventually("a busy worker", || (pool(&server, "api")["busy"] == 1).then_some(()));
    server.terminate();
    eventually("the drain", || (server.status()["draining"] == true).then_some(()));
    std::fs::write(&go, "").expect("our own file");
    assert_eq!(client.read(false).status, 200);
    server.stop();
}

#[test]
fn metrics_and_logs_name_the_pool() {
    let sites = Sites::new();
    sites.rewrite("api/index.php", "<?php error_log('a word of the api'); echo 'api';");
    let start = sites.server(API).args(["--admin", "127.0.0.1:0", "--access-log", "-"]);
    let server = start.args(["--access-log-format", "json"]).start();
    assert_eq!(server.get("/api/").text(), "api");
    assert_eq!(server.get("/").text(), "shop / 64M");
    server.wait_for_log("a word of the api pool=\"api\"");
    let admin = server.status()["admin"][0].as_str().expect("an address").parse().expect("one");
    let page = eventually("both requests in the figures", || {
        let page = Client::connect(admin).get("/metrics").text();
        let has = |route: &str| page.contains(&format!("route=\"{route}\""));
        (has("api: index.php /api/") && has("default: index.php /")).then_some(page)
    });
    for line in [
        "samovar_pool_requests_total{pool=\"api\"} 1",
        "samovar_pool_requests_total{pool=\"default\"} 1",
        "samovar_pool_workers{pool=\"api\"} 1",
        "samovar_pool_failed{pool=\"api\"} 0",
        "samovar_requests_total 2",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    let log = eventually("two lines of the access log", || {
        let log = server.stdout();
        (log.lines().count() == 2).then_some(log)
    });
    assert!(log.contains("\"uri\":\"/api/\"") && log.contains("\"pool\":\"api\""), "{log}");
    assert!(log.contains("\"pool\":\"default\""), "{log}");
    let ready = Client::connect(admin).get("/ready");
    let said = "ready\npool default: ready\npool api: ready\n";
    assert_eq!((ready.status, ready.text().as_str()), (200, said));
    assert_eq!(Client::connect(admin).get("/ready?pool=nobody").status, 503);
    let (code, said) = super::samovar(
        &["status", "--control", server.control().to_str().expect("a path")],
        server.folder(),
    );
    assert!(code == Some(0) && said.contains("\npool api: generation 1  workers 1"), "{said}");
    server.stop();
}

#[test]
fn profiler_samples_workers_of_all_pools() {
    let sites = Sites::new();
    let spin = "function spin(float $until): int {
            $n = 0; while (microtime(true) < $until) { $n++; } return $n; }
        spin(microtime(true) + (float) ($_GET['for'] ?? 0)); echo 'spun';";
    sites.rewrite("api/index.php", &format!("<?php {spin}"));
    let server = sites.server(API).args(["--admin", "127.0.0.1:0"]).start();
    let control = server.control();
    let control = control.to_str().expect("a path");
    eventually("looks at the other pool's worker", || {
        assert_eq!(server.get("/api/x?for=0.2").text(), "spun");
        let (code, said) = super::samovar(
            &["profile", "--route", "api: index.php /api/x", "--control", control],
            server.folder(),
        );
        (code == Some(0) && said.contains("spin")).then_some(())
    });
    // The samples of one pool are not shown for another.
    let (_, said) = super::samovar(&["profile", "--control", control], server.folder());
    assert!(said.contains("spin"), "{said}");
    let (_, said) =
        super::samovar(&["profile", "--generation", "1", "--control", control], server.folder());
    assert!(!said.contains("spin"), "{said}");
    server.stop();
}

#[test]
fn server_without_pools_names_no_pool() {
    let sites = Sites::new();
    let start = sites.server("").args(["--admin", "127.0.0.1:0", "--access-log", "-"]);
    let server = start.start();
    assert_eq!(server.get("/").text(), "shop / 64M");
    let status = server.status();
    assert!(status.get("pools").is_none() && status["workers"][0].get("pool").is_none());
    let admin = status["admin"][0].as_str().expect("an address").parse().expect("one");
    // Temporary files are spools.
    let metrics = Client::connect(admin).get("/metrics").text().replace("spool", "");
    assert!(!metrics.contains("pool"), "{metrics}");
    let log = eventually("a line of the access log", || {
        let log = server.stdout();
        (!log.is_empty()).then_some(log)
    });
    assert!(!log.contains("pool="), "{log}");
    let refused = server.reload_with(["--pool", "api"]).expect_err("no such pool");
    assert!(refused.contains("there is no pool `api`"), "{refused}");
    assert!(
        server.reload_with(["--pool", "default"]).expect("a reload").starts_with("generation 2")
    );
    server.stop();
}
