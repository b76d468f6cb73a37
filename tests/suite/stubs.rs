//! The IDE stubs say what the server has, and the server is built from what they say.

use samovar_testkit::{Server, php, workspace};
use std::process::Command;

#[test]
fn the_stubs_describe_what_is_loaded() {
    let server =
        Server::at(workspace().join("php/stubs/check.php")).args(["--compat", "apcu"]).start();
    let answer = server.get("/");
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"), "{}", server.log());
}

/// What the engine is told of our functions is generated from the stubs, and checked in.
#[test]
fn the_signatures_are_those_of_the_stubs() {
    let told = Command::new(php::program("php"))
        .arg("-n")
        .arg(workspace().join("scripts/arginfo.php"))
        .arg("--check")
        .output()
        .expect("PHP's command line is there");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}
