//! The modules of this crate build on each other, from codes and limits to the three views of the
//! ring: none imports a higher one, and no files import each other in a circle.
#![cfg(not(loom))]

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "codes",
        "counting_atomics",
        "sync",
        "os",
        "limits",
        "interim",
        "c_header",
        "request",
        "stream",
        "word",
        "report",
        "usage",
        "notifier",
        "permit_words",
        "cells",
        "queue",
        "layout",
        "offsets",
        "map",
        "protocol",
        "run_permits",
        "front_group",
        "front_end",
        "front_waking",
        "supervision",
        "worker_end",
        "interleavings",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
