//! Values of a database in a message: literals of a statement, and rows that the database quotes.

use std::ops::Range;

/// Words after which a quoted text of a database's message is a name, not a value.
const NAMES: [&str; 6] = ["key", "table", "column", "field", "database", "constraint"];
/// Ends of English words after an apostrophe.
const CONTRACTIONS: [&str; 7] = ["t", "s", "re", "ve", "ll", "d", "m"];
/// Minimum number of digits of a number that is a value: codes of errors are shorter.
const DIGITS_MIN: usize = 6;

/// Texts before the values of a message, and the character after them. PostgreSQL and SQL Server
/// show rows; Doctrine lists parameters; Laravel writes them into the statement, without quotes.
const ROWS: [(&str, char, Reach); 6] = [
    (")=(", ')', Reach::Line),
    ("row contains (", ')', Reach::Line),
    ("value is (", ')', Reach::Line),
    ("with params [", ']', Reach::Message),
    ("with params {", '}', Reach::Message),
    ("SQL: ", ')', Reach::Message),
];

/// Text in which the last closing character ends the values: they may contain it, too.
#[derive(Clone, Copy)]
enum Reach {
    Line,
    Message,
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns the position of the closing quote, or the end of the message.
pub(super) fn quoted_end(message: &str, from: usize, quote: char) -> usize {
    message[from..].find(quote).map_or(message.len(), |len| from + len)
}

/// Returns the value that begins at `at`, or after the quote at `at`.
pub(super) fn at(message: &str, at: usize) -> Option<Range<usize>> {
    let rest = &message[at..];
    if let Some((before, close, reach)) = ROWS.iter().find(|(before, ..)| rest.starts_with(before))
    {
        let from = at + before.len();
        let text = &message[from..];
        let text = match reach {
            Reach::Line => text.lines().next().unwrap_or_default(),
            Reach::Message => text,
        };
        let len = text.rfind(*close).unwrap_or(text.len());
        return (len > 0).then_some(from..from + len);
    }
    let before = &message[..at];
    let is_value = match rest.chars().next()? {
        '\'' => !is_name(before) && !is_apostrophe(message, at),
        '"' => is_operand(before),
        '0'..='9' => {
            let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let is_whole = !before.ends_with(|c| is_word(c) || c == '.');
            return (is_whole && len >= DIGITS_MIN).then_some(at..at + len);
        }
        _ => false,
    };
    let end = literal_end(message, at);
    (is_value && end > at + 1).then_some(at + 1..end)
}

/// Returns the end of the quoted name at `at`, or of an empty literal.
pub(super) fn name_end(message: &str, at: usize) -> Option<usize> {
    let is_quote = message[at..].starts_with('\'') && !is_apostrophe(message, at);
    is_quote.then(|| (quoted_end(message, at + 1, '\'') + 1).min(message.len()))
}

/// Returns whether the quoted text after `before` is the name of a part of a database.
fn is_name(before: &str) -> bool {
    let word = before.trim_end().rsplit(|c| !is_word(c)).next().unwrap_or_default();
    NAMES.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns whether the quote at `at` is an apostrophe within an English word.
fn is_apostrophe(message: &str, at: usize) -> bool {
    let rest = &message[at + 1..];
    let end = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
    let is_in_word = message[..at].ends_with(char::is_alphabetic);
    is_in_word && CONTRACTIONS.contains(&end) && !rest[end.len()..].starts_with('\'')
}

/// Returns whether a text in double quotes after `before` is an operand: MySQL has such literals.
/// Elsewhere it is a name.
fn is_operand(before: &str) -> bool {
    let before = before.trim_end();
    let word = before.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    before.ends_with(['=', '<', '>', '(', ',', '[', ':'])
        || ["like", "regexp", "values"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns the position of the quote that closes the literal at `at`. Two quotes are one of the
/// literal. Whether a backslash escapes a quote depends on the database: then the last quote of the
/// message is taken.
fn literal_end(message: &str, at: usize) -> usize {
    let quote = if message[at..].starts_with('"') { '"' } else { '\'' };
    let mut from = at + 1;
    loop {
        let end = quoted_end(message, from, quote);
        let rest = message.get(end + 1..).unwrap_or_default();
        if message[from..end].ends_with('\\') {
            return message.rfind(quote).filter(|last| *last > end).unwrap_or(message.len());
        }
        if !rest.starts_with(quote) || end == at + 1 {
            return end;
        }
        from = end + 2;
    }
}
