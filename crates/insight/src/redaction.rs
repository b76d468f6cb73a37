//! Redaction: replaces the values of tags with secret names before any other code sees them.

use crate::report::Entry;

/// Replacement for a secret value.
pub const BLOT: &str = "(redacted)";
/// Default words of secret names.
const SECRET: [&str; 8] =
    ["password", "passwd", "secret", "token", "authorization", "cookie", "api_key", "apikey"];

/// Secret names: those that contain one of these words, ignoring case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction(Box<[Box<str>]>);

impl Default for Redaction {
    fn default() -> Redaction {
        Redaction::new(SECRET)
    }
}

impl Redaction {
    /// Creates a redaction with these words; empty words are ignored.
    pub fn new<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Redaction {
        let lower = words.into_iter().map(|word| word.as_ref().to_ascii_lowercase());
        Redaction(lower.filter(|word| !word.is_empty()).map(String::into_boxed_str).collect())
    }

    /// Returns whether a value with this name must be replaced.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        let is_in = |word: &str| {
            name.as_bytes().windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
        };
        self.0.iter().any(|word| is_in(word))
    }

    /// Replaces the secret values of an entry's tags.
    pub(crate) fn apply(&self, entry: &mut Entry) {
        match entry {
            Entry::Tag(name, value) if self.is_secret(name) => *value = BLOT,
            Entry::Timer { tags, .. } => {
                for (name, value) in tags {
                    if self.is_secret(name) {
                        *value = BLOT;
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOT, Redaction};
    use crate::report::Entry;

    #[test]
    fn name_containing_a_secret_word_is_secret() {
        let usual = Redaction::default();
        for (name, expected) in [
            ("password", true),
            ("DB_Password_2", true),
            ("Set-Cookie", true),
            ("csrfToken", true),
            ("group", false),
            ("", false),
            ("pass", false),
        ] {
            assert_eq!(usual.is_secret(name), expected, "{name}");
        }
        assert!(Redaction::new(["IBAN", ""]).is_secret("their_iban"));
        assert!(!Redaction::new([""; 1]).is_secret("password"));
    }

    #[test]
    fn secret_tags_of_requests_and_timers_are_redacted() {
        let timer = |tags| Entry::Timer { hits: 1, wall_ns: 2, user_ns: 0, system_ns: 0, tags };
        for (mut entry, expected) in [
            (Entry::Tag("token", "abc"), Entry::Tag("token", BLOT)),
            (Entry::Tag("country", "de"), Entry::Tag("country", "de")),
            (
                timer(vec![("group", "http"), ("cookie", "a=b")]),
                timer(vec![("group", "http"), ("cookie", BLOT)]),
            ),
            (Entry::Route("token"), Entry::Route("token")),
        ] {
            Redaction::default().apply(&mut entry);
            assert_eq!(entry, expected);
        }
    }
}
