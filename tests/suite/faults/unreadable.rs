//! Scripts that cannot be opened: the response is that of php-fpm, and does not reveal their path.

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
fn unreadable_script_gets_403() {
    if !is_root() {
        return; // Only root can start a server as another user.
    }
    let root = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).expect("our own");
    write(root.path(), "index.php", "<?php echo 'index';", 0o644);
    write(root.path(), "secret.php", "<?php echo 'secret';", 0o600);
    write(root.path(), "includes.php", "<?php include 'secret.php'; echo 'on';", 0o644);
    let server = Server::at(root.path()).as_user(NOBODY).workers(1).start();
    // The reference php-fpm runs as root here. This is its response as another user.
    let expected = (403, Some("text/html; charset=UTF-8"), "Access denied.\n");
    for request in [Request::get("/secret.php"), Request::form("/secret.php", "a=b")] {
        let response = server.client().request(&request);
        let text = response.text();
        let seen = (response.status, response.header("content-type"), text.as_str());
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
fn script_removed_after_lookup_gets_404() {
    let root = tempfile::tempdir().expect("a folder");
    let server = Server::at(root.path()).workers(1).define("opcache.enable", "0").start();
    for round in 0..5 {
        let name = format!("{round}.php");
        write(root.path(), &name, "<?php echo 'there';", 0o644);
        assert_eq!(server.get(&format!("/{name}")).text(), "there");
        std::fs::remove_file(root.path().join(&name)).expect("our own file");
        // The front's cached entry is valid for another second.
        let response = server.get(&format!("/{name}"));
        assert_eq!(response.status, 404, "{response:?}\n{}", server.log());
        assert!(!response.text().contains("Unknown"), "{response:?}");
    }
    server.stop();
}
