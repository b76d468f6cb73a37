//! Resources passed from one server to the next, and resources that the next one uses only after
//! the old one has released them.

use super::{CHECKPOINT, SCRIPT, SIGTERM};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, WATCHDOG, eventually, is_root, kill};
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

/// The response to an HTTP/1.0 request over a Unix socket.
fn ask(path: &Path) -> String {
    let mut stream = UnixStream::connect(path).expect("somebody listens");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("somebody reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an answer");
    response
}

fn admin_of(server: &Server) -> SocketAddr {
    server.status()["admin"][0].as_str().expect("an address").parse().expect("an address")
}

#[test]
fn upgrade_passes_on_each_listener() {
    let folder = tempfile::tempdir().expect("a folder");
    let [http, fcgi] = ["http.sock", "fcgi.sock"].map(|name| folder.path().join(name));
    let listen = [format!("unix:{}", http.display()), format!("fcgi-unix:{}", fcgi.display())];
    let server = Server::script(SCRIPT)
        .workers(1)
        .args(["--listen", &listen[0], "--listen", &listen[1], "--admin", "127.0.0.1:0"])
        .start();
    let inode = |path: &Path| path.metadata().expect("a socket").ino();
    let inodes = || [&http, &fcgi, &server.control()].map(|path| inode(path));
    let before = (server.address(), admin_of(&server), inodes());
    let first = server.pid();
    for _ in 0..2 {
        server.upgrade([]).expect("an upgrade");
        server.wait_for_predecessor();
        assert_eq!((server.address(), admin_of(&server), inodes()), before);
        assert!(ask(&http).ends_with("page GET"));
        assert_eq!(server.get("/").text(), "page GET");
        assert_eq!(Client::connect(admin_of(&server)).get("/health").status, 200);
        drop(UnixStream::connect(&fcgi).expect("somebody listens"));
    }
    assert_ne!(server.pid(), first);
    // A signal has the same effect.
    let second = server.pid();
    server.ask_to_upgrade();
    server.wait_for_log(") serves");
    eventually("the third", || (server.find_heir() != second).then_some(()));
    server.wait_for_predecessor();
    assert!(ask(&http).ends_with("page GET"));
    server.stop();
    assert!(!http.exists() && !fcgi.exists(), "the last one takes them away");
}

/// An upgrade changes the server, not the release that it serves.
#[test]
fn label_of_the_release_survives_upgrades() {
    for pools in ["", "[[pool]]\nname = 'export'\nmatch = '/export/*'\nroot = 'root'\n"] {
        let server = Server::script(SCRIPT).workers(1).config(pools).start();
        server.reload_with(["--release", "v7"]).expect("a reload");
        for _ in 0..2 {
            server.upgrade([]).expect("an upgrade");
            server.wait_for_predecessor();
            assert_eq!(server.status()["release"], "v7");
        }
        server.reload().expect("a reload");
        assert!(server.status()["release"].is_null());
        server.stop();
    }
}

/// Number of upgrades. After each one, every listener is checked at once.
const ROUNDS_AT_ONCE: usize = 5;

/// As soon as a client knows that the upgrade has succeeded, only the new server responds, although
/// both could.
#[test]
fn client_knowing_of_upgrade_reaches_new_server_only() {
    let page = "<?php $deploy = file_get_contents(__DIR__ . '/deploy'); \
        Samovar\\checkpoint(); echo $deploy;";
    let start = Server::script(page).workers(1).args(["--admin", "127.0.0.1:0"]);
    let deploy = start.folder().join("root/deploy");
    std::fs::write(&deploy, "0").expect("our own file");
    let server = start.start();
    let admin = admin_of(&server);
    let requests = || {
        let page = Client::connect(admin).get("/metrics").text();
        let line = page.lines().find_map(|line| line.strip_prefix("samovar_requests_total "));
        line.expect("a count").to_owned()
    };
    let mut pids = vec![server.pid()];
    for round in 0..ROUNDS_AT_ONCE {
        assert_eq!(server.get("/").text(), round.to_string());
        eventually("it is counted", || (requests() != "0").then_some(()));
        std::fs::write(&deploy, (round + 1).to_string()).expect("our own file");
        let said = server.upgrade([]).expect("an upgrade");
        assert_eq!(requests(), "0", "the figures are its own");
        assert_eq!(server.get("/").text(), (round + 1).to_string());
        assert!(said.starts_with(&format!("process {} ", server.pid())), "{said}");
        assert!(!pids.contains(&server.pid()), "{said}");
        pids.push(server.pid());
        server.wait_for_predecessor();
    }
}

#[test]
fn upgrade_closes_removed_and_opens_added_listener() {
    let folder = tempfile::tempdir().expect("a folder");
    let [old, new] = ["old.sock", "new.sock"].map(|name| folder.path().join(name));
    let entry = |path: &Path| format!("listen = ['127.0.0.1:0', 'unix:{}']\n", path.display());
    let server = Server::script(SCRIPT).workers(1).config(&entry(&old)).start();
    // The `--listen` flag of this server overrides the file, so the file has no effect here.
    assert!(!old.exists());
    drop(server);
    let settings = folder.path().join("more.toml");
    std::fs::write(&settings, entry(&old)).expect("our own file");
    let control = folder.path().join("control.sock");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("our own folder");
    std::fs::write(root.join("index.php"), SCRIPT).expect("our own file");
    let mut command = std::process::Command::new(samovar_testkit::binary());
    command.args(["serve", "--workers", "1"]).arg(&root).arg("--config").arg(&settings);
    command
        .arg("--control")
        .arg(&control)
        .stderr(File::create(folder.path().join("log")).expect("a file"));
    command.env(samovar_testkit::family::RUN, samovar_testkit::family::run());
    if is_root() {
        command.arg("--allow-root");
    }
    let mut first = command.spawn().expect("a server");
    let samovar = |args: &[&str]| {
        let mut command = std::process::Command::new(samovar_testkit::binary());
        command.args(args).arg("--control").arg(&control).output().expect("the binary runs")
    };
    eventually("the server", || samovar(&["status"]).status.success().then_some(()));
    eventually("its page", || old.exists().then_some(()));
    std::fs::write(&settings, entry(&new)).expect("our own file");
    let upgraded = eventually("the upgrade", || {
        let output = samovar(&["upgrade"]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        (!why.contains("has not booted yet")).then_some(output)
    });
    assert!(upgraded.status.success(), "{upgraded:?}");
    assert!(!old.exists() && new.exists());
    assert!(ask(&new).ends_with("page GET"));
    assert!(first.wait().expect("our own child").success());
    assert!(ask(&new).ends_with("page GET"));
    assert!(samovar(&["stop"]).status.success());
    eventually("its end", || (!new.exists()).then_some(()));
}

#[test]
fn service_manager_follows_upgrade() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(WATCHDOG)).expect("a time-out");
    let server = Server::script(SCRIPT)
        .workers(1)
        .env("NOTIFY_SOCKET", &path.to_string_lossy())
        .env("WATCHDOG_USEC", "300000")
        .start();
    // Read continuously, as a manager does: the socket's queue is short.
    let (tell, told) = std::sync::mpsc::channel::<String>();
    std::thread::spawn(move || {
        let mut buffer = [0; 1000];
        while let Ok(len) = socket.recv(&mut buffer)
            && tell.send(String::from_utf8_lossy(&buffer[..len]).into_owned()).is_ok()
        {}
    });
    let next = || told.recv_timeout(WATCHDOG).expect("a message");
    server.upgrade(["--binary", "/bin/false"]).expect_err("that is none");
    server.upgrade([]).expect("an upgrade");
    let second = server.pid();
    let main = format!("MAINPID={second}\nREADY=1");
    let mut seen = vec![next()];
    while !seen.last().is_some_and(|last| last.starts_with(&main)) {
        seen.push(next());
    }
    let is_said = |word: &str| seen.iter().any(|it| it.contains(word));
    assert!(!is_said("STOPPING") && !is_said("RELOADING"), "{seen:?}");
    assert_eq!(seen.iter().filter(|it| it.contains("MAINPID")).count(), 1, "{seen:?}");
    // The new server is ready, and sends heartbeats. The old one sends no further messages.
    let after = next();
    assert!(after.starts_with("READY=1\nSTATUS=generation 1 serves"), "{after}");
    while next() != "WATCHDOG=1" {}
    server.wait_for_predecessor();
    kill(second, SIGTERM);
    let mut last = next();
    while last == "WATCHDOG=1" {
        last = next();
    }
    assert!(last.starts_with("STOPPING=1"), "{last}");
}

#[test]
fn upgrade_never_runs_console_worker_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("console.php");
    // Leaves half a second after the request to do so.
    let php = "<?php
        $lock = fopen(__DIR__ . '/lock', 'c');
        if (!flock($lock, LOCK_EX | LOCK_NB)) { echo \"TWO\\n\"; }
        echo 'BEGINS ', getmypid(), \"\\n\";
        $ends = false;
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, function () use (&$ends) { $ends = true; });
        while (!$ends) { usleep(5000); }
        usleep(500000);
        echo \"LEAVES\\n\";";
    std::fs::write(&script, php).expect("our own file");
    let table = format!("[[console]]\nname = 'one'\nscript = '{}'\n", script.display());
    let server = Server::script(SCRIPT).workers(1).config(&table).start();
    let begins = |n: usize| {
        eventually(&format!("{n} of them"), || {
            (server.log().matches("BEGINS ").count() == n).then_some(())
        });
    };
    begins(1);
    for n in [2, 3] {
        server.upgrade([]).expect("an upgrade");
        begins(n);
        server.wait_for_predecessor();
    }
    let log = server.log();
    assert!(!log.contains("TWO"), "{log}");
    assert_eq!(log.matches("LEAVES").count(), 2, "{log}");
}

#[test]
fn history_is_written_by_one_server_at_a_time() {
    let page = "<?php Samovar\\checkpoint(); if (isset($_GET['gate'])) { \
        touch($_GET['gate'] . '.begun'); \
        while (!file_exists($_GET['gate'])) { usleep(5000); clearstatcache(); } } echo 'page';";
    let server = Server::script(page).workers(1).args(["--admin", "127.0.0.1:0"]);
    let store = server.folder().join("history.db");
    let server = server.config(&format!("[insight]\nstore = '{}'", store.display())).start();
    let gate = server.folder().join("gate");
    let target = format!("/?gate={}", gate.display());
    let holds = |pid: i32| {
        let links = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process").flatten();
        let names = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        names.filter(|name| name.to_string_lossy().contains("history.db")).count()
    };
    let first = server.pid();
    eventually("the history", || (holds(first) > 0).then_some(()));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| server.get(&target));
        eventually("the request", || gate.with_extension("begun").exists().then_some(()));
        server.upgrade([]).expect("an upgrade");
        assert_eq!(server.get("/").text(), "page");
        assert_eq!(server.status()["predecessor_pid"], first);
        assert!(holds(first) > 0, "what it still answers is noted, too");
        assert_eq!(holds(server.pid()), 0, "two write the same file");
        let why = server.upgrade([]).expect_err("the first is still there");
        assert!(why.contains("still finishes its requests\nhint: "), "{why}");
        std::fs::write(&gate, "").expect("our own file");
        assert_eq!(slow.join().expect("no panic").text(), "page");
    });
    server.wait_for_predecessor();
    eventually("the history goes on", || (holds(server.pid()) > 0).then_some(()));
}

#[test]
fn kept_connection_is_closed_by_upgrade_with_close_header() {
    let server = Server::script(CHECKPOINT).workers(1).start();
    let mut kept = server.client();
    assert_eq!(kept.get("/").header("connection"), None);
    server.upgrade([]).expect("an upgrade");
    // Idle connections stay open for a second, or the connection has just been closed.
    if let Ok(response) = kept.try_request(&Request::get("/")) {
        assert_eq!(response.header("connection"), Some("close"));
    }
    server.wait_for_predecessor();
    assert!(kept.is_closed());
}

#[test]
fn server_started_by_root_passes_on_privileged_resources() {
    if !is_root() {
        return;
    }
    let php = "<?php echo posix_geteuid(), ' ', getenv('HOME'), ' ', trim(`sh -c 'ulimit -n'`);";
    let start = Server::script(php).without_root();
    let folder = start.folder().to_owned();
    for path in [folder.clone(), folder.join("sessions"), folder.join("uploads")] {
        std::os::unix::fs::chown(path, Some(33), Some(33)).expect("root may");
    }
    let [worker, own] = ["samovar-php", "samovar"].map(|name| folder.join(name));
    std::fs::copy(samovar_testkit::binary().with_file_name("samovar-php"), &worker)
        .expect("a copy");
    std::fs::copy(samovar_testkit::binary(), &own).expect("a copy");
    let socket = folder.join("http.sock");
    let server = start
        .workers(1)
        .open_files(1000, 20_000)
        .args(["--user", "www-data", "--php-binary", &worker.to_string_lossy()])
        .args(["--listen", &format!("unix:{}", socket.display())])
        .start();
    let before = server.get("/").text();
    assert!(before.starts_with("33 /var/www 1000"), "{before}");
    server.upgrade(["--binary", &own.to_string_lossy()]).expect("an upgrade");
    assert_eq!(server.get("/").text(), before);
    assert!(ask(&socket).ends_with(&before));
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a process");
    assert!(status.contains("Uid:\t33\t33\t33\t33"), "{status}");
    assert_eq!(MetadataExt::uid(&socket.metadata().expect("a socket")), 33);
}
