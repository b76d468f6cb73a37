//! Secret values in messages of exceptions.
//!
//! A message is text of the application, so this finds values by their surroundings: the value
//! after a secret name (`token=…`, `"password": "…"`), the credentials of a URL, a bearer token,
//! and the literals of an SQL statement. It changes at most [`VALUES_MAX`] values; the rest of a
//! message with more of them is removed.

use super::text::credentials;
use std::ops::Range;

/// Maximum number of replaced values of one message.
const VALUES_MAX: usize = 64;
/// Words after which a quoted text of a database's message is a name, not a value.
const NAMES: [&str; 6] = ["key", "table", "column", "field", "database", "constraint"];

/// Returns the message with `blot` in place of secret values. Returns `None` if it has none.
pub(super) fn redacted(
    message: &str,
    blot: &str,
    is_secret: impl Fn(&str) -> bool,
) -> Option<String> {
    let has_sql = is_sql(message);
    let mut clean = String::new();
    let (mut from, mut at) = (0, 0);
    let mut values = 0;
    while let Some(value) = next_value(message, at, has_sql, &is_secret) {
        clean.push_str(&message[from..value.start]);
        clean.push_str(blot);
        from = value.end;
        // The closing quote of this value does not open another one.
        let quote = message[..value.start].chars().next_back().filter(|c| matches!(c, '\'' | '"'));
        at = from + usize::from(quote.is_some_and(|quote| message[from..].starts_with(quote)));
        values += 1;
        if values == VALUES_MAX {
            return Some(clean);
        }
    }
    (values > 0).then(|| clean + &message[from..])
}

fn is_sql(message: &str) -> bool {
    let upper = message.to_ascii_uppercase();
    ["SQLSTATE", "SELECT ", "INSERT ", "UPDATE ", "DELETE "].iter().any(|word| upper.contains(word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns the next secret value at or after `from`.
fn next_value(
    message: &str,
    from: usize,
    has_sql: bool,
    is_secret: &impl Fn(&str) -> bool,
) -> Option<Range<usize>> {
    let mut at = from;
    while let Some(c) = message[at..].chars().next() {
        let rest = &message[at..];
        if is_word(c) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, end) = (&rest[..len], at + len);
            let value = if is_secret(word) {
                value_after(message, end)
            } else if word.eq_ignore_ascii_case("bearer") {
                after_blanks(message, end)
            } else {
                None
            };
            if value.is_some() {
                return value;
            }
            at = end;
        } else if rest.starts_with("://") {
            at += 3;
            if let Some((from, to)) = credentials(message, at).filter(|(from, to)| from < to) {
                return Some(from..to);
            }
        } else if has_sql && c == '\'' {
            let end = quoted_end(message, at + 1, '\'');
            if !is_name(&message[..at]) && end > at + 1 {
                return Some(at + 1..end);
            }
            at = (end + 1).min(message.len());
        } else {
            at += c.len_utf8();
        }
    }
    None
}

/// Returns whether the quoted text after `before` is the name of a part of a database.
fn is_name(before: &str) -> bool {
    let word = before.trim_end().rsplit(|c| !is_word(c)).next().unwrap_or_default();
    NAMES.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns the position of the closing quote, or the end of the message.
fn quoted_end(message: &str, from: usize, quote: char) -> usize {
    message[from..].find(quote).map_or(message.len(), |len| from + len)
}

/// Returns the value after a name: `name=value`, `name: value`, `"name" => "value"`.
fn value_after(message: &str, end: usize) -> Option<Range<usize>> {
    let rest = message[end..].trim_start_matches(['"', '\'', ']', ' ']);
    let value = rest.strip_prefix("=>").or_else(|| rest.strip_prefix([':', '=']))?;
    let value = value.trim_start();
    let at = message.len() - value.len();
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = quoted_end(message, at + 1, quote);
        return (end > at + 1).then_some(at + 1..end);
    }
    // An authorization header has a scheme before the value.
    let scheme = ["bearer ", "basic "].into_iter().find(|scheme| {
        value.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    });
    after_blanks(message, at + scheme.map_or(0, str::len))
}

/// Returns the word of a value at or after `from`.
fn after_blanks(message: &str, from: usize) -> Option<Range<usize>> {
    let value = message[from..].trim_start();
    let at = message.len() - value.len();
    let ends = |c: char| c.is_whitespace() || matches!(c, '&' | ',' | ';' | ')' | '"' | '\'');
    let len = value.find(ends).unwrap_or(value.len());
    (len > 0).then_some(at..at + len)
}

#[cfg(test)]
mod tests {
    use super::super::{BLOT, Redaction};
    use super::{VALUES_MAX, redacted};
    use proptest::prelude::*;

    fn clean(message: &str) -> String {
        let usual = Redaction::default();
        redacted(message, BLOT, |name| usual.is_secret(name)).unwrap_or_else(|| message.to_owned())
    }

    #[test]
    fn secret_values_in_messages_are_redacted() {
        for (message, expected) in [
            ("no stock of item 12", "no stock of item 12"),
            ("the token is missing", "the token is missing"),
            ("bad token=s3cr3t&page=2", "bad token=(redacted)&page=2"),
            ("csrfToken: abc, page: 2", "csrfToken: (redacted), page: 2"),
            (r#"{"password": "a b", "id": 1}"#, r#"{"password": "(redacted)", "id": 1}"#),
            ("['api_key' => 'k'] given", "['api_key' => '(redacted)'] given"),
            ("Authorization: Bearer ey.x", "Authorization: Bearer (redacted)"),
            ("sent bearer ey.x to api", "sent bearer (redacted) to api"),
            ("cannot open redis://app:pw@cache/1", "cannot open redis://(redacted)@cache/1"),
            ("cannot open https://a.example/?x=@", "cannot open https://a.example/?x=@"),
            (
                "SQLSTATE[23000]: Duplicate entry 'bob@a.example' for key 'users.mail'",
                "SQLSTATE[23000]: Duplicate entry '(redacted)' for key 'users.mail'",
            ),
            (
                "failed: SELECT * FROM users WHERE name = 'bob' AND x = ''",
                "failed: SELECT * FROM users WHERE name = '(redacted)' AND x = ''",
            ),
            ("class 'Foo' not found", "class 'Foo' not found"),
            ("password=", "password="),
        ] {
            assert_eq!(clean(message), expected);
        }
    }

    #[test]
    fn message_beyond_the_limit_of_values_is_cut() {
        let many = clean(&"token=a ".repeat(VALUES_MAX + 5));
        assert_eq!(many.matches("(redacted)").count(), VALUES_MAX);
        assert!(!many.contains("=a"), "{many}");
    }

    proptest! {
        #[test]
        fn redaction_of_random_text_does_not_panic(text in ".{0,200}") {
            let _ = clean(&text);
        }

        #[test]
        fn value_after_secret_name_never_survives(
            before in "[a-z ü=:'\"]{0,20}", value in "[A-Z0-9]{8}", after in "[ &,][a-z ]{0,9}",
        ) {
            let message = format!("{before} token={value}{after}");
            prop_assert!(!clean(&message).contains(&value));
        }
    }
}
