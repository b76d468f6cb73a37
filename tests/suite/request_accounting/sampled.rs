//! A share of the requests to a booted application runs as whole scripts, and the status reports
//! the saving.

use crate::request_accounting::bench::started;
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};
use std::collections::BTreeSet;

/// The boot takes some milliseconds, the code below it nearly no time. Each response contains
/// whether its process has booted.
const BOOT: &str =
    "for ($i = 0; $i < 30_000; $i++) { $work = md5((string) $i); } $booted = getmypid();
    $how = fn () => getmypid() === $booted ? 'whole' : 'ahead';";

fn booting(below: &str) -> Server {
    let start = Server::script(&format!("<?php\n{BOOT}\n{below}")).workers(1);
    let settings = "admin = '127.0.0.1:0'\n[insight]\nscript_share = '50%'\n";
    let model = if below.contains("checkpoint") { "checkpoint" } else { "resident" };
    started(start.config(settings), model)
}

#[test]
fn saving_is_measured_by_share_of_disable_checkpoint() {
    for below in [
        "Samovar\\checkpoint(); echo $how();",
        "Samovar\\serve(function () use ($how) { echo $how(); });",
        "while (frankenphp_handle_request(function () use ($how) { echo $how(); })) {}",
    ] {
        let server = booting(below);
        let mut seen = BTreeSet::new();
        let saving = eventually("scripts enough", || {
            seen.extend((0..20).map(|_| server.get("/").text()));
            let saving = server.status()["image"]["saving"].clone();
            saving["scripts"].as_u64().is_some_and(|scripts| scripts >= 20).then_some(saving)
        });
        assert_eq!(Vec::from_iter(&seen), ["ahead", "whole"], "{below}");
        let us = |key: &str| saving[key].as_f64().expect("a number");
        assert!(us("ahead_us") * 2.0 < us("script_us"), "{below}: {saving}");
        // Requests that may change data never run as whole scripts.
        for _ in 0..30 {
            let response = server.client().request(&Request::post("/", "text/plain", "tea"));
            assert_eq!(response.text(), "ahead", "{below}");
        }
        let status = server.status();
        assert_eq!(status["image"]["refork_reasons"]["checkpoint"].as_u64().unwrap_or(0), 0);
        assert_eq!(status["worker_restarts_total"], 0, "{below}: {status}");
        let workers = status["workers"].as_array().expect("a list").iter();
        let models: BTreeSet<_> = workers.filter_map(|worker| worker["model"].as_str()).collect();
        assert_eq!(models.len(), 2, "workers of both kinds stay: {status}");
        server.stop();
    }
}

/// All requests are configured to run as whole scripts; the checkpoint must be detected
/// nevertheless.
#[test]
fn undeclared_checkpoint_is_found_with_full_script_share() {
    let php = "<?php $booted = getmypid(); $checkpoint = 'Samovar\\check' . 'point'; $checkpoint();
        echo getmypid() === $booted ? 'whole' : 'ahead';";
    let settings = "admin = '127.0.0.1:0'\n[insight]\nscript_share = '100%'\n";
    let server = Server::script(php).workers(1).config(settings).start();
    eventually("a worker that is booted ahead", || {
        server.get("/");
        let workers = server.status()["workers"].clone();
        let is_ahead = |worker: &serde_json::Value| worker["model"] == "checkpoint";
        workers.as_array()?.iter().any(is_ahead).then_some(())
    });
    let response = server.client().request(&Request::post("/", "text/plain", "tea"));
    assert_eq!(response.text(), "ahead");
    server.stop();
}
