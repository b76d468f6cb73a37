//! Logs that cannot be written: the reader is gone, the disk is full, or the reader is stopped. The
//! server keeps running and reports the number of lost lines.

use crate::faults::stage::{app, assert_serves, wait_for_busy};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// 10,000 messages of PHP: many more bytes than a pipe holds.
const CHATTER: &str = "/chatter?say=chatter&times=10000&length=100";

fn lost(server: &Server) -> u64 {
    server.status()["log_lines_dropped_total"].as_u64().expect("a number")
}

fn access_lost(server: &Server) -> u64 {
    server.status()["access_log_lines_dropped_total"].as_u64().expect("a number")
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a device of every Linux")
}

/// Provokes all kinds of log lines of the server and of PHP.
fn make_noise(server: &Server) {
    server.get("/header");
    assert_eq!(server.get(CHATTER).text(), "said");
    server.kill_worker(server.worker_pid());
    eventually("a worker's successor", || {
        (server.status()["worker_restarts_total"] == 1).then_some(())
    });
    assert_serves(server, "after a worker's death");
    server.ask_to_reload();
    eventually("the next generation", || (server.status()["generation"] == 2).then_some(()));
    server.get("/header");
    assert_eq!(server.get(CHATTER).text(), "said");
    assert_serves(server, "after a reload");
}

fn assert_ends_well(mut server: Server) {
    server.terminate();
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn closed_log_reader_does_not_end_server() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let server = app().workers(2).start_unheard(writer);
    drop(reader);
    make_noise(&server);
    eventually("the loss in the status", || (lost(&server) > 20_000).then_some(()));
    assert_ends_well(server);
}

#[test]
fn full_log_device_does_not_end_server() {
    let server = app().workers(2).start_unheard(full());
    make_noise(&server);
    eventually("the loss in the status", || (lost(&server) > 20_000).then_some(()));
    assert_ends_well(server);
}

#[test]
fn log_closed_before_start_does_not_end_server() {
    let start = app().workers(2).through("exec \"$@\" 2>&-");
    let server = start.start_unheard(std::process::Stdio::null());
    make_noise(&server);
    assert_ends_well(server);
}

/// Starts a server and fills its log pipe, which is not read.
fn stuck(prepare: impl Fn(Start) -> Start) -> (Server, PipeReader) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let server = prepare(app().workers(2)).start_unheard(writer);
    for _ in 0..5 {
        assert_eq!(server.get(CHATTER).text(), "said");
    }
    eventually("the loss in the status", || (lost(&server) > 0).then_some(()));
    (server, reader)
}

#[test]
fn stopped_log_reader_blocks_no_request_and_later_reads_loss_count() {
    let (server, mut reader) = stuck(|start| start);
    make_noise(&server);
    let all = std::thread::spawn(move || {
        let mut all = String::new();
        reader.read_to_string(&mut all).expect("text");
        all
    });
    // The reader first receives the lines from before the loss.
    let marked = || server.get("/chatter?say=back&times=1").text() == "said";
    let all_lost = eventually("room in the log", || {
        let before = lost(&server);
        (marked() && lost(&server) == before).then_some(before)
    });
    assert_ends_well(server);
    let all = all.join().expect("a reader");
    assert!(all.contains("back 0"), "{} bytes", all.len());
    let told: u64 = all.lines().filter_map(lines_lost).sum();
    assert_eq!(told, all_lost, "all of it is told");
    let mut chatter = all.lines().filter(|line| line.contains("chatter"));
    assert!(chatter.all(is_whole), "no half line");
}

/// Number of lines in `… 1,234 lines were lost: the log queue was full …`.
fn lines_lost(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" lines were lost: the log queue was full")?;
    before.rsplit(' ').next()?.replace(',', "").parse().ok()
}

/// Whether the line has the form `TIME php pid=1 request_id=… chatterxxx… 17`.
fn is_whole(line: &str) -> bool {
    let number = line.rsplit(' ').next().unwrap_or_default();
    line.contains(" php pid=") && line.contains("chatterx") && number.parse::<u32>().is_ok()
}

#[test]
fn stuck_log_reader_does_not_block_stop() {
    let (server, reader) = stuck(|start| start);
    assert_ends_well(server);
    drop(reader);
}

/// `O_NONBLOCK` of Linux on x86-64 and aarch64.
const NON_BLOCKING: i32 = 0o4000;

#[test]
fn full_nonblocking_log_pipe_is_retried() {
    // A process that shares the pipe has set O_NONBLOCK.
    let start = app().workers(2);
    let path = make_fifo(&start, "stderr.pipe");
    let open = |options: &mut OpenOptions| options.custom_flags(NON_BLOCKING).open(&path);
    let mut reader = open(OpenOptions::new().read(true)).expect("a reader");
    let writer = open(OpenOptions::new().write(true)).expect("a writer");
    let server = start.start_unheard(writer);
    make_noise(&server);
    assert!(lost(&server) > 0);
    let mut all = Vec::new();
    eventually("what was lost", || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut bytes) {
            all.extend_from_slice(&bytes[..n]);
        }
        String::from_utf8_lossy(&all)
            .contains("lines were lost: the log queue was full")
            .then_some(())
    });
    assert_ends_well(server);
}

#[test]
fn stuck_access_log_loses_lines_only() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let server = app().workers(2).args(["--access-log", "-"]).stdout_to(writer).start();
    let mut client = server.client();
    let target = format!("/hello?{}", "q".repeat(6000));
    eventually("a full access log", || {
        for _ in 0..100 {
            assert_eq!(client.get(&target).status, 200);
        }
        (access_lost(&server) > 0).then_some(())
    });
    server.wait_for_log("lines were lost");
    assert_ends_well(server);
    drop(reader);
}

#[test]
fn full_access_log_is_reported_once() {
    let server = app().workers(1).args(["--access-log", "/dev/full"]).start();
    for _ in 0..20 {
        assert_serves(&server, "with a full disk");
    }
    eventually("what was lost", || (access_lost(&server) == 80).then_some(()));
    server.wait_for_log("No space left on device");
    assert_eq!(server.log().matches("access log").count(), 1, "{}", server.log());
    assert_ends_well(server);
}

#[test]
fn file_size_limit_ends_access_log_not_server() {
    let start = app().workers(1);
    let log = file_of_start(&start, "access.log");
    let server = start.args(["--access-log", &log]).start();
    // Set after the start: the ring is a file, too.
    let pid = server.pid().to_string();
    let limited = Command::new("prlimit").args(["--fsize=16384", "--pid", &pid]).status();
    assert!(limited.expect("util-linux").success());
    let mut client = server.client();
    let target = format!("/hello?{}", "q".repeat(4000));
    eventually("a loss", || {
        assert_eq!(client.get(&target).status, 200);
        (access_lost(&server) > 3).then_some(())
    });
    server.wait_for_log("File too large");
    // There is room again; the truncated line is not continued.
    std::fs::rename(&log, format!("{log}.1")).expect("our own folder");
    server.ask_to_reopen();
    eventually("lines in the new file", || {
        client.get("/hello?new");
        let text = std::fs::read_to_string(&log).ok()?;
        text.lines().all(|line| line.starts_with("127.0.0.1 - - [")).then_some(())
    });
    assert_ends_well(server);
}

fn file_of_start(start: &Start, name: &str) -> String {
    start.folder().join(name).to_string_lossy().into_owned()
}

fn make_fifo(start: &Start, name: &str) -> String {
    let path = file_of_start(start, name);
    assert!(Command::new("mkfifo").arg(&path).status().expect("coreutils").success());
    path
}

#[test]
fn access_log_fifo_reader_can_reconnect() {
    let start = app().workers(1);
    let log = make_fifo(&start, "access.pipe");
    let server = start.args(["--access-log", &log]).start();
    for reader in ["first", "second"] {
        assert_eq!(server.get(&format!("/hello?{reader}")).status, 200);
        let mut seen = String::new();
        let mut pipe = OpenOptions::new().read(true).open(&log).expect("a writer is there");
        let mut bytes = [0; 4096];
        eventually("the line", || {
            let n = pipe.read(&mut bytes).expect("a line");
            seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
            seen.contains(&format!("/hello?{reader} ")).then_some(())
        });
    }
    assert_ends_well(server);
}

#[test]
fn final_and_long_php_output_is_logged_completely() {
    let server = app().workers(2).start();
    server.get("/mumble?say=last+words");
    server.wait_for_log("last words\n");
    assert_eq!(server.get("/chatter?say=long&length=1000000&raw=1&times=1").text(), "said");
    eventually("all of the long line", || {
        (server.log().matches('x').count() > 999_900).then_some(())
    });
    let longest = server.log().lines().map(str::len).max().unwrap_or(0);
    assert!((100_000..400_000).contains(&longest), "{longest}");
    let log = server.stop();
    assert!(log.contains("last words\n"));
}

#[test]
fn log_lines_of_several_workers_do_not_mix() {
    let server = app().workers(4).start();
    let clients: Vec<_> = ["a", "b", "c", "d"]
        .map(|who| {
            let mut client = server.client();
            let target = format!("/chatter?say={who}&pad={who}&length=20000&times=50");
            std::thread::spawn(move || assert_eq!(client.get(&target).text(), "said"))
        })
        .into();
    for client in clients {
        client.join().expect("an answer");
    }
    let log = eventually("all lines", || {
        let log = server.log();
        (log.lines().filter(|line| line.len() > 20_000).count() == 200).then_some(log)
    });
    for line in log.lines().filter(|line| line.len() > 1000) {
        let message = line.split(' ').rev().nth(1).expect("a message");
        let first = message.chars().next().expect("a letter");
        assert_eq!((message.len(), message.trim_matches(first)), (20_000, ""), "{}", &line[..100]);
    }
}

/// Reads everything, and keeps the lines that do not belong to the flood.
fn sieve(reader: PipeReader) -> Arc<Mutex<String>> {
    let kept = Arc::<Mutex<String>>::default();
    let all = Arc::clone(&kept);
    std::thread::spawn(move || {
        // As fast as possible: the others wait behind the lines of the flood.
        let (mut reader, mut line) = (BufReader::with_capacity(1 << 16, reader), Vec::new());
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if !line.starts_with(b"flood") {
                all.lock().expect("no panic").push_str(&String::from_utf8_lossy(&line));
            }
            line.clear();
        }
    });
    kept
}

#[test]
fn flooding_worker_does_not_block_log_of_others() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let server = app().workers(2).start_unheard(writer);
    let kept = sieve(reader);
    let wait_for = |text: &str| {
        eventually(text, || kept.lock().expect("no panic").contains(text).then_some(()));
    };
    let target = "/chatter?say=flood&raw=1&length=200&times=1000000000";
    let mut flood = server.client();
    flood.send(&Request::get(target).bytes());
    let flooder = wait_for_busy(&server);
    for n in 0..8 {
        assert_eq!(server.get(&format!("/chatter?say=quiet-{n}-&times=1")).text(), "said");
        wait_for(&format!("quiet-{n}- 0"));
    }
    server.kill_worker(flooder);
    wait_for("was killed by signal 9");
    drop(flood);
    assert_ends_well(server);
}

#[test]
fn worker_is_replaced_without_free_descriptors() {
    let server = app().workers(1).start();
    let mut client = server.client();
    assert_eq!(client.get("/chatter?say=before&times=1").text(), "said");
    let worker = server.worker_pid();
    let pid = server.pid().to_string();
    let is_free = |fd: &usize| std::fs::symlink_metadata(format!("/proc/{pid}/fd/{fd}")).is_err();
    let free = (0..1000).find(is_free).expect("a small server");
    let limited =
        Command::new("prlimit").arg(format!("--nofile={free}:4096")).args(["--pid", &pid]).status();
    assert!(limited.expect("util-linux").success());
    server.kill_worker(worker);
    server.wait_for_log("was killed by signal 9");
    assert_eq!(client.get("/chatter?say=after&times=1").text(), "said");
    server.wait_for_log("after 0");
    drop(client);
    server.stop();
}

#[test]
fn reloads_and_deaths_leak_no_pipe() {
    let server = app().workers(2).start();
    let open = || server.held();
    // The front opens descriptors when it begins to serve. They must exist before the count.
    assert_serves(&server, "before the first reload");
    let reload = || server.reload().expect("a reload");
    reload();
    let settled = eventually("one generation", || (server.worker_pids().len() == 2).then(&open));
    for _ in 0..3 {
        reload();
        server.kill_worker(server.worker_pid());
    }
    eventually("no more descriptors than before", || {
        let now = open();
        (now.pipes <= settled.pipes && now.descriptors <= settled.descriptors).then_some(())
    });
    server.stop();
}
