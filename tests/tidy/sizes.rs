//! Checks that no file is too long to navigate.

use crate::tree::{files, is_kind, none, read};

const LINES_MAX: usize = 650;

#[test]
fn source_files_are_not_too_long() {
    let mut found = Vec::new();
    for file in files().iter().filter(|f| is_kind(f, &["rs", "c", "h", "php", "py", "sh"])) {
        let lines = read(file).lines().count();
        if lines > LINES_MAX {
            found.push(format!("{file} has {lines} lines, {LINES_MAX} are the limit"));
        }
    }
    none("files that are too long", &found);
}
