//! Checks that examples in doc comments are run. rustdoc skips the crates that have none.

use crate::tree::{files, is_kind, none, read};

/// Languages of code blocks that are not runnable Rust.
const OTHERS: [&str; 3] = ["text", "ignore", "console"];

#[test]
fn crates_without_doctests_have_no_examples() {
    let all = files();
    let is_spared = |file: &str| {
        let manifest = file.split_once("/src/").map(|(folder, _)| format!("{folder}/Cargo.toml"));
        manifest.is_some_and(|manifest| {
            all.contains(&manifest) && read(&manifest).contains("doctest = false")
        })
    };
    let mut found = Vec::new();
    for file in all.iter().filter(|file| is_kind(file, &["rs"]) && is_spared(file)) {
        if has_example(&read(file)) {
            found.push(format!("{file} has an example"));
        }
    }
    none("take `doctest = false` out of the crate's Cargo.toml", &found);
}

/// Whether a doc comment opens a code block that rustdoc would take for Rust.
fn has_example(text: &str) -> bool {
    let mut is_open = false;
    text.lines().filter_map(fence).any(|language| {
        is_open = !is_open;
        is_open && !OTHERS.contains(&language)
    })
}

/// The text after the three backticks of a fence.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    comment.trim_start().strip_prefix("```").map(str::trim)
}

#[test]
fn examples_are_recognized_by_their_fence() {
    assert!(has_example("/// Adds.\n/// ```\n/// add(1);\n/// ```\n"));
    assert!(has_example("    /// ```no_run\n    /// ```\n"));
    assert!(!has_example("//! ```text\n//! A → B\n//! ```\nlet x = \"```\";\n"));
}
