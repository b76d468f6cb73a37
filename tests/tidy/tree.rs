//! Lists the files of the repository, wherever it was unpacked. Built, fetched and measured files
//! are left out.

use samovar_testkit::workspace;
use std::collections::BTreeSet;
use std::path::Path;

/// Larger than the depth of any folder of ours.
const DEPTH_MAX: usize = 24;

/// Paths relative to the workspace, with `/`, sorted. Links are not followed.
pub(crate) fn files() -> Vec<String> {
    let mut found = Vec::new();
    walk(&workspace(), "", DEPTH_MAX, &mut found);
    assert!(found.len() > 100, "the tree is here: {found:?}");
    found.sort();
    found
}

fn walk(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<String>) {
    assert!(depth > 0, "{prefix} is very deep");
    for entry in std::fs::read_dir(folder).expect("a folder of the tree") {
        let entry = entry.expect("an entry of the tree");
        let name = entry.file_name().into_string().expect("names are UTF-8");
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("a kind of file");
        if kind.is_dir() && !is_made(&path, &name) {
            walk(&entry.path(), &format!("{path}/"), depth - 1, found);
        } else if kind.is_file() {
            found.push(path);
        }
    }
}

fn is_made(path: &str, name: &str) -> bool {
    matches!(name, ".git" | "__pycache__" | "vendor")
        || path == "target"
        || path.starts_with("target-")
        || path == "crates/config/fuzz/target"
        || path == "crates/front/fuzz/target"
        || path == "crates/ring/fuzz/target"
}

pub(crate) fn read(path: &str) -> String {
    let bytes = std::fs::read(workspace().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the name ends with one of these extensions, such as `rs`.
pub(crate) fn is_kind(path: &str, kinds: &[&str]) -> bool {
    path.rsplit_once('.').is_some_and(|(_, kind)| kinds.contains(&kind))
}

/// Fails with all findings, one per line.
#[track_caller]
pub(crate) fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Elements of `all` that are not in `known`.
pub(crate) fn only(all: &BTreeSet<String>, known: &BTreeSet<String>) -> Vec<String> {
    all.difference(known).cloned().collect()
}

/// Whether there is a file at this path of the workspace.
pub(crate) fn exists(path: &str) -> bool {
    workspace().join(path).is_file()
}
