//! Figures of a route in one minute, and their sums over longer periods.

use crate::bounded_map::OTHER;
use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of separate peers, and of sets of timer tags, in a sum over several minutes.
/// One minute is bounded by the route's own limits.
const NAMES_MAX: usize = 128;

/// Total wait for one peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWait {
    /// Kind of wait: `tcp`, `lock` …
    pub kind: String,
    /// Peer of the wait.
    pub peer: String,
    /// Number of waits.
    pub times: u64,
    /// Total time, ns.
    pub ns: u64,
}

/// Sums of a timer with one set of tags. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTimer {
    /// Tags of the timer.
    pub tags: Vec<(String, String)>,
    /// Number of times it was started and stopped.
    pub hits: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time.
    pub cpu_ns: u64,
}

/// One minute of a route, or the sum of several. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RouteMinute {
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Wall time.
    pub wall: Histogram,
    /// CPU time.
    pub cpu: Histogram,
    /// Time in the queue.
    pub queue_ns: u64,
    /// Time in a worker.
    pub run_ns: u64,
    /// Time that PHP waited.
    pub waiting_ns: u64,
    /// Time spent in rollbacks.
    pub rollback_ns: u64,
    /// Highest peak of PHP's memory.
    pub peak_bytes_max: u64,
    /// Bytes of sent bodies.
    pub bytes_out: u64,
    /// Waits of its requests.
    pub waits: Vec<StoredWait>,
    /// Timers of its requests.
    pub timers: Vec<StoredTimer>,
    /// Time in the queue, by request. Empty in rows of version 1.
    #[serde(default)]
    pub queue: Histogram,
    /// Time that PHP waited, by request. Empty in rows of version 1.
    #[serde(default)]
    pub waiting: Histogram,
    /// Further counters.
    #[serde(default)]
    pub counts: Counts,
}

/// Further counters of a minute, in the order of [`crate::Costs`]. Stored as a list, so that a
/// version with more counters reads shorter lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(pub Vec<u64>);

impl Counts {
    /// Adds the counters of another minute.
    pub fn add(&mut self, other: &Counts) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (sum, n) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*n);
        }
    }

    /// Returns the increase since an earlier state.
    #[must_use]
    pub fn since(&self, then: &Counts) -> Counts {
        let then = then.0.iter().copied().chain(std::iter::repeat(0));
        Counts(self.0.iter().zip(then).map(|(now, then)| now.saturating_sub(then)).collect())
    }

    /// Returns a counter; 0 if the row does not have it.
    #[must_use]
    pub fn at(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

impl RouteMinute {
    /// Adds another minute, or another part of the same one.
    pub fn merge(&mut self, other: &RouteMinute) {
        self.merge_sums(other);
        for wait in &other.waits {
            self.add_wait(wait, &wait.peer);
        }
        for timer in &other.timers {
            let is_full = self.timers.len() >= NAMES_MAX;
            match self.timers.iter_mut().find(|known| known.tags == timer.tags) {
                Some(known) => {
                    known.hits += timer.hits;
                    known.wall_ns = known.wall_ns.saturating_add(timer.wall_ns);
                    known.cpu_ns = known.cpu_ns.saturating_add(timer.cpu_ns);
                }
                None if !is_full => self.timers.push(timer.clone()),
                None => {}
            }
        }
    }

    /// Adds a minute of another route: waits by kind only, and no timers.
    pub fn merge_route(&mut self, other: &RouteMinute) {
        self.merge_sums(other);
        for wait in &other.waits {
            self.add_wait(wait, "");
        }
    }

    fn merge_sums(&mut self, other: &RouteMinute) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.wall.merge(&other.wall);
        self.cpu.merge(&other.cpu);
        self.queue.merge(&other.queue);
        self.waiting.merge(&other.waiting);
        self.counts.add(&other.counts);
        for (sum, ns) in [
            (&mut self.queue_ns, other.queue_ns),
            (&mut self.run_ns, other.run_ns),
            (&mut self.waiting_ns, other.waiting_ns),
            (&mut self.rollback_ns, other.rollback_ns),
            (&mut self.bytes_out, other.bytes_out),
        ] {
            *sum = sum.saturating_add(ns);
        }
        self.peak_bytes_max = self.peak_bytes_max.max(other.peak_bytes_max);
    }

    fn add_wait(&mut self, wait: &StoredWait, peer: &str) {
        let place = |waits: &[StoredWait], peer: &str| {
            waits.iter().position(|known| known.kind == wait.kind && known.peer == peer)
        };
        let is_full = self.waits.len() >= NAMES_MAX;
        let known = place(&self.waits, peer)
            .or_else(|| is_full.then(|| place(&self.waits, OTHER)).flatten());
        if let Some(at) = known {
            let known = &mut self.waits[at];
            known.times += wait.times;
            known.ns = known.ns.saturating_add(wait.ns);
        } else {
            let peer = if is_full { OTHER } else { peer }.to_owned();
            self.waits.push(StoredWait { peer, ..wait.clone() });
        }
    }

    /// Returns the wait time by kind, longest first.
    #[must_use]
    pub fn waits_by_kind(&self) -> Vec<(&str, u64)> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for wait in &self.waits {
            let sum = sums.entry(&wait.kind).or_default();
            *sum = sum.saturating_add(wait.ns);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        sums
    }

    /// Returns the approximate memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let histograms = [&self.wall, &self.cpu, &self.queue, &self.waiting];
        let waits = self.waits.iter().map(|w| size_of_val(w) + w.kind.len() + w.peer.len());
        let tags = |timer: &StoredTimer| -> usize {
            let pairs = timer.tags.iter().map(|(n, v)| 2 * size_of_val(n) + n.len() + v.len());
            size_of_val(timer) + pairs.sum::<usize>()
        };
        size_of_val(self)
            + histograms.into_iter().map(|h| h.bytes() - size_of_val(h)).sum::<usize>()
            + waits.sum::<usize>()
            + self.timers.iter().map(tags).sum::<usize>()
            + size_of_val(&*self.counts.0)
    }
}

/// Sums of a route over several minutes: the parts of [`RouteMinute`] that tables of all routes
/// need. Times in ns.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RouteSum {
    /// Number of requests.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Wall time.
    pub wall: Histogram,
    /// CPU time.
    pub cpu: Histogram,
    /// Time in the queue.
    pub queue_ns: u64,
    /// Time in a worker.
    pub run_ns: u64,
    /// Time that PHP waited.
    pub waiting_ns: u64,
    /// Time spent in rollbacks.
    pub rollback_ns: u64,
    /// Highest peak of PHP's memory, in bytes.
    pub peak_bytes_max: u64,
}

impl RouteSum {
    /// Adds another sum.
    pub fn merge(&mut self, other: &RouteSum) {
        self.wall.merge(&other.wall);
        self.cpu.merge(&other.cpu);
        self.add(
            (other.requests, other.errors),
            [other.queue_ns, other.run_ns, other.waiting_ns, other.rollback_ns],
        );
        self.peak_bytes_max = self.peak_bytes_max.max(other.peak_bytes_max);
    }

    /// Adds a minute.
    pub fn merge_minute(&mut self, minute: &RouteMinute) {
        self.wall.merge(&minute.wall);
        self.cpu.merge(&minute.cpu);
        self.add(
            (minute.requests, minute.errors),
            [minute.queue_ns, minute.run_ns, minute.waiting_ns, minute.rollback_ns],
        );
        self.peak_bytes_max = self.peak_bytes_max.max(minute.peak_bytes_max);
    }

    fn add(&mut self, (requests, errors): (u64, u64), [queue, run, waiting, rollback]: [u64; 4]) {
        self.requests += requests;
        self.errors += errors;
        self.queue_ns = self.queue_ns.saturating_add(queue);
        self.run_ns = self.run_ns.saturating_add(run);
        self.waiting_ns = self.waiting_ns.saturating_add(waiting);
        self.rollback_ns = self.rollback_ns.saturating_add(rollback);
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, NAMES_MAX, OTHER, RouteMinute};
    use crate::store::StoredWait;

    #[test]
    fn counters_of_other_versions_are_added() {
        let mut sum = Counts(vec![1, 2]);
        sum.add(&Counts(vec![1, 1, 5]));
        sum.add(&Counts::default());
        assert_eq!(sum, Counts(vec![2, 3, 5]));
        assert_eq!((sum.at(2), sum.at(9)), (5, 0));
        assert_eq!(sum.since(&Counts(vec![2, 1])), Counts(vec![0, 2, 5]));
    }

    #[test]
    fn sum_of_minutes_has_limited_number_of_peers() {
        let mut sum = RouteMinute::default();
        for n in 0..3 * NAMES_MAX {
            let wait =
                StoredWait { kind: "tcp".into(), peer: format!("10.0.0.{n}"), times: 1, ns: 2 };
            let waits = vec![wait];
            sum.merge(&RouteMinute { requests: 1, waits, ..RouteMinute::default() });
        }
        assert_eq!(sum.waits.len(), NAMES_MAX + 1);
        let other = sum.waits.last().expect("one");
        assert_eq!((other.peer.as_str(), other.times), (OTHER, 2 * NAMES_MAX as u64));
        assert_eq!(sum.waits_by_kind(), [("tcp", 6 * NAMES_MAX as u64)]);
        let mut all = RouteMinute::default();
        all.merge_route(&sum);
        assert_eq!(all.waits.len(), 1, "by kind");
        assert!(sum.bytes() > all.bytes());
    }
}
