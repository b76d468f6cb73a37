//! Conditions for a takeover by the new generation: lost applications, probes, another model.

use crate::reload::{MODELS, Site, at_rest, children, generation, settles_to};
use samovar_testkit::{Server, eventually, kill};

/// Losses in a deploy, with the message of `samovar reload`: without `--force` each is refused.
#[test]
fn reload_losing_application_is_refused() {
    let throws = |begin: &str, end: &str| {
        format!("<?php {begin}static function () {{ http_response_code(500); }}{end}")
    };
    for model in MODELS {
        let (name, begin, end) = model;
        let site = Site::new();
        site.says("one", model).says("gone", model).release("empty", "");
        std::fs::remove_file(site.path("gone/public/index.php")).expect("our own file");
        site.release("throws", &throws(begin, end));
        site.release("plain", "<?php echo 'plain';");
        let server = site.serve().start();
        assert!(server.get("/").text().starts_with("one "));
        let before = at_rest(&server);
        let mut cases = vec![
            ("gone", "` no longer exists"),
            ("empty", "/public/index.php` is empty"),
            ("throws", "`/` returned 500 in the new generation, and returned 200 in the old one"),
        ];
        if name != "script" {
            cases.push(("plain", "is booted before"));
        }
        for (release, said) in &cases {
            site.link(release);
            let why = server.reload().expect_err("no reload");
            for word in ["the old generation keeps serving: ", said, "hint: ", "--force"] {
                assert!(why.contains(word), "{name}, {release}: `{word}` is missing in {why}");
            }
            assert!(server.get("/").text().starts_with("one "), "{name}, {release}");
            assert_eq!(generation(&server), 1, "{name}, {release}");
            settles_to(&server, before);
        }
        // The signal has the same result.
        site.link("empty");
        server.ask_to_reload();
        server
            .wait_for_log("reload failed, the old generation keeps serving: the front controller");
        for (generation, (release, _)) in (2..).zip(&cases) {
            site.link(release);
            let said = server.reload_with(["--force"]).expect("a reload");
            assert!(said.starts_with(&format!("generation {generation} serves")), "{said}");
        }
        // Back to a working release, which does not need `--force`.
        site.link("one");
        server.reload().expect("a reload");
        assert!(server.get("/").text().starts_with("one "));
        server.stop();
    }
}

/// A response of the same class as before, or a better one, does not prevent a deploy.
#[test]
fn reload_with_same_failure_class_is_accepted() {
    let responses = |status: u16| format!("<?php http_response_code({status}); echo '{status}';");
    let site = Site::new();
    for status in [200, 302, 404, 500, 503] {
        site.release(&status.to_string(), &responses(status));
    }
    site.link("500");
    let server = Server::at(site.path("current/public")).workers(2).start();
    for (to, comes) in
        [("503", true), ("404", true), ("302", true), ("500", false), ("200", true), ("404", true)]
    {
        site.link(to);
        let outcome = server.reload();
        assert_eq!(outcome.is_ok(), comes, "{to}: {outcome:?}");
    }
    assert_eq!(server.get("/").status, 404);
    server.wait_for_log("and also failed in the old one");
    server.stop();
}

#[test]
fn reload_probe_runs_in_new_workers_before_takeover() {
    for model in MODELS {
        let (name, begin, end) = model;
        let site = Site::new();
        let release = |text: &str| {
            format!(
                "<?php {begin}static function () {{
                    if (isset($_GET['probe'])) {{
                        file_put_contents('{}', '{text} ' . $_SERVER['REQUEST_URI'] . ' ' .
                            basename(dirname(__DIR__)) . \"\\n\", FILE_APPEND);
                        {text}
                    }}
                    echo basename(dirname(__DIR__));
                }}{end}",
                site.path("probes").display()
            )
        };
        site.release("one", &release(""));
        site.release("good", &release(""));
        site.release("bad", &release("http_response_code(500);"));
        site.release("dies", &release("posix_kill(posix_getpid(), 9);"));
        let server = site.serve().args(["--reload-probe", "/x?probe=1"]).start();
        let probes = || std::fs::read_to_string(site.path("probes")).unwrap_or_default();
        site.link("good");
        server.reload().expect("a reload");
        assert_eq!(probes(), " /x?probe=1 good\n", "{name}: once, and of the new one only");
        for (release, said) in [
            ("bad", "`/x?probe=1` returned 500 in the new generation"),
            ("dies", "`/x?probe=1` killed its worker"),
        ] {
            site.link(release);
            let why = server.reload().expect_err("no reload");
            assert!(why.contains(said) && why.contains("--force"), "{name}: {why}");
            assert_eq!(server.get("/").text(), "good", "{name}");
        }
        // Another target instead of the configured one; the release responds to it.
        site.link("bad");
        server.reload_with(["--probe", "/health"]).expect("a reload");
        assert_eq!(server.get("/").text(), "bad");
        let status = server.status();
        assert_eq!(status["responses_5xx_total"], 0, "no client has met any of it: {status}");
        server.stop();
    }
}

#[test]
fn hanging_reload_probe_ends_at_boot_timeout() {
    let site = Site::new();
    site.says("one", MODELS[0]).release("slow", "<?php sleep(3600);");
    let server = site.serve().args(["--boot-timeout", "6s"]).start();
    let before = at_rest(&server);
    site.link("slow");
    let why = server.reload().expect_err("no reload");
    assert!(why.contains("has not answered `reload_probe` within `timeouts.boot`"), "{why}");
    assert!(server.get("/").text().starts_with("one "));
    // The end of that probe does not affect the next attempt.
    site.says("two", MODELS[0]).link("two");
    server.reload().expect("a reload");
    assert!(server.get("/").text().starts_with("two "));
    settles_to(&server, before);
    server.stop();
}

#[test]
fn reload_probe_can_be_script_or_file_or_absent() {
    for model in MODELS {
        let site = Site::new();
        site.says("one", model).says("two", model).says("three", model).says("four", model);
        site.release("five", "<?php throw new Exception('no database');");
        let broken = "<?php http_response_code(500);";
        std::fs::write(site.path("two/public/other.php"), broken).expect("our own file");
        let server = site.serve().start();
        site.link("two");
        let why = server.reload_with(["--probe", "/other.php"]).expect_err("no reload");
        assert!(why.contains("`/other.php` returned 500"), "{model:?}: {why}");
        server.reload_with(["--probe", "/page.txt"]).expect("a reload");
        site.link("three");
        server.reload_with(["--probe", "/other.php"]).expect("a reload");
        assert!(server.get("/").text().starts_with("three "));
        server.stop();
        if model.0 == "script" {
            let server = site.serve().args(["--reload-probe", "off"]).start();
            site.link("five");
            server.reload().expect("nobody looks");
            server.stop();
        }
    }
}

/// Users rely on the model: it decides whether state persists from one request to the next.
#[test]
fn reload_losing_persistent_state_needs_force() {
    let (resident, checkpoint) = (MODELS[1], MODELS[2]);
    let site = Site::new();
    site.says("one", resident).says("rolled", checkpoint).says("whole", MODELS[0]);
    let server = site.serve().start();
    let models = || -> Vec<String> {
        let status = server.status();
        let workers = status["workers"].as_array().expect("workers").iter();
        let serving = workers.filter(|w| w["generation"] == status["generation"]);
        serving.filter_map(|w| w["model"].as_str().map(str::to_owned)).collect()
    };
    site.link("rolled");
    let why = server.reload().expect_err("no reload");
    assert!(
        why.contains("uses the resident model, but the new one uses the checkpoint model"),
        "{why}"
    );
    assert_eq!(models(), ["resident"; 2]);
    server.reload_with(["--force"]).expect("a reload");
    assert_eq!(models(), ["checkpoint"; 2]);
    site.link("whole");
    let why = server.reload().expect_err("no reload");
    assert!(
        why.contains("is booted before its requests (checkpoint), but the new one is not"),
        "{why}"
    );
    server.reload_with(["--force"]).expect("a reload");
    assert_eq!(models(), ["script"; 2]);
    // A model that keeps state is accepted without `--force`.
    site.link("one");
    server.reload().expect("a reload");
    assert_eq!(models(), ["resident"; 2]);
    server.stop();
}

/// The call is in a file that the front controller includes, so only a request detects it.
#[test]
fn reload_with_undeclared_checkpoint_is_accepted() {
    let site = Site::new();
    for name in ["one", "two"] {
        site.release(name, "<?php require __DIR__ . '/../kernel.php';");
        let kernel = format!("<?php Samovar\\serve(function () {{ echo '{name}'; }}, 1);");
        std::fs::write(site.path(name).join("kernel.php"), kernel).expect("our own file");
    }
    let server = site.serve().start();
    assert_eq!(server.get("/").text(), "one");
    eventually("it is booted ahead", || {
        let status = server.status();
        let mut workers = status["workers"].as_array()?.iter();
        workers.any(|worker| worker["model"] == "checkpoint").then_some(())
    });
    site.link("two");
    server.reload().expect("a reload");
    assert_eq!(server.get("/").text(), "two");
    server.stop();
}

/// The code was broken in place, and all processes with the old code have died. The loss of the
/// booted application must still be detected.
#[test]
fn reload_losing_application_is_refused_after_all_processes_died() {
    for model in [MODELS[1], MODELS[2]] {
        let site = Site::new();
        site.says("one", model);
        let server = site.serve().start();
        assert!(server.get("/").text().starts_with("one "));
        let index = site.path("one/public/index.php");
        let good = std::fs::read(&index).expect("our own file");
        std::fs::write(&index, "<?php echo 'plain';").expect("our own file");
        // Templates, images, workers.
        let mut family = children(server.pid());
        while let Some(pid) = family.pop() {
            family.extend(children(pid));
            kill(pid, 9);
        }
        eventually("whole scripts", || {
            let status = server.status();
            let workers = status["workers"].as_array().expect("workers");
            let are_scripts = workers.iter().all(|worker| worker["model"] == "script");
            (workers.len() == 2 && are_scripts && server.get("/").text() == "plain").then_some(())
        });
        let why = server.reload().expect_err("no reload");
        assert!(
            why.contains(&format!(
                "is booted before its requests ({}), but the new one is not",
                model.0
            )),
            "{why}"
        );
        std::fs::write(&index, good).expect("our own file");
        server.reload().expect("a reload");
        assert!(server.get("/").text().starts_with("one "));
        server.stop();
    }
}
