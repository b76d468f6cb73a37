//! Workers that are killed while they are sampled: the sampler does not hang, and shows no invalid
//! stack.

use crate::profile::stage::{profile, sampled, table, text, under_load};
use std::collections::BTreeSet;
use std::path::Path;

/// Distinguishable calls: each displayed line must be one of these.
const PROGRAM: &str = r"<?php
function inner() { for ($i = 0; $i < 3000; $i++) { $x = $i * 3; } }
function middle() { for ($n = 0; $n < 5; $n++) { inner(); } }
function other() { for ($n = 0; $n < 5; $n++) { array_map('inner', [1]); } }
for ($n = 0; $n < 5; $n++) { middle(); other(); }
echo 'done';
";

/// Number of samples, and number of kills meanwhile.
const SAMPLES: u64 = 1_000;
const KILLS: u64 = 30;

fn allowed(script: &Path) -> BTreeSet<String> {
    let main = format!("{{main}} {}", script.display());
    let mut lines = BTreeSet::from(["[no PHP code]".to_owned(), "[reset]".to_owned()]);
    for stack in
        ["", ";middle", ";middle;inner", ";other", ";other;array_map", ";other;array_map;inner"]
    {
        lines.insert(format!("{main}{stack}"));
    }
    lines
}

#[test]
fn workers_killed_while_sampled_yield_valid_stacks() {
    let server = sampled(PROGRAM, "").start();
    let mut kills = 0;
    under_load(&server, &["/a", "/b"], "samples of workers that die", || {
        // The worker may also have just been forked.
        for pid in server.worker_pids().into_iter().take(usize::from(kills < KILLS)) {
            server.kill_worker(pid);
            kills += 1;
        }
        let seen = server.status()["profile"]["samples_total"].as_u64().unwrap_or(0);
        (seen >= SAMPLES && kills >= KILLS).then_some(())
    });
    let status = server.status();
    let of = |key: &str| status["profile"][key].as_u64().expect("a number");
    assert!(of("torn_total") * 5 < of("samples_total"), "{}", status["profile"]);
    let allowed = allowed(&server.folder().join("root/index.php"));
    let lines = text(&profile(&server, &["--format", "collapsed"]).stdout);
    for line in lines.lines() {
        let (stack, _) = line.rsplit_once(' ').expect("a number behind it");
        // A starting worker sometimes waits for a lock or for its memory.
        let stack = stack.split(";[").next().unwrap_or_default();
        assert!(allowed.contains(stack) || stack.starts_with('['), "{line}");
    }
    assert!(lines.contains(";middle;inner ") && lines.contains(";array_map;inner "), "{lines}");
    // The sampler continues.
    let before = of("samples_total");
    under_load(&server, &["/a"], "more samples", || {
        (server.status()["profile"]["samples_total"].as_u64()? > before + 100).then_some(())
    });
    assert!(table(&server, &[]).is_some());
    server.stop();
}
