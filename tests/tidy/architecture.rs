//! Checks that ARCHITECTURE.md names only files that exist.
//!
//! The document shortens paths: `queue.rs` appears under a heading that names the crate. So each
//! name must be the end of a path.

use crate::tree::{files, is_kind, none, read};

const KINDS: [&str; 9] = ["rs", "c", "h", "md", "php", "toml", "py", "svg", "sh"];

#[test]
fn architecture_document_names_existing_files() {
    let files = files();
    let text = read("ARCHITECTURE.md");
    let missing: Vec<_> = quoted(&text)
        .flat_map(alternatives)
        .filter(|name| is_ours(name) && !is_there(name, &files))
        .collect();
    none("ARCHITECTURE.md names what is not there", &missing);
}

/// A renamed file leaves its old name in comments elsewhere.
#[test]
fn comments_name_existing_rust_files() {
    let files = files();
    let sources = files.iter().filter(|file| file.starts_with("crates/"));
    let mut missing = Vec::new();
    for file in sources.filter(|file| is_kind(file, &["rs", "c", "h"])) {
        for (at, line) in read(file).lines().enumerate() {
            let is_comment =
                ["//", "/*", "*"].iter().any(|mark| line.trim_start().starts_with(mark));
            let names = line.split(|c: char| !c.is_ascii_alphanumeric() && !"._-/".contains(c));
            let names = names.map(|name| name.trim_end_matches('.'));
            let gone = names.filter(|name| is_kind(name, &["rs"]) && !is_there(name, &files));
            missing.extend(gone.filter(|_| is_comment).map(|n| format!("{file}:{}: {n}", at + 1)));
        }
    }
    none("comments name what is not there", &missing);
}

/// Texts between single backticks, except in code blocks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2))
}

/// `a/{b,c}.rs` → `a/b.rs`, `a/c.rs`.
fn alternatives(name: &str) -> Vec<String> {
    let Some((before, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![name.to_owned()] };
    inside.split(',').map(|one| format!("{before}{one}{after}")).collect()
}

/// Whether the name is a file of a kind that we write, or a folder. `NAME` and `*` are
/// placeholders, and `/proc/…` is the kernel's.
fn is_ours(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let is_named = !name.contains("NAME") && !name.starts_with(['/', '.']);
    is_plain && is_named && (is_kind(name, &KINDS) || name.ends_with('/'))
}

fn is_there(name: &str, files: &[String]) -> bool {
    if name.ends_with('/') {
        let inner = format!("/{name}");
        return files.iter().any(|file| file.starts_with(name) || file.contains(&inner));
    }
    let end = format!("/{name}");
    files.iter().any(|file| file == name || file.ends_with(&end))
}

#[test]
fn file_names_are_distinguished_from_other_words() {
    assert_eq!(alternatives("php/{a,b}.php"), ["php/a.php", "php/b.php"]);
    assert!(is_ours("front/src/route.rs") && is_ours("src/Symfony/") && is_ours("sapi.c"));
    assert!(
        !is_ours("NAME.rs")
            && !is_ours("Taken(w)")
            && !is_ours("/proc/self/")
            && !is_ours("a b.rs")
    );
    let files = ["crates/ring/src/word.rs".to_owned()];
    assert!(is_there("word.rs", &files) && is_there("ring/src/", &files));
    assert!(!is_there("ord.rs", &files) && !is_there("ing/", &files));
}
