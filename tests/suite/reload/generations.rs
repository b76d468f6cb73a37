//! Interaction between the processes of generations: deaths, console workers, working folders,
//! leftovers.

use crate::reload::{MODELS, Site, at_rest, children, descendants, settles_to, states};
use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually};
use serde_json::Value;
use std::path::Path;
use std::thread;

/// Process IDs of the templates: the supervisor's own children.
fn templates(server: &Server) -> Vec<i32> {
    children(server.pid())
}

#[test]
fn template_deaths_during_reload_lose_no_request() {
    let site = Site::new();
    let go = site.path("go");
    site.says("one", MODELS[2]).boots_when("slow", &go);
    let server = site.serve().args(["--prewarm-boot", "false"]).start();
    let old = templates(&server);
    site.link("slow");
    thread::scope(|scope| {
        let reload = scope.spawn(|| server.reload());
        let new = eventually("the new template", || {
            templates(&server).into_iter().find(|pid| !old.contains(pid))
        });
        eventually("its boot", || (descendants(new) > 0).then_some(()));
        server.kill_worker(new);
        let why = reload.join().expect("a thread").expect_err("no reload");
        assert!(why.contains("was killed by signal 9"), "{why}");
    });
    assert!(server.get("/").text().starts_with("one "));
    thread::scope(|scope| {
        let reload = scope.spawn(|| server.reload());
        eventually("the reload", || (server.status()["reloading"] == true).then_some(()));
        // The old generation's template: it boots again, and whole scripts may run meanwhile.
        server.kill_worker(old[0]);
        assert!(server.get("/").text().starts_with("one "));
        std::fs::write(&go, "").expect("our own folder");
        reload.join().expect("a thread").expect("a reload");
    });
    assert_eq!(server.get("/").text(), "slow");
    // A request that arrived at the moment of the template's death may also have been run again.
    let retries = || server.status()["retries_total"].as_u64().expect("a number");
    let before_last = retries();
    // A killed template that only waits for its last worker: that worker's request is run again.
    thread::scope(|scope| {
        site.says("two", MODELS[2]);
        let before = templates(&server);
        let server = &server;
        site.release(
            "slow2",
            "<?php Samovar\\serve(function () {
                if (isset($_GET['slow'])) { usleep(20_000_000); }
                echo 'slow2';
            }, 1);",
        );
        site.link("slow2");
        server.reload().expect("a reload");
        let waits = scope.spawn(move || server.get("/?slow=1").text());
        eventually("a busy worker", || states(server).contains(&"busy".into()).then_some(()));
        let leaving =
            templates(server).into_iter().find(|pid| !before.contains(pid)).expect("its template");
        site.link("two");
        server.reload().expect("a reload");
        server.kill_worker(leaving);
        assert!(
            waits.join().expect("an answer").starts_with("two "),
            "run again by the new generation"
        );
    });
    assert_eq!(retries() - before_last, 1);
    server.stop();
}

/// A consumer that records its beginning and end in a file; its second release writes another word.
/// The log is unsuitable, because its order is that in which the pipes are read.
fn consumer(word: &str, diary: &Path) -> String {
    let diary = diary.display();
    format!(
        "<?php pcntl_async_signals(true); $stop = false;
        $write = fn ($what) => file_put_contents('{diary}', \"$what {word}\\n\", FILE_APPEND);
        pcntl_signal(SIGTERM, function () use (&$stop) {{ $stop = true; }});
        $write('BEGINS');
        while (!$stop) {{ usleep(10_000); }}
        usleep(400_000);
        $write('ENDS');"
    )
}

#[test]
fn reload_starts_console_workers_after_old_ones_left() {
    let site = Site::new();
    let diary = site.path("diary");
    for name in ["one", "two"] {
        site.says(name, MODELS[2]);
        let script = consumer(name, &diary);
        std::fs::write(site.path(name).join("consume.php"), script).expect("a script");
    }
    let script = site.path("current/consume.php");
    let config = format!(
        "[[console]]\nscript = '{}'\ncommand = 'mail'\nname = 'mail'\ncount = 2",
        script.display()
    );
    let server = site.serve().config(&config).start();
    let written = || std::fs::read_to_string(&diary).unwrap_or_default();
    let lines = |text: &str| written().matches(text).count();
    eventually("two consumers", || (lines("BEGINS one") == 2).then_some(()));
    site.link("two");
    server.reload().expect("a reload");
    assert!(server.get("/").text().starts_with("two "), "requests do not wait for consumers");
    eventually("two new consumers", || (lines("BEGINS two") == 2).then_some(()));
    let log = written();
    let order: Vec<&str> = ["BEGINS one", "ENDS one", "BEGINS two"]
        .into_iter()
        .flat_map(|word| std::iter::repeat_n(word, log.matches(word).count()))
        .collect();
    assert_eq!(
        order,
        ["BEGINS one", "BEGINS one", "ENDS one", "ENDS one", "BEGINS two", "BEGINS two"]
    );
    let mut alive = 0;
    for line in log.lines() {
        alive += i32::from(line.contains("BEGINS ")) - i32::from(line.contains("ENDS "));
        assert!((0..=2).contains(&alive), "never more than `count`: {log}");
    }
    let consoles = server.status()["consoles"].clone();
    let running = |c: &&Value| c["state"] == "running";
    assert_eq!(
        consoles.as_array().expect("a list").iter().filter(running).count(),
        2,
        "{consoles}"
    );
    let log = server.stop();
    assert_eq!(lines("ENDS two"), 2, "{log}");
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn reload_follows_changed_working_directory_link() {
    let site = Site::new();
    site.says("one", MODELS[1]).says("two", MODELS[1]);
    site.link("one");
    let folder = site.path("current");
    let server = Server::at("public").inside(&folder).workers(1).start();
    assert!(server.get("/").text().starts_with("one "));
    site.link("two");
    server.reload().expect("a reload");
    assert!(server.get("/").text().starts_with("two "), "as a shell's `cd` names it");
    server.stop();
}

#[test]
fn reloads_leak_no_process_or_descriptor() {
    let site = Site::new();
    site.says("one", MODELS[2]);
    let server = site.serve().start();
    // Counted before the first reload. Right after a reload, the old generation's template would be
    // included, which ends a moment after its workers.
    let before = at_rest(&server);
    server.reload().expect("a reload");
    settles_to(&server, before);
    let held = server.held();
    for _ in 0..12 {
        server.reload().expect("a reload");
        let mut client = Client::connect(server.address());
        assert_eq!(client.get("/").status, 200);
    }
    settles_to(&server, before);
    eventually("descriptors, threads and children as before", || {
        let now = server.held();
        let is_more = now.descriptors > held.descriptors
            || now.threads > held.threads
            || now.children > held.children;
        (!is_more).then_some(())
    });
    server.stop();
}
