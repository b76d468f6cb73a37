//! Requests whose details are kept: the last slow and failed ones.

use crate::finished::{Finished, Numbers};
use crate::recorded_error::RecordedError;
use crate::report::{BOOTS_MAX, Boot, Entry, SpanKind, StatementKind, TimedSpan, WaitKind};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of kept requests, half of them slow and half of them failed.
const KEPT_MAX: usize = 500;
/// Number of routes that share a full ring: each has this part of it as its quota.
const ROUTES_IN_RING: usize = 10;

/// A timer of one request; times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentTimer {
    /// Tags of the timer.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// Number of times it was started and stopped.
    pub hits: u32,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time, user and system.
    pub cpu_ns: u64,
}

/// A statement of one request; times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentStatement {
    /// Its language.
    pub kind: StatementKind,
    /// Text without literals.
    pub text: Box<str>,
    /// Number of executions.
    pub calls: u32,
    /// Total time.
    pub ns: u64,
    /// Rows read or changed, as far as they are known.
    pub rows: u64,
    /// Number of executions from the position that executed it most often.
    pub place_calls: u32,
    /// File of this position; empty without one.
    pub file: Box<str>,
    /// Line of this position.
    pub line: u32,
}

/// State of a worker at the time its request became slow, as sampled from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// The system call that it waits in, or that it computes: `in flock of descriptor 7:
    /// /srv/lock`.
    pub blocked: Box<str>,
    /// PHP's call stack, innermost call first.
    pub calls: Vec<Box<str>>,
}

/// One request with all details, but without query string, cookies and body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentRequest {
    /// Id.
    pub id: Box<str>,
    /// Route.
    pub route: Box<str>,
    /// Method.
    pub method: Box<str>,
    /// Path.
    pub path: Box<str>,
    /// Script.
    pub script: Box<str>,
    /// Times, sizes, codes.
    pub numbers: Numbers,
    /// Waits as (kind, peer, times, ns), longest first.
    pub waits: Vec<(WaitKind, Box<str>, u32, u64)>,
    /// Timers.
    pub timers: Vec<RecentTimer>,
    /// Tags.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// Boots of its worker and its script.
    #[serde(default)] // A history may have been written by an older version.
    pub boots: Vec<Boot>,
    /// Position of PHP during the longest wait.
    pub place: Option<Box<str>>,
    /// State of the worker at the time the request became slow.
    #[serde(default)] // A history may have been written by an older version.
    pub scene: Option<Scene>,
    /// Exceptions and fatal errors, the reason for the end of the request first.
    #[serde(default)] // A history may have been written by an older version.
    pub errors: Vec<RecordedError>,
    /// Statements, those with the highest time first.
    #[serde(default)] // A history may have been written by an older version.
    pub statements: Vec<RecentStatement>,
    /// Executions and waits in the order of their start. The indices are those of `statements` and
    /// `waits`.
    #[serde(default)] // A history may have been written by an older version.
    pub timeline: Vec<TimedSpan>,
    /// Time in ns in which the request could run, and other processes did; 0: not measured.
    #[serde(default)] // A history may have been written by an older version.
    pub cpu_delay_ns: u64,
    /// Label of the release that served it; empty: none was given.
    #[serde(default, skip_serializing_if = "str::is_empty")] // Not in older versions.
    pub release: Box<str>,
}

fn owned(tags: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    tags.iter().map(|(name, value)| (Box::from(*name), Box::from(*value))).collect()
}

/// Sorts a list by time, longest first. Returns the new index of each element.
fn sorted<T>(list: &mut Vec<T>, ns: impl Fn(&T) -> u64) -> Vec<u16> {
    let mut order: Vec<_> = std::mem::take(list).into_iter().enumerate().collect();
    order.sort_by_key(|(_, one)| std::cmp::Reverse(ns(one)));
    let mut places = vec![0; order.len()];
    for (place, (before, one)) in order.into_iter().enumerate() {
        places[before] = place as u16;
        list.push(one);
    }
    places
}

impl RecentRequest {
    /// Copies a finished request with its route and the entries of its report.
    #[must_use]
    pub fn new(finished: &Finished, route: &str, entries: &[Entry]) -> RecentRequest {
        let mut kept = RecentRequest {
            id: finished.id.into(),
            route: route.into(),
            method: finished.method.into(),
            path: finished.path.into(),
            script: finished.script.into(),
            numbers: finished.numbers,
            waits: Vec::new(),
            timers: Vec::new(),
            tags: Vec::new(),
            boots: Vec::new(),
            place: None,
            scene: None,
            errors: RecordedError::of_entries(entries),
            statements: Vec::new(),
            timeline: Vec::new(),
            cpu_delay_ns: 0,
            release: Box::default(),
        };
        for entry in entries {
            kept.add(entry);
        }
        let waits = sorted(&mut kept.waits, |(.., ns)| *ns);
        let statements = sorted(&mut kept.statements, |statement| statement.ns);
        kept.timeline.retain_mut(|span| {
            let places = if span.kind == SpanKind::Wait { &waits } else { &statements };
            let place = places.get(usize::from(span.index));
            span.index = place.copied().unwrap_or_default();
            place.is_some()
        });
        kept.timeline.sort_by_key(|span| (span.from_us, std::cmp::Reverse(span.us)));
        kept
    }

    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Wait(w) => self.waits.push((w.kind, w.peer.into(), w.times, w.ns)),
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                self.timers.push(RecentTimer {
                    tags: owned(tags),
                    hits: *hits,
                    wall_ns: *wall_ns,
                    cpu_ns: user_ns.saturating_add(*system_ns),
                });
            }
            Entry::Tag(name, value) => self.tags.push(((*name).into(), (*value).into())),
            Entry::Place(place) => self.place = Some((*place).into()),
            Entry::Boot(boot) if self.boots.len() < BOOTS_MAX => self.boots.push(*boot),
            Entry::Statement(s) => self.statements.push(RecentStatement {
                kind: s.kind,
                text: s.text.into(),
                calls: s.calls,
                ns: s.ns,
                rows: s.rows,
                place_calls: s.place_calls,
                file: s.file.into(),
                line: s.line,
            }),
            Entry::Spans(spans) => self.timeline = spans.iter().collect(),
            Entry::CpuDelay(ns) => self.cpu_delay_ns = (*ns).min(self.numbers.run_ns),
            Entry::Route(_) | Entry::Dropped(_) | Entry::Boot(_) | Entry::Error(_) => {}
        }
    }
}

/// The last slow and the last failed requests, in a ring each: neither pushes out the other.
/// Clones share the requests.
#[derive(Clone, Debug)]
pub struct RecentRequests {
    slow: Ring,
    failed: Ring,
    /// Number of requests so far; orders those of both rings.
    put: u64,
}

impl Default for RecentRequests {
    fn default() -> RecentRequests {
        RecentRequests::new(KEPT_MAX)
    }
}

impl RecentRequests {
    /// Creates rings for this number of requests in total. One route can fill a part of a ring only
    /// while others need the rest.
    pub(crate) fn new(requests_max: usize) -> RecentRequests {
        let ring = Ring { requests: VecDeque::new(), requests_max: requests_max / 2 };
        RecentRequests { slow: ring.clone(), failed: ring, put: 0 }
    }

    pub(crate) fn put(&mut self, kept: Arc<RecentRequest>) {
        self.put += 1;
        let ring = if kept.numbers.status >= 500 { &mut self.failed } else { &mut self.slow };
        ring.put(self.put, kept);
    }

    /// Returns the requests, latest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RecentRequest>> {
        let mut slow = self.slow.requests.iter().rev().peekable();
        let mut failed = self.failed.requests.iter().rev().peekable();
        std::iter::from_fn(move || {
            let is_slow = match (slow.peek(), failed.peek()) {
                (Some((a, _)), Some((b, _))) => a > b,
                (slow, _) => slow.is_some(),
            };
            let next = if is_slow { slow.next() } else { failed.next() };
            next.map(|(_, kept)| kept)
        })
    }

    /// Returns the latest wanted requests, at most `most`, latest first. A flood of one kind does
    /// not hide the other: if both have enough, each has half of the list.
    #[must_use]
    pub fn latest(
        &self,
        most: usize,
        is_wanted: impl Fn(&RecentRequest) -> bool,
    ) -> Vec<Arc<RecentRequest>> {
        let of = |ring: &Ring| -> Vec<(u64, Arc<RecentRequest>)> {
            let wanted = ring.requests.iter().rev().filter(|(_, kept)| is_wanted(kept));
            wanted.take(most).cloned().collect()
        };
        let (mut slow, mut failed) = (of(&self.slow), of(&self.failed));
        slow.truncate(most - failed.len().min(most / 2));
        failed.truncate(most - slow.len());
        slow.append(&mut failed);
        slow.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        slow.into_iter().map(|(_, kept)| kept).collect()
    }

    /// Returns the latest request with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Arc<RecentRequest>> {
        self.iter().find(|kept| &*kept.id == id)
    }

    /// Removes all requests and returns them, oldest first.
    pub(crate) fn drain(&mut self) -> Vec<Arc<RecentRequest>> {
        let mut all: Vec<_> = self.iter().cloned().collect();
        all.reverse();
        self.slow.requests.clear();
        self.failed.requests.clear();
        all
    }
}

/// Requests of one kind with their numbers in the order of arrival, oldest first.
#[derive(Clone, Debug)]
struct Ring {
    requests: VecDeque<(u64, Arc<RecentRequest>)>,
    requests_max: usize,
}

impl Ring {
    fn put(&mut self, number: u64, kept: Arc<RecentRequest>) {
        if self.requests.len() >= self.requests_max {
            self.requests.remove(self.least_needed(&kept.route));
        }
        self.requests.push_back((number, kept));
    }

    /// Returns the index of the oldest request of `route` if that route uses its quota, and of all
    /// routes above their quota otherwise.
    fn least_needed(&self, route: &str) -> usize {
        let quota = self.requests_max / ROUTES_IN_RING;
        let mut of_route: HashMap<&str, usize> = HashMap::new();
        for (_, kept) in &self.requests {
            *of_route.entry(&kept.route).or_default() += 1;
        }
        let uses_quota = of_route.get(route).is_some_and(|count| *count >= quota.max(1));
        let is_needed_least = |(_, kept): &(u64, Arc<RecentRequest>)| {
            if uses_quota { *kept.route == *route } else { of_route[&*kept.route] > quota }
        };
        self.requests.iter().position(is_needed_least).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, KEPT_MAX, RecentRequest, RecentRequests};
    use crate::finished::{Finished, Numbers};
    use crate::report::{Entry, SpanKind, TimedSpan, TimedSpans, Wait, WaitKind};

    #[test]
    fn kept_request_lists_longest_wait_first() {
        let entries = [("a", 1), ("b", 3), ("c", 2)]
            .map(|(peer, ns)| Entry::Wait(Wait { kind: WaitKind::Tcp, peer, times: 1, ns }));
        let kept = RecentRequest::new(&Finished::default(), "r", &entries);
        let peers: Vec<_> = kept.waits.iter().map(|(_, peer, ..)| &**peer).collect();
        assert_eq!(peers, ["b", "c", "a"]);
    }

    #[test]
    fn timeline_refers_to_sorted_lists() {
        let span = |index, from_us| TimedSpan { kind: SpanKind::Wait, index, from_us, us: 1 };
        let bytes = TimedSpans::encode(&[span(1, 20), span(0, 10), span(9, 5)]);
        let wait = |peer, ns| Entry::Wait(Wait { kind: WaitKind::Tcp, peer, times: 1, ns });
        let spans = TimedSpans::of(&bytes).map(Entry::Spans).expect("whole spans");
        let entries = [wait("short", 1), wait("long", 9), spans, Entry::CpuDelay(u64::MAX)];
        let kept = RecentRequest::new(&Finished::default(), "r", &entries);
        let peers: Vec<_> =
            kept.timeline.iter().map(|span| &*kept.waits[usize::from(span.index)].1).collect();
        assert_eq!(peers, ["short", "long"], "by start; one refers to nothing");
        assert_eq!(kept.cpu_delay_ns, 0, "not more than the request took");
    }

    fn kept(id: u64, route: &str, status: u16) -> Arc<RecentRequest> {
        let numbers = Numbers { status, ..Numbers::default() };
        let id = id.to_string();
        let finished = Finished { numbers, id: &id, ..Finished::default() };
        Arc::new(RecentRequest::new(&finished, route, &[]))
    }

    #[test]
    fn kept_requests_beyond_limit_drop_oldest() {
        let mut all = RecentRequests::default();
        for n in 0..=KEPT_MAX as u64 / 2 {
            all.put(kept(n, "r", 200));
        }
        assert_eq!(all.iter().count(), KEPT_MAX / 2);
        assert!(all.find("0").is_none() && all.find("1").is_some());
    }

    #[test]
    fn failures_do_not_push_out_slow_requests() {
        let mut all = RecentRequests::default();
        all.put(kept(0, "/slow", 200));
        (1..=4_000).for_each(|n| all.put(kept(n, "/fails", 500)));
        assert!(all.find("0").is_some());
        all.put(kept(4_001, "/slow", 200));
        let ids: Vec<_> = all.iter().take(2).map(|kept| &*kept.id).collect();
        assert_eq!(ids, ["4001", "4000"], "latest first");
        let oldest_first = all.drain();
        assert_eq!((&*oldest_first[0].id, all.iter().count()), ("0", 0));
    }

    #[test]
    fn flood_of_failures_does_not_hide_slow_requests_in_lists() {
        let mut all = RecentRequests::default();
        (0..9).for_each(|n| all.put(kept(n, "/slow", 200)));
        (9..4_000).for_each(|n| all.put(kept(n, "/fails", 500)));
        let counts = |most: usize| {
            let listed = all.latest(most, |_| true);
            let slow = listed.iter().filter(|kept| kept.numbers.status == 200).count();
            (slow, listed.len() - slow)
        };
        assert_eq!([100, 10, 1, 0].map(counts), [(9, 91), (5, 5), (1, 0), (0, 0)]);
        let ids: Vec<_> = all.latest(4, |_| true).iter().map(|kept| kept.id.clone()).collect();
        assert_eq!(ids, ["3999", "3998", "8", "7"].map(Box::from), "latest first");
        assert_eq!(all.latest(5, |kept| kept.numbers.status == 500).len(), 5);
    }

    #[test]
    fn one_route_does_not_push_out_requests_of_others() {
        let mut all = RecentRequests::default();
        (0..5).for_each(|n| all.put(kept(n, "/rare", 200)));
        (5..4_000).for_each(|n| all.put(kept(n, "/often", 200)));
        (4_000..4_010).for_each(|n| all.put(kept(n, "/late", 200)));
        let of = |route: &str| all.iter().filter(|kept| *kept.route == *route).count();
        assert_eq!((of("/rare"), of("/late"), of("/often")), (5, 10, KEPT_MAX / 2 - 15));
    }
}
