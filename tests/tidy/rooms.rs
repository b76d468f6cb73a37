//! Checks the layers ("rooms") of the worker's C code: includes point one way. A room may include
//! the rooms below it, never one above. In a room, too, no two units include each other, directly
//! or through others. A unit is a C file with the header of the same name.

use crate::tree::{files, is_kind, none, read};
use std::collections::{BTreeMap, BTreeSet};

const CSRC: &str = "crates/worker/csrc/";
/// From the lowest up: each room includes only itself and the rooms listed before it.
const ROOMS: [&str; 13] = [
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
    "mocks",
    "heap_walk",
    "model",
];
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
fn units_include_each_other_in_one_direction() {
    let sources = sources();
    let found = circle(&dependencies(&sources)).map(|units| units.join(" → "));
    none("circles of units that include each other", &found.into_iter().collect::<Vec<_>>());
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
        ("outside/talk.h", "memory/persistent.h"),
        ("model/script.h", "boundary.h"),
        ("startup.c", "model/script.h"),
    ] {
        assert!(may_include(file, included), "{file}: {included}");
    }
    for (file, included) in [
        ("memory/hot.c", "outside/kept.h"),
        ("sapi/sapi.c", "model/script.h"),
        ("leave.h", "memory/persistent.h"),
        ("sapi/sapi.c", "startup.h"),
        ("boundary.h", "memory/image.h"),
    ] {
        assert!(!may_include(file, included), "{file}: {included}");
    }
}

#[test]
fn circle_is_found_through_headers() {
    let source = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    let mut sources = vec![
        source("rollback/back.c", "#include \"rollback/back.h\"\n#include \"memory/state.h\""),
        source("rollback/back.h", ""),
        source("memory/state.h", "#include \"memory/page.h\"\n#include <stdint.h>"),
        source("memory/page.h", ""),
    ];
    assert_eq!(circle(&dependencies(&sources)), None);
    sources.push(source("memory/page.c", "#include \"rollback/back.h\""));
    assert_eq!(
        circle(&dependencies(&sources)).expect("page.c closes it"),
        ["memory/page", "rollback/back", "memory/state", "memory/page"]
    );
}

/// The units that each unit includes, by their paths without extension. A unit's own header is not
/// listed.
fn dependencies(sources: &[(String, String)]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in sources {
        let own = unit(file);
        let others = includes(text).map(unit).filter(|other| *other != own);
        found.entry(own).or_default().extend(others);
    }
    found
}

fn unit(file: &str) -> &str {
    file.rsplit_once('.').map_or(file, |(unit, _)| unit)
}

/// A circle of dependencies, if there is one; its first unit is also its last.
fn circle<'a>(dependencies: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut checked = BTreeSet::new();
    dependencies.keys().find_map(|unit| circle_from(unit, dependencies, &mut vec![], &mut checked))
}

/// `path` leads to the unit. Units in `checked` are part of no circle and lead to none.
fn circle_from<'a>(
    unit: &'a str,
    dependencies: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    path: &mut Vec<&'a str>,
    checked: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(begin) = path.iter().position(|passed| *passed == unit) {
        return Some([&path[begin..], &[unit]].concat());
    }
    if checked.contains(unit) {
        return None;
    }
    path.push(unit);
    let mut others = dependencies.get(unit).into_iter().flatten();
    let found = others.find_map(|other| circle_from(other, dependencies, path, checked));
    path.pop();
    checked.insert(unit);
    found
}

/// The index of the file's room in the order; `None` for files outside the rooms.
fn rank(file: &str) -> Option<usize> {
    let (room, _) = file.split_once('/')?;
    ROOMS.iter().position(|name| *name == room)
}

/// Headers outside the rooms are available to all rooms. C files outside the rooms and `module.h`
/// are above all rooms.
fn may_include(file: &str, included: &str) -> bool {
    match (rank(file), rank(included)) {
        (_, None) => {
            matches!(
                included,
                "boundary.h" | "from_rust.h" | "request.h" | "ring.h" | "compat.h" | "leave.h"
            ) || (rank(file).is_none() && included == "module.h")
        }
        (Some(here), Some(there)) => there <= here,
        (None, Some(_)) => is_kind(file, &["c"]),
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
