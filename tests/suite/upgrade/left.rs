//! A process that a page has left running outlives its server. The next server must still recognize
//! it.

use samovar_testkit::{Server, eventually, has_ended};
use std::path::Path;

/// Starts a process that forks twice and moves to a new session. When the file `go` exists, it
/// sends each line of `orders` to the socket `at`, and records the responses.
const LEAVES: &str = r#"<?php
    if (!isset($_GET['at'])) { exit('page'); }
    $code = '[, $at, $folder] = $argv;
        while (!file_exists("$folder/go")) { usleep(5000); clearstatcache(); }
        $said = posix_getppid() . "\n";
        foreach (file("$folder/orders") as $order) {
            $s = stream_socket_client("unix://$at");
            fwrite($s, $order);
            $said .= stream_get_contents($s);
        }
        file_put_contents("$folder/part", $said);
        rename("$folder/part", "$folder/said");';
    $words = array_map(escapeshellarg(...), [$code, $_GET['at'], $_GET['folder']]);
    exec('( setsid sh -c "php -r \"\$@\" &" php ' . implode(' ', $words) . ' >/dev/null 2>&1 & )');
    echo 'left';"#;

const ORDERS: &str = "stop\nreload\nupgrade\nupgrade {\"binary\":\"/bin/false\"}\nstatus\n";

fn leave(by: &Server, at: &Path, folder: &Path) {
    std::fs::write(folder.join("orders"), ORDERS).expect("our own file");
    let target = format!("/?at={}&folder={}", at.display(), folder.display());
    assert_eq!(by.get(&target).text(), "left");
}

/// Parent of the process, and the recorded responses.
fn said(folder: &Path) -> (i32, Vec<String>) {
    std::fs::write(folder.join("go"), "").expect("our own file");
    let text = eventually("an answer to what was left behind", || {
        std::fs::read_to_string(folder.join("said")).ok()
    });
    let mut lines = text.lines().map(str::to_owned);
    let parent = lines.next().and_then(|line| line.parse().ok()).expect("a process");
    (parent, lines.collect())
}

fn are_refused(said: &[String]) {
    let refused = "a process of this server may not send this command";
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[..4].iter().all(|line| line.contains(refused)), "{said:?}");
    assert!(said[4].starts_with("{\"version\""), "how it is may be known: {said:?}");
}

#[test]
fn process_left_by_page_cannot_control_next_server() {
    let server = Server::script(LEAVES).workers(1).start();
    let folder = tempfile::tempdir().expect("a folder");
    leave(&server, &server.control(), folder.path());
    let first = server.pid();
    server.upgrade([]).expect("an upgrade");
    server.wait_for_predecessor();
    // The status lists it until it closes its sockets. Its children get another parent later, when
    // its process has ended.
    eventually("the end of the first server", || has_ended(first).then_some(()));
    let next = server.pid();
    assert_ne!(first, next);
    let (parent, said) = said(folder.path());
    assert!(parent != first && parent != next, "nobody of ours is its parent any more");
    are_refused(&said);
    server.wait_for_log("a process of this server sent a command");
    assert_eq!(server.get("/").text(), "page");
    assert_eq!((server.pid(), &server.status()["generation"]), (next, &1.into()));
    // A command from a process outside of PHP is accepted, even if the process cannot gain
    // privileges.
    let binary = samovar_testkit::binary();
    let mut shell = std::process::Command::new("setpriv");
    shell.args(["--no-new-privs"]).arg(binary).arg("reload").arg("--control");
    let output = shell.arg(server.control()).output().expect("setpriv");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.status()["generation"], 2);
    server.stop();
}

#[test]
fn process_left_by_page_cannot_control_other_server() {
    let theirs = Server::script(LEAVES).workers(1).start();
    let server = Server::script("<?php echo 'page';").workers(1).start();
    let folder = tempfile::tempdir().expect("a folder");
    leave(&theirs, &server.control(), folder.path());
    theirs.stop();
    let (_, said) = said(folder.path());
    are_refused(&said);
    assert_eq!(server.get("/").text(), "page");
    server.stop();
}
