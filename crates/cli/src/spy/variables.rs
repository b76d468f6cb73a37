//! Values of variables that are shown with stacks. Those with secret names are not read, and texts
//! lose their secrets.

use super::options::SpyOptions;
use samovar_insight::{BLOT, Redaction};
use samovar_spy::{Frame, Function, Peek, Sample};
use std::sync::Arc;

/// PHP's names for the credentials that a browser sends as `Authorization`.
const CREDENTIALS: [&str; 2] = ["PHP_AUTH_PW", "PHP_AUTH_DIGEST"];

/// The words of the setting, in addition to the default ones: the watched process may belong to
/// another server.
struct Secrets([Redaction; 2]);

impl Secrets {
    fn of(asked: &SpyOptions) -> Secrets {
        Secrets([Redaction::default(), Redaction::of_setting(&asked.redact)])
    }

    fn has(&self, peek: &Peek) -> bool {
        let is_secret = |word: &str| {
            CREDENTIALS.iter().any(|name| name.eq_ignore_ascii_case(word))
                || self.0.iter().any(|redaction| redaction.is_secret(word))
        };
        peek.words().any(is_secret)
    }

    /// Texts are cleaned without their quotes: statements are known by their first word.
    fn clean(&self, value: &str) -> String {
        let inner = value.strip_prefix('"').and_then(|rest| rest.rsplit_once('"'));
        let Some((text, end)) = inner else { return value.to_owned() };
        // Credentials of a URL that is cut have lost the `@` by which they are known.
        let cut = text
            .rfind("://")
            .map(|at| at + 3)
            .filter(|at| !end.is_empty() && !text[*at..].contains(['/', '?', '#', '@', ' ']));
        let text = cut.map_or(text.to_owned(), |at| format!("{}{BLOT}", &text[..at]));
        let [usual, set] = &self.0;
        format!("\"{}\"{end}", set.text(&usual.text(&text)))
    }
}

/// Returns the variables that may be read.
pub(super) fn readable(asked: &SpyOptions) -> Vec<Peek> {
    let secrets = Secrets::of(asked);
    asked.peeks.iter().filter(|peek| !secrets.has(peek)).cloned().collect()
}

/// Returns the name of a variable: `$total`, or `$total in Cart::total` if variables of this name
/// are wanted in several scopes.
fn name(asked: &SpyOptions, peek: &Peek) -> String {
    let title = peek.title();
    let is_same = |other: &&Peek| other.title() == title && other.scope() != peek.scope();
    match asked.peeks.iter().find(is_same) {
        Some(_) => format!("{title} in {}", peek.scope()),
        None => title,
    }
}

/// Returns the wanted variables with their values. `None`: there is no such variable.
pub(super) fn values(asked: &SpyOptions, sample: &Sample) -> Vec<(String, Option<String>)> {
    let secrets = Secrets::of(asked);
    let mut read = sample.peeked.iter();
    let value = |peek: &Peek| {
        let value = if secrets.has(peek) {
            Some(BLOT.to_owned())
        } else {
            read.next().and_then(|value| value.as_deref().map(|value| secrets.clean(value)))
        };
        (name(asked, peek), value)
    };
    asked.peeks.iter().map(value).collect()
}

/// Returns the frames of a stack, with a frame for each value around them.
pub(super) fn framed(asked: &SpyOptions, sample: &Sample) -> Vec<Frame> {
    let mut frames = sample.stack.frames.clone();
    for (name, value) in values(asked, sample) {
        let name = format!("{name} = {}", value.as_deref().unwrap_or("(none)"));
        let function = Arc::new(Function { name, ..Function::default() });
        frames.push(Frame { function, line: 0 });
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets([Redaction::default(), Redaction::default()])
    }

    #[test]
    fn values_lose_their_secrets() {
        let long = format!("\"mysql://root:{}\"… (200 bytes)", "x".repeat(110));
        for (value, secret) in [
            ("\"SELECT * FROM u WHERE pw='hunter2'\"", "hunter2"),
            ("\"https://user:hunter2@host/\"", "hunter2"),
            ("\"/login?token=hunter2\"", "hunter2"),
            (&*long, "xxx"),
        ] {
            let clean = secrets().clean(value);
            assert!(!clean.contains(secret) && clean.starts_with('"'), "{clean}");
        }
        for value in ["\"plain text\"", "12", "array(3)", "\"a \"quoted\" text\"… (300 bytes)"] {
            assert_eq!(secrets().clean(value), value);
        }
    }

    #[test]
    fn credentials_are_not_read() {
        for name in ["server.PHP_AUTH_PW", "server.PHP_AUTH_DIGEST", "server.HTTP_AUTHORIZATION"] {
            assert!(secrets().has(&Peek::global(name).expect("a variable")), "{name}");
        }
        assert!(!secrets().has(&Peek::global("server.REQUEST_URI").expect("a variable")));
    }
}
