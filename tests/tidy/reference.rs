//! Pages that are generated from source text: `docs/reference/{status,metrics,errors,php-api}.md`
//! and `docs/internals/source-map.md`. `make reference` writes them.
//!
//! `docs/reference/settings.md` and `cli.md` are generated from running code: by crates/config and
//! by `tests/suite/cli.rs`.

mod errors;
mod metrics;
mod php_api;
mod rust;
mod source_map;
mod status;

use samovar_testkit::markdown::wrapped;
use samovar_testkit::workspace;

/// Compares a page with the text that the code yields; with `UPDATE=1` writes it.
fn check(path: &str, title: &str, body: &str) {
    let text = format!(
        "<!-- Generated from the source code: make reference -->\n\n# {title}\n\n{}\n",
        body.trim_end()
    );
    let text = wrapped(&text);
    let file = workspace().join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "`{path}` does not match the code\nhint: make reference");
}

/// A cell of a table: no line break, no column separator.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The first sentence of a text.
fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.match_indices(['.', '?']).find(|(at, _)| {
        let rest = &text[at + 1..];
        let is_abbreviation = ["e.g", "i.e", "etc", "cf"].iter().any(|a| text[..*at].ends_with(a));
        !is_abbreviation && (rest.is_empty() || rest.starts_with(' '))
    });
    end.map_or(text.clone(), |(at, _)| text[..=at].to_owned())
}

#[test]
fn sentence_ends_at_a_full_stop_before_a_blank() {
    assert_eq!(sentence("Reads a.b\nfiles. Then more."), "Reads a.b files.");
    assert_eq!(sentence("No end"), "No end");
}
