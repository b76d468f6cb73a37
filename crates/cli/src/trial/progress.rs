//! Progress messages of a command.

use samovar_server::terminal;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Duration before the first message; a shorter run prints none.
const SILENCE: Duration = Duration::from_secs(2);

/// Prints progress messages on standard error during long runs.
pub(crate) struct Progress {
    next: Instant,
    rewrites: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { next: Instant::now() + SILENCE, rewrites: std::io::stderr().is_terminal() }
    }

    /// Prints a message, but not too often.
    pub(crate) fn say(&mut self, text: impl FnOnce() -> String) {
        let now = Instant::now();
        if now >= self.next {
            terminal::complain(&format!("samovar: {} …", text()));
            let pause = if self.rewrites { SILENCE } else { SILENCE * 5 };
            self.next = now + pause;
        }
    }
}
