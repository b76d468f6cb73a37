//! Place in a configuration file.

use std::path::PathBuf;

/// Maximum length of a quoted line, in characters.
const TEXT_CHARS_MAX: usize = 80;

/// A line of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u32,
    /// Its text in one line, shortened.
    pub text: String,
}

impl Origin {
    pub(crate) fn new(file: impl Into<PathBuf>, line: u32, text: &str) -> Origin {
        Origin { file: file.into(), line, text: short(text) }
    }

    /// `nginx.conf:3`.
    pub(crate) fn place(&self) -> String {
        let file: String = self.file.to_string_lossy().chars().map(printable).collect();
        format!("{file}:{}", self.line)
    }
}

/// The text without control characters and repeated white space, shortened.
pub(crate) fn short(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(TEXT_CHARS_MAX + 1).map(printable));
        if line.chars().count() > TEXT_CHARS_MAX {
            line = line.chars().take(TEXT_CHARS_MAX).collect();
            line.push('…');
            break;
        }
    }
    line
}

fn printable(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}
