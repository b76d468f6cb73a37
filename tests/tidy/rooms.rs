//! Checks the layers ("rooms") of the worker's C code: includes point one way. A room may include
//! the rooms below it, never one above.

use crate::tree::{files, is_kind, none, read};
use std::collections::BTreeSet;

const CSRC: &str = "crates/worker/csrc/";
/// From the lowest up: each room includes only itself and the rooms listed before it.
const ROOMS: [&str; 12] = [
    "memory",
    "outside",
    "rollback",
    "interpose",
    "insight",
    "graph",
    "sapi",
    "loads",
    "tasks",
    "functions",
    "heap_walk",
    "model",
];
/// The header that composes the parts of all rooms. It may include every room; only C files may
/// include it.
const COMPOSED: &str = "persistent.h";
/// The only file that distinguishes PHP versions.
const VERSIONS: &str = "compat.h";

#[test]
fn rooms_include_only_lower_rooms() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        wrong.extend(
            includes(&text)
                .filter(|included| !may_include(&file, included))
                .map(|included| format!("{file} includes {included}")),
        );
    }
    none(&format!("includes that point up: rooms are in the order {ROOMS:?}"), &wrong);
}

#[test]
fn every_room_is_listed_in_the_order() {
    let sources = sources();
    let rooms: BTreeSet<_> =
        sources.iter().filter_map(|(file, _)| file.split_once('/')).map(|(room, _)| room).collect();
    assert_eq!(rooms, BTreeSet::from(ROOMS));
}

#[test]
fn php_versions_are_distinguished_in_one_file() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|(file, text)| file != VERSIONS && text.contains("PHP_VERSION_ID"))
        .map(|(file, _)| file)
        .collect();
    none(&format!("files that ask for a version of PHP, beside {VERSIONS}"), &others);
}

#[test]
fn upward_includes_are_rejected() {
    for (file, included) in [
        ("outside/kept.c", "outside/kept.h"),
        ("outside/kept.c", "memory/image.h"),
        ("outside/talk.c", "persistent.h"),
        ("model/script.h", "boundary.h"),
        ("startup.c", "model/script.h"),
        ("persistent.h", "model/time_limit.h"),
    ] {
        assert!(may_include(file, included), "{file}: {included}");
    }
    for (file, included) in [
        ("memory/hot.c", "outside/kept.h"),
        ("sapi/sapi.c", "model/script.h"),
        ("outside/talk.h", "persistent.h"),
        ("sapi/sapi.c", "startup.h"),
        ("boundary.h", "memory/image.h"),
    ] {
        assert!(!may_include(file, included), "{file}: {included}");
    }
}

/// The index of the file's room in the order; `None` for files outside the rooms.
fn rank(file: &str) -> Option<usize> {
    let (room, _) = file.split_once('/')?;
    ROOMS.iter().position(|name| *name == room)
}

/// Headers outside the rooms are available to all rooms. C files outside the rooms and `module.h`
/// are above all rooms.
fn may_include(file: &str, included: &str) -> bool {
    let is_header = is_kind(file, &["h"]);
    match (rank(file), rank(included)) {
        _ if included == COMPOSED => !is_header,
        (_, None) => {
            matches!(
                included,
                "boundary.h" | "from_rust.h" | "request.h" | "ring.h" | "compat.h" | "leave.h"
            ) || (rank(file).is_none() && included == "module.h")
        }
        (Some(here), Some(there)) => there <= here,
        (None, Some(_)) => !is_header || file == COMPOSED,
    }
}

/// `"…"` of each `#include "…"`.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next())
}

/// Each C file and header, by its path below csrc, with its text.
fn sources() -> Vec<(String, String)> {
    let found: Vec<_> = files()
        .into_iter()
        .filter(|file| is_kind(file, &["c", "h"]))
        .filter_map(|file| Some((file.strip_prefix(CSRC)?.to_owned(), read(&file))))
        .collect();
    assert!(found.len() > 50, "the C files are here: {found:?}");
    found
}
