//! Tests of the worker and the ring without a front: requests are put into slots by hand.
#![allow(unsafe_code, clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]
#![allow(clippy::multiple_unsafe_ops_per_block)]

use samovar_channel::{
    Event, Heard, ImageMode, Order, Role, Start, SupervisorEnd, TemplateEnd, WorkerId,
    WorkerOptions, pair,
};
use samovar_published::{Limits, Publishing};
use samovar_ring::request::{FLAG_APP, RequestHead, encode};
use samovar_ring::{End, FrontEnd, Incarnation, Lane, Progress, Ring};
use samovar_shared::Shared;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_mins(2);

/// The worker's C code replaces libc functions in this test program, too. Some of them report that
/// a worker leaves or waits. This program is not a worker.
#[unsafe(no_mangle)]
extern "C" fn samovar_leave(_reason: std::ffi::c_int) {}
#[unsafe(no_mangle)]
extern "C" fn samovar_permit_pause() -> bool {
    false
}
#[unsafe(no_mangle)]
extern "C" fn samovar_permit_pass() {}
#[unsafe(no_mangle)]
extern "C" fn samovar_permit_resume() {}

fn worker(cell: usize, life: u32) -> WorkerId {
    WorkerId { cell, life: Incarnation::new(life).unwrap() }
}

fn options(root: &Path, app: &Path) -> WorkerOptions {
    WorkerOptions {
        app: Some(app.to_owned()),
        define: BTreeMap::from([("error_log".to_owned(), String::new())]),
        ..WorkerOptions::bare(root.to_owned())
    }
}

struct Bench {
    front: FrontEnd,
    channel: SupervisorEnd,
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

impl Bench {
    fn start(name: &str, script: &str) -> Bench {
        let folder = std::env::temp_dir().join(format!("samovar-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("index.php");
        std::fs::write(&file, script).unwrap();
        let ring = Ring::create(8).unwrap();
        let shared = Shared::create(1 << 20).unwrap();
        let limits = Limits { bytes_max: 1 << 20, value_bytes_max: 1 << 20, names_max: 8 };
        let published = Publishing::new(shared.clone(), limits).unwrap();
        let (ours, theirs): (SupervisorEnd, TemplateEnd) = pair().unwrap();
        let start = Start {
            parent: std::process::id().cast_signed(),
            channel: theirs.as_raw_fd(),
            ring: ring.file().as_raw_fd(),
            notifiers: ring.notifiers().map(|notifier| notifier.as_raw_fd()).collect(),
            shared: shared.file().as_raw_fd(),
            published: published.region().as_raw_fd(),
            publishing: published.socket().as_raw_fd(),
            traces: None,
            loads: None,
            jobs: None,
            options: options(&folder, &file),
        };
        let sealed = start.seal().unwrap();
        let fds = [
            start.channel,
            start.ring,
            start.notifiers[0],
            start.shared,
            start.published,
            start.publishing,
            sealed.as_raw_fd(),
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_samovar-php"));
        command.args(start.arguments(&sealed));
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
        let Event::Ready { php, .. } = bench.hear() else { panic!("not ready") };
        assert!(php.starts_with("8."), "{php}");
        bench
    }

    fn fork(&self, worker: WorkerId, role: Role) {
        self.channel.send_now(&Order::Fork { worker, role }, None).unwrap();
    }

    /// Returns the next event, except for the start of a boot and PHP's settings, which do not
    /// matter here.
    fn hear(&self) -> Event {
        loop {
            match self.hear_any() {
                Event::Booting { .. } | Event::Php(_) => {}
                event => return event,
            }
        }
    }

    fn hear_any(&self) -> Event {
        let fd = self.channel.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let ready = unsafe { libc::poll(&raw mut poll, 1, WATCHDOG.as_millis() as i32) };
        assert_eq!(ready, 1, "the template is silent");
        match self.channel.hear().unwrap() {
            Heard::Message(event, _) => event,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next event about a worker. Skips events about the image.
    fn hear_of_worker(&self) -> Event {
        loop {
            match self.hear() {
                Event::Image(_) | Event::Finding(_) => {}
                event => return event,
            }
        }
    }

    fn hear_forked(&self, expected: WorkerId) -> i32 {
        match self.hear_of_worker() {
            Event::Forked { worker, pid } if worker == expected => pid,
            other => panic!("{other:?}"),
        }
    }

    fn hear_died(&self, expected: WorkerId) -> (i32, i32) {
        match self.hear_of_worker() {
            Event::Died { worker, pid, status } if worker == expected => (pid, status),
            other => panic!("{other:?}"),
        }
    }

    fn hear_image(&self) -> ImageMode {
        match self.hear() {
            Event::Image(image) => image.mode,
            other => panic!("{other:?}"),
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
        let slot = self.front.submit(filling, Lane::App, Duration::ZERO).unwrap();
        self.front.end_body(slot, End::Complete);
        self.front.ring_workers();
        let start = Instant::now();
        while self.front.progress(slot) != Ok(Progress::Responded) {
            assert!(start.elapsed() < WATCHDOG, "no answer: {:?}", self.front.progress(slot));
            std::thread::yield_now();
        }
        let (mut lines, mut body) = (Vec::new(), Vec::new());
        let status = self.front.read_head(slot, &mut lines).unwrap();
        assert_eq!(self.front.read_body(slot, &mut body), Ok(End::Complete));
        assert!(self.front.account(slot).usage.cpu_ns > 0);
        self.front.release(slot);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status, text(lines), text(body))
    }
}

#[test]
fn whole_script_returns_status_headers_and_body() {
    let mut bench = Bench::start(
        "script",
        "<?php header('X-One: 1'); http_response_code(201); echo $_GET['a'], ' ', \
         $_SERVER['HTTP_HOST'];",
    );
    bench.fork(worker(0, 1), Role::Any);
    bench.hear_forked(worker(0, 1));
    for turn in ["b", "c", "d"] {
        let (status, lines, body) = bench.get(&format!("a={turn}"));
        assert_eq!((status, body.as_str()), (201, format!("{turn} example.org").as_str()));
        assert!(lines.contains("X-One: 1\n"), "{lines}");
    }
}

#[test]
fn resident_handler_keeps_static_variables() {
    let mut bench = Bench::start(
        "resident",
        "<?php Samovar\\serve(function () { static $n = 0; echo ++$n, ' ', $_GET['a'] ?? '-'; });",
    );
    bench.fork(worker(0, 1), Role::Boot);
    let Event::Image(image) = bench.hear() else { panic!("no image") };
    assert_eq!((image.mode, image.bytes, image.regions), (ImageMode::Resident, 0, 0));
    bench.hear_forked(worker(0, 1));
    assert_eq!(bench.get("a=x").2, "1 x");
    assert_eq!(bench.get("").2, "2 -");
    assert_eq!(bench.get("a=z").2, "3 z");
}

#[test]
fn each_request_starts_at_checkpoint() {
    let mut bench = Bench::start(
        "checkpoint",
        "<?php $n = 0; Samovar\\checkpoint(); echo ++$n, ' ', $_GET['a'] ?? '-';",
    );
    bench.fork(worker(0, 1), Role::Boot);
    assert_eq!(bench.hear_image(), ImageMode::Shared);
    bench.hear_forked(worker(0, 1));
    for turn in ["x", "y", "z"] {
        assert_eq!(bench.get(&format!("a={turn}")).2, format!("1 {turn}"));
    }
}

#[test]
fn fatal_error_ends_request_and_reboots_application() {
    let mut bench = Bench::start(
        "fatal",
        "<?php Samovar\\serve(function () { static $n = 0; $n++; if (isset($_GET['die'])) { \
         no_such(); } if (isset($_GET['oom'])) { ini_set('memory_limit', '8M'); str_repeat('x', 1 \
         << 24); } if (isset($_GET['exit'])) { exit('bye'); } echo $n; });",
    );
    bench.fork(worker(0, 1), Role::Boot);
    bench.hear_forked(worker(0, 1));
    assert_eq!(bench.get("").2, "1");
    assert_eq!(bench.get("exit").2, "bye");
    assert_eq!(bench.get("die").0, 500);
    assert_eq!(bench.get("").2, "4", "an exception does not end the application");
    assert_eq!(bench.get("oom").0, 500);
    bench.hear_died(worker(0, 1));
    bench.fork(worker(0, 2), Role::Boot);
    bench.hear_forked(worker(0, 2));
    assert_eq!(bench.get("").2, "1", "a fatal error does");
}

/// The state that it has booted belongs to that visitor.
#[test]
fn worker_calling_serve_in_request_responds_and_leaves() {
    let mut bench = Bench::start("late", "<?php Samovar\\serve(fn () => 'whole');");
    bench.fork(worker(0, 1), Role::Any);
    bench.hear_forked(worker(0, 1));
    assert_eq!(bench.get("").2, "whole");
    bench.hear_died(worker(0, 1));
}

#[test]
fn killed_worker_is_reported() {
    let bench = Bench::start("killed", "<?php echo 1;");
    bench.fork(worker(3, 7), Role::Any);
    let pid = bench.hear_forked(worker(3, 7));
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert_eq!(bench.hear_died(worker(3, 7)), (pid, libc::SIGKILL));
}

/// Returns the exit status and the output.
fn started_with(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samovar-php"));
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn manual_start_prints_version_or_error() {
    let (status, said) = started_with(&["--version"]);
    let own = concat!("samovar-php ", env!("CARGO_PKG_VERSION"), " (PHP 8.");
    assert!(status == Some(0) && said.starts_with(own), "{said}");
    for (arguments, why) in [
        (&[][..], "missing --template"),
        (&["--app", "x.php"], "unknown argument `--app`"),
        (&["--template"], "--template -1 is not an open descriptor"),
        (&["--template", "77", "/srv"], "--template 77 is not an open descriptor"),
        (&["--template", "0", "/srv"], "its memory file cannot be parsed"),
    ] {
        let (status, said) = started_with(arguments);
        assert_eq!(status, Some(2), "{arguments:?}");
        assert!(said.contains(why) && said.contains("hint: run `samovar serve`"), "{said}");
    }
}
