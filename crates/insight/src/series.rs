//! The last seconds and minutes of the whole server: rings of a fixed length.

use crate::batch::Sums;
use crate::finished::Numbers;
use crate::heat_map::{HEAT_ROWS, heat_row};
use std::collections::VecDeque;

/// Figures of one second or one minute. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Start, in seconds since 1970.
    pub at: u64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Wall time of the requests.
    pub wall_ns: u64,
    /// Time of the requests in the queue.
    pub queue_ns: u64,
    /// Longest time in the queue.
    pub queue_ns_max: u64,
    /// CPU time of the requests.
    pub cpu_ns: u64,
    /// Part of the CPU time spent in rollbacks.
    pub rollback_ns: u64,
    /// Time that PHP waited.
    pub waiting_ns: u64,
    /// CPU time of the server itself.
    pub front_ns: u64,
    /// Requests by row of the latency heat map.
    pub heat: [u32; HEAT_ROWS],
}

impl Moment {
    pub(crate) fn add(&mut self, numbers: &Numbers, waiting_ns: u64) {
        self.requests += 1;
        self.errors += u64::from(numbers.status >= 500);
        self.wall_ns = self.wall_ns.saturating_add(numbers.wall_ns);
        self.queue_ns = self.queue_ns.saturating_add(numbers.queue_ns);
        self.queue_ns_max = self.queue_ns_max.max(numbers.queue_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(numbers.cpu_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(numbers.rollback_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(waiting_ns);
        let row = &mut self.heat[heat_row(numbers.wall_ns)];
        *row = row.saturating_add(1);
    }

    /// Adds requests of one kind; none of them waited or failed.
    pub(crate) fn add_sums(&mut self, sums: &Sums) {
        self.requests += sums.requests;
        self.wall_ns = self.wall_ns.saturating_add(sums.wall.sum_ns);
        self.queue_ns = self.queue_ns.saturating_add(sums.queue_ns);
        self.queue_ns_max = self.queue_ns_max.max(sums.queue_ns_max);
        self.cpu_ns = self.cpu_ns.saturating_add(sums.cpu_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(sums.rollback_ns);
        for (row, requests) in self.heat.iter_mut().zip(sums.heat) {
            *row = row.saturating_add(requests);
        }
    }
}

/// Moments of equal length, latest last. A period without activity has no moment.
#[derive(Clone, Debug)]
pub struct Series {
    step: u64,
    moments_max: usize,
    moments: VecDeque<Moment>,
}

impl Series {
    /// Creates a series of moments of `step` seconds, of which the last `moments_max` are kept.
    #[must_use]
    pub fn new(step: u64, moments_max: usize) -> Series {
        Series { step, moments_max, moments: VecDeque::new() }
    }

    /// Returns the moment for a time in seconds since 1970. If the clock was set back, returns the
    /// last moment.
    pub(crate) fn at(&mut self, now: u64) -> &mut Moment {
        let at = now - now % self.step;
        let is_new = self.moments.back().is_none_or(|last| last.at < at);
        if is_new {
            if self.moments.len() == self.moments_max {
                self.moments.pop_front();
            }
            self.moments.push_back(Moment { at, ..Moment::default() });
        }
        self.moments.back_mut().expect("there is one now")
    }

    /// Returns the length of a moment in seconds.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the kept moments in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Moment> {
        self.moments.iter()
    }

    /// Returns the moments that began at `from` or later.
    pub fn since(&self, from: u64) -> impl Iterator<Item = &Moment> {
        let first = self.moments.partition_point(|m| m.at < from);
        self.moments.range(first..)
    }
}

#[cfg(test)]
mod tests {
    use super::Series;
    use crate::finished::Numbers;

    #[test]
    fn series_keeps_its_last_moments() {
        let mut series = Series::new(60, 3);
        for now in [0, 59, 60, 180, 185, 100, 300] {
            series.at(now).add(&Numbers::default(), 0);
        }
        let kept: Vec<_> = series.iter().map(|m| (m.at, m.requests)).collect();
        assert_eq!(kept, [(60, 1), (180, 3), (300, 1)]);
        assert_eq!(series.since(180).count(), 2);
        assert_eq!(series.since(301).count(), 0);
    }
}
