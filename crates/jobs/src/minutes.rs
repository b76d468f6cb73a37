//! Totals of all queues at the end of each minute, for time ranges of the dashboard.

use samovar_wire::{QueueMinute, QueueStatus, QueueTotals};
use std::collections::VecDeque;
use std::sync::Arc;

const MINUTE_S: u64 = 60;
/// Maximum number of kept minutes: a day and an hour.
const MINUTES_MAX: usize = 25 * 60;
/// Maximum number of kept totals of all queues and minutes, about 8 MB.
const TOTALS_MAX: usize = 100_000;

/// The last minutes, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Minutes {
    kept: VecDeque<Arc<QueueMinute>>,
    /// Minute of the last totals.
    minute: Option<u64>,
}

impl Minutes {
    /// Returns whether a minute has begun since the last totals. The first ones are those of the
    /// start.
    pub(crate) fn is_due(&self, now_s: u64) -> bool {
        self.minute != Some(now_s / MINUTE_S)
    }

    /// Adds the totals of this moment.
    pub(crate) fn add(&mut self, now_s: u64, queues: &[QueueStatus]) {
        let is_first = self.minute.replace(now_s / MINUTE_S).is_none();
        // The thread wakes up to a second late.
        let at = if is_first { now_s } else { now_s - now_s % MINUTE_S };
        // A clock that was set back makes later totals unusable.
        while self.kept.back().is_some_and(|last| last.at >= at) {
            self.kept.pop_back();
        }
        let most = (TOTALS_MAX / queues.len().max(1)).clamp(1, MINUTES_MAX);
        while self.kept.len() >= most {
            self.kept.pop_front();
        }
        let names = self.kept.back().map(|last| &last.queues);
        let name = |at: usize, of: &QueueStatus| {
            let known = names.and_then(|names| names.get(at)).filter(|known| *known.0 == *of.name);
            known.map_or_else(|| Arc::from(&*of.name), |known| Arc::clone(&known.0))
        };
        let totals = queues.iter().enumerate();
        let queues = totals.map(|(at, of)| (name(at, of), QueueTotals::from(of))).collect();
        self.kept.push_back(Arc::new(QueueMinute { at, queues }));
    }

    /// Returns the kept minutes, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<QueueMinute>> {
        self.kept.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, pushed_total: u64) -> QueueStatus {
        QueueStatus { name: name.to_owned(), pushed_total, ..QueueStatus::default() }
    }

    fn times(minutes: &Minutes) -> Vec<u64> {
        minutes.all().iter().map(|minute| minute.at).collect()
    }

    #[test]
    fn totals_are_kept_once_a_minute() {
        let mut minutes = Minutes::default();
        for (at, is_due) in [(119, true), (119, false), (120, true), (179, false), (185, true)] {
            assert_eq!(minutes.is_due(at), is_due, "{at}");
            if is_due {
                minutes.add(at, &[queue("mail", at)]);
            }
        }
        assert_eq!(times(&minutes), [119, 120, 180]);
        let all = minutes.all();
        assert_eq!((&*all[2].queues[0].0, all[2].queues[0].1.pushed), ("mail", 185));
        assert!(Arc::ptr_eq(&all[0].queues[0].0, &all[2].queues[0].0), "names are shared");
        // The clock was set back.
        assert!(minutes.is_due(61));
        minutes.add(61, &[queue("mail", 190)]);
        assert_eq!(times(&minutes), [60]);
    }

    #[test]
    fn number_of_kept_totals_is_bounded() {
        let mut minutes = Minutes::default();
        let many: Vec<_> = (0..1_000).map(|n| queue(&n.to_string(), 0)).collect();
        for at in 1..=300 {
            minutes.add(at * MINUTE_S, &many);
        }
        assert_eq!((times(&minutes).len(), times(&minutes)[0]), (100, 201 * MINUTE_S));
        let mut minutes = Minutes::default();
        for at in 1..=2 * MINUTES_MAX as u64 {
            minutes.add(at * MINUTE_S, &many[..1]);
        }
        assert_eq!(times(&minutes).len(), MINUTES_MAX);
    }
}
