//! What is said of looks beside their results.

use crate::terminal;
use samovar_spy::{Counts, Watch};
use std::fmt::Write as _;

/// Some of it could not be done: no stack was read, or not all processes may be.
pub(super) const EXIT_INCOMPLETE: u8 = 1;

/// `1204 stacks, 3 torn (0.2 %), 40 idle`
pub(super) fn counted(counts: Counts) -> String {
    let looks = counts.stacks + counts.torn;
    #[allow(clippy::cast_precision_loss)] // A share for people.
    let share = counts.torn as f64 * 100.0 / looks.max(1) as f64;
    let mut text = format!("{} stacks, {} idle", counts.stacks, counts.idle);
    // Writing to a string cannot fail.
    if counts.torn > 0 {
        let _ = write!(text, ", {} torn ({share:.1} %: left out)", counts.torn);
    }
    if counts.gone > 0 {
        let _ = write!(text, ", {} processes ended", counts.gone);
    }
    text
}

/// The processes that may not be read, once per reason.
pub(super) fn refusals(watch: &Watch) -> Vec<String> {
    let all: Vec<_> = watch.refused().collect();
    let Some((_, first)) = all.first() else { return Vec::new() };
    let mut lines = vec![(*first).to_owned()];
    if all.len() > 1 {
        lines.push(format!("and {} more processes may not be read", all.len() - 1));
    }
    lines
}

pub(super) fn tell(lines: &[String]) {
    for line in lines {
        terminal::complain(&format!("samovar: {line}"));
    }
}
