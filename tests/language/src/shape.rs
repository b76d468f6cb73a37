//! Lengths: sentences and paragraphs of documents, lines of all files, and the case of headings.

use crate::extract::kind;
use crate::markdown::{Kind, blocks};
use crate::{Area, Finding};

/// Words of a sentence in a document.
const SENTENCE_WORDS_MAX: usize = 30;

/// Lines of a paragraph.
const PARAGRAPH_LINES_MAX: usize = 8;

/// Columns of a line of Markdown, Rust and C.
const COLUMNS_MAX: usize = 100;

/// Words that are written with a capital letter wherever they are.
const PROPER: &[&str] = &[
    "API",
    "APCu",
    "Apache",
    "Apple",
    "CI",
    "CLI",
    "CPU",
    "CSS",
    "Caddy",
    "Chromium",
    "Composer",
    "Debian",
    "Docker",
    "Doctrine",
    "ETag",
    "FastCGI",
    "FPM",
    "FrankenPHP",
    "GET",
    "Git",
    "Go",
    "HAProxy",
    "HEAD",
    "HTML",
    "HTTP",
    "HTTPS",
    "I",
    "IDE",
    "IP",
    "JIT",
    "JSON",
    "Kubernetes",
    "Laravel",
    "Linux",
    "MariaDB",
    "MySQL",
    "OK",
    "OTLP",
    "Octane",
    "OpenTelemetry",
    "PGO",
    "PHP",
    "PHPUnit",
    "POST",
    "PROXY",
    "PSR",
    "PSR-15",
    "PSR-7",
    "Pinba",
    "PostgreSQL",
    "Prometheus",
    "RSS",
    "Redis",
    "RoadRunner",
    "Rust",
    "SQL",
    "SVG",
    "Samovar",
    "Slim",
    "Swoole",
    "Symfony",
    "TCP",
    "TLS",
    "TOML",
    "Twig",
    "UDP",
    "URL",
    "WordPress",
    "Workerman",
    "XHProf",
    "Xdebug",
];

/// The findings of a file.
pub fn judge(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |line: usize, area: Area, message: String| {
        found.push(Finding { file: file.to_owned(), line, area, message });
    };
    let is_document = kind(file) == "md";
    if is_document || ["rs", "c", "h"].contains(&kind(file)) {
        for (number, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !may_be_wide(line, is_document) {
                add(number + 1, Area::Lines, format!("{columns} columns, at most {COLUMNS_MAX}"));
            }
        }
    }
    if !is_document {
        return found;
    }
    for block in blocks(text) {
        if block.kind == Kind::Heading {
            if let Some(word) = capital(&block.text) {
                add(block.line, Area::Headings, format!("`{word}`: headings are in sentence case"));
            }
            continue;
        }
        if block.kind == Kind::Row {
            continue;
        }
        let lines = block.text.lines().count();
        if lines > PARAGRAPH_LINES_MAX {
            add(
                block.line,
                Area::Paragraphs,
                format!("{lines} lines, at most {PARAGRAPH_LINES_MAX}"),
            );
        }
        for (line, words) in sentence_lengths(&block.text) {
            if words > SENTENCE_WORDS_MAX {
                let message = format!("{words} words in a sentence, at most {SENTENCE_WORDS_MAX}");
                add(block.line + line, Area::Sentences, message);
            }
        }
    }
    found
}

/// Tables, links and code of documents cannot be wrapped; nor can a word without a blank.
fn may_be_wide(line: &str, is_document: bool) -> bool {
    let trimmed = line.trim_start();
    let is_one_word = !trimmed.trim_start_matches(['-', '/', '*', '!', ' ']).contains(' ');
    is_one_word
        || (is_document
            && (trimmed.starts_with('|') || line.starts_with("    ") || trimmed.starts_with("![")))
}

fn capital(heading: &str) -> Option<&str> {
    let words = heading.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '.' || c == '/'));
    let mut words = words.filter(|word| !word.is_empty());
    words.next();
    words.find(|word| {
        let is_capital = word.chars().next().is_some_and(char::is_uppercase);
        is_capital && !PROPER.contains(word) && !word.chars().any(|c| c.is_ascii_digit())
    })
}

/// Line (from 0) and words of each sentence.
fn sentence_lengths(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut begin, mut words) = (0, 0);
    for (number, line) in text.lines().enumerate() {
        for word in line.split_whitespace() {
            if words == 0 {
                begin = number;
            }
            words += usize::from(word.chars().any(char::is_alphanumeric));
            let bare = word.trim_end_matches([')', '*', '"', '\'', '`']);
            if bare.ends_with(['.', '?', '!', ':', ';']) {
                found.push((begin, words));
                words = 0;
            }
        }
    }
    found.push((begin, words));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn areas(file: &str, text: &str) -> Vec<Area> {
        judge(file, text).into_iter().map(|finding| finding.area).collect()
    }

    #[test]
    fn long_sentences_and_paragraphs_are_found() {
        let sentence = "word ".repeat(31);
        assert_eq!(
            areas("a.md", &format!("{}\n{}.", &sentence[..80], &sentence[80..])),
            [Area::Sentences]
        );
        assert_eq!(areas("a.md", &"One line.\n".repeat(9)), [Area::Paragraphs]);
    }

    #[test]
    fn wide_lines_are_found_but_for_tables_and_links() {
        let wide = "word ".repeat(30);
        assert_eq!(areas("a.rs", &format!("// {wide}")), [Area::Lines]);
        assert_eq!(areas("a.md", &format!("| {wide} |")), []);
        assert_eq!(areas("a.md", &format!("    {wide}")), []);
    }

    #[test]
    fn headings_are_in_sentence_case() {
        assert_eq!(areas("a.md", "# How PHP starts\n"), []);
        assert_eq!(areas("a.md", "# How It Starts\n"), [Area::Headings]);
    }
}
