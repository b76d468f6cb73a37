//! `docs/reference/php-api.md`: functions and classes for PHP code, from php/stubs.

use super::check;
use crate::tree::read;
use std::fmt::Write;

/// Stub files, with the heading of each.
const STUBS: [(&str, &str); 7] = [
    ("samovar", "Requests and execution models"),
    ("shared", "Memory that workers share"),
    ("tasks", "Tasks, channels and pools"),
    ("pinba", "Timers of the pinba extension"),
    ("apcu", "Functions of the apcu extension"),
    ("mock", "Test doubles"),
    ("frankenphp", "Functions of FrankenPHP"),
];

/// Maximum columns of a signature on one line.
const COLUMNS_MAX: usize = 100;

const INTRODUCTION: &str = "Samovar offers these functions and classes to PHP code. The same \
declarations are in `php/stubs/`, for an IDE.\n\n";

#[test]
fn php_page_lists_every_function_and_class() {
    let mut page = INTRODUCTION.to_owned();
    for (file, heading) in STUBS {
        let _ = writeln!(page, "## {heading}\n");
        stub(&read(&format!("php/stubs/{file}.php")), &mut page);
    }
    check("docs/reference/php-api.md", "PHP functions and classes", &page);
}

/// Writes the declarations of a stub file, each with its doc comment.
fn stub(text: &str, page: &mut String) {
    let (mut doc, mut is_doc, mut class) = (Vec::new(), false, String::new());
    let (mut namespace, mut signature) = (String::new(), None::<String>);
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("/**") {
            (is_doc, doc) = (true, vec![rest.trim_end_matches("*/").trim().to_owned()]);
            is_doc &= !trimmed.ends_with("*/");
            continue;
        }
        if is_doc {
            is_doc = !trimmed.ends_with("*/");
            let text = trimmed.trim_end_matches("*/").trim_start_matches('*');
            doc.push(text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned());
            continue;
        }
        if let Some(name) = trimmed.strip_prefix("namespace") {
            name.trim_end_matches([';', '{', ' ']).trim().clone_into(&mut namespace);
            doc.clear();
        } else if let Some(begun) = signature.as_mut() {
            begun.push(' ');
            begun.push_str(trimmed);
        } else if is_declaration(trimmed) {
            signature = Some(trimmed.to_owned());
        } else if !trimmed.is_empty() && !trimmed.starts_with('#') {
            if trimmed == "}" && line.find('}').is_some_and(|at| at < 8) {
                let is_class_end = !class.is_empty() && line.len() - line.trim_start().len() <= 4;
                if is_class_end && !line.starts_with("        ") {
                    let depth = line.len() - line.trim_start().len();
                    if depth == usize::from(text.contains("namespace Samovar {")) * 4 {
                        class.clear();
                    }
                }
            }
            continue;
        }
        let Some(whole) = signature.take_if(|s| is_complete(s)) else { continue };
        let shown = whole.split('{').next().unwrap_or_default().trim().trim_end_matches(';');
        let shown = shown.replace("( ", "(").replace(", )", ")");
        declaration(&shown, &namespace, &mut class, &std::mem::take(&mut doc), page);
    }
}

fn is_declaration(line: &str) -> bool {
    let words = ["function ", "class ", "interface ", "enum ", "const "];
    let line = ["final ", "public ", "static ", "abstract ", "readonly "]
        .iter()
        .fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    words.iter().any(|word| line.starts_with(word))
}

fn is_complete(signature: &str) -> bool {
    let open = signature.matches('(').count();
    open == signature.matches(')').count()
}

fn declaration(
    shown: &str,
    namespace: &str,
    class: &mut String,
    doc: &[String],
    page: &mut String,
) {
    let name = |after: &str| {
        let rest = shown.split(after).nth(1).unwrap_or_default();
        rest.split(['(', ' ', ':', '=']).next().unwrap_or_default().to_owned()
    };
    let qualified = |name: &str| {
        if namespace.is_empty() { name.to_owned() } else { format!("{namespace}\\{name}") }
    };
    let heading = if shown.contains("function ") {
        let name = name("function ");
        if class.is_empty() {
            format!("### `{}()`", qualified(&name))
        } else {
            format!("#### `{class}::{name}()`")
        }
    } else if shown.contains("const ") {
        String::new()
    } else {
        let word = ["class ", "interface ", "enum "].into_iter().find(|word| shown.contains(word));
        let name = name(word.unwrap_or("class "));
        class.clone_from(&name);
        format!("### Class `{}`", qualified(&name))
    };
    if !heading.is_empty() {
        let _ = writeln!(page, "{heading}\n");
    }
    let _ = writeln!(page, "```php\n{}\n```\n", broken(shown));
    page.push_str(&prose(doc));
}

/// Puts each parameter of a long signature on a line of its own.
fn broken(signature: &str) -> String {
    let parts = signature.split_once('(').and_then(|(name, rest)| {
        let (parameters, result) = rest.rsplit_once(')')?;
        Some((name, parameters, result))
    });
    match parts {
        Some((name, parameters, result)) if signature.chars().count() > COLUMNS_MAX => {
            let parameters = parameters.replace(", ", ",\n    ");
            format!("{name}(\n    {parameters}\n){result}")
        }
        _ => signature.to_owned(),
    }
}

/// A doc comment as Markdown: paragraphs, then its tags as a list.
fn prose(doc: &[String]) -> String {
    let mut text = String::new();
    let mut tags: Vec<String> = Vec::new();
    for line in doc {
        if line.starts_with('@') {
            tags.push(line.clone());
        } else if let (Some(tag), false) = (tags.last_mut(), line.is_empty()) {
            let _ = write!(tag, " {}", line.trim());
        } else if tags.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let text = text.trim();
    let mut shown = if text.is_empty() { String::new() } else { format!("{text}\n\n") };
    for tag in &tags {
        let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = name.trim_start_matches('@');
        let _ = writeln!(shown, "- {name}: {}", quoted(rest, name == "param"));
    }
    if !tags.is_empty() {
        shown.push('\n');
    }
    shown
}

/// Puts the type and the name of a tag into backticks.
fn quoted(rest: &str, is_named: bool) -> String {
    let (kind, name, rest) = if let Some((kind, rest)) = rest.split_once(" $").filter(|_| is_named)
    {
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        (kind, format!("${name}"), rest)
    } else {
        let (kind, rest) = kind(rest);
        (kind, String::new(), rest)
    };
    let parts = [kind, name.as_str()].into_iter().filter(|part| !part.is_empty());
    let parts: Vec<_> = parts.map(|part| format!("`{}`", part.replace('|', "\\|"))).collect();
    format!("{} {rest}", parts.join(" ")).trim().to_owned()
}

/// The type at the beginning of a tag, which can have blanks inside brackets, and the rest.
fn kind(tag: &str) -> (&str, &str) {
    let mut depth = 0_i32;
    for (at, c) in tag.char_indices() {
        match c {
            '(' | '<' | '{' => depth += 1,
            ')' | '>' | '}' => depth -= 1,
            ' ' if depth == 0 && !tag[..at].ends_with(':') => return (&tag[..at], &tag[at + 1..]),
            _ => {}
        }
    }
    (tag, "")
}

#[test]
fn stub_becomes_headings_signatures_and_lists() {
    let text = "<?php\nnamespace Samovar {\n    /**\n     * Runs it.\n     *\n     \
        * @param int $n The\n     *     number.\n     */\n    \
        function run(int $n): void\n    {\n    }\n}\n";
    let mut page = String::new();
    stub(text, &mut page);
    let expected = "### `Samovar\\run()`\n\n```php\nfunction run(int $n): void\n```\n\n\
        Runs it.\n\n- param: `int` `$n` The number.\n\n";
    assert_eq!(page, expected);
}
