//! SQL without its literals: they are data of users.

/// First words of statements.
const STATEMENTS: [&str; 11] = [
    "select", "insert", "update", "delete", "replace", "with", "call", "set", "exec", "merge",
    "execute",
];

/// Returns whether a text is a statement.
pub(super) fn is_statement(text: &str) -> bool {
    let mut words = text.trim_start_matches(['(', ' ', '\n', '\t']).split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    words.next().is_some() && STATEMENTS.iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// Replaces strings and numbers by `?`.
pub(super) fn without_literals(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let len = match first {
            '\'' | '"' => string_len(rest, first),
            '0'..='9' => number_len(rest),
            _ if word > 0 => {
                clean.push_str(&rest[..word]);
                rest = &rest[word..];
                continue;
            }
            other => {
                clean.push(other);
                rest = &rest[other.len_utf8()..];
                continue;
            }
        };
        clean.push('?');
        rest = &rest[len..];
    }
    clean
}

/// Returns the length of a number, with its fraction, exponent or hexadecimal digits.
fn number_len(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len())
}

/// Returns the length of a string with its quotes. Text that ends before the string is a string,
/// too: it was truncated.
fn string_len(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{is_statement, without_literals};

    #[test]
    fn statement_has_no_literals() {
        for (text, expected) in [
            ("SELECT * FROM t1 WHERE a='x''y' AND b=1.5e3", "SELECT * FROM t1 WHERE a=? AND b=?"),
            (r#"SELECT "it\"s", `c1`"#, "SELECT ?, `c1`"),
            ("INSERT INTO t VALUES (1,-2,0xff, 'tru", "INSERT INTO t VALUES (?,-?,?, ?"),
            ("select ä", "select ä"),
        ] {
            assert!(is_statement(text), "{text}");
            assert_eq!(without_literals(text), expected);
            assert_eq!(without_literals(expected), expected);
        }
        assert!(!is_statement("selected items") && !is_statement("select"));
    }
}
