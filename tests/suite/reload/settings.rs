//! Settings that a reload reads again, and settings that refuse the new release.

use crate::reload::{MODELS, Site, at_rest, generation, settles_to, states};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};

#[test]
fn reload_with_forbidden_finding_is_refused() {
    let site = Site::new();
    site.says("one", MODELS[2]).release(
        "pipes",
        "<?php $p = popen('sleep 60', 'r'); Samovar\\serve(function () { echo 'pipes'; }, 1);",
    );
    let server = site.serve().args(["--image-errors", "all"]).start();
    let before = at_rest(&server);
    site.link("pipes");
    let why = server.reload().expect_err("no reload");
    assert!(why.contains("a finding that `image_errors` forbids"), "{why}");
    assert!(server.get("/").text().starts_with("one "));
    settles_to(&server, before);
    server.stop();
}

#[test]
fn reload_reads_settings_again() {
    let site = Site::new();
    site.says("one", MODELS[1]);
    let server = site.serve().config("[timeouts]\nqueue = '20s'").start();
    let file = server.folder().join("samovar.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("a file");
    // `--workers 2` on the command line overrides the file; the file's other settings are new.
    write(
        "workers = 3\nstatic_files = false\nlog_level = 'debug'\n[limits]\nqueue_max = \
         64\n[php]\nuser_agent = 'Tea'",
    );
    let said = server.reload().expect("a reload");
    for key in ["limits.queue_max", "log_level"] {
        assert!(said.contains(&format!("`{key}` has changed; restart the server")), "{said}");
    }
    assert!(!said.contains("`workers`"), "{said}");
    assert!(server.get("/").text().ends_with(" Tea"), "{}", server.get("/").text());
    assert_eq!(server.get("/page.txt").text().split(' ').next(), Some("one"), "no file any more");
    assert_eq!(server.get("/page.txt").text().split(' ').count(), 3);
    write("wrokers = 3");
    let why = server.reload().expect_err("no reload");
    assert!(why.contains("unknown key `wrokers`"), "{why}");
    write("[limits]\nbody_bytes_max = '1K'");
    server.reload().expect("a reload");
    let large = vec![b'x'; 2000];
    let request = Request::post("/", "text/plain", large);
    assert_eq!(server.client().request(&request).status, 413);
    std::fs::remove_file(&file).expect("no file");
    assert!(server.reload().expect_err("no reload").contains("cannot read"));
    assert_eq!((server.get("/").status, generation(&server)), (200, 3));
    server.stop();
}

/// A proxy keeps its connections; changed settings apply to its next request.
#[test]
fn reload_applies_trusted_proxies_to_open_connections() {
    let site = Site::new();
    site.release("one", "<?php Samovar\\serve(function () { echo $_SERVER['REMOTE_ADDR']; }, 0);");
    let server = site.serve().args(["--access-log", "-"]).start();
    let file = server.folder().join("samovar.toml");
    let mut proxy = server.client();
    let request = Request::get("/").header("X-Forwarded-For", "203.0.113.9");
    for (settings, address) in [
        ("", "127.0.0.1"),
        ("trusted_proxies = ['127.0.0.0/8']", "203.0.113.9"),
        ("trusted_proxies = ['10.0.0.0/8']", "127.0.0.1"),
    ] {
        std::fs::write(&file, settings).expect("a file");
        server.reload().expect("a reload");
        assert_eq!(proxy.request(&request).text(), address, "{settings}");
        let logged = || server.stdout().lines().last().map(|l| l.starts_with(address));
        eventually("the access log's line", || (logged() == Some(true)).then_some(()));
    }
    server.stop();
}

#[test]
fn reload_changes_number_of_workers() {
    let site = Site::new();
    site.says("one", MODELS[1]);
    site.link("one");
    let server = Server::at(site.path("current/public")).config("workers = 1").start();
    let file = server.folder().join("samovar.toml");
    for workers in [4, 2, 200, 100, 3] {
        std::fs::write(&file, format!("workers = {workers}")).expect("a file");
        server.reload().expect("a reload");
        // With 200 workers and 100 new ones, the ring has no room for all at once. The rest start
        // as the old ones leave.
        eventually("all workers", || {
            let states = states(&server);
            (states.len() == workers && !states.contains(&"leaving".into())).then_some(())
        });
        assert!(server.get("/").text().starts_with("one "));
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}
