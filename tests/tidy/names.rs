//! Names that every checkout can hold.

use crate::tree::{files, none};
use std::collections::BTreeMap;

/// macOS and Windows would keep one of the two.
#[test]
fn no_two_files_differ_only_in_case() {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files() {
        all.entry(file.to_lowercase()).or_default().push(file);
    }
    let twice: Vec<_> =
        all.into_values().filter(|same| same.len() > 1).map(|same| same.join(", ")).collect();
    none("these differ only in case", &twice);
}

#[test]
fn no_module_is_a_mod_rs() {
    let found: Vec<_> = files().into_iter().filter(|file| file.ends_with("/mod.rs")).collect();
    none("`foo.rs` beside `foo/` instead of", &found);
}
