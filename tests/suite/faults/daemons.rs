//! The system log: messages to a syslog daemon and to journald, and a server whose daemon ends,
//! stops reading, or is absent.

use crate::faults::stage::{app, assert_serves};
use samovar_testkit::{Server, Start, eventually};
use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A log daemon that reads its messages only when the test waits for them.
struct Daemon {
    socket: UnixDatagram,
    heard: Vec<Vec<u8>>,
}

impl Daemon {
    fn at(path: &Path) -> Daemon {
        let socket = UnixDatagram::bind(path).expect("a folder of ours");
        socket.set_nonblocking(true).expect("a socket");
        Daemon { socket, heard: Vec::new() }
    }

    fn listen(&mut self) {
        let mut buffer = vec![0; 256 << 10];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.heard.push(buffer[..length].to_vec());
        }
    }

    /// Waits for the first message that contains all of `words`.
    fn wait_for(&mut self, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.wait_for_bytes(words)).into_owned()
    }

    fn wait_for_bytes(&mut self, words: &[&str]) -> Vec<u8> {
        eventually(&format!("a record with {words:?}"), || {
            self.listen();
            let has_all = |one: &&Vec<u8>| {
                let text = String::from_utf8_lossy(one);
                words.iter().all(|word| text.contains(word))
            };
            self.heard.iter().find(has_all).cloned()
        })
    }
}

fn place(start: &Start) -> PathBuf {
    start.folder().join("daemon")
}

fn lost(server: &Server) -> u64 {
    server.status()["log_lines_dropped_total"].as_u64().expect("a number")
}

fn assert_ends_well(mut server: Server) {
    server.terminate();
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn syslog_record_has_facility_severity_and_source() {
    let start = app().workers(1);
    let path = place(&start);
    let mut daemon = Daemon::at(&path);
    let (log, access) =
        (format!("syslog:local3@{}", path.display()), format!("syslog@{}", path.display()));
    let start = start.args(["--log", &log, "--access-log", &access, "--log-level", "info"]);
    let server = start.start_unheard(Stdio::null());
    assert_eq!(server.get("/chatter?say=ouch&times=1").text(), "said");
    // local3 is 19; a message of error_log() is a notice, 5.
    let php = daemon.wait_for(&["ouch 0"]);
    let head = format!(" samovar[{}]: php pid={} request_id=", server.pid(), server.worker_pid());
    assert!(php.starts_with("<157>") && php.contains(&head) && php.ends_with(" ouch 0"), "{php:?}");
    // daemon is 3, and a request is logged as information, 6. The access log line itself is
    // unchanged.
    let access = daemon.wait_for(&["\"GET /chatter?"]);
    assert!(access.starts_with("<30>") && access.contains(" samovar-access["), "{access:?}");
    assert_eq!(server.get("/chatter?say=%0Atwo&times=1").text(), "said");
    let two = daemon.wait_for(&["two 0"]);
    assert!(two.ends_with("\n    two 0"), "its lines are one record: {two:?}");
    assert_eq!(server.get("/chatter?say=raw&times=1&raw=1").text(), "said");
    let raw = daemon.wait_for(&["raw 0"]);
    assert!(raw.starts_with("<158>") && raw.ends_with(": raw 0"), "{raw:?}");
    server.kill_worker(server.worker_pid());
    let own = daemon.wait_for(&["WARN samovar", "worker"]);
    assert!(own.starts_with("<156>"), "{own:?}");
    assert_eq!(lost(&server), 0);
    assert_ends_well(server);
}

#[test]
fn journald_record_has_fields() {
    let start = app().workers(1);
    let path = place(&start);
    let mut daemon = Daemon::at(&path);
    let log = format!("journald@{}", path.display());
    let start = start.args(["--log", &log, "--log-format", "json"]);
    let server = start.start_unheard(Stdio::null());
    assert_eq!(server.get("/chatter?say=ouch&times=1").text(), "said");
    let said = daemon.wait_for_bytes(&["ouch 0"]);
    let fields = b"PRIORITY=6\nSYSLOG_IDENTIFIER=samovar\nMESSAGE\n";
    let message = said.strip_prefix(fields).expect("these fields");
    let (length, text) = message.split_at(8);
    assert_eq!(u64::from_le_bytes(length.try_into().expect("8 bytes")), text.len() as u64 - 1);
    let line: serde_json::Value = serde_json::from_slice(text).expect("a line of JSON");
    assert_eq!((&line["message"], &line["target"]), (&"ouch 0".into(), &"php".into()));
    // A long message is split into pieces, none of which is lost.
    assert_eq!(server.get("/chatter?say=long&times=1&length=150000&raw=1").text(), "said");
    daemon.wait_for(&["xxx 0\n"]);
    assert_eq!(lost(&server), 0);
    assert_ends_well(server);
}

#[test]
fn restarted_syslog_daemon_receives_log_again() {
    let start = app().workers(1);
    let path = place(&start);
    let mut daemon = Daemon::at(&path);
    let log = format!("syslog@{}", path.display());
    let server = start.args(["--log", &log]).start_unheard(Stdio::null());
    server.get("/chatter?say=before&times=1");
    daemon.wait_for(&["before 0"]);
    drop(daemon);
    server.get("/chatter?say=meanwhile&times=3");
    eventually("what was lost", || (lost(&server) >= 3).then_some(()));
    assert_serves(&server, "without a daemon");
    std::fs::remove_file(&path).expect("what it has left");
    server.get("/chatter?say=nowhere&times=1");
    eventually("that too", || (lost(&server) >= 4).then_some(()));
    let mut daemon = Daemon::at(&path);
    server.get("/chatter?say=again&times=1");
    daemon.wait_for(&["again 0"]);
    daemon.wait_for(&["lines were lost: "]);
    assert_ends_well(server);
}

#[test]
fn stuck_syslog_daemon_blocks_no_request() {
    let start = app().workers(2);
    let path = place(&start);
    let mut daemon = Daemon::at(&path);
    let log = format!("syslog@{}", path.display());
    let server = start.args(["--log", &log]).start_unheard(Stdio::null());
    for _ in 0..5 {
        assert_eq!(server.get("/chatter?say=chatter&times=10000&length=100").text(), "said");
    }
    eventually("the loss in the status", || (lost(&server) > 0).then_some(()));
    assert_serves(&server, "with a daemon that is stuck");
    daemon.wait_for(&["lines were lost: the log queue was full"]);
    assert_ends_well(server);
}

#[test]
fn stuck_syslog_daemon_does_not_block_stop() {
    let start = app().workers(1);
    let path = place(&start);
    let _daemon = Daemon::at(&path);
    let log = format!("journald@{}", path.display());
    let server = start.args(["--log", &log]).start_unheard(Stdio::null());
    assert_eq!(server.get("/chatter?say=chatter&times=1000").text(), "said");
    assert_ends_well(server);
}

#[test]
fn absent_log_daemon_prevents_start() {
    for (log, hint) in [("syslog", "rsyslog"), ("journald", "systemd-journald")] {
        for setting in ["--log", "--access-log"] {
            let start = app().workers(1);
            let place = format!("{log}@{}", place(&start).display());
            let (status, said) = start.args([setting, &place]).refuse();
            assert_ne!(status, Some(0));
            let what = if setting == "--log" { hint } else { "access log" };
            assert!(said.contains("No such file") && said.contains(what), "{setting}: {said}");
        }
    }
}

#[test]
fn log_file_on_full_disk_blocks_no_request() {
    let server = app().workers(1).args(["--log", "/dev/full"]).start_unheard(Stdio::null());
    for _ in 0..20 {
        server.get("/chatter?say=lost&times=1");
    }
    eventually("what was lost", || (lost(&server) >= 20).then_some(()));
    assert_serves(&server, "with a full disk");
    assert_ends_well(server);
}

#[test]
fn truncated_log_file_continues_at_its_start() {
    let start = app().workers(1);
    let path = start.folder().join("log");
    let log = path.to_string_lossy().into_owned();
    let server = start.args(["--log", &log]).start_unheard(Stdio::null());
    server.get("/chatter?say=first&times=1");
    let text = || std::fs::read_to_string(&path).unwrap_or_default();
    eventually("the first line", || text().contains("first 0").then_some(()));
    // As with logrotate's copytruncate.
    let file = File::options().write(true).open(&path).expect("the log");
    file.set_len(0).expect("a file");
    server.get("/chatter?say=second&times=1");
    eventually("the next line", || text().contains("second 0").then_some(()));
    assert!(!text().contains('\0'), "it is appended to, wherever it ends: {:?}", text());
    assert_ends_well(server);
}

#[test]
fn long_syslog_record_is_split_below_rsyslog_limit() {
    let start = app().workers(1);
    let path = place(&start);
    let mut daemon = Daemon::at(&path);
    let log = format!("syslog@{}", path.display());
    let server = start.args(["--log", &log]).start_unheard(Stdio::null());
    assert_eq!(server.get("/chatter?say=long&times=1&length=20000").text(), "said");
    let end = daemon.wait_for(&["xxx 0"]);
    let pieces: Vec<_> = daemon
        .heard
        .iter()
        .filter(|one| one.ends_with(b"xxx") || **one == end.as_bytes())
        .collect();
    assert_eq!(pieces.len(), 3);
    assert!(pieces.iter().all(|one| one.len() < 8 << 10 && one.starts_with(b"<29>")));
    assert_ends_well(server);
}
