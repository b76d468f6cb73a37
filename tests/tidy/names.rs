//! Checks file names: unique ignoring case, and no `mod.rs`.

use crate::tree::{files, none};
use std::collections::BTreeMap;

/// macOS and Windows would keep only one of the two files.
#[test]
fn file_names_are_unique_ignoring_case() {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files() {
        all.entry(file.to_lowercase()).or_default().push(file);
    }
    let twice: Vec<_> =
        all.into_values().filter(|same| same.len() > 1).map(|same| same.join(", ")).collect();
    none("these differ only in case", &twice);
}

#[test]
fn module_files_are_not_named_mod_rs() {
    let found: Vec<_> = files().into_iter().filter(|file| file.ends_with("/mod.rs")).collect();
    none("`foo.rs` beside `foo/` instead of", &found);
}
