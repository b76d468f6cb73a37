//! Characters in texts of clients, of PHP and of other processes that must not reach a terminal, a
//! log or a page: they move the cursor, end the line, or change the order of the text around them.

use std::borrow::Cow;
use std::fmt::Write;

/// Shown in place of such a character.
const REPLACEMENT: &str = "\u{fffd}";

/// Returns whether a character is a control character, a line or paragraph separator, or changes
/// the direction of text (bidi).
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{fffe}'
                | '\u{ffff}'
        )
}

/// Replaces unprintable characters with U+FFFD. The result is one line.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_unprintable)
}

/// Like [`printable`], but keeps line feeds and tabs.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unprintable(c) && !matches!(c, '\n' | '\t'))
}

/// Escapes unprintable characters in a JSON text. They can only be inside strings, so this is safe.
#[must_use]
pub fn printable_json(text: String) -> String {
    if !text.contains(is_unprintable) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unprintable(c) {
            // Writing to a string cannot fail. All of these characters are below U+10000.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    let has_suspects = text.bytes().any(|b| !(b' '..0x7f).contains(&b));
    if has_suspects && text.contains(&is_bad) {
        text.replace(is_bad, REPLACEMENT).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{is_unprintable, printable, printable_json, printable_lines};
    use std::borrow::Cow;

    #[test]
    fn control_and_bidi_characters_are_replaced() {
        assert_eq!(
            printable("a\u{1b}[2J\u{202e}b\n\u{9b}"),
            "a\u{fffd}[2J\u{fffd}b\u{fffd}\u{fffd}"
        );
        assert_eq!(printable_lines("a\tb\nc\r\u{2066}"), "a\tb\nc\u{fffd}\u{fffd}");
        for c in "\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{2029}\0".chars()
        {
            assert!(is_unprintable(c), "{c:?}");
        }
    }

    #[test]
    fn json_text_is_escaped() {
        let json = printable_json("{\"a\":\"\u{202e}b\u{7f}\"}".to_owned());
        assert_eq!(json, r#"{"a":"\u202eb\u007f"}"#);
    }

    #[test]
    fn readable_text_is_not_copied() {
        for text in ["/search?q=1", "größer 日本 شكرا 👩\u{200d}💻"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
