//! Logs that cannot be written: no reader, no room, nobody who reads. The server goes on, and says what was lost.

use crate::faults::stage::{app, assert_serves, wait_for_busy};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Many more bytes than a pipe holds: 10,000 messages of PHP.
const CHATTER: &str = "/chatter?say=chatter&times=10000&length=100";

fn lost(server: &Server) -> u64 {
    server.status()["log_lines_lost_total"].as_u64().expect("a number")
}

fn access_lost(server: &Server) -> u64 {
    server.status()["access_log_lines_lost_total"].as_u64().expect("a number")
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a device of every Linux")
}

/// All that makes the server, or PHP in it, write to the log.
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
fn a_log_whose_reader_has_gone_is_no_reason_to_end() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let server = app().workers(2).start_unheard(writer);
    drop(reader);
    make_noise(&server);
    eventually("the loss in the status", || (lost(&server) > 20_000).then_some(()));
    assert_ends_well(server);
}

#[test]
fn neither_is_one_without_room() {
    let server = app().workers(2).start_unheard(full());
    make_noise(&server);
    eventually("the loss in the status", || (lost(&server) > 20_000).then_some(()));
    assert_ends_well(server);
}

#[test]
fn nor_one_that_was_closed_before() {
    let start = app().workers(2).through("exec \"$@\" 2>&-");
    let server = start.start_unheard(std::process::Stdio::null());
    make_noise(&server);
    assert_ends_well(server);
}

/// Fills the pipe by the server's own means; its reader does not read.
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
fn a_reader_that_stops_stops_nobody_and_reads_later_what_was_lost() {
    let (server, mut reader) = stuck(|start| start);
    make_noise(&server);
    let all = std::thread::spawn(move || {
        let mut all = String::new();
        reader.read_to_string(&mut all).expect("text");
        all
    });
    // What it reads first is what was there before the loss.
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

/// `… 1,234 lines were lost while nobody read …`
fn lines_lost(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" lines were lost while nobody read")?;
    before.rsplit(' ').next()?.replace(',', "").parse().ok()
}

/// `TIME php pid=1 request_id=… chatterxxx… 17`
fn is_whole(line: &str) -> bool {
    let number = line.rsplit(' ').next().unwrap_or_default();
    line.contains(" php pid=") && line.contains("chatterx") && number.parse::<u32>().is_ok()
}

#[test]
fn a_stuck_log_does_not_hold_up_the_end() {
    let (server, reader) = stuck(|start| start);
    assert_ends_well(server);
    drop(reader);
}

/// `O_NONBLOCK` of Linux on x86-64 and aarch64.
const NON_BLOCKING: i32 = 0o4000;

#[test]
fn a_full_pipe_that_refuses_is_waited_for_too() {
    // Somebody who shares it has set O_NONBLOCK.
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
        String::from_utf8_lossy(&all).contains("lines were lost while nobody read").then_some(())
    });
    assert_ends_well(server);
}

#[test]
fn a_stuck_access_log_loses_lines_and_nothing_else() {
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
fn an_access_log_without_room_is_told_of_once() {
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
fn a_limit_for_files_ends_the_access_log_and_not_the_server() {
    let start = app().workers(1);
    let log = file_of_start(&start, "access.log");
    let server = start.args(["--access-log", &log]).start();
    // Not before: the ring is a file, too.
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
    // Room again: the line that was cut is not continued.
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
fn an_access_log_may_be_a_pipe_whose_reader_comes_and_goes() {
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
fn last_words_are_lines_and_long_ones_are_pieces() {
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
fn lines_of_several_workers_do_not_mix() {
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

/// Reads everything, and keeps what is not the flood's.
fn sieve(reader: PipeReader) -> Arc<Mutex<String>> {
    let kept = Arc::<Mutex<String>>::default();
    let all = Arc::clone(&kept);
    std::thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if !line.starts_with("flood") {
                let mut all = all.lock().expect("no panic");
                all.push_str(&line);
                all.push('\n');
            }
        }
    });
    kept
}

#[test]
fn who_floods_the_log_does_not_drown_the_others() {
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
    for n in 0..20 {
        assert_eq!(server.get(&format!("/chatter?say=quiet-{n}-&times=1")).text(), "said");
        wait_for(&format!("quiet-{n}- 0"));
    }
    server.kill_worker(flooder);
    wait_for("was killed by signal 9");
    drop(flood);
    assert_ends_well(server);
}

#[test]
fn a_server_without_descriptors_left_has_workers_all_the_same() {
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
fn reloads_and_deaths_leave_no_pipe_behind() {
    let server = app().workers(2).start();
    let open = || server.held();
    // What the front opens when it begins to serve is there before anything is counted.
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
