//! Names whose values a recording replaces, and texts that contain such a name with its value.

use samovar_insight::{BLOT, Redaction};
use std::borrow::Cow;

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
/// Maximum length of a name that is searched in a text, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Number of times that percent encoding is removed: a URL in a parameter of a URL.
const DECODINGS: usize = 2;

/// The words of secret names: those of the setting, in addition to the usual ones.
#[derive(Debug)]
pub(crate) struct SecretNames([Redaction; 3]);

impl SecretNames {
    pub(crate) fn of(words: &[String]) -> SecretNames {
        let own = Redaction::new(WORDS);
        SecretNames([Redaction::default(), own, Redaction::of_setting(words)])
    }

    /// Whether values with this name are secret. A hyphen, a dot and a space count as an
    /// underscore: PHP replaces some of them.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        let name = String::from_utf8_lossy(name).replace(['-', '.', ' ', '+'], "_");
        let is_part = |part: &str| PARTS.iter().any(|known| part.eq_ignore_ascii_case(known));
        self.0.iter().any(|words| words.is_secret(&name))
            || name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_part)
    }

    /// Whether a text contains a secret name with a value (`token=…`, `"token": …`, `<token>…`), or
    /// a URL with a password. Percent encoding is removed first.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        let mut text = Cow::Borrowed(text);
        for _ in 0..DECODINGS {
            if self.is_pair_in(&text) {
                return true;
            }
            match unescaped(&text) {
                Cow::Borrowed(_) => return false,
                Cow::Owned(decoded) => text = decoded.into(),
            }
        }
        self.is_pair_in(&text)
    }

    fn is_pair_in(&self, text: &[u8]) -> bool {
        memchr::memchr3_iter(b'=', b':', b'<', text).any(|at| {
            let (before, after) = (&text[..at], &text[at + 1..]);
            let value = after.trim_ascii_start();
            let value = value.strip_prefix(b"\"").unwrap_or(value);
            match text[at] {
                b'<' => self.has(name_at_start(after)),
                b':' if has_password(after) => true,
                _ if value.is_empty() || value.starts_with(BLOT.as_bytes()) => false,
                _ => self.has(name_at_end(before)),
            }
        })
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte)
}

/// Whether the text after a `:` is the rest of a URL with a password.
fn has_password(after: &[u8]) -> bool {
    let Some(authority) = after.strip_prefix(b"//") else { return false };
    let is_end = |byte: &u8| b"/?#".contains(byte) || byte.is_ascii_whitespace();
    let end = authority.iter().position(is_end).unwrap_or(authority.len());
    let user = authority[..end].iter().rposition(|byte| *byte == b'@');
    user.is_some_and(|at| authority[..at].contains(&b':'))
}

/// Returns the name of an XML element.
fn name_at_start(text: &[u8]) -> &[u8] {
    let text = &text[..text.len().min(NAME_BYTES_MAX)];
    let is_in = |byte: &u8| is_of_name(*byte) || *byte == b':';
    &text[..text.iter().position(|byte| !is_in(byte)).unwrap_or(text.len())]
}

/// Returns the name before a `=` or `:`, without quotes.
fn name_at_end(text: &[u8]) -> &[u8] {
    let text = &text[text.len().saturating_sub(NAME_BYTES_MAX)..];
    let is_around = |byte: &u8| b"\"'\\".contains(byte) || byte.is_ascii_whitespace();
    let end = text.iter().rposition(|byte| !is_around(byte)).map_or(0, |at| at + 1);
    let start = text[..end].iter().rposition(|byte| !is_of_name(*byte)).map_or(0, |at| at + 1);
    &text[start..end]
}

/// A name or value without percent encoding.
pub(crate) fn unescaped(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b'%') {
        return Cow::Borrowed(name);
    }
    let mut all = Vec::with_capacity(name.len());
    let mut at = 0;
    while at < name.len() {
        let digits = name.get(at + 1..at + 3).filter(|_| name[at] == b'%');
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        all.push(byte.unwrap_or(name[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_secret_word_or_part_are_secret() {
        let names = SecretNames::of(&["shibboleth".to_owned()]);
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
            "_csrf",
            "accessKey",
        ] {
            assert!(names.has(name.as_bytes()), "{name}");
        }
        for name in ["author", "passenger", "spinner", "accept", "side", "page", "", "company"] {
            assert!(!names.has(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn texts_with_a_secret_name_and_its_value_are_found() {
        let names = SecretNames::of(&[]);
        for text in [
            "https://a.example/?a=1&token=x",
            "https%3A%2F%2Fa.example%2F%3Ftoken%3Dx",
            "https%253A%252F%252Fa.example%252F%253Ftoken%253Dx",
            "https://user:pw@a.example/",
            "{\"user\": {\"password\" : \"x\"}}",
            "{\\\"password\\\":\\\"x\\\"}",
            "<a><wsse:Password Type='x'>y",
            "user[password]=x",
            "PASSWORD = x",
        ] {
            assert!(names.are_in(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "https://a.example/?a=1",
            "https://user@a.example/a:b",
            "I forgot my password",
            "token=",
            "token=(redacted)",
            "{\"token\": \"(redacted)\"}",
            "%zz%",
            "a: b < c",
        ] {
            assert!(!names.are_in(text.as_bytes()), "{text}");
        }
    }
}
