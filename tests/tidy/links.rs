//! Checks that every link in the documents leads to an existing file, and to an existing heading in
//! it.

use crate::tree::{files, is_kind, none, read};
use samovar_testkit::workspace;
use std::path::{Component, Path, PathBuf};

#[test]
fn document_links_lead_to_existing_files_and_headings() {
    let mut dead = Vec::new();
    for file in files().iter().filter(|f| is_kind(f, &["md"])) {
        let text = read(file);
        for target in links(&text).filter(|target| !target.contains("://")) {
            if let Err(why) = follow(file, target, &text) {
                dead.push(format!("{file}: {target}: {why}"));
            }
        }
    }
    none("dead links", &dead);
}

/// The targets of `[text](target)`, except in code blocks and between backticks.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        (!target.contains(char::is_whitespace) && !target.contains('`')).then_some(target)
    })
}

fn follow(from: &str, target: &str, text: &str) -> Result<(), String> {
    let (path, heading) = target.split_once('#').map_or((target, None), |(p, h)| (p, Some(h)));
    if path.is_empty() {
        return is_heading(text, heading);
    }
    let at = normal(&Path::new(from).parent().expect("a file is in a folder").join(path));
    if !workspace().join(&at).exists() {
        return Err("no such file".to_owned());
    }
    if heading.is_some() { is_heading(&read(&at.to_string_lossy()), heading) } else { Ok(()) }
}

fn is_heading(text: &str, wanted: Option<&str>) -> Result<(), String> {
    let wanted = wanted.unwrap_or_default();
    let is_there = text
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == wanted);
    if is_there { Ok(()) } else { Err("no such heading".to_owned()) }
}

/// The anchor of a heading: lower case, without punctuation, words joined by `-`.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
        .collect()
}

/// Resolves `..` without the file system: a folder of the path may exist only in the link.
fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            other => whole.push(other),
        }
    }
    whole
}

#[test]
fn links_and_headings_are_parsed_like_in_browsers() {
    let text = "[a](b.md#c) `[no](x)` ```\n[no](y)\n``` ![d](e.svg) [f](https://g)";
    assert_eq!(links(text).collect::<Vec<_>>(), ["b.md#c", "x", "e.svg", "https://g"]);
    assert_eq!(anchor(" Where to `place` it, and why"), "where-to-place-it-and-why");
    assert_eq!(normal(Path::new("docs/guide/../a.md")), Path::new("docs/a.md"));
}
