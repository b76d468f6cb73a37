//! Names whose values a recording replaces, and texts that contain such a name with its value.
//!
//! A visitor chooses the texts. So the time for a text grows with its length only: the words are
//! found in one pass, and each byte around them is read a limited number of times.

use super::word_search::WordSearch;
use samovar_insight::{BLOT, Redaction};
use std::borrow::Cow;
use std::cell::Cell;

/// Secret names contain one of these words, in addition to the usual ones of `insight.redact`.
const WORDS: [&str; 12] = [
    "pwd",
    "passphrase",
    "passcode",
    "credential",
    "private_key",
    "access_key",
    "accesskey",
    "signature",
    "session_id",
    "sessionid",
    "csrf",
    "xsrf",
];
/// Secret names have one of these parts, between characters that are no letters or digits.
const PARTS: [&str; 8] = ["auth", "pass", "pin", "otp", "sid", "sig", "jwt", "cvc"];
/// Number of times that percent encoding is removed: a URL in a parameter of a URL. A text that is
/// still encoded afterwards counts as secret.
const DECODINGS: usize = 3;
/// Maximum number of words of a text that may be a name, such as `New password`.
const NAME_WORDS_MAX: usize = 4;

/// The words of secret names: those of the setting, in addition to the usual ones.
pub(crate) struct SecretNames {
    search: WordSearch,
    /// Number of bytes that were read.
    work: Cell<usize>,
}

impl std::fmt::Debug for SecretNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretNames").finish_non_exhaustive()
    }
}

impl SecretNames {
    pub(crate) fn of(words: &[String]) -> SecretNames {
        let (usual, set) = (Redaction::default(), Redaction::of_setting(words));
        let words = usual.words().chain(set.words()).chain(WORDS);
        SecretNames { search: WordSearch::new(words, &PARTS), work: Cell::new(0) }
    }

    /// Whether values with this name are secret. A hyphen, a dot and a space count as an
    /// underscore: PHP replaces some of them.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.works(name.len());
        self.search.ends(name).next().is_some()
    }

    /// Whether a text may be a name, and is secret: the next text is then its value.
    pub(crate) fn is_name(&self, text: &[u8]) -> bool {
        let is_in = |byte: &u8| is_of_name(*byte) || b":/$@# ".contains(byte);
        self.works(text.len());
        text.iter().all(is_in)
            && text.split(|byte| *byte == b' ').take(NAME_WORDS_MAX + 1).count() <= NAME_WORDS_MAX
            && self.has(text)
    }

    /// Whether a text contains a secret name with a value (`token=…`, `"token": …`, `<token>…`,
    /// `name="token"`), or a URL with a password. Percent encoding is removed first.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        let mut text = Cow::Borrowed(text);
        for _ in 0..DECODINGS {
            if self.is_pair_in(&text) {
                return true;
            }
            self.works(text.len());
            match unescaped(&text) {
                Cow::Borrowed(_) => return false,
                Cow::Owned(decoded) => text = decoded.into(),
            }
        }
        self.is_pair_in(&text) || matches!(unescaped(&text), Cow::Owned(_))
    }

    fn is_pair_in(&self, text: &[u8]) -> bool {
        self.works(text.len());
        if memchr::memmem::find_iter(text, b"://").any(|at| self.has_password(&text[at + 3..])) {
            return true;
        }
        let mut from = 0;
        self.search.ends(text).any(|end| {
            // The word may belong to the name of the previous one.
            if end <= from {
                return false;
            }
            let name = NameInText::around(text, end, from);
            self.works(name.next - name.start);
            from = name.next;
            name.has_value(text)
        })
    }

    /// Whether the text after `://` is the rest of a URL with a password.
    fn has_password(&self, authority: &[u8]) -> bool {
        let is_end = |byte: &u8| b"/?#".contains(byte) || byte.is_ascii_whitespace();
        let end = authority.iter().position(is_end).unwrap_or(authority.len());
        self.works(end);
        let user = authority[..end].iter().rposition(|byte| *byte == b'@');
        user.is_some_and(|at| authority[..at].contains(&b':'))
    }

    fn works(&self, bytes: usize) {
        self.work.set(self.work.get().saturating_add(bytes));
    }

    /// Number of bytes that were read so far.
    #[cfg(test)]
    pub(crate) fn work(&self) -> usize {
        self.work.get()
    }
}

/// A name in a text.
struct NameInText {
    /// First byte that was read, at or after the end of the previous name.
    start: usize,
    /// Next byte after quotes and spaces.
    next: usize,
    /// The byte before it, and the one before quotes and spaces, and whether there are quotes.
    before: Option<u8>,
    before_quotes: Option<u8>,
    is_quoted: bool,
}

impl NameInText {
    /// `end`: of a word of the name. Nothing before `floor` is read, except one byte.
    fn around(text: &[u8], end: usize, floor: usize) -> NameInText {
        let last_not = |of: &[u8], is_in: &dyn Fn(u8) -> bool| {
            of.iter().rposition(|byte| !is_in(*byte)).map_or(0, |at| at + 1)
        };
        let byte_before = |at: usize| at.checked_sub(1).map(|at| text[at]);
        let start = floor + last_not(&text[floor..end], &|byte| is_of_name(byte) || byte == b':');
        let quotes = floor + last_not(&text[floor..start], &is_around);
        let mut at = end;
        let (end, next) = loop {
            let end = end_of_name(text, at);
            let spaces = text[end..].iter().position(|byte| !is_around(*byte));
            let next = spaces.map_or(text.len(), |count| end + count);
            if !matches!(text.get(next), Some(b'[' | b']')) {
                break (end, next);
            }
            at = next;
        };
        let has_quote = |of: &[u8]| of.iter().any(|byte| b"\"'".contains(byte));
        NameInText {
            start: quotes,
            next,
            before: byte_before(start),
            before_quotes: byte_before(quotes),
            is_quoted: has_quote(&text[quotes..start]) && has_quote(&text[end..next]),
        }
    }

    /// Whether a value follows, or the name is itself a value, which another one may follow.
    fn has_value(&self, text: &[u8]) -> bool {
        let is_element = self.before == Some(b'<');
        let is_content = self.before_quotes == Some(b'>') && text.get(self.next) == Some(&b'<');
        match text.get(self.next) {
            _ if is_element || is_content => true,
            Some(b'=' | b':') => {
                let value = text[self.next + 1..].trim_ascii_start();
                let value = value.strip_prefix(b"\"").unwrap_or(value);
                !value.is_empty() && !value.starts_with(BLOT.as_bytes())
            }
            _ => self.is_quoted && self.before_quotes.is_some_and(|byte| b"=:,[(".contains(&byte)),
        }
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte)
}

/// Whether the byte may be between a name and its `=` or `:`.
fn is_around(byte: u8) -> bool {
    b"\"'\\+".contains(&byte) || byte.is_ascii_whitespace()
}

/// Returns the end of a name, with the texts in its brackets.
fn end_of_name(text: &[u8], from: usize) -> usize {
    let mut is_in_brackets = false;
    let is_end = |byte: &u8| {
        match byte {
            b'[' => is_in_brackets = true,
            b']' => is_in_brackets = false,
            _ => {}
        }
        !is_of_name(*byte) && (!is_in_brackets || b"=&\n".contains(byte))
    };
    text[from..].iter().position(is_end).map_or(text.len(), |count| from + count)
}

/// A name or value without percent encoding. Borrowed if it has none.
pub(crate) fn unescaped(name: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', name).is_none() {
        return Cow::Borrowed(name);
    }
    let digit = |at: usize| name.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut all = Vec::with_capacity(name.len());
    let mut at = 0;
    while at < name.len() {
        match (name[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                // Two digits are less than 256.
                all.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                all.push(byte);
                at += 1;
            }
        }
    }
    if all.len() == name.len() { Cow::Borrowed(name) } else { all.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_secret_word_or_part_are_secret() {
        let names = SecretNames::of(&["shibboleth".to_owned(), "x-own".to_owned()]);
        for name in [
            "X-Api-Key",
            "api.key",
            "X-Auth-User",
            "PHP_AUTH_PW",
            "Proxy-Authorization",
            "user[password]",
            "user[pin]",
            "pass",
            "PHPSESSID",
            "JSESSIONID",
            "X-Amz-Signature",
            "x-shibboleth",
            "X-Own-Header",
            "_csrf",
            "accessKey",
        ] {
            assert!(names.has(name.as_bytes()), "{name}");
        }
        for name in ["author", "passenger", "spinner", "accept", "side", "page", "", "company"] {
            assert!(!names.has(name.as_bytes()), "{name}");
        }
        for (text, expected) in [
            ("password", true),
            ("wsse:Password", true),
            ("New password", true),
            ("I have lost my password", false),
            ("password!", false),
            ("page", false),
            ("", false),
        ] {
            assert_eq!(names.is_name(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn texts_with_a_secret_name_and_its_value_are_found() {
        let names = SecretNames::of(&[]);
        let long = |before: &str, fill: &str, after: &str| {
            format!("{before}{}{after}", fill.repeat(70 / fill.len()))
        };
        let long_names = [
            long("password[", "a", "]=x"),
            long("password", " ", "=x"),
            long("password", "\\\" ", ": x"),
            long("password[", "a b", "]=x"),
            long("password", "[a]", "=x"),
            long("<password-", "a", ">x"),
            long("name=\"password-", "a", "\" value=\"x\""),
            long(">password-", "a", "< x"),
        ];
        for text in [
            "https://a.example/?a=1&token=x",
            "https%3A%2F%2Fa.example%2F%3Ftoken%3Dx",
            "https%253A%252F%252Fa.example%252F%253Ftoken%253Dx",
            "a%25253Ftoken%25253Dx",
            "a%2525253Ftoken%2525253Dx",
            "a%25252525",
            "%252525252574oken%252525253dx",
            "https://user:pw@a.example/",
            "{\"user\": {\"password\" : \"x\"}}",
            "{\\\"password\\\":\\\"x\\\"}",
            "<a><wsse:Password Type='x'>y",
            "user[password]=x",
            "user['password'] = x",
            "PASSWORD = x",
            "password+=+x",
            "api key: x",
            "[{\"name\":\"password\",\"value\":\"hunter2\"}]",
            "[{\\\"name\\\" : \\\"password\\\",\\\"value\\\":\\\"hunter2\\\"}]",
            "[[\"password\", \"hunter2\"]]",
            "('password', 'hunter2')",
            "a:1:{s:8:\"password\";s:7:\"hunter2\";}",
            "<p name=\"password\">x</p>",
            "<p name = 'password' >x</p>",
            "<key>password</key><string>hunter2</string>",
            "<name> password </name><value>hunter2</value>",
        ]
        .into_iter()
        .chain(long_names.iter().map(String::as_str))
        {
            assert!(names.are_in(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "https://a.example/?a=1",
            "https://user@a.example/a:b",
            "I forgot my password",
            "I forgot my \"password\", sorry",
            "token",
            "token=",
            "token=(redacted)",
            "{\"token\": \"(redacted)\"}",
            "%zz%",
            "100%2525",
            "a: b < c",
            "<b>my password is gone</b>",
        ] {
            assert!(!names.are_in(text.as_bytes()), "{text}");
        }
    }

    /// A visitor may send any of them, 256 KiB long.
    #[test]
    fn work_for_a_text_is_a_multiple_of_its_length() {
        /// Passes over a text: decodings, words, and the bytes around them.
        const PASSES_MAX: usize = 5 * (DECODINGS + 1);
        for piece in [
            "a=",
            ":",
            "<",
            "a:",
            "<a",
            "://",
            "://a:",
            "://a@",
            " ",
            "[",
            "]",
            "\"",
            "%",
            "%25",
            "%2525",
            "%252525",
            "password",
            "password ",
            "password\"",
            "\"password\" ",
            "password[",
            "password]",
            "[password",
            "password+",
            "pin.",
            "pin-",
            "pin:",
            ":pin",
            "<pin ",
            "passwor",
            "password=(redacted)",
            "password\n",
            "password& ",
            ">password ",
            "sid sid]",
            "p",
            "\\",
        ] {
            let text = piece.repeat((256 << 10) / piece.len());
            for text in [text.clone(), format!("password{text}"), format!("{text}=")] {
                let names = SecretNames::of(&[]);
                names.are_in(text.as_bytes());
                names.has(text.as_bytes());
                names.is_name(text.as_bytes());
                let passes = names.work() / text.len();
                assert!(passes <= PASSES_MAX, "{piece}: {passes} passes");
            }
        }
    }
}
