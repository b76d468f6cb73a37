//! Progress messages of a command.

use samovar_server::terminal;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Duration before the first message; a shorter run prints none.
const SILENCE: Duration = Duration::from_secs(2);

/// Prints progress messages on standard error during long runs.
pub(crate) struct Progress {
    begun: Instant,
    next: Instant,
    rewrites: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        let begun = Instant::now();
        Progress { begun, next: begun + SILENCE, rewrites: std::io::stderr().is_terminal() }
    }

    /// Prints a message with an estimate of the time left, but not too often.
    pub(crate) fn say_with_rest(&mut self, done: u64, of: u64, text: impl FnOnce() -> String) {
        let rest = rest(self.begun.elapsed(), done, of);
        self.say(|| match rest {
            Some(rest) => format!("{}, about {} left", text(), time(rest)),
            None => text(),
        });
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

/// Returns the time for the rest of the work, if each part takes as long as those before.
fn rest(elapsed: Duration, done: u64, of: u64) -> Option<Duration> {
    let left = of.checked_sub(done).filter(|left| *left > 0 && done > 0)?;
    #[allow(clippy::cast_precision_loss)] // An estimate.
    Some(elapsed.mul_f64(left as f64 / done as f64))
}

fn time(rest: Duration) -> String {
    match rest.as_secs() {
        seconds @ 0..100 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_proportional_to_the_work_left() {
        let second = Duration::from_secs(1);
        assert_eq!(rest(second, 0, 10), None);
        assert_eq!(rest(second, 10, 10), None);
        assert_eq!(rest(second, 12, 10), None);
        assert_eq!(rest(second * 2, 5, 20), Some(second * 6));
        assert_eq!(
            (time(second / 2), time(second * 99), time(second * 150)),
            ("1 s".into(), "99 s".into(), "3 min".into())
        );
    }
}
