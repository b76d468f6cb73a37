//! Messages about samples, in addition to their results.

use samovar_server::terminal;
use samovar_spy::{Counts, Watch};
use std::fmt::Write as _;

/// Exit code if no stack was read, or some processes may not be read.
pub(super) const EXIT_INCOMPLETE: u8 = 1;

/// Returns a text such as `1204 stacks, 3 torn (0.2 %), 40 idle`.
pub(super) fn counted(counts: Counts) -> String {
    let looks = counts.stacks + counts.torn;
    #[allow(clippy::cast_precision_loss)] // A share for display.
    let share = counts.torn as f64 * 100.0 / looks.max(1) as f64;
    let mut text = format!("{} stacks, {} idle", counts.stacks, counts.idle);
    // Writing to a string cannot fail.
    if counts.torn > 0 {
        let _ = write!(text, ", {} torn ({share:.1} %: left out)", counts.torn);
    }
    if counts.gone > 0 {
        let _ = write!(text, ", {} processes exited", counts.gone);
    }
    text
}

/// Returns why there is no growth of heaps to show; empty if some heap was read.
pub(super) fn without_heap(watch: &Watch) -> String {
    let Counts { stacks, without_heap, .. } = watch.counts();
    if without_heap == 0 || without_heap < stacks {
        return String::new();
    }
    "no heap of PHP can be read\nhint: PHP counts memory only in its own heap; unset \
     USE_ZEND_ALLOC in the environment of these processes, and start them again"
        .to_owned()
}

/// Returns the processes that may not be read, once per reason.
pub(super) fn refusals(watch: &Watch) -> Vec<String> {
    let all: Vec<_> = watch.refused().collect();
    let Some((_, first)) = all.first() else { return Vec::new() };
    let mut lines = vec![(*first).to_owned()];
    if all.len() > 1 {
        lines.push(format!("no permission to read {} more processes", all.len() - 1));
    }
    lines
}

pub(super) fn tell(lines: &[String]) {
    for line in lines {
        terminal::complain(&format!("samovar: {line}"));
    }
}
