//! Workers that are killed while they are read: nothing hangs, and no stack is shown that never was one.

use crate::profile::stage::{profile, sampled, table, text, under_load};
use std::collections::BTreeSet;
use std::path::Path;

/// Calls that can be told apart: each line that is shown must be one of these.
const PROGRAM: &str = r"<?php
function inner() { for ($i = 0; $i < 3000; $i++) { $x = $i * 3; } }
function middle() { for ($n = 0; $n < 5; $n++) { inner(); } }
function other() { for ($n = 0; $n < 5; $n++) { array_map('inner', [1]); } }
for ($n = 0; $n < 5; $n++) { middle(); other(); }
echo 'done';
";

/// Looks at workers, and kills meanwhile.
const SAMPLES: u64 = 2_000;
const KILLS: u64 = 60;

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
fn workers_die_while_they_are_read() {
    let server = sampled(PROGRAM, "").start();
    let mut kills = 0;
    under_load(&server, &["/a", "/b"], "samples of workers that die", || {
        // A worker that has just been forked is one, too.
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
        // A worker that starts waits for a lock or its memory now and then.
        let stack = stack.split(";[").next().unwrap_or_default();
        assert!(allowed.contains(stack) || stack.starts_with('['), "{line}");
    }
    assert!(lines.contains(";middle;inner ") && lines.contains(";array_map;inner "), "{lines}");
    // It goes on.
    let before = of("samples_total");
    under_load(&server, &["/a"], "more samples", || {
        (server.status()["profile"]["samples_total"].as_u64()? > before + 100).then_some(())
    });
    assert!(table(&server, &[]).is_some());
    server.stop();
}
