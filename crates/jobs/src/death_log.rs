//! The line in the log about a dead job.

use crate::job::QueueSettings;
use samovar_log::Throttle;

/// Maximum number of characters of a job's error in a log line.
const LOGGED_CHARS_MAX: usize = 300;

/// Logs the death of a job after this number of runs.
pub(crate) fn log_death(
    lines: &Throttle,
    of: &QueueSettings,
    (job, runs): (i64, u32),
    error: &str,
) {
    let Some(suppressed) = lines.pass() else { return };
    let queue = &of.name;
    let line = error.lines().next().unwrap_or_default();
    let first: String = line.chars().take(LOGGED_CHARS_MAX).collect();
    let hint = if of.dead_letter {
        format!("`samovar queue show {queue}` has its payload and the stack")
    } else {
        "it was removed, because `dead_letter` is false".to_owned()
    };
    tracing::warn!(queue, job, runs, suppressed, "a job is dead: {first}\nhint: {hint}");
}
