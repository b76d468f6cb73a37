//! Secret values in messages of exceptions.
//!
//! A message is text of the application, so this finds values by their surroundings: the value
//! after a secret name (`token=…`, `"password": "…"`), the credentials and the query string of a
//! URL, a bearer token, a key with a known prefix, and the values of a database (`sql_values.rs`).
//! It changes at most [`VALUES_MAX`] values; the rest of a message with more of them is removed.

use super::sql_values::{self, is_word, quoted_end};
use super::text::{credentials, query};
use std::ops::Range;

/// Maximum number of replaced values of one message.
const VALUES_MAX: usize = 64;
/// Prefixes of keys that services give out, and the minimum length of such a key.
const KEYS: [&str; 12] = [
    "sk_",
    "pk_",
    "rk_",
    "whsec_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "eyJ",
];
const KEY_BYTES_MIN: usize = 16;

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

/// Returns whether a message may quote values of a database: it has a part of a statement, or a
/// phrase of the drivers.
fn is_sql(message: &str) -> bool {
    const PARTS: [&str; 10] = [
        "SQLSTATE",
        "SELECT ",
        "INSERT ",
        "UPDATE ",
        "DELETE ",
        "DUPLICATE ENTRY ",
        "SQL SYNTAX",
        "QUERY FAILED",
        " VALUE: ",
        "DETAIL: ",
    ];
    let upper = message.to_ascii_uppercase();
    PARTS.iter().any(|part| upper.contains(part))
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
        if has_sql && let Some(value) = sql_values::at(message, at) {
            return Some(value);
        }
        if is_word(c) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, end) = (&rest[..len], at + len);
            let value = if is_secret(word) {
                value_after(message, end)
            } else if word.eq_ignore_ascii_case("bearer") {
                after_blanks(message, end)
            } else if is_key(word) {
                after_blanks(message, at)
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
        } else if c == '?'
            && let Some((from, to)) = query(message, at)
        {
            return Some(from..to);
        } else if has_sql && let Some(end) = sql_values::name_end(message, at) {
            at = end;
        } else {
            at += c.len_utf8();
        }
    }
    None
}

/// Returns whether a word begins with a key that a service has given out.
fn is_key(word: &str) -> bool {
    word.len() >= KEY_BYTES_MIN && KEYS.iter().any(|prefix| word.starts_with(prefix))
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
            ("cannot open https://a.example/?x=@", "cannot open https://a.example/?(redacted)"),
            (
                "GET https://s3.example/b?X-Amz-Signature=ab%2F12&x=1: 403",
                "GET https://s3.example/b?(redacted) 403",
            ),
            ("is it so? a = b", "is it so? a = b"),
            ("Invalid key: sk_live_51HxAbCdEf9x.", "Invalid key: (redacted)"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.eyJ.sig expired", "jwt (redacted) expired"),
            ("task sk_7 of eyJx", "task sk_7 of eyJx"),
            (
                "Duplicate entry 'bob@a.example' for key 'users.mail'",
                "Duplicate entry '(redacted)' for key 'users.mail'",
            ),
            (
                "Incorrect integer value: 'bob' for column 'id' at row 1",
                "Incorrect integer value: '(redacted)' for column 'id' at row 1",
            ),
            (
                "SQLSTATE[23000]: Duplicate entry 'bob@a.example' for key 'users.mail'",
                "SQLSTATE[23000]: Duplicate entry '(redacted)' for key 'users.mail'",
            ),
            (
                "Couldn't run: SELECT * FROM t WHERE a='bob' AND b='it''s bob' AND c = 'x'",
                "Couldn't run: SELECT * FROM t WHERE a='(redacted)' AND b='(redacted)' AND c = \
                 '(redacted)'",
            ),
            // Whether the backslash escapes depends on the database.
            (r"SELECT 'it\'s bob' FROM t WHERE a = 'bob' AND b", "SELECT '(redacted)' AND b"),
            (
                r#"SELECT * FROM "users" WHERE a = "bob" AND b LIKE "bob""#,
                r#"SELECT * FROM "users" WHERE a = "(redacted)" AND b LIKE "(redacted)""#,
            ),
            (
                "SQLSTATE[23505]: Unique violation: 7 ERROR:  duplicate key value violates unique \
                 constraint \"mail\"\nDETAIL:  Key (mail)=(bob (x)@a.example) already exists.",
                "SQLSTATE[23505]: Unique violation: 7 ERROR:  duplicate key value violates unique \
                 constraint \"mail\"\nDETAIL:  Key (mail)=((redacted)) already exists.",
            ),
            (
                "SQLSTATE[23502]: ERROR: null value\nDETAIL:  Failing row contains (1, bob, null).",
                "SQLSTATE[23502]: ERROR: null value\nDETAIL:  Failing row contains ((redacted)).",
            ),
            (
                r#"SQLSTATE[22P02]: ERROR:  invalid input syntax for type integer: "bob""#,
                r#"SQLSTATE[22P02]: ERROR:  invalid input syntax for type integer: "(redacted)""#,
            ),
            (
                "SQLSTATE[23000]: x (Connection: mysql, SQL: insert into `u` (`m`) values (bob))",
                "SQLSTATE[23000]: x (Connection: mysql, SQL: (redacted))",
            ),
            (
                "An exception while executing 'INSERT INTO u VALUES (?)' with params [\"bob\", 7]:",
                "An exception while executing '(redacted)' with params [(redacted)]:",
            ),
            (
                "SELECT * FROM t WHERE card = 4111111111111111",
                "SELECT * FROM t WHERE card = (redacted)",
            ),
            (
                "SQLSTATE[HY000]: General error: 1062 at 127.0.0.1",
                "SQLSTATE[HY000]: General error: 1062 at 127.0.0.1",
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
