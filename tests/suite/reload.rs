//! `samovar reload`: a new generation takes over without a lost request. If it cannot start, the
//! old one continues.

mod generations;
mod probes;
mod releases;
mod settings;

use samovar_testkit::SetOnDrop;
use samovar_testkit::{Server, Start, eventually};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Beginning and end of a release's front controller, by model.
const MODELS: [(&str, &str, &str); 3] = [
    ("script", "(", ")();"),
    ("resident", "Samovar\\serve(", ", 0);"),
    ("checkpoint", "Samovar\\serve(", ", 1);"),
];

/// Releases in folders, and the symbolic link that names the served one.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Site {
        Site { folder: TempDir::with_prefix("samovar-releases-").expect("a folder") }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Creates a release with this front controller.
    fn release(&self, name: &str, php: &str) -> &Site {
        let public = self.path(name).join("public");
        std::fs::create_dir_all(&public).expect("a folder");
        std::fs::write(public.join("index.php"), php).expect("a script");
        std::fs::write(public.join("page.txt"), name).expect("a file");
        std::fs::write(public.join("other.php"), format!("<?php echo 'other {name}';"))
            .expect("a script");
        self
    }

    /// Creates a release that prints its name, in a model.
    fn says(&self, name: &str, model: (&str, &str, &str)) -> &Site {
        let (_, begin, end) = model;
        self.release(
            name,
            &format!(
                "<?php {begin}static function () {{
                    usleep(1000 * (int) ($_GET['ms'] ?? 0));
                    while (isset($_GET['until']) && !file_exists($_GET['until'])) {{
                        usleep(5000);
                    }}
                    echo '{name} ', $_SERVER['DOCUMENT_ROOT'], ' ', ini_get('user_agent');
                }}{end}"
            ),
        )
    }

    /// Creates a release that prints its name. Its boot waits until the file `go` exists.
    fn boots_when(&self, name: &str, go: &Path) -> &Site {
        let php = format!(
            "<?php while (!file_exists('{}')) {{ usleep(5000); }}
            Samovar\\serve(static function () {{ echo '{name}'; }}, 1);",
            go.display()
        );
        self.release(name, &php)
    }

    /// Replaces the link atomically, as a deploy does.
    fn link(&self, name: &str) {
        let (new, link) = (self.path("new"), self.path("current"));
        std::os::unix::fs::symlink(name, &new).expect("a link");
        std::fs::rename(new, link).expect("a link in the place of the old one");
    }

    fn serve(&self) -> Start {
        self.link("one");
        Server::at(self.path("current/public")).workers(2)
    }
}

fn generation(server: &Server) -> u64 {
    server.status()["generation"].as_u64().expect("a number")
}

fn states(server: &Server) -> Vec<String> {
    let status = server.status();
    let workers = status["workers"].as_array().expect("workers").iter();
    workers.filter_map(|w| w["state"].as_str().map(str::to_owned)).collect()
}

/// Number of processes in the server's tree: templates, images, workers.
fn processes(server: &Server) -> usize {
    descendants(server.pid())
}

/// Waits for a complete generation of two workers, and returns the number of its processes.
fn at_rest(server: &Server) -> usize {
    eventually("all workers", || (states(server).len() == 2).then_some(()));
    processes(server)
}

fn descendants(pid: i32) -> usize {
    children(pid).into_iter().map(|child| 1 + descendants(child)).sum()
}

fn children(pid: i32) -> Vec<i32> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|p| p.parse().ok()).collect()
}

/// Waits until no process of an attempt is left, as before.
fn settles_to(server: &Server, before: usize) {
    eventually("the attempt's processes end", || (processes(server) == before).then_some(()));
}

#[test]
fn reload_takes_over_deploy_in_each_model() {
    for model in MODELS {
        let site = Site::new();
        site.says("one", model).says("two", model);
        let server = site.serve().start();
        let real = site.folder.path().canonicalize().expect("a path");
        let root = |name: &str| format!("{name} {}/{name}/public ", real.display());
        assert_eq!(server.get("/").text(), root("one"));
        assert_eq!(server.get("/page.txt").text(), "one");
        assert_eq!(server.get("/other.php").text(), "other one");
        // Next to a resident application, scripts have separate workers.
        let workers = if model.0 == "script" { 2 } else { 4 };
        eventually("all workers", || (states(&server).len() == workers).then_some(()));
        let before = processes(&server);
        site.link("two");
        assert_eq!(server.get("/").text(), root("one"), "a link alone changes nothing: {model:?}");
        let said = server.reload().expect("a reload");
        assert!(said.starts_with("generation 2 serves after "), "{said}");
        for _ in 0..4 {
            assert_eq!(server.get("/").text(), root("two"), "{model:?}");
        }
        assert_eq!(server.get("/page.txt").text(), "two");
        assert_eq!(server.get("/other.php").text(), "other two");
        eventually("the old workers leave", || {
            (!states(&server).contains(&"leaving".into())).then_some(())
        });
        settles_to(&server, before);
        let status = server.status();
        assert_eq!((&status["generation"], &status["reloading"]), (&2.into(), &false.into()));
        assert_eq!(status["worker_restarts_total"], 0, "{status}");
        for worker in status["workers"].as_array().expect("workers") {
            assert_eq!(worker["generation"], 2, "{worker}");
        }
        let log = server.stop();
        assert!(!log.contains("WARN"), "{log}");
    }
}

/// Number of responses between two reloads.
const RESPONSES: u32 = 200;

#[test]
fn reload_under_load_loses_no_request() {
    for model in MODELS {
        let site = Site::new();
        let names = ["one", "two", "three", "four"];
        for name in names {
            site.says(name, model);
        }
        let server = site.serve().start();
        let (ended, responded) = (AtomicBool::new(false), AtomicU32::new(0));
        // The clients make progress meanwhile.
        let some_responses = || {
            let before = responded.load(Ordering::Relaxed);
            eventually("answers", || {
                (responded.load(Ordering::Relaxed) >= before + RESPONSES).then_some(())
            });
        };
        let seen: Vec<Vec<String>> = thread::scope(|scope| {
            let _over = SetOnDrop(&ended);
            let clients: Vec<_> = (0..6)
                .map(|number| {
                    let (server, ended, responded) = (&server, &ended, &responded);
                    scope.spawn(move || {
                        let mut client = server.client();
                        let mut seen = Vec::new();
                        let mut requests = 0u32;
                        while !ended.load(Ordering::Relaxed) {
                            // Half of the clients keep their connection; some requests are slow.
                            if number % 2 == 0 {
                                client = server.client();
                            }
                            let response = client.get(if requests.is_multiple_of(16) {
                                "/?ms=30"
                            } else {
                                "/"
                            });
                            assert_eq!((response.status, response.complete), (200, true));
                            requests += 1;
                            responded.fetch_add(1, Ordering::Relaxed);
                            let name =
                                response.text().split(' ').next().unwrap_or_default().to_owned();
                            if seen.last() != Some(&name) {
                                seen.push(name);
                            }
                        }
                        seen
                    })
                })
                .collect();
            for name in &names[1..] {
                some_responses();
                site.link(name);
                server.reload().expect("a reload");
                let now = server.get("/").text();
                assert!(now.starts_with(name), "asked after the reload, answered by `{now}`");
            }
            some_responses();
            ended.store(true, Ordering::Relaxed);
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        for seen in seen {
            // For a moment both generations have workers, so an older name may appear again, but
            // only from the previous step.
            let at = |name: &String| names.iter().position(|n| n == name).expect("a known name");
            assert!(seen.windows(2).all(|w| at(&w[1]) + 1 >= at(&w[0])), "{model:?}: {seen:?}");
            assert_eq!(seen.last().map(String::as_str), Some("four"), "{model:?}");
        }
        let status = server.status();
        assert_eq!((&status["generation"], &status["responses_5xx_total"]), (&4.into(), &0.into()));
        assert_eq!(status["retries_total"], 0, "{status}");
        server.stop();
    }
}

#[test]
fn running_request_is_finished_by_old_generation() {
    let site = Site::new();
    site.says("one", MODELS[2]).says("two", MODELS[2]);
    let server = site.serve().start();
    thread::scope(|scope| {
        let (go, server) = (site.path("go"), &server);
        let target = format!("/?until={}", go.display());
        let slow = scope.spawn(move || server.get(&target).text());
        eventually("a busy worker", || states(server).contains(&"busy".into()).then_some(()));
        site.link("two");
        server.reload().expect("a reload");
        assert!(server.get("/").text().starts_with("two "));
        assert!(states(server).contains(&"leaving".into()), "{:?}", states(server));
        std::fs::write(&go, "").expect("our own folder");
        assert!(slow.join().expect("an answer").starts_with("one "));
    });
    eventually("the last one leaves", || (states(&server).len() == 2).then_some(()));
    server.stop();
}

#[test]
fn endless_request_of_old_generation_is_killed_after_drain_timeout() {
    let site = Site::new();
    site.says("one", MODELS[1]).says("two", MODELS[1]);
    let server = site.serve().args(["--drain-timeout", "1s"]).start();
    let mut slow = server.client();
    slow.send(b"POST /?ms=60000 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    eventually("a busy worker", || states(&server).contains(&"busy".into()).then_some(()));
    let begun = Instant::now();
    site.link("two");
    server.reload().expect("a reload");
    server.wait_for_log("killing workers of an older generation");
    server.wait_for_log("request aborted");
    assert!(server.log().contains("request=\"POST /\" request_id=\""), "{}", server.log());
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(1), "{took:?}");
    assert_eq!(slow.read(false).status, 502);
    assert!(server.get("/").text().starts_with("two "));
    eventually("the last one leaves", || (states(&server).len() == 2).then_some(()));
    assert_eq!(server.status()["kills_reasons"]["late"], 1);
    server.stop();
}

/// A release that cannot start changes nothing, for each kind of fault. The next release takes
/// over.
#[test]
fn release_that_does_not_boot_keeps_old_generation() {
    let wrongs = [
        ("<?php Samovar\\serve(fn () => 1); this is no PHP", "the application's boot failed"),
        (
            "<?php throw new Exception('no database'); Samovar\\serve(fn () => 1);",
            "the application's boot failed",
        ),
        ("<?php exit('before'); Samovar\\serve(fn () => 1);", "the application's boot failed"),
        (
            "<?php posix_kill(posix_getpid(), 9); Samovar\\serve(fn () => 1);",
            "the application's boot failed",
        ),
        ("<?php sleep(3600); Samovar\\serve(fn () => 1);", "did not boot within `timeouts.boot`"),
    ];
    for model in &MODELS[1..] {
        let site = Site::new();
        site.says("one", *model).says("last", *model);
        let server = site.serve().config("").start();
        assert!(server.get("/").text().starts_with("one "));
        let settings = server.folder().join("samovar.toml");
        let write = |text: &str| std::fs::write(&settings, text).expect("our own folder");
        let before = at_rest(&server);
        for (at, (php, expected)) in wrongs.iter().enumerate() {
            let name = format!("wrong{at}");
            site.release(&name, php);
            site.link(&name);
            // A short timeout for the release that never boots, and not for the others.
            write(if php.contains("sleep") { "timeouts.boot = '2s'" } else { "" });
            let why = server.reload().expect_err("no reload");
            assert!(
                why.contains("the old generation keeps serving") && why.contains(expected),
                "{php}: {why}"
            );
            assert!(server.get("/").text().starts_with("one "), "{php}");
            assert_eq!(server.get("/page.txt").text(), "one", "{php}");
            settles_to(&server, before);
        }
        assert_eq!(generation(&server), 1);
        site.link("last");
        write("");
        server.reload().expect("a reload");
        assert!(server.get("/").text().starts_with("last "));
        assert_eq!(generation(&server), 2);
        server.stop();
    }
}

#[test]
fn signal_reloads() {
    let site = Site::new();
    site.says("one", MODELS[0]).says("two", MODELS[0]);
    let server = site.serve().start();
    site.link("two");
    server.ask_to_reload();
    server.wait_for_log("samovar: generation 2 serves");
    assert!(server.get("/").text().starts_with("two "));
    std::fs::write(server.folder().join("samovar.toml"), "nonsense").expect("a file");
    server.ask_to_reload();
    server.wait_for_log("reload failed, the old generation keeps serving");
    server.stop();
}

#[test]
fn concurrent_reload_and_reload_during_stop_are_refused() {
    let site = Site::new();
    let go = site.path("go");
    site.says("one", MODELS[2]).boots_when("slow", &go);
    let mut server = site.serve().args(["--prewarm-boot", "false"]).start();
    site.link("slow");
    thread::scope(|scope| {
        let first = scope.spawn(|| server.reload());
        eventually("the reload", || (server.status()["reloading"] == true).then_some(()));
        let why = server.reload().expect_err("one at a time");
        assert!(why.contains("another reload is in progress"), "{why}");
        assert!(server.get("/").text().starts_with("one "), "nobody waits for it");
        std::fs::write(&go, "").expect("our own folder");
        first.join().expect("a thread").expect("a reload");
    });
    assert_eq!(server.get("/").text(), "slow");
    std::fs::remove_file(&go).expect("it was there");
    thread::scope(|scope| {
        let reload = scope.spawn(|| server.reload());
        eventually("the reload", || (server.status()["reloading"] == true).then_some(()));
        server.terminate();
        let why = reload.join().expect("a thread").expect_err("no reload");
        assert!(
            why.contains("the server is stopping") || why.contains("the server has exited"),
            "{why}"
        );
    });
    assert_eq!(server.wait(), Some(0), "{}", server.log());
}

#[test]
fn number_of_busy_generations_is_limited() {
    let site = Site::new();
    let gate = site.path("go");
    let waits = format!(
        "<?php Samovar\\serve(static function () {{
            while (isset($_GET['wait']) && !file_exists('{}')) {{ usleep(5000); }}
            echo 'one';
        }}, 1);",
        gate.display()
    );
    site.release("one", &waits);
    let server = site.serve().workers(1).start();
    thread::scope(|scope| {
        let server = &server;
        let busy = || states(server).iter().filter(|s| *s == "busy").count();
        for _ in 0..7 {
            scope.spawn(|| assert_eq!(server.get("/?wait").status, 200));
            eventually("a busy worker", || (busy() == 1).then_some(()));
            server.reload().expect("a reload");
        }
        let why = server.reload().expect_err("too many generations");
        assert!(why.contains("workers of earlier generations are still busy"), "{why}");
        assert_eq!(server.get("/").status, 200);
        std::fs::write(&gate, "").expect("our own file");
    });
    // The templates may end a moment after their workers.
    eventually("a reload", || server.reload().ok());
    assert_eq!(generation(&server), 9);
    server.stop();
}

/// A deploy script may reload a server that is still starting.
#[test]
fn reload_during_server_boot_waits_for_it() {
    let site = Site::new();
    let go = site.path("go");
    site.boots_when("one", &go).boots_when("two", &go);
    site.link("one");
    let start = Server::at(site.path("current/public")).workers(1).args(["--log-level", "info"]);
    let said = thread::scope(|scope| {
        let server = scope.spawn(move || start.start());
        // The server with this boot is identified by the folder that it serves.
        let pid = eventually("the server", || find_process("serve", &site.path("current/public")));
        eventually("its boot", || (children(pid).len() == 1).then_some(()));
        eventually("its image process", || {
            let template = *children(pid).first()?;
            (!children(template).is_empty()).then_some(())
        });
        site.link("two");
        assert!(signal(pid, "USR2"));
        // The signal arrives before the boot continues.
        thread::sleep(Duration::from_millis(300));
        std::fs::write(go, "").expect("our own folder");
        let server = server.join().expect("it starts");
        server.wait_for_log("reload: waiting for the boot of the server");
        server.wait_for_log("generation 2 serves");
        let said = server.get("/").text();
        server.stop();
        said
    });
    assert_eq!(said, "two");
}

fn signal(pid: i32, name: &str) -> bool {
    let kill =
        std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    kill.is_ok_and(|status| status.success())
}

/// Finds a process of this user by two of its arguments.
fn find_process(first: &str, second: &std::path::Path) -> Option<i32> {
    let second = second.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
        words.get(1) == Some(&first.as_bytes()) && words.contains(&second.as_bytes())
    })
}
