//! The worker's C is built of rooms, whose includes point one way: a room knows those below it, never one above.

use crate::tree::{files, is_kind, none, read};
use std::collections::BTreeSet;

const CSRC: &str = "crates/worker/csrc/";
/// From the lowest up: each includes from itself and from those before it.
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
    "census",
    "model",
];
/// Where the parts of all rooms are composed. Its includes go everywhere; only C files may include it.
const COMPOSED: &str = "persistent.h";
/// Where versions of PHP are told apart.
const VERSIONS: &str = "compat.h";

#[test]
fn includes_point_down() {
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
fn each_room_is_in_the_order() {
    let sources = sources();
    let rooms: BTreeSet<_> =
        sources.iter().filter_map(|(file, _)| file.split_once('/')).map(|(room, _)| room).collect();
    assert_eq!(rooms, BTreeSet::from(ROOMS));
}

#[test]
fn versions_of_php_are_told_apart_in_one_file() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|(file, text)| file != VERSIONS && text.contains("PHP_VERSION_ID"))
        .map(|(file, _)| file)
        .collect();
    none(&format!("files that ask for a version of PHP, beside {VERSIONS}"), &others);
}

#[test]
fn directions_are_told_apart() {
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

/// The place of a file's room in the order; none: it stands beside the rooms.
fn rank(file: &str) -> Option<usize> {
    let (room, _) = file.split_once('/')?;
    ROOMS.iter().position(|name| *name == room)
}

/// Beside the rooms, headers are what all of them know; C files and `module.h` are above all.
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
