//! Values of variables that are shown with stacks. Those with secret names are not read, and texts
//! lose their secrets.

use super::options::SpyOptions;
use samovar_insight::{BLOT, Redaction};
use samovar_spy::{Frame, Function, Peek, Sample};
use std::sync::Arc;

/// The words of the setting, in addition to the default ones: the watched process may belong to
/// another server.
struct Secrets([Redaction; 2]);

impl Secrets {
    fn of(asked: &SpyOptions) -> Secrets {
        Secrets([Redaction::default(), Redaction::of_setting(&asked.redact)])
    }

    fn has(&self, peek: &Peek) -> bool {
        peek.words().any(|word| self.0.iter().any(|redaction| redaction.is_secret(word)))
    }

    fn clean(&self, value: &str) -> String {
        let [usual, set] = &self.0;
        set.text(&usual.text(value)).into_owned()
    }
}

/// Returns the variables that may be read.
pub(super) fn readable(asked: &SpyOptions) -> Vec<Peek> {
    let secrets = Secrets::of(asked);
    asked.peeks.iter().filter(|peek| !secrets.has(peek)).cloned().collect()
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
        (peek.title(), value)
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
