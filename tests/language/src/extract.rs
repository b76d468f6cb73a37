//! Splits source files into pieces of text: comments, string literals, test names.
//!
//! A scanner knows comments and literals of one language; it does not parse. Adjacent line comments form one piece.

use crate::{Area, Piece, markdown};

/// Words that a string literal needs to count as a message.
const MESSAGE_WORDS_MIN: usize = 3;

/// The pieces of a file; empty for a kind of file that is not checked.
pub fn pieces(file: &str, text: &str) -> Vec<Piece> {
    match kind(file) {
        "md" => markdown::pieces(text),
        "rs" => Scanner::new(text, &RUST).pieces(file),
        "c" | "h" => Scanner::new(text, &C).pieces(file),
        "php" | "js" | "css" => Scanner::new(text, &PHP).pieces(file),
        "sh" | "py" | "toml" => hash_comments(text),
        _ if file.ends_with("Makefile") || file.ends_with(".ci/run") => hash_comments(text),
        _ => Vec::new(),
    }
}

/// The part of a file's name after the last dot.
pub fn kind(file: &str) -> &str {
    file.rsplit('.').next().unwrap_or_default()
}

/// Whether a file consists of tests: its strings are code and fixtures.
fn is_test(file: &str) -> bool {
    file.starts_with("tests/")
        || file.contains("/tests/")
        || file.contains("testkit/")
        || file.ends_with("/tests.rs")
        || file.contains("/examples/")
        || file.starts_with("examples/")
        || file.contains("/fuzz/")
}

/// How a language writes comments and literals.
struct Language {
    /// Line comments begin with one of these.
    line: &'static [&'static str],
    /// `'` begins a string, not a character or a lifetime.
    has_single_quoted: bool,
    /// `r"…"`, `r#"…"#`.
    has_raw: bool,
}

const RUST: Language = Language { line: &["//"], has_single_quoted: false, has_raw: true };
const C: Language = Language { line: &["//"], has_single_quoted: false, has_raw: false };
const PHP: Language = Language { line: &["//", "# "], has_single_quoted: true, has_raw: false };

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    language: &'static Language,
    found: Vec<Piece>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, language: &'static Language) -> Scanner<'a> {
        Scanner { text, at: 0, line: 1, language, found: Vec::new() }
    }

    fn pieces(mut self, file: &str) -> Vec<Piece> {
        let with_strings = !is_test(file);
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            if self.language.line.iter().any(|begin| rest.starts_with(begin)) {
                self.line_comment();
            } else if rest.starts_with("/*") {
                self.block_comment();
            } else if self.language.has_raw && raw_hashes(rest).is_some_and(|_| !self.is_in_word())
            {
                self.raw_string(with_strings);
            } else if rest.starts_with('"') {
                self.string('"', with_strings);
            } else if rest.starts_with('\'') {
                if self.language.has_single_quoted {
                    self.string('\'', with_strings);
                } else {
                    self.character();
                }
            } else {
                self.step();
            }
        }
        self.test_names();
        self.found
    }

    fn is_in_word(&self) -> bool {
        self.text[..self.at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    fn step(&mut self) {
        let Some(c) = self.text[self.at..].chars().next() else { return };
        if c == '\n' {
            self.line += 1;
        }
        self.at += c.len_utf8();
    }

    fn skip(&mut self, count: usize) {
        let end = (self.at + count).min(self.text.len());
        while self.at < end {
            self.step();
        }
    }

    /// Consecutive line comments of one kind are one piece.
    fn line_comment(&mut self) {
        let line = self.line;
        let rest = &self.text[self.at..];
        let length = rest.find('\n').unwrap_or(rest.len());
        let comment = &rest[..length];
        let (marker, area) = if comment.starts_with("///") || comment.starts_with("//!") {
            (&comment[..3], Area::DocComments)
        } else if comment.starts_with('#') {
            ("#", Area::Comments)
        } else {
            ("//", Area::Comments)
        };
        let text = markdown::without_code(comment.strip_prefix(marker).unwrap_or(comment));
        let text = text.trim().to_owned();
        match self.found.last_mut() {
            Some(last)
                if last.area == area && last.line + last.text.matches('\n').count() + 1 == line =>
            {
                last.text.push('\n');
                last.text.push_str(&text);
            }
            _ => self.found.push(Piece { area, line, text }),
        }
        self.skip(length);
    }

    fn block_comment(&mut self) {
        let line = self.line;
        let rest = &self.text[self.at..];
        let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
        let lines = rest[..length].trim_start_matches("/*").trim_end_matches("*/").lines();
        let text: Vec<String> = lines
            .map(|line| {
                markdown::without_code(line.trim().trim_start_matches('*')).trim().to_owned()
            })
            .collect();
        self.found.push(Piece { area: Area::Comments, line, text: text.join("\n") });
        self.skip(length);
    }

    fn string(&mut self, quote: char, is_wanted: bool) {
        let line = self.line;
        let begin = self.at + 1;
        self.step();
        while self.at < self.text.len() && !self.text[self.at..].starts_with(quote) {
            if self.text[self.at..].starts_with('\\') {
                self.step();
            }
            self.step();
        }
        let end = self.at.min(self.text.len());
        self.step();
        if is_wanted {
            self.message(line, begin, end);
        }
    }

    fn raw_string(&mut self, is_wanted: bool) {
        let line = self.line;
        let hashes = raw_hashes(&self.text[self.at..]).unwrap_or(0);
        self.skip(hashes + 2);
        let begin = self.at;
        let close = format!("\"{}", "#".repeat(hashes));
        let length = self.text[self.at..].find(&close).unwrap_or(self.text.len() - self.at);
        self.skip(length);
        let end = self.at;
        self.skip(close.len());
        if is_wanted {
            self.message(line, begin, end);
        }
    }

    /// A literal with several words is read by a person.
    fn message(&mut self, line: usize, begin: usize, end: usize) {
        let Some(text) = self.text.get(begin..end) else { return };
        let words = text
            .split_whitespace()
            .filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() * 2 > word.len());
        if words.count() >= MESSAGE_WORDS_MIN && !text.contains("<?php") {
            let text = markdown::without_code(&text.replace("\\n", " "));
            self.found.push(Piece { area: Area::Strings, line, text });
        }
    }

    /// `'a'` or `'\n'`; a lifetime has no second quote.
    fn character(&mut self) {
        let rest = &self.text[self.at + 1..];
        let mut chars = rest.char_indices();
        let length = match chars.next() {
            Some((_, '\\')) => {
                rest[1..].char_indices().skip(1).find(|(_, c)| *c == '\'').map(|(at, _)| at + 2)
            }
            Some((_, c)) if rest[c.len_utf8()..].starts_with('\'') => Some(c.len_utf8() + 1),
            _ => None,
        };
        self.skip(1 + length.unwrap_or(0));
    }

    fn test_names(&mut self) {
        let mut is_test = false;
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if line == "#[test]" || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if is_test && let Some(name) = function_name(line) {
                let text = name.to_owned();
                self.found.push(Piece { area: Area::TestNames, line: number + 1, text });
                is_test = false;
            }
        }
    }
}

fn function_name(line: &str) -> Option<&str> {
    let rest =
        line.trim_start_matches("pub(crate) ").trim_start_matches("async ").strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

/// The number of `#` of a raw string that begins here.
fn raw_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn hash_comments(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = line.trim().strip_prefix('#').filter(|rest| !rest.starts_with('!'))
        else {
            continue;
        };
        let (line, comment) = (number + 1, markdown::without_code(comment).trim().to_owned());
        match found.last_mut() {
            Some(last) if last.line + last.text.matches('\n').count() + 1 == line => {
                last.text.push('\n');
                last.text.push_str(&comment);
            }
            _ => found.push(Piece { area: Area::Comments, line, text: comment }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, text: &str, expected: &[(Area, usize, &str)]) {
        let found = pieces(file, text);
        let found: Vec<_> = found.iter().map(|p| (p.area, p.line, p.text.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn rust_comments_and_messages_are_told_apart() {
        check(
            "crates/a/src/a.rs",
            "//! Opens.\n//! More.\nlet a = 'x'; // why\nfn f<'a>() { say(\"no room is left\", \"key\") }\n",
            &[
                (Area::DocComments, 1, "Opens.\nMore."),
                (Area::Comments, 3, "why"),
                (Area::Strings, 4, "no room is left"),
            ],
        );
    }

    #[test]
    fn strings_of_tests_are_fixtures() {
        check("tests/a.rs", "let a = \"no room is left\";", &[]);
    }

    #[test]
    fn test_names_are_a_piece_each() {
        check(
            "tests/a.rs",
            "#[test]\n#[ignore]\nfn it_works() {}\nfn helper() {}\n",
            &[(Area::TestNames, 3, "it_works")],
        );
    }

    #[test]
    fn block_comments_lose_their_stars() {
        check("a.c", "/* One.\n * Two. */\nint x;\n", &[(Area::Comments, 1, "One.\nTwo.")]);
    }

    #[test]
    fn code_in_backticks_is_no_prose() {
        check("a.c", "/* See `what is`. */", &[(Area::Comments, 1, "See .")]);
    }
}
