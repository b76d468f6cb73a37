//! Figures of one queue since the start, and the bytes of its dead jobs.

use samovar_wire::QueueStatus;

/// Maximum number of classes of failures per queue; further ones are counted as `OTHER_CLASS`.
const CLASSES_MAX: usize = 64;
const OTHER_CLASS: &str = "(other)";

/// Counts of one queue, in addition to those of its waiting and running jobs.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) figures: QueueStatus,
    pub(crate) dead_bytes: u64,
    /// No batch is started before this time.
    pub(crate) pause_until_ms: u64,
}

impl Totals {
    /// Returns the figures of a queue at the start.
    pub(crate) fn of(queue: &str) -> Totals {
        let figures = QueueStatus { name: queue.to_owned(), ..QueueStatus::default() };
        Totals { figures, ..Totals::default() }
    }

    pub(crate) fn add_dead(&mut self, bytes: u64) {
        self.dead_bytes += bytes;
        self.figures.dead += 1;
    }

    pub(crate) fn remove_dead(&mut self, bytes: u64) {
        self.dead_bytes = self.dead_bytes.saturating_sub(bytes);
        self.figures.dead = self.figures.dead.saturating_sub(1);
    }

    pub(crate) fn count_failure(&mut self, class: String) {
        let QueueStatus { failures, failed_total, .. } = &mut self.figures;
        *failed_total += 1;
        let is_known = failures.len() < CLASSES_MAX || failures.contains_key(&class);
        let class = if is_known { class } else { OTHER_CLASS.to_owned() };
        *failures.entry(class).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_a_limited_number_of_classes() {
        let mut totals = Totals::default();
        for n in 0..CLASSES_MAX + 5 {
            totals.count_failure(format!("E{n}"));
        }
        totals.count_failure("E0".to_owned());
        let failures = &totals.figures.failures;
        assert_eq!((failures.len(), failures["(other)"], failures["E0"]), (CLASSES_MAX + 1, 5, 2));
    }
}
