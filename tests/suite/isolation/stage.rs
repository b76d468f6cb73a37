//! Servers of tests/apps/isolation, and their responses.

use samovar_testkit::http::{Request, Response};
use samovar_testkit::{Server, Start, php, workspace};
use serde_json::Value;

/// Starts a front controller of the application, with a folder that its scripts may write to.
pub(crate) fn start(front: &str) -> Start {
    let app = workspace().join("tests/apps/isolation");
    let start = Server::at(app.join(front)).relinked().define("ffi.enable", "1");
    let start = start.define("variables_order", "EGPCS");
    // Some of the tested functions are deprecated in later PHP versions.
    let start = start.define("error_reporting", &php::all_but_deprecations());
    let folder = start.folder().display().to_string();
    start.env("ISOLATION_FOLDER", &folder)
}

pub(crate) fn json(response: &Response) -> Value {
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e}: {} {}", response.status, response.text()))
}

pub(crate) fn ask(server: &Server, target: &str) -> Value {
    json(&server.client().request(&Request::get(target)))
}

/// Number of workers that left because a rollback could not undo their changes.
pub(crate) fn reforks(server: &Server) -> u64 {
    server.status()["image"]["refork_total"].as_u64().unwrap_or_default()
}
