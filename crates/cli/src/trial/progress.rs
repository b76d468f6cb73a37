//! What a command says while it runs long.

use crate::terminal;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A run shorter than that says nothing before its end.
const SILENCE: Duration = Duration::from_secs(2);

/// What is said on standard error of a run that takes long.
pub(crate) struct Progress {
    next: Instant,
    rewrites: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { next: Instant::now() + SILENCE, rewrites: std::io::stderr().is_terminal() }
    }

    /// Not too often.
    pub(crate) fn say(&mut self, text: impl FnOnce() -> String) {
        let now = Instant::now();
        if now >= self.next {
            terminal::complain(&format!("samovar: {} …", text()));
            let pause = if self.rewrites { SILENCE } else { SILENCE * 5 };
            self.next = now + pause;
        }
    }
}
