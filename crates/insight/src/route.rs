//! Sums of one route: costs, waits by peer, timers by tags.

use crate::batch::Sums;
use crate::bounded_map::{Capped, OTHER};
use crate::checkpoint_savings::BothWays;
use crate::finished::{End, Model, Numbers};
use crate::histogram::Histogram;
use crate::report::{Entry, Wait, WaitKind};
use crate::statements::{StatementFigures, Statements};
use crate::store::{Counts, RouteMinute, StoredTimer, StoredWait};

/// Maximum number of separate peers of one route.
pub(crate) const PEERS_MAX: usize = 32;
/// Maximum number of separate sets of timer tags of one route.
pub(crate) const TIMERS_MAX: usize = 64;
/// Maximum number of separate values of request tags of one route.
pub(crate) const TAGS_MAX: usize = 64;

/// Separator between the parts of a key; names do not contain it.
const SEPARATOR: char = '\u{1f}';

/// Sums and histograms of requests. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// Number of requests.
    pub requests: u64,
    /// Requests reported by other machines.
    pub elsewhere: u64,
    /// Requests by the first digit of their status, from 1; other statuses at index 0.
    pub by_class: [u64; 6],
    /// Requests by outcome, in the order of [`End::ALL`].
    pub by_end: [u64; End::ALL.len()],
    /// Runs after the first.
    pub retries: u64,
    /// Wall time.
    pub wall: Histogram,
    /// Time in the queue, of requests that a worker took.
    pub queue: Histogram,
    /// Time in a worker.
    pub run_ns: u64,
    /// CPU time of workers.
    pub cpu: Histogram,
    /// Part of the CPU time spent in rollbacks.
    pub rollback_ns: u64,
    /// Pages copied by rollbacks.
    pub rollback_pages: u64,
    /// Time that PHP spent waiting, for any peer.
    pub waiting_ns: u64,
    /// Wait time of each request that one of our workers took.
    pub waiting: Histogram,
    /// Page faults without disk access.
    pub faults_minor: u64,
    /// Page faults with disk access.
    pub faults_major: u64,
    /// Context switches because the process waited.
    pub switches_voluntary: u64,
    /// Context switches because other processes needed the core.
    pub switches_involuntary: u64,
    /// Highest peak of PHP's memory.
    pub peak_bytes_max: u64,
    /// Sum of the peaks of PHP's memory.
    pub peak_bytes: u64,
    /// Memory of PHP that requests have left in resident workers; negative if they have freed more.
    pub grown_bytes: i64,
    /// Bytes of received bodies.
    pub bytes_in: u64,
    /// Bytes of sent bodies.
    pub bytes_out: u64,
}

impl Costs {
    pub(crate) fn add(&mut self, numbers: &Numbers) {
        let n = numbers;
        self.requests += 1;
        self.by_class[class(n.status)] += 1;
        self.by_end[n.end as usize] += 1;
        self.retries += u64::from(n.retries);
        self.wall.add(n.wall_ns);
        self.elsewhere += u64::from(n.model == Model::Elsewhere);
        if n.worker != 0 {
            // Other machines report no queue time; zeros would distort ours.
            if n.model != Model::Elsewhere {
                self.queue.add(n.queue_ns);
            }
            self.cpu.add(n.cpu_ns);
        }
        self.run_ns = self.run_ns.saturating_add(n.run_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(n.rollback_ns);
        self.rollback_pages += u64::from(n.rollback_pages);
        self.faults_minor += u64::from(n.faults_minor);
        self.faults_major += u64::from(n.faults_major);
        self.switches_voluntary += u64::from(n.switches_voluntary);
        self.switches_involuntary += u64::from(n.switches_involuntary);
        self.peak_bytes_max = self.peak_bytes_max.max(n.peak_bytes);
        self.peak_bytes = self.peak_bytes.saturating_add(n.peak_bytes);
        self.grown_bytes = self.grown_bytes.saturating_add(n.grown_bytes);
        self.bytes_in = self.bytes_in.saturating_add(n.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(n.bytes_out);
    }

    /// Adds requests of one kind; none of them waited.
    pub(crate) fn add_sums(&mut self, sums: &Sums) {
        self.requests += sums.requests;
        self.by_class[class(sums.common.status)] += sums.requests;
        self.by_end[sums.common.end as usize] += sums.requests;
        self.wall.add_counted(&sums.wall);
        self.queue.add_counted(&sums.queue);
        self.cpu.add_counted(&sums.cpu);
        self.waiting.add_zeros(sums.cpu.count());
        self.run_ns = self.run_ns.saturating_add(sums.run_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(sums.rollback_ns);
        self.rollback_pages += sums.rollback_pages;
        self.faults_minor += sums.faults_minor;
        self.switches_voluntary += sums.switches_voluntary;
        self.switches_involuntary += sums.switches_involuntary;
        self.peak_bytes_max = self.peak_bytes_max.max(sums.peak_bytes_max);
        self.peak_bytes = self.peak_bytes.saturating_add(sums.peak_bytes);
        self.bytes_in = self.bytes_in.saturating_add(sums.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(sums.bytes_out);
    }

    /// Adds the time that PHP waited in a request.
    pub(crate) fn add_waiting(&mut self, numbers: &Numbers, ns: u64) {
        self.waiting_ns = self.waiting_ns.saturating_add(ns);
        if numbers.worker != 0 && numbers.model != Model::Elsewhere {
            self.waiting.add(ns);
        }
    }

    /// Adds all costs of another sum.
    pub(crate) fn merge(&mut self, other: &Costs) {
        self.requests += other.requests;
        self.elsewhere += other.elsewhere;
        for (sum, n) in self.by_class.iter_mut().zip(other.by_class) {
            *sum += n;
        }
        for (sum, n) in self.by_end.iter_mut().zip(other.by_end) {
            *sum += n;
        }
        self.retries += other.retries;
        self.wall.merge(&other.wall);
        self.queue.merge(&other.queue);
        self.cpu.merge(&other.cpu);
        self.run_ns = self.run_ns.saturating_add(other.run_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(other.rollback_ns);
        self.rollback_pages += other.rollback_pages;
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
        self.waiting.merge(&other.waiting);
        self.faults_minor += other.faults_minor;
        self.faults_major += other.faults_major;
        self.switches_voluntary += other.switches_voluntary;
        self.switches_involuntary += other.switches_involuntary;
        self.peak_bytes_max = self.peak_bytes_max.max(other.peak_bytes_max);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.grown_bytes = self.grown_bytes.saturating_add(other.grown_bytes);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
    }

    /// Returns the number of responses with a status of 500 or above.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.by_class[5]
    }

    /// Returns the counters that a minute stores as a list. New ones are added at the end only.
    fn counts(&self) -> Counts {
        let single = [
            self.elsewhere,
            self.retries,
            self.rollback_pages,
            self.faults_minor,
            self.faults_major,
            self.switches_voluntary,
            self.switches_involuntary,
            self.bytes_in,
            self.peak_bytes,
            self.grown_bytes.max(0).unsigned_abs(),
            self.grown_bytes.min(0).unsigned_abs(),
        ];
        // Outcomes are last: their number may grow.
        Counts(single.into_iter().chain(self.by_class).chain(self.by_end).collect())
    }

    /// Returns the costs of a minute, or of a sum of minutes.
    #[must_use]
    pub fn of_minute(minute: &RouteMinute) -> Costs {
        const CLASSES_AT: usize = 11;
        const ENDS_AT: usize = CLASSES_AT + 6;
        let counts = &minute.counts;
        let mut costs = Costs {
            requests: minute.requests,
            elsewhere: counts.at(0),
            by_class: std::array::from_fn(|n| counts.at(CLASSES_AT + n)),
            by_end: std::array::from_fn(|n| counts.at(ENDS_AT + n)),
            retries: counts.at(1),
            wall: minute.wall.clone(),
            queue: minute.queue.clone(),
            run_ns: minute.run_ns,
            cpu: minute.cpu.clone(),
            rollback_ns: minute.rollback_ns,
            rollback_pages: counts.at(2),
            waiting_ns: minute.waiting_ns,
            waiting: minute.waiting.clone(),
            faults_minor: counts.at(3),
            faults_major: counts.at(4),
            switches_voluntary: counts.at(5),
            switches_involuntary: counts.at(6),
            peak_bytes_max: minute.peak_bytes_max,
            peak_bytes: counts.at(8),
            grown_bytes: signed(counts.at(9)).saturating_sub(signed(counts.at(10))),
            bytes_in: counts.at(7),
            bytes_out: minute.bytes_out,
        };
        // A row of version 1 has no classes, but the number of errors.
        costs.by_class[5] = minute.errors;
        costs
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the index of a status in [`Costs::by_class`].
fn class(status: u16) -> usize {
    let digit = usize::from(status / 100);
    if digit <= 5 { digit } else { 0 }
}

/// Total wait for one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitFigures {
    /// Number of waits.
    pub times: u64,
    /// Total time, ns.
    pub ns: u64,
}

impl WaitFigures {
    fn add(&mut self, other: &WaitFigures) {
        self.times += other.times;
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Sums of a timer with one set of tags. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerFigures {
    /// Number of times it was started and stopped.
    pub hits: u64,
    /// Number of requests that have it.
    pub requests: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

impl TimerFigures {
    fn add(&mut self, other: &TimerFigures) {
        self.hits += other.hits;
        self.requests += other.requests;
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.user_ns = self.user_ns.saturating_add(other.user_ns);
        self.system_ns = self.system_ns.saturating_add(other.system_ns);
    }
}

/// Extends a list to this length.
fn at_least<T: Clone + Default>(list: &mut Vec<T>, len: usize) -> &mut Vec<T> {
    if list.len() < len {
        list.resize(len, T::default());
    }
    list
}

/// All figures of one route.
#[derive(Clone, Debug)]
pub struct RouteFigures {
    /// Costs of its requests.
    pub costs: Costs,
    /// Time in which requests of at least 5 ms could run, and other processes did.
    pub cpu_delay_ns: u64,
    waits: Capped<WaitFigures>,
    timers: Capped<TimerFigures>,
    tags: Capped<u64>,
    statements: Statements,
    traced: Option<Numbers>,
    both_ways: BothWays,
    closed: Closed,
    /// Figures of the current minute; `None` without requests, because there may be a thousand
    /// routes.
    minute: Option<Box<ThisMinute>>,
    /// Highest peak of the minute before.
    peak_bytes_before: u64,
}

/// Figures of a minute that cannot be computed as the difference of two sums.
#[derive(Clone, Debug, Default)]
struct ThisMinute {
    wall: Histogram,
    cpu: Histogram,
    queue: Histogram,
    waiting: Histogram,
    peak_bytes: u64,
}

/// Sums of a route when its last minute was closed. A minute is the difference to these sums, so
/// most figures of a request are added only once.
#[derive(Clone, Debug, Default)]
struct Closed {
    requests: u64,
    errors: u64,
    queue_ns: u64,
    run_ns: u64,
    waiting_ns: u64,
    rollback_ns: u64,
    bytes_out: u64,
    counts: Counts,
    /// In the order of the route's own waits.
    waits: Vec<WaitFigures>,
    timers: Vec<TimerFigures>,
}

impl Default for RouteFigures {
    fn default() -> RouteFigures {
        RouteFigures {
            costs: Costs::default(),
            cpu_delay_ns: 0,
            waits: Capped::new(PEERS_MAX),
            timers: Capped::new(TIMERS_MAX),
            tags: Capped::new(TAGS_MAX),
            statements: Statements::default(),
            traced: None,
            both_ways: BothWays::default(),
            closed: Closed::default(),
            minute: None,
            peak_bytes_before: 0,
        }
    }
}

impl RouteFigures {
    /// Adds a request's costs.
    pub(crate) fn count(&mut self, numbers: &Numbers) {
        self.costs.add(numbers);
        self.both_ways.add(numbers);
        let minute = self.minute.get_or_insert_default();
        minute.wall.add(numbers.wall_ns);
        if numbers.worker != 0 {
            minute.cpu.add(numbers.cpu_ns);
            if numbers.model != Model::Elsewhere {
                minute.queue.add(numbers.queue_ns);
            }
        }
        minute.peak_bytes = minute.peak_bytes.max(numbers.peak_bytes);
        if numbers.is_sampled {
            self.traced = Some(*numbers);
        }
    }

    /// Adds requests of one kind.
    pub(crate) fn count_all(&mut self, sums: &Sums) {
        self.costs.add_sums(sums);
        self.both_ways.add_all(&sums.common, sums.cpu.count(), sums.cpu.sum_ns);
        let minute = self.minute.get_or_insert_default();
        minute.wall.add_counted(&sums.wall);
        minute.cpu.add_counted(&sums.cpu);
        minute.queue.add_counted(&sums.queue);
        minute.waiting.add_zeros(sums.cpu.count());
        minute.peak_bytes = minute.peak_bytes.max(sums.peak_bytes_max);
    }

    /// Adds the time that PHP waited in a request.
    pub(crate) fn add_waiting(&mut self, numbers: &Numbers, ns: u64) {
        self.costs.add_waiting(numbers, ns);
        if numbers.worker != 0 && numbers.model != Model::Elsewhere {
            self.minute.get_or_insert_default().waiting.add(ns);
        }
    }

    /// Returns the figures since the last call, in the form for the disk; `None` without requests.
    pub(crate) fn close_minute(&mut self) -> Option<RouteMinute> {
        self.peak_bytes_before = self.minute.as_ref().map_or(0, |minute| minute.peak_bytes);
        let minute = self.minute.take()?;
        let fresh = self.closed();
        let then = std::mem::replace(&mut self.closed, fresh);
        Some(self.since(*minute, &then))
    }

    /// Returns the figures since the last minute was closed; `None` without requests.
    pub(crate) fn open_minute(&self) -> Option<RouteMinute> {
        let minute = self.minute.as_deref()?;
        Some(self.since(minute.clone(), &self.closed))
    }

    fn since(&self, minute: ThisMinute, then: &Closed) -> RouteMinute {
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let costs = &self.costs;
        RouteMinute {
            requests: since(costs.requests, then.requests),
            errors: since(costs.errors(), then.errors),
            wall: minute.wall,
            cpu: minute.cpu,
            queue_ns: since(costs.queue.sum_ns(), then.queue_ns),
            run_ns: since(costs.run_ns, then.run_ns),
            waiting_ns: since(costs.waiting_ns, then.waiting_ns),
            rollback_ns: since(costs.rollback_ns, then.rollback_ns),
            peak_bytes_max: minute.peak_bytes,
            bytes_out: since(costs.bytes_out, then.bytes_out),
            waits: self.waits_since(&then.waits),
            timers: self.timers_since(&then.timers),
            queue: minute.queue,
            waiting: minute.waiting,
            counts: costs.counts().since(&then.counts),
        }
    }

    /// Returns all figures since the start, in the form of a minute.
    #[must_use]
    pub fn whole(&self) -> RouteMinute {
        let costs = &self.costs;
        let minute = ThisMinute {
            wall: costs.wall.clone(),
            cpu: costs.cpu.clone(),
            queue: costs.queue.clone(),
            waiting: costs.waiting.clone(),
            peak_bytes: costs.peak_bytes_max,
        };
        self.since(minute, &Closed::default())
    }

    fn closed(&self) -> Closed {
        let costs = &self.costs;
        Closed {
            requests: costs.requests,
            errors: costs.errors(),
            queue_ns: costs.queue.sum_ns(),
            run_ns: costs.run_ns,
            waiting_ns: costs.waiting_ns,
            rollback_ns: costs.rollback_ns,
            bytes_out: costs.bytes_out,
            counts: costs.counts(),
            waits: self.waits.places().copied().collect(),
            timers: self.timers.places().copied().collect(),
        }
    }

    fn waits_since(&self, then: &[WaitFigures]) -> Vec<StoredWait> {
        let all = self.waits.named_places().enumerate();
        let changed = all.filter_map(|(place, (key, now))| {
            let then = then.get(place).copied().unwrap_or_default();
            let times = now.times.saturating_sub(then.times);
            let (kind, peer) = wait_of(key);
            (times > 0).then(|| StoredWait {
                kind: kind.to_owned(),
                peer: peer.to_owned(),
                times,
                ns: now.ns.saturating_sub(then.ns),
            })
        });
        changed.collect()
    }

    fn timers_since(&self, then: &[TimerFigures]) -> Vec<StoredTimer> {
        let all = self.timers.named_places().enumerate();
        let changed = all.filter_map(|(place, (key, now))| {
            let then = then.get(place).copied().unwrap_or_default();
            let hits = now.hits.saturating_sub(then.hits);
            let tags = || tags_of(key).iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
            let cpu_ns = |of: &TimerFigures| of.user_ns.saturating_add(of.system_ns);
            (hits > 0).then(|| StoredTimer {
                tags: tags(),
                hits,
                wall_ns: now.wall_ns.saturating_sub(then.wall_ns),
                cpu_ns: cpu_ns(now).saturating_sub(cpu_ns(&then)),
            })
        });
        changed.collect()
    }

    /// Returns the highest peak of PHP's memory in this minute and in the one before, bytes.
    #[must_use]
    pub fn recent_peak_bytes(&self) -> u64 {
        let now = self.minute.as_ref().map_or(0, |minute| minute.peak_bytes);
        now.max(self.peak_bytes_before)
    }

    /// Returns the number of requests without an error, which are of a real route more probably.
    pub(crate) fn successes(&self) -> u64 {
        self.costs.by_class[..4].iter().sum()
    }

    /// Adds all figures of a route that has no more room, those of its current minute included.
    pub(crate) fn absorb(&mut self, evicted: &RouteFigures) {
        self.costs.merge(&evicted.costs);
        if let Some(minute) = &evicted.minute {
            let own = self.minute.get_or_insert_default();
            own.wall.merge(&minute.wall);
            own.cpu.merge(&minute.cpu);
            own.queue.merge(&minute.queue);
            own.waiting.merge(&minute.waiting);
            own.peak_bytes = own.peak_bytes.max(minute.peak_bytes);
        }
        self.peak_bytes_before = self.peak_bytes_before.max(evicted.peak_bytes_before);
        let (closed, then) = (&mut self.closed, &evicted.closed);
        closed.requests += then.requests;
        closed.errors += then.errors;
        closed.counts.add(&then.counts);
        for (sum, ns) in [
            (&mut closed.queue_ns, then.queue_ns),
            (&mut closed.run_ns, then.run_ns),
            (&mut closed.waiting_ns, then.waiting_ns),
            (&mut closed.rollback_ns, then.rollback_ns),
            (&mut closed.bytes_out, then.bytes_out),
        ] {
            *sum = sum.saturating_add(ns);
        }
        for (n, (key, waits)) in evicted.waits.named_places().enumerate() {
            if waits.times > 0 {
                let instead = || format!("{}{SEPARATOR}{OTHER}", wait_of(key).0);
                let place = self.waits.place_or(key, instead);
                self.waits.at(place).add(waits);
                let known = then.waits.get(n).copied().unwrap_or_default();
                at_least(&mut closed.waits, place + 1)[place].add(&known);
            }
        }
        for (n, (key, timer)) in evicted.timers.named_places().enumerate() {
            if timer.hits > 0 {
                let place = self.timers.place_or(key, || OTHER.to_owned());
                self.timers.at(place).add(timer);
                let known = then.timers.get(n).copied().unwrap_or_default();
                at_least(&mut closed.timers, place + 1)[place].add(&known);
            }
        }
        self.statements.absorb(&evicted.statements);
        self.cpu_delay_ns = self.cpu_delay_ns.saturating_add(evicted.cpu_delay_ns);
        for (key, requests) in evicted.tags.iter().filter(|(_, requests)| **requests > 0) {
            let place = self.tags.place_or(key, || OTHER.to_owned());
            *self.tags.at(place) += requests;
        }
    }

    /// Returns its requests by execution model.
    pub(crate) fn both_ways(&self) -> &BothWays {
        &self.both_ways
    }

    /// Returns the latest request that belongs to a sampled trace.
    #[must_use]
    pub fn traced(&self) -> Option<&Numbers> {
        self.traced.as_ref()
    }

    /// Adds an entry of a report.
    pub(crate) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Wait(Wait { kind, peer, times, ns }) => {
                let key = |peer: &str| format!("{}{SEPARATOR}{peer}", kind.name());
                let place = self.waits.place_or(&key(peer), || key(OTHER));
                let figures = self.waits.at(place);
                figures.times += u64::from(*times);
                figures.ns = figures.ns.saturating_add(*ns);
            }
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                let figures = self.timers.entry(&key(tags));
                figures.hits += u64::from(*hits);
                figures.requests += 1;
                figures.wall_ns = figures.wall_ns.saturating_add(*wall_ns);
                figures.user_ns = figures.user_ns.saturating_add(*user_ns);
                figures.system_ns = figures.system_ns.saturating_add(*system_ns);
            }
            Entry::Tag(name, value) => *self.tags.entry(&key(&[(name, value)])) += 1,
            Entry::Statement(statement) => self.statements.add(statement),
            Entry::CpuDelay(ns) => self.cpu_delay_ns = self.cpu_delay_ns.saturating_add(*ns),
            Entry::Route(_)
            | Entry::Place(_)
            | Entry::Dropped(_)
            | Entry::Boot(_)
            | Entry::Spans(_)
            | Entry::Error(_) => {}
        }
    }

    /// Returns the waits as (kind, peer, figures); beyond the limit the peer is `(other)`, for each
    /// kind.
    pub fn waits(&self) -> impl Iterator<Item = (&str, &str, &WaitFigures)> {
        self.waits.iter().map(|(key, figures)| {
            let (kind, peer) = wait_of(key);
            (kind, peer, figures)
        })
    }

    /// Returns the timers as (tags, figures); beyond the limit there are no tags.
    pub fn timers(&self) -> impl Iterator<Item = (Vec<(&str, &str)>, &TimerFigures)> {
        self.timers.iter().map(|(key, figures)| (tags_of(key), figures))
    }

    /// Returns the statements, those with the highest time first. Beyond the limit the text is
    /// `(other)`.
    #[must_use]
    pub fn statements(&self) -> Vec<StatementFigures> {
        self.statements.dearest()
    }

    /// Returns the statements that requests repeat from one position, those with the highest time
    /// first, at most `most`.
    #[must_use]
    pub fn repeated_statements(&self, most: usize) -> Vec<StatementFigures> {
        self.statements.repeated(most)
    }

    /// Returns the tags of requests as (name, value, requests).
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.tags.iter().map(|(key, requests)| {
            let (name, value) = key.split_once(SEPARATOR).unwrap_or((key, ""));
            (name, value, *requests)
        })
    }
}

/// Returns a key that does not depend on the order of the tags.
fn key(tags: &[(&str, &str)]) -> String {
    let clean = |text: &str| text.replace(SEPARATOR, " ");
    let mut pairs: Vec<_> =
        tags.iter().map(|(n, v)| format!("{}{SEPARATOR}{}", clean(n), clean(v))).collect();
    pairs.sort_unstable();
    pairs.join(&SEPARATOR.to_string())
}

fn wait_of(key: &str) -> (&str, &str) {
    key.split_once(SEPARATOR).unwrap_or((WaitKind::Other.name(), key))
}

fn tags_of(key: &str) -> Vec<(&str, &str)> {
    let parts: Vec<_> = key.split(SEPARATOR).collect();
    parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests;
