//! `samovar reload`: a new generation takes over, and no request notices. Or it does not come up, and nobody notices.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How the front controller of a release begins and ends, by model.
const MODELS: [(&str, &str, &str); 3] = [
    ("script", "(", ")();"),
    ("resident", "Samovar\\serve(", ", 0);"),
    ("checkpoint", "Samovar\\serve(", ", 1);"),
];

/// Releases in folders, and the link that names the one to be served.
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

    /// A release whose front controller is this text.
    fn release(&self, name: &str, php: &str) -> &Site {
        let public = self.path(name).join("public");
        std::fs::create_dir_all(&public).expect("a folder");
        std::fs::write(public.join("index.php"), php).expect("a script");
        std::fs::write(public.join("page.txt"), name).expect("a file");
        std::fs::write(public.join("other.php"), format!("<?php echo 'other {name}';"))
            .expect("a script");
        self
    }

    /// One that says its name, in a model.
    fn says(&self, name: &str, model: (&str, &str, &str)) -> &Site {
        let (_, begin, end) = model;
        self.release(
            name,
            &format!(
                "<?php {begin}static function () {{
                    usleep(1000 * (int) ($_GET['ms'] ?? 0));
                    echo '{name} ', $_SERVER['DOCUMENT_ROOT'], ' ', ini_get('user_agent');
                }}{end}"
            ),
        )
    }

    /// As a deploy does: the link is replaced at once.
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

/// Processes of the server's tree: templates, images, workers.
fn processes(server: &Server) -> usize {
    descendants(server.pid())
}

fn descendants(pid: i32) -> usize {
    children(pid).into_iter().map(|child| 1 + descendants(child)).sum()
}

fn children(pid: i32) -> Vec<i32> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|p| p.parse().ok()).collect()
}

/// Nothing of an attempt is left: as many processes as before.
fn settles_to(server: &Server, before: usize) {
    eventually("the attempt's processes end", || (processes(server) == before).then_some(()));
}

#[test]
fn a_deploy_takes_over_in_each_model() {
    for model in MODELS {
        let site = Site::new();
        site.says("one", model).says("two", model);
        let server = site.serve().start();
        let real = site.folder.path().canonicalize().expect("a path");
        let root = |name: &str| format!("{name} {}/{name}/public ", real.display());
        assert_eq!(server.get("/").text(), root("one"));
        assert_eq!(server.get("/page.txt").text(), "one");
        assert_eq!(server.get("/other.php").text(), "other one");
        // Beside a resident application scripts have workers of their own.
        let workers = if model.0 == "script" { 2 } else { 4 };
        eventually("all workers", || (states(&server).len() == workers).then_some(()));
        let before = processes(&server);
        site.link("two");
        assert_eq!(server.get("/").text(), root("one"), "a link alone changes nothing: {model:?}");
        let said = server.reload().expect("a reload");
        assert!(said.starts_with("generation 2 serves, after "), "{said}");
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

#[test]
fn no_request_is_lost_under_load() {
    for model in MODELS {
        let site = Site::new();
        let names = ["one", "two", "three", "four"];
        for name in names {
            site.says(name, model);
        }
        let server = site.serve().start();
        let ended = AtomicBool::new(false);
        let seen: Vec<Vec<String>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..6)
                .map(|number| {
                    let (server, ended) = (&server, &ended);
                    scope.spawn(move || {
                        let mut client = server.client();
                        let mut seen = Vec::new();
                        let mut requests = 0u32;
                        while !ended.load(Ordering::Relaxed) {
                            // Half of them keep their connection, some take their time.
                            if number % 2 == 0 {
                                client = server.client();
                            }
                            let answer = client.get(if requests.is_multiple_of(16) {
                                "/?ms=30"
                            } else {
                                "/"
                            });
                            assert_eq!((answer.status, answer.complete), (200, true));
                            requests += 1;
                            let name =
                                answer.text().split(' ').next().unwrap_or_default().to_owned();
                            if seen.last() != Some(&name) {
                                seen.push(name);
                            }
                        }
                        seen
                    })
                })
                .collect();
            for name in &names[1..] {
                thread::sleep(Duration::from_millis(150));
                site.link(name);
                server.reload().expect("a reload");
                let now = server.get("/").text();
                assert!(now.starts_with(name), "asked after the reload, answered by `{now}`");
            }
            thread::sleep(Duration::from_millis(100));
            ended.store(true, Ordering::Relaxed);
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        for seen in seen {
            // For a moment both generations have workers, so a name may come back, but none that is older than one step.
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
fn a_request_that_runs_is_finished_by_the_old_generation() {
    let site = Site::new();
    site.says("one", MODELS[2]).says("two", MODELS[2]);
    let server = site.serve().start();
    thread::scope(|scope| {
        let slow = scope.spawn(|| server.get("/?ms=1500").text());
        eventually("a busy worker", || states(&server).contains(&"busy".into()).then_some(()));
        site.link("two");
        server.reload().expect("a reload");
        assert!(server.get("/").text().starts_with("two "));
        assert!(states(&server).contains(&"leaving".into()), "{:?}", states(&server));
        assert!(slow.join().expect("an answer").starts_with("one "));
    });
    eventually("the last one leaves", || (states(&server).len() == 2).then_some(()));
    server.stop();
}

#[test]
fn one_that_does_not_end_is_killed_when_the_drain_is_over() {
    let site = Site::new();
    site.says("one", MODELS[1]).says("two", MODELS[1]);
    let server = site.serve().args(["--drain-timeout", "1s"]).start();
    let mut slow = server.client();
    slow.send(b"POST /?ms=60000 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    eventually("a busy worker", || states(&server).contains(&"busy".into()).then_some(()));
    let begun = Instant::now();
    site.link("two");
    server.reload().expect("a reload");
    server.wait_for_log("workers of an older generation are killed");
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(8), "{took:?}");
    assert_eq!(slow.read(false).status, 502);
    assert!(server.get("/").text().starts_with("two "));
    eventually("the last one leaves", || (states(&server).len() == 2).then_some(()));
    server.stop();
}

/// A release that cannot come up changes nothing, whatever is wrong with it; the next one does.
#[test]
fn a_release_that_does_not_boot_changes_nothing() {
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
        ("<?php sleep(3600); Samovar\\serve(fn () => 1);", "has not booted within `timeouts.boot`"),
    ];
    for model in &MODELS[1..] {
        let site = Site::new();
        site.says("one", *model).says("last", *model);
        let server = site.serve().args(["--boot-timeout", "3s"]).start();
        assert!(server.get("/").text().starts_with("one "));
        let before = processes(&server);
        for (at, (php, expected)) in wrongs.iter().enumerate() {
            let name = format!("wrong{at}");
            site.release(&name, php);
            site.link(&name);
            let why = server.reload().expect_err("no reload");
            assert!(
                why.contains("the old generation goes on") && why.contains(expected),
                "{php}: {why}"
            );
            assert!(server.get("/").text().starts_with("one "), "{php}");
            assert_eq!(server.get("/page.txt").text(), "one", "{php}");
            settles_to(&server, before);
        }
        assert_eq!(generation(&server), 1);
        site.link("last");
        server.reload().expect("a reload");
        assert!(server.get("/").text().starts_with("last "));
        assert_eq!(generation(&server), 2);
        server.stop();
    }
}

#[test]
fn what_the_settings_forbid_ends_the_attempt() {
    let site = Site::new();
    site.says("one", MODELS[2]).release(
        "pipes",
        "<?php $p = popen('sleep 60', 'r'); Samovar\\serve(function () { echo 'pipes'; }, 1);",
    );
    let server = site.serve().args(["--image-errors", "all"]).start();
    let before = processes(&server);
    site.link("pipes");
    let why = server.reload().expect_err("no reload");
    assert!(why.contains("cannot be rolled back as `image_errors` wants it"), "{why}");
    assert!(server.get("/").text().starts_with("one "));
    settles_to(&server, before);
    server.stop();
}

#[test]
fn settings_are_read_again() {
    let site = Site::new();
    site.says("one", MODELS[1]);
    let server = site.serve().config("[timeouts]\nqueue = '20s'").start();
    let file = server.folder().join("samovar.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("a file");
    // `--workers 2` on the command line holds; what the file says is new.
    write(
        "workers = 3\nstatic_files = false\nlog_level = 'debug'\n[limits]\nqueue_max = 64\n[php]\nuser_agent = 'Tea'",
    );
    let said = server.reload().expect("a reload");
    for key in ["limits.queue_max", "log_level"] {
        assert!(said.contains(&format!("`{key}` has changed; that takes effect when")), "{said}");
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

/// A proxy keeps its connections: what is said about it counts for its next request.
#[test]
fn trusted_proxies_count_on_open_connections_too() {
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
fn the_number_of_workers_may_change() {
    let site = Site::new();
    site.says("one", MODELS[1]);
    site.link("one");
    let server = Server::at(site.path("current/public")).config("workers = 1").start();
    let file = server.folder().join("samovar.toml");
    for workers in [4, 2, 200, 100, 3] {
        std::fs::write(&file, format!("workers = {workers}")).expect("a file");
        server.reload().expect("a reload");
        // With 200 and 100 in it the ring has no room for all at once: the rest comes as the old ones leave.
        eventually("all workers", || {
            let states = states(&server);
            (states.len() == workers && !states.contains(&"leaving".into())).then_some(())
        });
        assert!(server.get("/").text().starts_with("one "));
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}

#[test]
fn a_signal_reloads_too() {
    let site = Site::new();
    site.says("one", MODELS[0]).says("two", MODELS[0]);
    let server = site.serve().start();
    site.link("two");
    server.ask_to_reload();
    server.wait_for_log("samovar: generation 2 serves");
    assert!(server.get("/").text().starts_with("two "));
    std::fs::write(server.folder().join("samovar.toml"), "nonsense").expect("a file");
    server.ask_to_reload();
    server.wait_for_log("samovar: no reload, the old generation goes on: ");
    server.stop();
}

const SLOW_BOOT: &str = "<?php usleep(1500_000); Samovar\\serve(function () { echo 'slow'; }, 1);";

#[test]
fn one_reload_at_a_time_and_none_while_the_server_stops() {
    let site = Site::new();
    site.says("one", MODELS[2]).release("slow", SLOW_BOOT);
    let mut server = site.serve().args(["--rehearse", "false"]).start();
    site.link("slow");
    thread::scope(|scope| {
        let first = scope.spawn(|| server.reload());
        eventually("the reload", || (server.status()["reloading"] == true).then_some(()));
        let why = server.reload().expect_err("one at a time");
        assert!(why.contains("another reload has not ended yet"), "{why}");
        assert!(server.get("/").text().starts_with("one "), "nobody waits for it");
        first.join().expect("a thread").expect("a reload");
    });
    assert_eq!(server.get("/").text(), "slow");
    thread::scope(|scope| {
        let reload = scope.spawn(|| server.reload());
        eventually("the reload", || (server.status()["reloading"] == true).then_some(()));
        server.terminate();
        let why = reload.join().expect("a thread").expect_err("no reload");
        assert!(
            why.contains("the server is stopping") || why.contains("the server has ended"),
            "{why}"
        );
    });
    assert_eq!(server.wait(), Some(0), "{}", server.log());
}

#[test]
fn generations_that_are_still_busy_are_limited() {
    let site = Site::new();
    site.says("one", MODELS[2]);
    let server = site.serve().workers(1).start();
    thread::scope(|scope| {
        let server = &server;
        let busy = || states(server).iter().filter(|s| *s == "busy").count();
        for _ in 0..7 {
            scope.spawn(|| assert_eq!(server.get("/?ms=9000").status, 200));
            eventually("a busy worker", || (busy() == 1).then_some(()));
            server.reload().expect("a reload");
        }
        let why = server.reload().expect_err("too many generations");
        assert!(why.contains("workers of earlier generations are still busy"), "{why}");
        assert_eq!(server.get("/").status, 200);
    });
    // Their templates may be a moment behind them.
    eventually("a reload", || server.reload().ok());
    assert_eq!(generation(&server), 9);
    server.stop();
}

/// Pids of the templates: the supervisor's own children.
fn templates(server: &Server) -> Vec<i32> {
    children(server.pid())
}

#[test]
fn deaths_on_either_side_of_a_reload_cost_no_request() {
    let site = Site::new();
    site.says("one", MODELS[2]).release("slow", SLOW_BOOT);
    let server = site.serve().args(["--rehearse", "false"]).start();
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
        // The old generation's: it boots again, and answers meanwhile as well as it can.
        server.kill_worker(old[0]);
        assert!(server.get("/").text().starts_with("one "));
        reload.join().expect("a thread").expect("a reload");
    });
    assert_eq!(server.get("/").text(), "slow");
    // A template that only waits for its last worker: that request is run again.
    thread::scope(|scope| {
        site.says("two", MODELS[2]);
        let before = templates(&server);
        let server = &server;
        site.release(
            "slow2",
            "<?php Samovar\\serve(function () { usleep(800_000); echo 'slow2'; }, 1);",
        );
        site.link("slow2");
        server.reload().expect("a reload");
        let waits = scope.spawn(move || server.get("/").text());
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
    assert_eq!(server.status()["retries_total"], 1);
    server.stop();
}

/// A consumer that says when it begins and ends; its second release says another word.
fn consumer(word: &str) -> String {
    format!(
        "<?php pcntl_async_signals(true); $stop = false;
        pcntl_signal(SIGTERM, function () use (&$stop) {{ $stop = true; }});
        echo 'BEGINS {word} ', getmypid(), \"\\n\";
        while (!$stop) {{ usleep(10_000); }}
        usleep(400_000);
        echo 'ENDS {word} ', getmypid(), \"\\n\";"
    )
}

#[test]
fn console_workers_begin_anew_when_their_predecessors_have_left() {
    let site = Site::new();
    for name in ["one", "two"] {
        site.says(name, MODELS[2]);
        std::fs::write(site.path(name).join("consume.php"), consumer(name)).expect("a script");
    }
    let script = site.path("current/consume.php");
    let config = format!(
        "[[worker]]\nscript = '{}'\ncommand = 'mail'\nname = 'mail'\ncount = 2",
        script.display()
    );
    let server = site.serve().config(&config).start();
    let lines = |text: &str| server.log().matches(text).count();
    eventually("two consumers", || (lines("BEGINS one") == 2).then_some(()));
    site.link("two");
    server.reload().expect("a reload");
    assert!(server.get("/").text().starts_with("two "), "requests do not wait for consumers");
    eventually("two new consumers", || (lines("BEGINS two") == 2).then_some(()));
    let log = server.log();
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
    assert_eq!(log.matches("ENDS two").count(), 2, "{log}");
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn a_working_folder_that_is_a_link_is_followed() {
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
fn reloads_leave_nothing_behind() {
    let site = Site::new();
    site.says("one", MODELS[2]);
    let server = site.serve().start();
    let count = |what: &str| {
        let folder = format!("/proc/{}/{what}", server.pid());
        std::fs::read_dir(folder).expect("a folder").count()
    };
    let (descriptors, threads) = (|| count("fd"), || count("task"));
    server.reload().expect("a reload");
    eventually("the old workers leave", || (states(&server).len() == 2).then_some(()));
    let before = processes(&server);
    settles_to(&server, before);
    let (fds, tasks) = (descriptors(), threads());
    for _ in 0..12 {
        server.reload().expect("a reload");
        let mut client = Client::connect(server.address());
        assert_eq!(client.get("/").status, 200);
    }
    settles_to(&server, before);
    eventually("descriptors", || (descriptors() <= fds + 1).then_some(()));
    eventually("threads", || (threads() <= tasks).then_some(()));
    server.stop();
}
