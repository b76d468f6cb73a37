//! Upgrades that must fail.

use super::{Belongings, CHECKPOINT, SCRIPT, SIGSTOP, SIGTERM, processes};
use samovar_testkit::{Server, eventually};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A program in the server's folder.
fn program(server: &Server, name: &str, text: &str, mode: u32) -> String {
    let path = server.folder().join(name);
    std::fs::write(&path, text).expect("our own folder");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("our own file");
    path.to_string_lossy().into_owned()
}

fn page(server: &Server) -> PathBuf {
    server.folder().join("root/index.php")
}

/// Checks that the upgrade fails with these words, that the old server continues, and that no
/// process or file of the attempt is left.
fn refuses(server: &Server, had: &Belongings, args: [&str; 2], words: &[&str]) {
    let (pid, before) = (server.pid(), Belongings::of(server));
    let before = Belongings { descriptors: had.descriptors, ..before };
    let args = &args[..if args[0].is_empty() { 0 } else { 2 }];
    let why = match args {
        [flag, value] => server.upgrade([*flag, *value]),
        _ => server.upgrade([]),
    };
    let why = why.expect_err("nobody takes over");
    assert!(
        why.starts_with("samovar: the upgrade failed, the running server keeps serving: "),
        "{why}"
    );
    for word in words {
        assert!(why.contains(word), "`{word}` in: {why}");
    }
    before.are_all(server, &why);
    assert_eq!(server.status()["pid"], pid);
    assert_eq!(server.status()["draining"], false);
    assert_eq!(server.get("/").text(), "page GET");
}

#[test]
fn upgrade_to_invalid_binary_fails() {
    let server = Server::script(SCRIPT).workers(1).config("[timeouts]\nboot = '1s'").start();
    // On a busy machine the boot is slow, and the server reports its address before its worker is
    // ready.
    assert_eq!(server.get("/").text(), "page GET");
    let had = Belongings::of(&server);
    let folder = server.folder().display().to_string();
    refuses(
        &server,
        &had,
        ["--binary", "/no/such/samovar"],
        &["cannot start `/no/such/samovar`", "No such file"],
    );
    let bare = program(&server, "bare", "#!/bin/sh\n", 0o644);
    refuses(&server, &had, ["--binary", &bare], &["cannot start", "ermission denied"]);
    let fails = program(&server, "fails", "#!/bin/sh\necho 'no tea today' >&2\nexit 7\n", 0o755);
    refuses(
        &server,
        &had,
        ["--binary", &fails],
        &["exited with status 7", "its last output: no tea today"],
    );
    let crashes = program(&server, "crashes", "#!/bin/sh\nkill -SEGV $$\n", 0o755);
    refuses(&server, &had, ["--binary", &crashes], &["was killed by signal 11"]);
    let hangs = program(&server, "hangs", "#!/bin/sh\nexec sleep 1000\n", 0o755);
    refuses(
        &server,
        &had,
        ["--binary", &hangs],
        &["did not identify itself as a server", "hint: "],
    );
    // A program with endless output that never reports readiness.
    let babbles = program(&server, "babbles", "#!/bin/sh\nexec yes babble >&2\n", 0o755);
    refuses(
        &server,
        &had,
        ["--binary", &babbles],
        &["did not identify itself as a server", "babble"],
    );
    assert!(samovar_testkit::processes_naming(format!("{folder}/hangs").as_ref()).is_empty());
}

#[test]
fn upgrade_with_invalid_settings_or_application_fails() {
    let server = Server::script(CHECKPOINT).workers(1).start();
    let had = Belongings::of(&server);
    let settings = server.folder().join("samovar.toml");
    let as_it_was = std::fs::read_to_string(&settings).expect("its settings");
    for (text, words) in [
        ("wokers = 3", &["the new server failed to start: ", "did you mean `workers`?"][..]),
        ("listen = [", &["samovar.toml"][..]),
        ("temp_dir = '/no/such/folder'", &["/no/such/folder"][..]),
        ("php_binary = '/bin/false'", &["cannot use `/bin/false` as a worker"][..]),
        // Its processes end before they are ready.
        ("php_ini = '/no/such/php.ini'", &["php.ini"][..]),
    ] {
        std::fs::write(&settings, text).expect("our own file");
        refuses(&server, &had, ["", ""], words);
    }
    std::fs::write(&settings, &as_it_was).expect("our own file");
    let script = std::fs::read_to_string(page(&server)).expect("the page");
    for (php, words) in [
        (
            "<?php throw new Exception('no'); Samovar\\checkpoint();",
            "the application's boot failed",
        ),
        (
            "<?php posix_kill(getmypid(), 11); Samovar\\checkpoint();",
            "the application's boot failed",
        ),
    ] {
        // The file changes within the interval of opcache's clock. The running server has already
        // booted.
        std::fs::write(page(&server), php).expect("our own file");
        let why = server.upgrade([]).expect_err("nobody takes over");
        assert!(why.contains(words), "{php}: {why}");
        std::fs::write(page(&server), &script).expect("our own file");
    }
    refuses_while_it_boots_for_ever(&server, &settings);
}

fn refuses_while_it_boots_for_ever(server: &Server, settings: &PathBuf) {
    let script = std::fs::read_to_string(page(server)).expect("the page");
    std::fs::write(settings, "[timeouts]\nboot = '1s'").expect("our own file");
    std::fs::write(page(server), "<?php sleep(1000); Samovar\\checkpoint();").expect("our own");
    let why = server.upgrade([]).expect_err("nobody takes over");
    assert!(why.contains("did not boot within `timeouts.boot`"), "{why}");
    std::fs::write(page(server), script).expect("our own file");
    assert_eq!(server.get("/").text(), "page GET");
}

/// A fake server that speaks the handover protocol. The test supplies its behaviour after `ready`.
const FAKE: &str = r#"#!/usr/bin/env python3
import json, os, pathlib, socket, time
channel = socket.socket(fileno=int(os.environ['SAMOVAR_HANDOVER'].split(':')[1]))
claim = None
while True:
    text, passed, _, _ = socket.recv_fds(channel, 8192, 1)
    word = json.loads(text)
    if word == 'claim':
        claim = passed[0]
    if 'complete' in word:
        break
channel.send(b'{"hello":{"version":"of a test"}}')
channel.send(b'"ready"')
def claimed():
    try:
        return os.read(claim, 1) == b'!'
    except BlockingIOError:
        return False
def tell(name, text):
    pathlib.Path('FOLDER', name + '.part').write_text(text)
    os.rename('FOLDER/' + name + '.part', 'FOLDER/' + name)
"#;

fn fake(server: &Server, name: &str, rest: &str) -> String {
    let folder = server.folder().display().to_string();
    program(server, name, &format!("{FAKE}{rest}").replace("FOLDER", &folder), 0o755)
}

/// The message may be delayed on a machine that swaps. A server that was given up for that must not
/// have served requests, and must never do so.
#[test]
fn new_server_that_starts_too_late_is_aborted_and_never_serves() {
    let server = Server::script(SCRIPT).workers(1).start();
    assert_eq!(server.get("/").text(), "page GET");
    std::fs::write(server.folder().join("end"), "").expect("our own folder");
    let had = Belongings::of(&server);
    let late = "
while channel.recv(8192):
    pass
tell('end', 'served' if claimed() else 'refrained')
";
    let late = fake(&server, "late", late);
    refuses(&server, &had, ["--binary", &late], &["the new server did not start in time"]);
    let end = std::fs::read_to_string(server.folder().join("end"));
    assert_eq!(end.expect("it has seen the end"), "refrained");
    server.upgrade([]).expect("the next one");
    assert_eq!(server.get("/").text(), "page GET");
}

/// This server already serves requests, which must not be lost by a kill.
#[test]
fn new_server_that_serves_is_not_aborted_for_late_report() {
    let mut server = Server::script(SCRIPT).workers(1).start();
    let slow = "
channel.recv(8192)
tell('begun', str(os.getpid()) if claimed() else 'refrained')
while not os.path.exists('FOLDER/say'):
    time.sleep(0.01)
channel.send(b'\"took\"')
";
    let slow = fake(&server, "slow", slow);
    let asked = std::process::Command::new(samovar_testkit::binary())
        .args(["upgrade", "--binary", &slow, "--control"])
        .arg(server.control())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let begun = server.folder().join("begun");
    let pid = eventually("its beginning", || std::fs::read_to_string(&begun).ok());
    server.wait_for_log("the new server has started, but its confirmation is late");
    assert_eq!(server.get("/").text(), "page GET");
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "it lives");
    std::fs::write(server.folder().join("say"), "").expect("our own folder");
    let told = asked.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.starts_with(&format!("process {pid} (samovar of a test) serves")), "{told}");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn concurrent_reload_and_upgrade_are_refused() {
    // A boot that waits until the test creates a file.
    let server = Server::script(CHECKPOINT).workers(1).start();
    let gate = server.folder().join("gate");
    let begun = server.folder().join("begun");
    let php = format!(
        "<?php touch('{}'); while (!file_exists('{}')) {{ usleep(5000); clearstatcache(); }} \
         Samovar\\checkpoint(); echo 'new';",
        begun.display(),
        gate.display()
    );
    std::fs::write(page(&server), php).expect("our own file");
    let (close, wait) = (
        || std::fs::remove_file(&gate).and(std::fs::remove_file(&begun)).unwrap_or_default(),
        || eventually("the boot", || begun.exists().then_some(())),
    );
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| server.reload());
        wait();
        let why = server.upgrade([]).expect_err("a reload is under way");
        assert!(why.contains("a reload is in progress\nhint: try again"), "{why}");
        std::fs::write(&gate, "").expect("our own file");
        reload.join().expect("no panic").expect("the reload");
        close();
        let upgrade = scope.spawn(|| server.upgrade([]));
        wait();
        let why = server.reload().expect_err("an upgrade is under way");
        assert!(why.contains("an upgrade is in progress"), "{why}");
        let why = server.upgrade([]).expect_err("an upgrade is under way");
        assert!(why.contains("another upgrade is in progress"), "{why}");
        std::fs::write(&gate, "").expect("our own file");
        upgrade.join().expect("no panic").expect("the upgrade");
    });
    assert_eq!(server.get("/").text(), "new");
    // A server that is stopped while its successor boots also ends the successor.
    server.wait_for_predecessor();
    close();
    std::thread::scope(|scope| {
        let upgrade = scope.spawn(|| server.upgrade([]));
        wait();
        let pid = server.pid();
        // This includes a successor that is stopped.
        let (name, value) = server.marker();
        let ours = samovar_testkit::family::with(name, &value);
        let is_server = |pid: i32| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            comm.is_ok_and(|comm| comm.trim() == "samovar")
        };
        let next = ours.iter().find(|it| it.pid != pid && is_server(it.pid)).expect("the next");
        samovar_testkit::kill(next.pid, SIGSTOP);
        samovar_testkit::kill(pid, SIGTERM);
        let why = upgrade.join().expect("no panic").expect_err("it is to stop");
        assert!(
            why.contains("the server is stopping") || why.contains("closed the connection"),
            "{why}"
        );
    });
    eventually("the end of all", || (processes(&server) == 0).then_some(()));
}

#[test]
fn upgrade_binary_chosen_by_application_is_refused() {
    // Requested by the application itself, and by an orphaned program.
    let php = "<?php
        $ask = 'upgrade {\"binary\":\"/bin/false\"}';
        if (isset($_GET['orphan'])) {
            $code = '$s = stream_socket_client(\"unix://' . $_GET['at'] . '\"); '
                . 'fwrite($s, base64_decode(\"' . base64_encode(\"$ask\n\") . '\")); '
                . 'file_put_contents(\"' . $_GET['orphan'] . '.part\", stream_get_contents($s)); '
                . 'rename(\"' . $_GET['orphan'] . '.part\", \"' . $_GET['orphan'] . '\");';
            $code = escapeshellarg($code);
            exec('( setsid php -n -r ' . $code . ' >/dev/null 2>&1 & ) >/dev/null 2>&1');
            exit('asked');
        }
        $s = stream_socket_client('unix://' . $_GET['at']);
        fwrite($s, \"$ask\n\");
        echo stream_get_contents($s);";
    // Also refused for an application that may send control commands.
    let server = Server::script(php).workers(1).args(["--control-from-php"]).start();
    let at = server.control().display().to_string();
    let refused = "a process of this server may not select another binary";
    let text = server.get(&format!("/?at={at}")).text();
    assert!(text.contains(refused), "{text}");
    let file = server.folder().join("answer");
    server.get(&format!("/?at={at}&orphan={}", file.display()));
    let text = eventually("the orphan's answer", || std::fs::read_to_string(&file).ok());
    assert!(text.contains(refused), "{text}");
    server.wait_for_log("requested an upgrade to another binary");
}
