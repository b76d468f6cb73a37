//! Applications that fail while they boot: clients see the error, and a repaired application is
//! served.

use samovar_testkit::{Server, Start, eventually};
use std::path::PathBuf;

/// A server whose document root is one script, with a short boot timeout.
fn booting(php: &str) -> (tempfile::TempDir, PathBuf, Start) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("index.php");
    std::fs::write(&file, php).expect("our own folder");
    let start = Server::at(&file).workers(2).args(["--boot-timeout", "1s"]);
    (folder, file, start)
}

#[test]
fn application_killing_its_process_gets_502_until_repaired() {
    let (_folder, file, start) = booting(
        "<?php posix_kill(getmypid(), SIGKILL);\nSamovar\\serve(function () { echo 'up'; });",
    );
    let server = start.define("opcache.enable", "0").start();
    // The image process dies during the boot. From then on each request runs the script, as in
    // php-fpm.
    server.wait_for_log("the front controller's boot ended without");
    assert_eq!(server.get("/").status, 502);
    // The response may arrive before the supervisor has counted the last death.
    let restarts = eventually("a restart for each attempt", || {
        server.status()["worker_restarts_total"].as_u64().filter(|restarts| *restarts >= 3)
    });
    assert!(restarts < 60, "with growing pauses: {restarts}");
    std::fs::write(&file, "<?php Samovar\\serve(function () { echo 'up'; });").expect("our file");
    eventually("the mended application", || (server.get("/").text() == "up").then_some(()));
    server.stop();
}

#[test]
fn failed_boot_gets_500_until_repaired() {
    for (name, broken, logged) in [
        ("parse error", "<?php Samovar\\serve(function () { echo 'up' });", "PHP Parse error"),
        ("exception", "<?php throw new Exception('no'); Samovar\\serve(fn () => 'up');", "no"),
        ("fatal error", "<?php nope(); Samovar\\serve(fn () => 'up');", "undefined function nope"),
    ] {
        let (_folder, file, start) = booting(broken);
        let server = start.define("opcache.enable", "0").define("display_errors", "0").start();
        server.wait_for_log(logged);
        assert_eq!(server.get("/").status, 500, "{name}");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{name}: the process lives");
        std::fs::write(&file, "<?php Samovar\\serve(fn () => 'up');").expect("our own file");
        eventually(name, || (server.get("/").text() == "up").then_some(()));
        server.stop();
    }
}

#[test]
fn application_exiting_at_boot_runs_as_script() {
    let (_folder, _file, start) =
        booting("<?php echo 'as a script'; exit(3); Samovar\\serve(fn () => 'up');");
    let server = start.start();
    for _ in 0..3 {
        let response = server.get("/");
        assert_eq!((response.status, response.text().as_str()), (200, "as a script"));
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}
