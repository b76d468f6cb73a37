//! The IDE stubs describe the server's functions, and the server's function signatures are
//! generated from the stubs.

use samovar_testkit::{Server, php, workspace};
use std::process::Command;

#[test]
fn stubs_match_loaded_functions() {
    let server =
        Server::at(workspace().join("php/stubs/check.php")).args(["--compat", "apcu"]).start();
    let response = server.get("/");
    assert_eq!((response.status, response.text().as_str()), (200, "ok"), "{}", server.log());
}

/// The engine's signature tables are generated from the stubs, and are checked in.
#[test]
fn generated_signatures_match_stubs() {
    let told = Command::new(php::program("php"))
        .arg("-n")
        .arg(workspace().join("scripts/arginfo.php"))
        .arg("--check")
        .output()
        .expect("PHP's command line is there");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}
