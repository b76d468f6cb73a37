//! Values that nobody should read: those of tags whose names say so are blotted out before anything else sees them.

use crate::report::Entry;

/// What stands in a value's place.
pub const BLOT: &str = "(redacted)";
/// Names that are secret unless others are given.
const SECRET: [&str; 8] =
    ["password", "passwd", "secret", "token", "authorization", "cookie", "api_key", "apikey"];

/// Which names are secret: those that contain one of these words, whatever their case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction(Box<[Box<str>]>);

impl Default for Redaction {
    fn default() -> Redaction {
        Redaction::new(SECRET)
    }
}

impl Redaction {
    /// Of these words; empty ones are none.
    pub fn new<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Redaction {
        let lower = words.into_iter().map(|word| word.as_ref().to_ascii_lowercase());
        Redaction(lower.filter(|word| !word.is_empty()).map(String::into_boxed_str).collect())
    }

    /// Whether a value of that name is to be blotted out.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        let is_in = |word: &str| {
            name.as_bytes().windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
        };
        self.0.iter().any(|word| is_in(word))
    }

    /// Blots out the values of an entry's tags.
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
    fn names_that_contain_a_word_are_secret() {
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
    fn tags_of_requests_and_timers_are_blotted_out() {
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
