//! `samovar status`: queues of jobs.

use super::phrases::age;
use samovar_wire::QueueStatus;
use std::fmt::Write as _;

/// Maximum number of listed queues; `--json` has all.
const LISTED_MAX: usize = 100;

/// Writes the queues.
pub(super) fn render(queues: &[QueueStatus], out: &mut String) {
    if queues.is_empty() {
        return;
    }
    let width = queues.iter().map(|queue| queue.name.len()).max().unwrap_or(0).max(8);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<width$} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8} {:>8}",
        "QUEUE",
        "READY",
        "OLDEST",
        "DELAYED",
        "RUNNING",
        "DEAD",
        "PUSHED",
        "DONE",
        "FAILED",
        "RETRIED"
    );
    for queue in queues.iter().take(LISTED_MAX) {
        let oldest = match queue.ready {
            0 => "-".to_owned(),
            _ => age(std::time::Duration::from_millis(queue.oldest_ms).as_secs_f64()),
        };
        let QueueStatus { name, ready, delayed, running, dead, .. } = queue;
        let QueueStatus { pushed_total, done_total, failed_total, retried_total, .. } = queue;
        let paused = if queue.paused { "  paused" } else { "" };
        let _ = writeln!(
            out,
            "{name:<width$} {ready:>8} {oldest:>8} {delayed:>8} {running:>8} {dead:>8} \
             {pushed_total:>9} {done_total:>9} {failed_total:>8} {retried_total:>8}{paused}"
        );
    }
    if let Some(more) = queues.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let _ = writeln!(out, "and {more} more queues (--json lists them)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_have_a_line_each() {
        let emails = QueueStatus {
            name: "emails".to_owned(),
            ready: 12,
            oldest_ms: 200_000,
            failed_total: 5,
            paused: true,
            ..QueueStatus::default()
        };
        let mut text = String::new();
        render(
            &[emails, QueueStatus { name: "b".to_owned(), ..QueueStatus::default() }],
            &mut text,
        );
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = ["emails", "12", "3m20s", "0", "0", "0", "0", "0", "5", "0", "paused"];
        assert_eq!(lines[2], expected);
        assert_eq!(lines[3][..3], ["b", "0", "-"]);
        let mut nothing = String::new();
        render(&[], &mut nothing);
        assert!(nothing.is_empty());
    }
}
