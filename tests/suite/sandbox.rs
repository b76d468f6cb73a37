//! Access of PHP's processes to the machine: only the files listed in `sandbox`, no other
//! processes, and only the status command of the control socket.

mod neighbours;

use samovar_testkit::http::Client;
use samovar_testkit::{Server, Start, eventually, is_root};
use std::path::{Path, PathBuf};

/// ?do=write|read|remove|run|kill|peek|ask with its arguments: prints the result.
const PAGE: &str = r#"<?php
function page(): string
{
    $of = $_GET['of'] ?? '';
    error_clear_last();
    $done = match ($_GET['do'] ?? '') {
        'write' => @file_put_contents($of, 'x') === 1,
        'read' => @file_get_contents($of) !== false,
        'remove' => @unlink($of),
        'rename' => @rename($of, $_GET['to']),
        'link' => @symlink($of, $_GET['to']),
        'chmod' => @chmod($of, 0777),
        'run' => (function () use ($of) {
            exec("$of 2>&1", $lines, $code);
            return "$code: " . implode("\n", $lines);
        })(),
        'kill' => posix_kill((int) $of, (int) ($_GET['signal'] ?? 0))
            ?: posix_strerror(posix_get_last_error()),
        'upload' => @move_uploaded_file($_FILES['file']['tmp_name'], $of),
        'session' => session_start() && ($_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1) > 0
            && session_write_close(),
        default => 'served',
    };
    return is_string($done) ? $done
        : ($done ? 'done' : 'refused: ' . (error_get_last()['message'] ?? ''));
}
"#;

const MODELS: [(&str, &str); 3] = [
    ("script", "echo page();"),
    ("checkpoint", "Samovar\\checkpoint(); echo page();"),
    ("resident", "Samovar\\serve(function () { echo page(); });"),
];

fn page(end: &str) -> Start {
    Server::script(&format!("{PAGE}{end}\n")).workers(1)
}

/// A folder below the server's own, created if missing.
fn folder(of: &Start, name: &str) -> PathBuf {
    let path = of.folder().join(name);
    std::fs::create_dir_all(&path).expect("a folder of ours");
    path
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Permits writes only to `var` and the folders of sessions and uploads.
fn confined(start: Start) -> (Start, PathBuf, PathBuf) {
    let [var, other] = ["var", "other"].map(|name| folder(&start, name));
    let mut start = start;
    for writable in [&var, &start.folder().join("sessions"), &start.folder().join("uploads")] {
        start = start.args(["--sandbox-write", &text(writable)]);
    }
    let temporary = text(&folder(&start, "temporary"));
    (start.args(["--temp-dir", &temporary]), var, other)
}

fn ask(client: &mut Client, what: &str) -> String {
    let response = client.get(&format!("/?do={what}"));
    assert_eq!(response.status, 200, "{what}: {response:?}");
    response.text()
}

fn is_denied(said: &str) -> bool {
    said.starts_with("refused: ") && said.contains("Permission denied")
}

#[test]
fn writes_outside_sandbox_are_denied() {
    for (model, end) in MODELS {
        let (start, var, other) = confined(page(end));
        std::fs::write(other.join("there"), "as it was").expect("our folder");
        let server = start.start();
        let mut client = server.client();
        let mut ask = |what: &str| ask(&mut client, what);
        let (inside, outside) = (var.join("file"), other.join("file"));
        let (inside, outside) = (inside.display(), outside.display());
        let there = text(&other.join("there"));
        for _ in 0..2 {
            assert_eq!(ask(&format!("write&of={inside}")), "done", "{model}");
            for denied in [
                format!("write&of={outside}"),
                format!("write&of={there}"),
                format!("remove&of={there}"),
                format!("rename&of={inside}&to={outside}"),
                format!("rename&of={there}&to={}/stolen", var.display()),
                format!("link&of=/etc&to={outside}"),
            ] {
                let said = ask(&denied);
                assert!(is_denied(&said), "{model}: {denied}: {said}");
            }
            // A symbolic link in a permitted folder gives no further access.
            let link = text(&var.join("link"));
            assert_eq!(ask(&format!("link&of={}&to={link}", other.display())), "done", "{model}");
            assert!(is_denied(&ask(&format!("write&of={link}/file"))), "{model}");
            assert_eq!(ask(&format!("remove&of={link}")), "done", "{model}");
            let said = ask(&format!("run&of=touch%20{outside}"));
            assert!(
                said.starts_with("1: ") && said.contains("Permission denied"),
                "{model}: {said}"
            );
            assert_eq!(ask(&format!("read&of={there}")), "done", "{model}: all may be read");
            assert_eq!(
                ask("write&of=/dev/null"),
                "done",
                "{model}: devices are the matter of their modes"
            );
            assert_eq!(ask("session"), "done", "{model}");
        }
        assert_eq!(std::fs::read_to_string(&there).expect("it is there"), "as it was");
        assert_eq!(std::fs::read_dir(&other).expect("our folder").count(), 1);
        server.stop();
    }
}

#[test]
fn later_workers_and_generations_are_confined() {
    let (start, _, other) = confined(page("Samovar\\checkpoint(); echo page();"));
    let server = start.start();
    let outside = text(&other.join("file"));
    server.kill_worker(server.worker_pid());
    let denied = |when: &str| {
        let said = server.get(&format!("/?do=write&of={outside}")).text();
        assert!(is_denied(&said), "{when}: {said}");
    };
    denied("after a death");
    server.reload().expect("a reload");
    denied("after a reload");
    server.stop();
}

#[test]
fn reads_outside_sandbox_are_denied() {
    let (start, var, other) = confined(page("Samovar\\checkpoint(); echo page();"));
    std::fs::write(other.join("secret"), "x").expect("our folder");
    let readable = folder(&start, "data");
    std::fs::write(readable.join("public"), "x").expect("our folder");
    let server = start.args(["--sandbox-read", &text(&readable)]).start();
    let mut client = server.client();
    let mut ask = |what: &str| ask(&mut client, what);
    assert_eq!(ask(&format!("read&of={}/public", readable.display())), "done");
    assert_eq!(ask("read&of=/etc/hostname"), "done");
    assert_eq!(ask(&format!("write&of={}/file", var.display())), "done");
    assert_eq!(ask(&format!("read&of={}/file", var.display())), "done");
    assert_eq!(
        ask(&format!("read&of={}", server.folder().join("root/index.php").display())),
        "done"
    );
    assert!(is_denied(&ask(&format!("read&of={}/secret", other.display()))));
    let said = ask(&format!("run&of=cat%20{}/secret", other.display()));
    assert!(said.contains("Permission denied"), "{said}");
    assert!(is_denied(&ask(&format!("write&of={}/public", readable.display()))));
    assert!(ask("run&of=id").starts_with("0: uid="), "programs run");
    server.stop();
}

/// A confined page can do nothing with processes of the server or of other servers.
#[test]
fn signals_and_memory_of_other_processes_are_denied() {
    let (start, ..) = confined(page("echo page();"));
    let (server, neighbour) = (start.start(), page("echo page();").start());
    let mut client = server.client();
    let mut ask = |what: &str| ask(&mut client, what);
    for pid in [server.pid(), neighbour.pid(), neighbour.worker_pid()] {
        for signal in [0, 15, 19] {
            let said = ask(&format!("kill&of={pid}&signal={signal}"));
            assert_eq!(said, "Operation not permitted", "{pid}, {signal}");
        }
        // Root may read the same files as perf, with and without the sandbox.
        let files = if is_root() { &["mem"][..] } else { &["mem", "environ", "maps"] };
        for file in files {
            let said = ask(&format!("read&of=/proc/{pid}/{file}"));
            assert!(is_denied(&said), "/proc/{pid}/{file}: {said}");
        }
        let said = ask(&format!("write&of=/proc/{pid}/mem"));
        assert!(is_denied(&said), "{said}");
    }
    assert_eq!(neighbour.get("/").text(), "served");
    neighbour.stop();
    server.stop();
}

#[test]
fn invalid_sandbox_is_refused_at_start() {
    for flag in ["--sandbox-write", "--sandbox-read"] {
        let (code, said) = page("").args([flag, "/no/such/folder"]).refuse();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("`/no/such/folder` of the sandbox: No such file"), "{said}");
        let (_, said) = page("").args([flag, "relative"]).refuse();
        assert!(said.contains("/relative` of the sandbox: No such file"), "{said}");
    }
}

/// A page has the rights of the server's user, which the mode of the control socket permits.
#[test]
fn control_commands_from_php_are_denied() {
    let server = page("echo page();").start();
    let control = server.folder().join("control.sock");
    let binary = samovar_testkit::binary();
    let order = |words: &str| {
        let command = format!("{} {words} --control {}", binary.display(), control.display());
        server.get(&format!("/?do=run&of={}", command.replace(' ', "%20"))).text()
    };
    for words in ["stop", "reload", "upgrade"] {
        let said = order(words);
        assert!(
            !said.starts_with("0: ")
                && said.contains("a process of this server may not send this command"),
            "{words}: {said}"
        );
    }
    server.wait_for_log("a process of this server sent a command");
    assert!(order("status").starts_with("0: "), "how it is may be known");
    // A process that a page leaves running has no access either.
    let left = format!(
        "(setsid {} stop --control {} > {} 2>&1 &)",
        binary.display(),
        control.display(),
        server.folder().join("said").display()
    );
    server.get(&format!("/?do=run&of={}", left.replace(' ', "%20").replace('&', "%26")));
    let said = eventually("the answer", || {
        let said = std::fs::read_to_string(server.folder().join("said")).ok()?;
        said.contains("hint: ").then_some(said)
    });
    assert!(said.contains("may not send this command"), "{said}");
    assert_eq!(
        (server.get("/").text(), &server.status()["generation"]),
        ("served".to_owned(), &1.into())
    );
    server.stop();
}

#[test]
fn control_commands_from_php_are_permitted_by_setting() {
    let server = page("echo page();").args(["--control-from-php"]).workers(2).start();
    let control = server.folder().join("control.sock");
    let command =
        format!("{} reload --control {}", samovar_testkit::binary().display(), control.display());
    let said = server.get(&format!("/?do=run&of={}", command.replace(' ', "%20"))).text();
    assert!(said.starts_with("0: generation 2 serves"), "{said}");
    server.stop();
}
