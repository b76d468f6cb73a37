//! The worker behind the ring, without a front: requests are put into slots by hand.
#![allow(unsafe_code, clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]
#![allow(clippy::multiple_unsafe_ops_per_block)]

use samovar_ring::request::{FLAG_APP, RequestHead, encode};
use samovar_ring::{End, FrontEnd, Lane, Progress, Ring};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(20);

struct Bench {
    front: FrontEnd,
    channel: OwnedFd,
    child: Child,
    folder: std::path::PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn pair() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    let made =
        unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, fds.as_mut_ptr()) };
    assert_eq!(made, 0);
    unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) }
}

impl Bench {
    fn start(name: &str, script: &str) -> Bench {
        let folder = std::env::temp_dir().join(format!("samovar-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("index.php");
        std::fs::write(&file, script).unwrap();
        let ring = Ring::create(8).unwrap();
        let (ours, theirs) = pair();
        let fds = [theirs.as_raw_fd(), ring.file().as_raw_fd(), ring.bell().as_raw_fd()];
        let mut command = Command::new(env!("CARGO_BIN_EXE_samovar-php"));
        command.args(["--app", file.to_str().unwrap(), "--define", "error_log="]);
        for (flag, fd) in ["--channel", "--ring", "--bell"].iter().zip(fds) {
            command.args([*flag, &fd.to_string()]);
        }
        let keep = move || {
            for fd in fds {
                unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
            }
            Ok(())
        };
        unsafe { command.pre_exec(keep) };
        let child = command.spawn().unwrap();
        drop(theirs);
        let bench = Bench { front: FrontEnd::new(ring), channel: ours, child, folder };
        assert!(bench.hear().starts_with("ready 8."));
        bench
    }

    fn say(&self, text: &str) {
        let fd = self.channel.as_raw_fd();
        assert!(unsafe { libc::send(fd, text.as_ptr().cast(), text.len(), 0) } > 0);
    }

    fn hear(&self) -> String {
        let mut buffer = [0u8; 256];
        let fd = self.channel.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let ready = unsafe { libc::poll(&raw mut poll, 1, WATCHDOG.as_millis() as i32) };
        assert_eq!(ready, 1, "the template is silent");
        let len = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        String::from_utf8_lossy(&buffer[..usize::try_from(len).unwrap()]).into_owned()
    }

    /// Passes over what is said of the image.
    fn hear_that(&self, start: &str) {
        loop {
            let text = self.hear();
            if text.starts_with(start) {
                return;
            }
            assert!(text.starts_with("image ") || text.starts_with("finding "), "{text}");
        }
    }

    fn get(&mut self, query: &str) -> (u16, String, String) {
        let file = self.folder.join("index.php");
        let root = self.folder.to_str().unwrap();
        let target = format!("/?{query}");
        let head = RequestHead {
            method: b"GET",
            target: target.as_bytes(),
            query: query.as_bytes(),
            protocol: b"HTTP/1.1",
            script_filename: file.to_str().unwrap().as_bytes(),
            script_name: b"/index.php",
            document_uri: b"/index.php",
            document_root: root.as_bytes(),
            request_id: b"test-1",
            flags: FLAG_APP,
            ..RequestHead::default()
        };
        let mut encoded = Vec::new();
        encode(&head, [(&b"host"[..], &b"example.org"[..])], &mut encoded).unwrap();
        let filling = self.front.fill().unwrap();
        self.front.put_request(&filling, &encoded);
        let slot = self.front.submit(filling, Lane::App).unwrap();
        self.front.end_body(slot, End::Complete);
        self.front.ring_workers();
        let start = Instant::now();
        while self.front.progress(slot) != Ok(Progress::Answered) {
            assert!(start.elapsed() < WATCHDOG, "no answer: {:?}", self.front.progress(slot));
            std::thread::yield_now();
        }
        let (mut lines, mut body) = (Vec::new(), Vec::new());
        let status = self.front.read_head(slot, &mut lines).unwrap();
        assert_eq!(self.front.read_body(slot, &mut body), Ok(End::Complete));
        assert!(self.front.ledger(slot).cpu_ns > 0);
        self.front.release(slot);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status, text(lines), text(body))
    }
}

#[test]
fn a_script_runs_and_its_worker_says_how() {
    let mut bench = Bench::start(
        "script",
        "<?php header('X-One: 1'); http_response_code(201); echo $_GET['a'], ' ', $_SERVER['HTTP_HOST'];",
    );
    bench.say("fork 0 1 any");
    assert!(bench.hear().starts_with("forked 0 1 "));
    for turn in ["b", "c", "d"] {
        let (status, lines, body) = bench.get(&format!("a={turn}"));
        assert_eq!((status, body.as_str()), (201, format!("{turn} example.org").as_str()));
        assert!(lines.contains("X-One: 1\n"), "{lines}");
    }
}

#[test]
fn a_resident_handler_keeps_its_statics() {
    let mut bench = Bench::start(
        "resident",
        "<?php Samovar\\serve(function () { static $n = 0; echo ++$n, ' ', $_GET['a'] ?? '-'; });",
    );
    bench.say("fork 0 1 boot");
    assert!(bench.hear().starts_with("image resident 0 0 "));
    assert!(bench.hear().starts_with("forked 0 1 "));
    assert_eq!(bench.get("a=x").2, "1 x");
    assert_eq!(bench.get("").2, "2 -");
    assert_eq!(bench.get("a=z").2, "3 z");
}

#[test]
fn a_checkpoint_is_where_each_request_begins() {
    let mut bench = Bench::start(
        "checkpoint",
        "<?php $n = 0; Samovar\\checkpoint(); echo ++$n, ' ', $_GET['a'] ?? '-';",
    );
    bench.say("fork 0 1 boot");
    assert!(bench.hear().starts_with("image shared "));
    assert!(bench.hear().starts_with("forked 0 1 "));
    for turn in ["x", "y", "z"] {
        assert_eq!(bench.get(&format!("a={turn}")).2, format!("1 {turn}"));
    }
}

#[test]
fn a_fatal_error_ends_the_request_and_boots_the_application_again() {
    let mut bench = Bench::start(
        "fatal",
        "<?php Samovar\\serve(function () { static $n = 0; $n++; if (isset($_GET['die'])) { no_such(); } \
         if (isset($_GET['oom'])) { ini_set('memory_limit', '8M'); str_repeat('x', 1 << 24); } \
         if (isset($_GET['exit'])) { exit('bye'); } echo $n; });",
    );
    bench.say("fork 0 1 boot");
    bench.hear_that("forked 0 1 ");
    assert_eq!(bench.get("").2, "1");
    assert_eq!(bench.get("exit").2, "bye");
    assert_eq!(bench.get("die").0, 500);
    assert_eq!(bench.get("").2, "4", "an exception does not end the application");
    assert_eq!(bench.get("oom").0, 500);
    bench.hear_that("died 0 1 ");
    bench.say("fork 0 2 boot");
    bench.hear_that("forked 0 2 ");
    assert_eq!(bench.get("").2, "1", "a fatal error does");
}

/// What it has booted is that visitor's.
#[test]
fn a_worker_that_meets_serve_in_a_request_answers_it_and_leaves() {
    let mut bench = Bench::start("late", "<?php Samovar\\serve(fn () => 'whole');");
    bench.say("fork 0 1 any");
    bench.hear_that("forked 0 1 ");
    assert_eq!(bench.get("").2, "whole");
    bench.hear_that("died 0 1 ");
}

#[test]
fn a_killed_worker_is_reported() {
    let bench = Bench::start("killed", "<?php echo 1;");
    bench.say("fork 3 7 any");
    let forked = bench.hear();
    let pid: i32 = forked.rsplit(' ').next().unwrap().parse().unwrap();
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert_eq!(bench.hear(), format!("died 3 7 {pid} 9"));
}
