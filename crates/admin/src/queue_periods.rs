//! Figures of queues in a period: differences of the totals that the server keeps by minute.

use crate::format;
use crate::range::{Period, Resolved};
use samovar_wire::{QueueMinute, QueueStatus, QueueTotals};
use std::sync::Arc;

const MINUTE_S: u64 = 60;
/// Maximum number of a chart's pieces.
const PIECES_MAX: u64 = 170;
/// Possible lengths of a chart's pieces, in seconds.
const STEPS: [u64; 6] = [60, 120, 300, 600, 1_800, 3_600];

/// The kept minutes and this moment.
pub(crate) struct QueueHistory {
    minutes: Vec<Arc<QueueMinute>>,
    now: u64,
    queues: Vec<QueueStatus>,
}

/// Jobs of a queue in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueSum {
    pub(crate) pushed: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) died: u64,
    /// Highest age of the oldest ready job at the end of a minute, in milliseconds.
    pub(crate) oldest_ms: u64,
    /// Highest number of ready jobs at the end of a minute.
    pub(crate) ready: u64,
}

impl QueueHistory {
    pub(crate) fn new(
        minutes: Vec<Arc<QueueMinute>>,
        now: u64,
        queues: Vec<QueueStatus>,
    ) -> QueueHistory {
        QueueHistory { minutes, now, queues }
    }

    /// Returns the current figures of all queues.
    pub(crate) fn queues(&self) -> &[QueueStatus] {
        &self.queues
    }

    /// Returns the time since which figures are kept.
    fn begin(&self) -> u64 {
        self.minutes.first().map_or(self.now, |first| first.at)
    }

    /// Returns the reason why a part of the period is missing; empty if it is complete.
    pub(crate) fn missing(&self, period: Period) -> String {
        if period.from + MINUTE_S >= self.begin() {
            return String::new();
        }
        let begin = format::moment(self.begin());
        format!("Figures of queues are kept in memory, for at most 25 hours: since {begin} UTC.")
    }

    /// Returns the totals of a queue at a time, or at the first kept time.
    fn at(&self, name: &str, end: u64) -> QueueTotals {
        if end > self.now {
            let now = self.queues.iter().find(|queue| queue.name == name);
            return now.map(QueueTotals::from).unwrap_or_default();
        }
        let after = self.minutes.partition_point(|minute| minute.at <= end);
        let minute = self.minutes.get(after.saturating_sub(1));
        minute.and_then(|minute| totals(minute, name)).unwrap_or_default()
    }

    /// Returns the sums of a queue in a period; `None` if it is before the kept ones.
    pub(crate) fn sum(&self, name: &str, period: Period) -> Option<QueueSum> {
        if period.to <= self.begin() {
            return None;
        }
        let (first, last) = (self.at(name, period.from), self.at(name, period.to));
        // A clock that was set back can give smaller totals later.
        let grown = |of: fn(&QueueTotals) -> u64| of(&last).saturating_sub(of(&first));
        let within = self.minutes.iter().filter(|minute| period.contains(minute.at));
        let within = within.filter_map(|minute| totals(minute, name));
        let (mut oldest_ms, mut ready) = (0, 0);
        for totals in within.chain((period.to > self.now).then_some(last)) {
            (oldest_ms, ready) = (totals.oldest_ms.max(oldest_ms), totals.ready.max(ready));
        }
        Some(QueueSum {
            pushed: grown(|of| of.pushed),
            done: grown(|of| of.done),
            failed: grown(|of| of.failed),
            retried: grown(|of| of.retried),
            died: grown(|of| of.died),
            oldest_ms,
            ready,
        })
    }

    /// Returns the sums of a queue in the range and in the period that it is compared with.
    pub(crate) fn sums(
        &self,
        name: &str,
        resolved: &Resolved,
    ) -> (Option<QueueSum>, Option<QueueSum>) {
        let other = resolved.against.as_ref().ok().copied().flatten();
        // A partial sum would look like a change.
        let other = other.filter(|other| other.from + MINUTE_S >= self.begin());
        (self.sum(name, resolved.period), other.and_then(|other| self.sum(name, other)))
    }

    /// Returns a queue over time: the begin of the first piece, the length of the pieces, and the
    /// pieces. `None`: before the kept minutes.
    pub(crate) fn timeline(&self, name: &str, period: Period) -> (u64, u64, Vec<Option<QueueSum>>) {
        let fits = |step: &u64| period.seconds() / step <= PIECES_MAX;
        let longest = STEPS[STEPS.len() - 1];
        let step = STEPS
            .into_iter()
            .find(fits)
            .unwrap_or_else(|| (period.seconds() / PIECES_MAX + 1).next_multiple_of(longest));
        let from = period.from - period.from % step;
        let count = period.to.saturating_sub(from).div_ceil(step).clamp(1, PIECES_MAX + 2);
        let piece = |n: u64| {
            let piece = Period { from: from + n * step, to: from + (n + 1) * step };
            // A piece that is not over would look like a drop of the rate.
            (piece.to <= self.now).then(|| self.sum(name, piece)).flatten()
        };
        (from, step, (0..count).map(piece).collect())
    }
}

fn totals(minute: &QueueMinute, name: &str) -> Option<QueueTotals> {
    minute.queues.iter().find(|(known, _)| **known == *name).map(|(_, totals)| *totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mail` gets one job per second from 1,000 on, and each waits for as many ms.
    fn history() -> QueueHistory {
        let totals = |at: u64| QueueTotals {
            pushed: at - 1_000,
            ready: at - 1_000,
            oldest_ms: at,
            ..QueueTotals::default()
        };
        let minute =
            |at: u64| Arc::new(QueueMinute { at, queues: vec![("mail".into(), totals(at))] });
        let minutes = [1_000, 1_020, 1_080, 1_140, 1_200].map(minute).to_vec();
        let now = QueueStatus {
            name: "mail".into(),
            pushed_total: 230,
            oldest_ms: 7,
            ..QueueStatus::default()
        };
        QueueHistory::new(minutes, 1_230, vec![now])
    }

    #[test]
    fn sums_are_differences_of_totals() {
        let history = history();
        let pushed = |from, to| history.sum("mail", Period { from, to }).map(|sum| sum.pushed);
        assert_eq!(pushed(1_080, 1_231), Some(150), "until now");
        assert_eq!(pushed(1_020, 1_141), Some(120));
        assert_eq!(pushed(1_080, 1_141), Some(60));
        assert_eq!(pushed(0, 1_231), Some(230), "since the start");
        assert_eq!(pushed(0, 1_000), None, "before the start");
        assert_eq!(history.sum("other", Period { from: 0, to: 1_231 }), Some(QueueSum::default()));
        let all = history.sum("mail", Period { from: 1_000, to: 1_231 }).expect("kept");
        assert_eq!((all.oldest_ms, all.ready), (1_200, 200));
    }

    #[test]
    fn comparison_with_partly_missing_period_is_left_out() {
        let history = history();
        let period = Period { from: 1_140, to: 1_231 };
        let against = |from| Resolved { period, against: Ok(Some(Period { from, to: 1_140 })) };
        assert!(history.sums("mail", &against(1_000)).1.is_some());
        assert_eq!(history.sums("mail", &against(900)).1, None);
        assert!(history.missing(Period { from: 900, to: 1_231 }).contains("25 hours"));
        assert_eq!(history.missing(period), "");
    }

    #[test]
    fn pieces_of_timeline_are_whole_and_bounded() {
        let history = history();
        let (from, step, pieces) = history.timeline("mail", Period { from: 1_010, to: 1_231 });
        let pushed: Vec<_> = pieces.iter().map(|piece| piece.map(|sum| sum.pushed)).collect();
        assert_eq!((from, step), (960, 60));
        assert_eq!(pushed, [Some(20), Some(60), Some(60), Some(60), None]);
        for days in [1, 7, 365, 3_650] {
            let period = Period { from: 0, to: days * 86_400 };
            assert!(history.timeline("mail", period).2.len() as u64 <= PIECES_MAX + 2, "{days}");
        }
    }
}
