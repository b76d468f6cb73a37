//! Workers that die, hang or lie, clients that stall or leave, queues that are full, and the end:
//! the server goes on, and nobody waits for ever.

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, Start, WATCHDOG, eventually};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long load goes on while workers are killed.
const SIEGE: Duration = Duration::from_secs(3);

/// Output is not buffered: what a script flushes is meant to leave.
fn app() -> Start {
    Server::app("faults").define("output_buffering", "0")
}

fn is_hello(response: &Response) -> bool {
    response.status == 200 && response.complete && response.text().starts_with("hello from ")
}

/// The next requests are answered, each on a connection of its own.
fn assert_serves(server: &Server, when: &str) {
    for _ in 0..4 {
        let response = server.get("/hello");
        assert!(is_hello(&response), "{when}: {response:?}\n{}", server.log());
    }
}

/// A file that a script waits for, or leaves behind.
fn file_of(server: &Server, name: &str) -> PathBuf {
    server.folder().join(name)
}

fn create(path: &PathBuf) {
    std::fs::write(path, "").expect("our own folder");
}

fn read_when_there(path: &PathBuf) -> String {
    eventually(&format!("text in {}", path.display()), || {
        std::fs::read_to_string(path).ok().filter(|text| !text.is_empty())
    })
}

fn in_flight(server: &Server) -> u64 {
    server.status()["in_flight"].as_u64().expect("a number")
}

fn wait_for_in_flight(server: &Server, wanted: u64) {
    eventually(&format!("{wanted} requests in flight"), || {
        (in_flight(server) == wanted).then_some(())
    });
}

/// Process ids of the workers in that state.
fn workers_in(server: &Server, state: &str) -> Vec<i32> {
    let status = server.status();
    let workers = status["workers"].as_array().expect("a list").iter();
    let pids = workers.filter(|w| w["state"] == state).filter_map(|w| w["pid"].as_i64());
    pids.filter_map(|pid| i32::try_from(pid).ok()).collect()
}

fn wait_for_busy(server: &Server) -> i32 {
    eventually("a busy worker", || workers_in(server, "busy").first().copied())
}

/// A number of `/proc/PID/status`; `None`: there is no such process.
fn proc_number(pid: i32, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn parent_of(pid: i32) -> i32 {
    let parent = proc_number(pid, "PPid").expect("a living process");
    i32::try_from(parent).expect("pids are small")
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|text| !text.contains("State:\tZ"))
}

/// Everything that the server runs, itself included.
fn processes_of(server: &Server) -> Vec<i32> {
    let workers = server.worker_pids();
    let template = parent_of(workers[0]);
    assert_eq!(parent_of(template), server.pid(), "the template is the server's child");
    [vec![server.pid(), template], workers].concat()
}

fn wait_for_ends(pids: &[i32]) {
    for pid in pids {
        eventually(&format!("the end of process {pid}"), || (!is_alive(*pid)).then_some(()));
    }
}

/// Clients that ask until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<io::Result<Response>>>>,
}

impl Load {
    fn start(address: SocketAddr, clients: usize, request: &Request) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let (stop, request) = (Arc::clone(&stop), request.clone());
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let answer = client.try_request(&request);
                    if answer.is_err() {
                        client = Client::connect(address);
                    }
                    answers.push(answer);
                }
                answers
            })
        };
        Load { clients: (0..clients).map(client).collect(), stop }
    }

    fn stop(self) -> Vec<io::Result<Response>> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|c| c.join().expect("no panic")).collect()
    }
}

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
fn a_worker_that_hangs_is_replaced_while_others_serve() {
    for target in ["/loop", "/sleep?ms=600000", "/half?file=never"] {
        let server = app().workers(2).args(["--answer-timeout", "1s"]).start();
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
    let server = app().workers(1).args(["--answer-timeout", "1s"]).start();
    let answer = server.get("/drip?n=10&ms=200");
    assert_eq!((answer.status, answer.complete), (200, true));
    assert_eq!(answer.text().lines().count(), 10);
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

/// Serves one script that was named as the application, with little patience for its boot.
fn booting(php: &str) -> (tempfile::TempDir, PathBuf, Start) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("index.php");
    std::fs::write(&file, php).expect("our own folder");
    let start = Server::at(&file).workers(2).args(["--boot-timeout", "1s"]);
    (folder, file, start)
}

#[test]
fn an_application_that_kills_its_process_is_502_until_it_is_mended() {
    let (_folder, file, start) = booting(
        "<?php posix_kill(getmypid(), SIGKILL);\nSamovar\\serve(function () { echo 'up'; });",
    );
    let server = start.define("opcache.enable", "0").start();
    // The boot ahead dies in a process of its own; then each request runs the script, as in php-fpm.
    server.wait_for_log("the front controller's boot ended without");
    assert_eq!(server.get("/").status, 502);
    // The client may have its answer before the supervisor has counted the last death.
    let restarts = eventually("a restart for each attempt", || {
        server.status()["worker_restarts_total"].as_u64().filter(|restarts| *restarts >= 3)
    });
    assert!(restarts < 60, "with growing pauses: {restarts}");
    std::fs::write(&file, "<?php Samovar\\serve(function () { echo 'up'; });").expect("our file");
    eventually("the mended application", || (server.get("/").text() == "up").then_some(()));
    server.stop();
}

#[test]
fn an_application_that_fails_at_boot_shows_it_and_recovers_when_mended() {
    for (name, broken, logged) in [
        ("parse error", "<?php Samovar\\serve(function () { echo 'up' });", "PHP Parse error"),
        ("exception", "<?php throw new Exception('no'); Samovar\\serve(fn () => 'up');", "no"),
        ("fatal error", "<?php nope(); Samovar\\serve(fn () => 'up');", "undefined function nope"),
    ] {
        let (_folder, file, start) = booting(broken);
        let server = start.define("opcache.enable", "0").define("display_errors", "0").start();
        server.wait_for_log(logged);
        assert_eq!(server.get("/").status, 500, "{name}");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{name}: the process lives");
        std::fs::write(&file, "<?php Samovar\\serve(fn () => 'up');").expect("our own file");
        eventually(name, || (server.get("/").text() == "up").then_some(()));
        server.stop();
    }
}

#[test]
fn an_application_that_exits_at_boot_is_run_as_a_script() {
    let (_folder, _file, start) =
        booting("<?php echo 'as a script'; exit(3); Samovar\\serve(fn () => 'up');");
    let server = start.start();
    for _ in 0..3 {
        let answer = server.get("/");
        assert_eq!((answer.status, answer.text().as_str()), (200, "as a script"));
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}

/// Offsets in the ring (crates/ring/src/layout.rs).
mod ring {
    pub(crate) const HEADER: usize = 0;
    pub(crate) const BELL: usize = 128;
    pub(crate) const CREWS: usize = 704;
    pub(crate) const PACE: usize = 832;
    pub(crate) const QUEUE_TAIL: usize = 896;
    pub(crate) const QUEUE_HEAD: usize = 960;
    pub(crate) const QUEUE_ENTRIES: usize = 1024;
    pub(crate) const WORKERS: usize = 263_296;
    pub(crate) const SLOTS: usize = 279_680;
    // Within a slot:
    pub(crate) const WORD: usize = 0;
    pub(crate) const BODY: usize = 128;
    pub(crate) const TOLD: usize = 192;
    pub(crate) const ANSWER: usize = 256;
    pub(crate) const SLOT_BELL: usize = 320;
}

const ONES: &str = "ffffffffffffffff";
const ZEROS: &str = "0000000000000000";
const NOISE: &str = "b16b00b5deadbeef";

/// Lets a worker write garbage into the ring, then asks for what others must still get.
fn scribble(name: &str, own: bool, at: usize, hex: &str, times: usize) {
    let start = app().workers(2).args(["--queue-max", "16", "--answer-timeout", "2s"]);
    let server = start.args(["--queue-timeout", "5s"]).start();
    assert_serves(&server, "at first");
    let own = if own { "&own=1" } else { "" };
    let target = format!("/garbage?at={at}&hex={hex}&times={times}{own}");
    let mut liar = server.client();
    let answer = liar.try_request(&Request::form(&target, "a=b"));
    assert!(
        answer.as_ref().is_ok_and(|a| matches!(a.status, 200 | 502 | 503 | 504)),
        "{name}: {answer:?}\n{}",
        server.log()
    );
    eventually(&format!("{name}: an answer\n{}", server.log()), || {
        is_hello(&server.get("/hello")).then_some(())
    });
    assert_serves(&server, name);
    // As many at once as there are slots and workers: none was lost for good.
    let load = Load::start(server.address(), 12, &Request::get("/sleep?ms=1"));
    eventually(&format!("{name}: load"), || {
        (server.status()["requests_total"].as_u64()? > 100).then_some(())
    });
    for answer in load.stop() {
        assert!(answer.is_ok_and(|a| a.text() == "slept"), "{name}");
    }
    wait_for_in_flight(&server, 0);
    server.stop();
}

#[test]
fn a_worker_that_lies_about_its_own_slot_harms_nobody_else() {
    for (name, at, hex, times) in [
        ("word: ones", ring::WORD, ONES, 1),
        ("word: free", ring::WORD, ZEROS, 1),
        ("word: noise", ring::WORD, NOISE, 1),
        ("word: queued again", ring::WORD, "02", 1),
        ("word: taken by another", ring::WORD, "0302", 1),
        ("word: orphaned", ring::WORD, "07000000", 1),
        ("body position", ring::BODY, ONES, 3),
        ("status", ring::TOLD, "9f860100", 1),
        ("head length", ring::TOLD + 4, "ffffff7f", 1),
        ("ledger", ring::TOLD + 8, ONES, 4),
        ("answer position", ring::ANSWER, ONES, 1),
        ("answer read position", ring::ANSWER + 8, NOISE, 1),
        ("answer end", ring::ANSWER + 16, ONES, 1),
        ("bell", ring::SLOT_BELL, ONES, 1),
        ("the whole slot", ring::WORD, NOISE, 48),
    ] {
        scribble(&format!("own slot, {name}"), true, at, hex, times);
    }
}

#[test]
fn garbage_over_what_all_share_is_survived() {
    for (name, at, hex, times) in [
        ("bell asleep", ring::BELL, ONES, 1),
        ("bell asleep: 1", ring::BELL, "01000000", 1),
        ("news of all", ring::BELL + 8, ONES, 64),
        ("no news", ring::BELL, ZEROS, 65),
        ("crews: nobody", ring::CREWS, ZEROS, 16),
        ("crews: all", ring::CREWS, ONES, 16),
        ("pace", ring::PACE, ONES, 1),
        ("pace: brisk", ring::PACE, "01000000", 1),
        ("tail far ahead", ring::QUEUE_TAIL, ONES, 1),
        ("tail at 0", ring::QUEUE_TAIL, ZEROS, 1),
        ("head far ahead", ring::QUEUE_HEAD, ONES, 1),
        ("head beyond the tail", ring::QUEUE_HEAD, "0000000001000000", 1),
        ("head at 0", ring::QUEUE_HEAD, ZEROS, 1),
        ("entries: ones", ring::QUEUE_ENTRIES, ONES, 64),
        ("entries: noise", ring::QUEUE_ENTRIES, NOISE, 64),
        ("both queues", ring::QUEUE_TAIL, NOISE, 24),
        ("cells of all workers: ones", ring::WORKERS, ONES, 64),
        ("cells of all workers: zeros", ring::WORKERS, ZEROS, 64),
        ("words of all slots: ones", ring::SLOTS, ONES, 48 * 16),
        ("words of all slots: zeros", ring::SLOTS, ZEROS, 48 * 16),
        ("words of all slots: noise", ring::SLOTS, NOISE, 48 * 16),
    ] {
        scribble(name, false, at, hex, times);
    }
}

#[test]
fn garbage_anywhere_is_survived_again_and_again() {
    let start = app().workers(2).args(["--queue-max", "16", "--answer-timeout", "1s"]);
    let server = start.args(["--queue-timeout", "5s"]).start();
    let end = ring::SLOTS + 16 * 384;
    let mut random = 0x5eed_u64;
    for round in 0..40 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (random >> 33) as usize % end / 8 * 8;
        let hex = [ONES, ZEROS, NOISE][round % 3];
        let target = format!("/garbage?at={at}&hex={hex}&times=8");
        let answer = server.client().try_request(&Request::form(&target, "a=b"));
        assert!(answer.is_ok(), "round {round}, at {at}: {answer:?}\n{}", server.log());
        eventually(&format!("round {round}, at {at}: an answer"), || {
            is_hello(&server.get("/hello")).then_some(())
        });
    }
    wait_for_in_flight(&server, 0);
    server.stop();
}

#[test]
fn a_worker_cannot_stop_the_others_for_good() {
    scribble("stop", false, 64, "01000000", 1);
}

#[test]
fn a_broken_header_does_not_outlive_the_template() {
    let server = app().workers(2).args(["--queue-max", "16"]).start();
    let target = format!("/garbage?at={}&hex={NOISE}&times=2", ring::HEADER);
    assert_eq!(server.client().request(&Request::form(&target, "a=b")).status, 200);
    server.kill_worker(parent_of(server.worker_pids()[0]));
    eventually("a new template", || (server.status()["generation"] == 2).then_some(()));
    assert_serves(&server, "after the header was broken");
    server.stop();
}

#[test]
fn a_killed_template_is_replaced_and_no_get_fails() {
    let server = app().workers(3).start();
    let load = Load::start(server.address(), 6, &Request::get("/sleep?ms=2"));
    for generation in 1..=2 {
        let template = parent_of(server.worker_pids()[0]);
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
fn slow_and_half_sent_requests_end_while_others_are_served() {
    const BODY: &str = "POST /input HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhalf";
    const CHUNK: &str =
        "POST /input HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nh";
    let start = app().workers(1).args(["--header-timeout", "700ms", "--body-timeout", "700ms"]);
    let server = start.start();
    let load = Load::start(server.address(), 2, &Request::get("/hello"));
    for (name, sent) in [
        ("half a request line", "GET / HT"),
        ("half a head", "GET / HTTP/1.1\r\nHost: t\r\nX-Half: "),
        ("half a body", BODY),
        ("half a chunk", CHUNK),
    ] {
        let mut client = server.client();
        client.send(sent.as_bytes());
        let answer = client.read(false);
        assert_eq!((answer.status, answer.complete), (408, true), "{name}");
        assert!(client.is_closed(), "{name}");
    }
    // Bytes that trickle do not extend the deadline of a head.
    let mut trickle = server.client();
    trickle.send(b"GET /hello HTTP/1.1\r\nHost: t\r\nX-Slow: ");
    let mut stopped = false;
    for _ in 0..300 {
        if trickle.try_send(b"x").is_err() {
            stopped = true;
            break;
        }
        let got = trickle.read_for(Duration::from_millis(20));
        if !got.is_empty() {
            assert!(got.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&got));
            stopped = true;
            break;
        }
    }
    assert!(stopped, "a head may not trickle for ever");
    for answer in load.stop() {
        assert!(answer.as_ref().is_ok_and(is_hello), "{answer:?}");
    }
    server.stop();
}

#[test]
fn a_client_that_sends_half_and_leaves_costs_nothing() {
    let server = app().workers(1).start();
    for sent in [
        "GET / HT",
        "POST /input HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\nhalf",
        "POST /input HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nh",
    ] {
        let mut client = server.client();
        client.send(sent.as_bytes());
        client.abort();
        assert_serves(&server, sent);
    }
    wait_for_in_flight(&server, 0);
    eventually("no connection", || (server.status()["connections"] == 0).then_some(()));
}

/// Starts `/stream`, goes away after the first bytes, and says what the script left behind.
fn abort_stream(ignore: &str) -> (String, Option<String>) {
    let server = app().workers(1).start();
    let file = file_of(&server, "ended");
    let mut client = server.client();
    client.send(&Request::get(&format!("/stream?file={}{ignore}", file.display())).bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    client.read_chunk().expect("a chunk");
    client.abort();
    let ended = read_when_there(&file);
    assert_serves(&server, "after an abort");
    assert_eq!(server.status()["worker_restarts_total"], 0, "a client cannot kill a worker");
    (ended, std::fs::read_to_string(file.with_extension("on")).ok())
}

#[test]
fn a_script_ends_when_its_client_has_gone() {
    assert_eq!(abort_stream(""), ("status 1".to_owned(), None));
}

#[test]
fn a_script_that_ignores_the_abort_sees_it_and_goes_on() {
    assert_eq!(abort_stream("&ignore=1"), ("status 1".to_owned(), Some("1".to_owned())));
}

#[test]
fn a_queued_request_whose_client_has_gone_is_never_run() {
    let server = app().workers(1).start();
    let (go, mark) = (file_of(&server, "go"), file_of(&server, "mark"));
    let mut first = server.client();
    first.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(&server);
    let mut second = server.client();
    second.send(&Request::get(&format!("/mark?file={}", mark.display())).bytes());
    wait_for_in_flight(&server, 2);
    second.abort();
    wait_for_in_flight(&server, 1);
    create(&go);
    assert_eq!(first.read(false).text(), "waited");
    assert_serves(&server, "after a withdrawn request");
    assert!(!mark.exists(), "nobody wanted it any more");
}

#[test]
fn a_full_queue_is_503_at_once_and_the_rest_is_served() {
    const ALL: u64 = 60;
    let server = app().workers(1).args(["--queue-max", "16"]).start();
    let go = file_of(&server, "go");
    let target = format!("/wait?file={}", go.display());
    let mut clients: Vec<_> = (0..ALL).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(&Request::get(&target).bytes());
    }
    let status = eventually("requests that are shed", || {
        let status = server.status();
        let of = |key: &str| status[key].as_u64().unwrap_or(0);
        let all = of("rejected_total") + of("in_flight") == ALL && of("rejected_total") > 0;
        (all && of("queue_depth") > 0).then_some(status.clone())
    });
    let rejected = status["rejected_total"].as_u64().expect("a number");
    let kept = ALL - rejected;
    assert!((16..=32).contains(&kept), "about queue_max wait: {status}");
    assert!(status["queue_depth"].as_u64().is_some_and(|depth| depth >= 15), "{status}");
    create(&go);
    let answers: Vec<_> = clients.iter_mut().map(|client| client.read(false)).collect();
    let waited = answers.iter().filter(|a| (a.status, a.text().as_str()) == (200, "waited"));
    assert_eq!(waited.count() as u64, kept);
    for shed in answers.iter().filter(|a| a.status != 200) {
        assert_eq!((shed.status, shed.header("retry-after")), (503, Some("1")));
        assert!(shed.complete && shed.header("connection") != Some("close"), "{shed:?}");
    }
    assert!(clients.iter_mut().all(|client| is_hello(&client.get("/hello"))));
    server.stop();
}

#[test]
fn a_request_that_no_worker_takes_in_time_is_503() {
    let server = app().workers(1).args(["--queue-timeout", "300ms"]).start();
    let go = file_of(&server, "go");
    let mut first = server.client();
    first.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(&server);
    assert_eq!(server.get("/hello").status, 503);
    create(&go);
    assert_eq!(first.read(false).text(), "waited", "it is not the slow one that is shed");
}

/// Begins a request that waits for a file and queues another behind it.
fn begin_two(server: &Server) -> (PathBuf, Client, Client) {
    let go = file_of(server, "go");
    let mut running = server.client();
    running.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(server);
    let mut queued = server.client();
    queued.send(&Request::form("/hello", "a=b").bytes());
    wait_for_in_flight(server, 2);
    (go, running, queued)
}

#[test]
fn a_drain_loses_no_request_and_leaves_nothing_behind() {
    let mut server = app().workers(1).start();
    let everybody = processes_of(&server);
    let mut idle = server.client();
    assert!(is_hello(&idle.get("/hello")));
    let (go, mut running, mut queued) = begin_two(&server);
    server.terminate();
    eventually("new connections are refused", || {
        std::net::TcpStream::connect(server.address()).err()
    });
    assert!(idle.is_closed(), "who waits for nothing is let go");
    assert_eq!(server.status()["draining"], true);
    create(&go);
    let answer = running.read(false);
    assert_eq!((answer.status, answer.text().as_str()), (200, "waited"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(is_hello(&queued.read(false)));
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    wait_for_ends(&everybody);
    assert!(!server.control().exists(), "the control socket is removed");
}

#[test]
fn a_drain_under_load_answers_everything_it_accepted() {
    let mut server = app().workers(2).start();
    let load = Load::start(server.address(), 1, &Request::get("/sleep?ms=2"));
    let address = server.address();
    let clients: Vec<_> = (0..6)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut answered = 0;
                // Until the server says that it closes, as it must before it does.
                loop {
                    let answer = client.request(&Request::form("/sleep?ms=2", "a=b"));
                    assert_eq!((answer.status, answer.complete), (200, true), "{answer:?}");
                    answered += 1;
                    if answer.header("connection") == Some("close") {
                        return answered;
                    }
                }
            })
        })
        .collect();
    eventually("load", || (server.status()["requests_total"].as_u64()? > 50).then_some(()));
    load.stop.store(true, Ordering::Relaxed);
    for answer in load.stop() {
        assert!(answer.is_ok_and(|a| a.text() == "slept"));
    }
    server.terminate();
    for client in clients {
        assert!(client.join().expect("every request is answered") > 0);
    }
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_drain_ends_with_its_timeout() {
    let mut server = app().workers(1).args(["--drain-timeout", "500ms"]).start();
    let everybody = processes_of(&server);
    let (_go, mut running, _queued) = begin_two(&server);
    server.terminate();
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    assert!(running.try_read(false).is_err(), "cut");
    wait_for_ends(&everybody);
    server.wait_for_log("still in flight");
}

#[test]
fn a_second_signal_does_not_wait_for_requests() {
    let mut server = app().workers(1).args(["--drain-timeout", "10m"]).start();
    let everybody = processes_of(&server);
    let (_go, mut running, _queued) = begin_two(&server);
    server.terminate();
    eventually("the drain", || (server.status()["draining"] == true).then_some(()));
    server.terminate();
    assert!(server.wait().is_some(), "it ends: {}", server.log());
    assert_ne!(running.try_read(false).map_or(0, |a| a.status), 200);
    wait_for_ends(&everybody);
}

#[test]
fn stop_waits_until_the_server_has_gone() {
    let mut server = app().workers(1).start();
    let everybody = processes_of(&server);
    let (go, mut running, mut queued) = begin_two(&server);
    let binary = std::fs::read_link(format!("/proc/{}/exe", server.pid())).expect("it runs");
    let mut stop = std::process::Command::new(binary)
        .args(["stop", "--control"])
        .arg(server.control())
        .spawn()
        .expect("the binary runs");
    eventually("the drain", || (server.status()["draining"] == true).then_some(()));
    assert!(stop.try_wait().expect("our own child").is_none(), "it waits");
    create(&go);
    assert_eq!(running.read(false).text(), "waited");
    assert!(is_hello(&queued.read(false)));
    assert!(stop.wait().expect("our own child").success());
    assert_eq!(server.wait(), Some(0));
    wait_for_ends(&everybody);
}

#[test]
fn nothing_outlives_a_killed_server() {
    let mut server = app().workers(2).start();
    let everybody = processes_of(&server);
    server.kill_worker(server.pid());
    assert_eq!(server.wait(), None, "killed");
    wait_for_ends(&everybody);
}

/// Bytes of resident memory that a server may need more for one request, however big.
const GROWTH_KB_MAX: u64 = 12 * 1024;

/// Highest resident memory of the server process so far, in KB.
fn peak_kb(server: &Server) -> u64 {
    proc_number(server.pid(), "VmHWM").expect("it runs")
}

#[test]
fn a_big_upload_goes_through_little_memory() {
    let start =
        app().workers(1).define("post_max_size", "64M").define("upload_max_filesize", "64M");
    let server = start.start();
    assert_serves(&server, "at first");
    let before = peak_kb(&server);
    let content: Vec<u8> = (0..20_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let body = [
        b"--xx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n".as_slice(),
        &content,
        b"\r\n--xx--\r\n",
    ]
    .concat();
    let request = Request::post("/upload", "multipart/form-data; boundary=xx", body);
    let answer = server.client().request(&request);
    let words: Vec<_> = answer.text().split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "20000000", "{answer:?}");
    assert!(words[2].parse::<u64>().is_ok_and(|peak| peak < 8_000_000), "{words:?}");
    let growth = peak_kb(&server) - before;
    assert!(growth < GROWTH_KB_MAX, "{growth} KB for 20 MB");
    assert_eq!(std::fs::read_dir(server.folder().join("uploads")).expect("ours").count(), 0);
}

#[test]
fn a_big_answer_waits_for_its_reader_in_little_memory() {
    const BYTES: u64 = 50 * 1024 * 1024;
    let server = app().workers(1).start();
    assert_serves(&server, "at first");
    let (before, progress) = (peak_kb(&server), file_of(&server, "progress"));
    let sent = || {
        let text = std::fs::read_to_string(&progress).unwrap_or_default();
        text.parse::<u64>().unwrap_or(0)
    };
    let mut client = server.client();
    client
        .send(&Request::get(&format!("/flood?bytes={BYTES}&file={}", progress.display())).bytes());
    let head = client.read_head().expect("a head");
    assert_eq!(head.status, 200);
    // The script stops when the socket's buffers are full.
    let (mut last, mut same) = (0, 0);
    eventually("the script waits", || {
        (last, same) = (sent(), if last > 0 && last == sent() { same + 1 } else { 0 });
        (same > 60).then_some(())
    });
    assert!(last < BYTES / 2, "{last} bytes went where nobody read them");
    let mut got = 0;
    while let Some(chunk) = client.read_chunk().expect("chunks") {
        if chunk.is_empty() {
            break;
        }
        got += chunk.len() as u64;
    }
    assert_eq!(got, BYTES);
    let growth = peak_kb(&server) - before;
    assert!(growth < GROWTH_KB_MAX, "{growth} KB for 50 MB");
    let status = server.status();
    let rss = status["workers"][0]["rss_bytes"].as_u64().expect("a number");
    assert!((1_000_000..200_000_000).contains(&rss), "{status}");
    assert!(is_hello(&client.get("/hello")), "on the same connection");
}

#[test]
fn a_reader_that_takes_nothing_is_cut() {
    let server = app().workers(1).args(["--write-timeout", "500ms"]).start();
    let mut client = server.client();
    client.send(&Request::get("/flood?bytes=100000000").bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    assert_serves(&server, "its worker is free again");
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn events_arrive_when_they_are_flushed() {
    let server = app().workers(1).start();
    let file = file_of(&server, "event");
    let mut client = server.client();
    client.send(&Request::get(&format!("/events?file={}", file.display())).bytes());
    for n in 0..5 {
        // The script makes event n only now: it cannot have been held back by a buffer.
        create(&file.with_extension(n.to_string()));
        if n == 0 {
            let head = client.read_head().expect("a head");
            assert!(
                head.header("content-type").is_some_and(|t| t.starts_with("text/event-stream"))
            );
        }
        let chunk = client.read_chunk().expect("an event").expect("an event");
        assert_eq!(String::from_utf8_lossy(&chunk), format!("data: {n}\n\n"));
    }
    assert_eq!(client.read_chunk().expect("the end"), Some(Vec::new()));
    assert!(is_hello(&client.get("/hello")));
}

#[test]
fn a_finished_request_lets_its_client_go_while_the_script_goes_on() {
    let server = app().workers(1).start();
    let file = file_of(&server, "go");
    let done = file_of(&server, "go.done");
    let mut client = server.client();
    let answer = client.get(&format!("/finish?file={}", file.display()));
    assert_eq!((answer.text().as_str(), answer.complete), ("the client has this", true));
    assert!(!done.exists(), "the script waits");
    wait_for_busy(&server);
    create(&file);
    assert_eq!(read_when_there(&done), "and the script went on");
    assert!(is_hello(&client.get("/hello")));
    // A client that leaves after the answer does not stop the script either.
    let (file, done) = (file_of(&server, "go2"), file_of(&server, "go2.done"));
    let mut client = server.client();
    let answer = client.get(&format!("/finish?file={}", file.display()));
    assert_eq!(answer.text(), "the client has this");
    client.abort();
    create(&file);
    assert_eq!(read_when_there(&done), "and the script went on");
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}

#[test]
fn the_watchdog_is_longer_than_any_pause_between_restarts() {
    // The longest backoff is 5 s (crates/supervisor/src/state.rs); the tests above wait through it.
    assert!(WATCHDOG > Duration::from_secs(10));
}
