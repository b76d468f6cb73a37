//! Sampled servers, and calls of `samovar profile` for them.

use samovar_testkit::SetOnDrop;
use samovar_testkit::{Server, Start, binary, eventually};
use serde_json::Value;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples per second: many, so that a test is short.
pub(crate) const HERTZ: u32 = 400;

/// A sampled server with two workers.
pub(crate) fn sampled(php: &str, more: &str) -> Start {
    let config = format!("admin = '127.0.0.1:0'\n{more}\n[profile]\nhertz = {HERTZ}\n");
    Server::script(php).workers(2).config(&config)
}

/// Runs `samovar profile` with these flags.
pub(crate) fn profile(server: &Server, flags: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("profile").arg("--control").arg(server.control()).args(flags);
    command.output().expect("the binary runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The table as JSON, if there is one.
pub(crate) fn table(server: &Server, flags: &[&str]) -> Option<Value> {
    let output = profile(server, &[flags, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).ok()
}

/// Samples of a function: its own, including its callees, and of all functions.
pub(crate) fn samples(table: &Value, function: &str) -> (f64, f64, f64) {
    weights(table, function, "samples")
}

/// CPU time of a function: its own, including its callees, and of all functions.
pub(crate) fn cpu_ns(table: &Value, function: &str) -> (f64, f64, f64) {
    weights(table, function, "cpu_ns")
}

fn weights(table: &Value, function: &str, unit: &str) -> (f64, f64, f64) {
    let number = |value: &Value| value[unit].as_f64().unwrap_or(0.0);
    let all = table["functions"].as_array().expect("functions");
    let found = all.iter().find(|one| one["function"] == function);
    let of = |what: &str| found.map_or(0.0, |one| number(&one[what]));
    (of("self"), of("total"), number(&table["now"]))
}

/// Requests the targets in turn from two clients, until `is_enough` returns a value.
pub(crate) fn under_load<T>(
    server: &Server,
    targets: &[&str],
    what: &str,
    is_enough: impl FnMut() -> Option<T>,
) -> T {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..2 {
            let ends = &ends;
            scope.spawn(move || {
                let mut turn = client;
                while !ends.load(Ordering::Relaxed) {
                    server.get(targets[turn % targets.len()]);
                    turn += 1;
                }
            });
        }
        let _ends = SetOnDrop(&ends);
        eventually(what, is_enough)
    })
}
