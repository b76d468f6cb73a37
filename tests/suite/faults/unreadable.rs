//! Scripts that cannot be opened: answered as php-fpm answers, without a word about where they lie.

use samovar_testkit::http::Request;
use samovar_testkit::{Server, is_root};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const NOBODY: u32 = 65534;

fn write(root: &Path, name: &str, text: &str, mode: u32) {
    let file = root.join(name);
    std::fs::write(&file, text).expect("our own folder");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("our own file");
}

#[test]
fn a_script_that_may_not_be_read_is_forbidden() {
    if !is_root() {
        return; // Only root can start a server as somebody else.
    }
    let root = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).expect("our own");
    write(root.path(), "index.php", "<?php echo 'index';", 0o644);
    write(root.path(), "secret.php", "<?php echo 'secret';", 0o600);
    write(root.path(), "includes.php", "<?php include 'secret.php'; echo 'on';", 0o644);
    let server = Server::at(root.path()).as_user(NOBODY).workers(1).start();
    // The oracle runs as root here: this is what php-fpm answers as somebody else.
    let expected = (403, Some("text/html; charset=UTF-8"), "Access denied.\n");
    for request in [Request::get("/secret.php"), Request::form("/secret.php", "a=b")] {
        let answer = server.client().request(&request);
        let text = answer.text();
        let seen = (answer.status, answer.header("content-type"), text.as_str());
        assert_eq!(seen, expected, "{}", server.log());
    }
    server.wait_for_log("cannot open the script");
    let included = server.get("/includes.php");
    assert_eq!(included.status, 200, "an included one is the script's own affair");
    assert!(included.text().contains("Permission denied") && included.text().ends_with("on"));
    assert_eq!(server.get("/").text(), "index", "by the same worker");
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}

#[test]
fn a_script_that_has_gone_since_it_was_found_is_404() {
    let root = tempfile::tempdir().expect("a folder");
    let server = Server::at(root.path()).workers(1).define("opcache.enable", "0").start();
    for round in 0..5 {
        let name = format!("{round}.php");
        write(root.path(), &name, "<?php echo 'there';", 0o644);
        assert_eq!(server.get(&format!("/{name}")).text(), "there");
        std::fs::remove_file(root.path().join(&name)).expect("our own file");
        // The front believes in it for a second more.
        let answer = server.get(&format!("/{name}"));
        assert_eq!(answer.status, 404, "{answer:?}\n{}", server.log());
        assert!(!answer.text().contains("Unknown"), "{answer:?}");
    }
    server.stop();
}
