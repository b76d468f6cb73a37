//! All figures of one server: batches are added up here, and readers get their data here.

use crate::batch::{Alike, Batch, Sums};
use crate::bounded_map::{Capped, OTHER};
use crate::bounds::Bounds;
use crate::checkpoint_savings::Saving;
use crate::errors::ErrorGroups;
use crate::finished::{Finished, Model};
use crate::histogram::Counting;
use crate::observation::{Seen, Witness};
use crate::recent_parts::{Part, RecentParts};
use crate::recent_requests::{RecentRequest, RecentRequests};
use crate::redaction::{CleanStatements, Redaction, cleaned};
use crate::releases::Releases;
use crate::report::{Entry, Report};
use crate::route::{Costs, RouteFigures};
use crate::route_name::{named_route, of_pool, route_of};
use crate::series::Series;
use crate::sources::{SourceFigures, Sources};
use crate::store::Minute;
use samovar_log::fold;
use std::sync::Arc;

/// Number of single seconds that are kept.
const SECONDS_MAX: usize = 15 * 60;
const MINUTE_S: u64 = 60;
/// Maximum number of requests per minute that are written to disk, half of them slow and half of
/// them failed.
const KEPT_OF_MINUTE_MAX: usize = 200;
/// Number of single minutes that are kept: a day.
const MINUTES_MAX: usize = 24 * 60;

/// Minimum number of requests of one kind for which adding them up first is cheaper.
const ALIKE_MIN: usize = 4;

/// Divisor of `routes_max` for other machines: they may use at most half of the routes. The rest is
/// reserved for this server.
const ELSEWHERE_PART: usize = 2;

/// Divisor of `routes_max` for routes whose first request was an error of the client. The rest is
/// reserved for requests that succeed.
const CLIENT_ERRORS_PART: usize = 2;
/// Minimum time between two evictions, s. Inventing paths must not keep the thread busy.
const EVICTION_PAUSE_S: u64 = 10;
/// Divisor of `routes_max` for the routes that are evicted at once.
const EVICTED_PART: usize = 8;
/// Minimum number of requests without an error that protects a route from eviction.
const ESTABLISHED_MIN: u64 = 10;
/// Time for which the table of routes counts as full after it rejected a route, s.
const FULL_S: u64 = 10 * 60;

/// Limits of an aggregate.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of separate routes.
    pub routes_max: usize,
    /// Minimum wall time of a request whose details are kept, ns.
    pub slow_ns: u64,
}

/// Totals since the start, and the last seconds and minutes one by one.
#[derive(Clone, Debug)]
pub struct Aggregate {
    limits: Limits,
    routes: Capped<RouteFigures>,
    by_model: [Costs; Model::ALL.len()],
    seconds: Series,
    minutes: Series,
    kept: RecentRequests,
    errors: ErrorGroups,
    this_minute: ThisMinute,
    parts: RecentParts,
    /// Buffer for a route's name.
    name: String,
    redaction: Redaction,
    releases: Releases,
    bounds: Bounds,
    clean_statements: CleanStatements,
    witness: Option<Arc<dyn Witness>>,
    packed: Packed,
    sources: Sources,
    routes_elsewhere: usize,
    /// Time of the last request whose route had no room.
    rejected_at: Option<u64>,
    evicted_at: Option<u64>,
    malformed_reports: u64,
    dropped_entries: u64,
}

/// Buffers for adding up packed requests.
#[derive(Clone, Debug, Default)]
struct Packed {
    counting: Counting,
    sums: Sums,
    /// Marks of the ids that the witness looks for.
    marks: Vec<u64>,
    by_worker: Vec<(u32, u64)>,
}

/// Slow and failed requests that are written to disk when the minute is over.
#[derive(Clone, Debug)]
struct ThisMinute {
    at: u64,
    /// Begin of its current part: a reload divides a minute.
    since: u64,
    kept: RecentRequests,
}

impl ThisMinute {
    fn new(now: u64) -> ThisMinute {
        let kept = RecentRequests::new(KEPT_OF_MINUTE_MAX);
        ThisMinute { at: now - now % MINUTE_S, since: now, kept }
    }
}

impl Aggregate {
    /// Creates an empty aggregate.
    #[must_use]
    pub fn new(limits: Limits) -> Aggregate {
        Aggregate {
            limits,
            routes: Capped::new(limits.routes_max),
            by_model: Default::default(),
            seconds: Series::new(1, SECONDS_MAX),
            minutes: Series::new(MINUTE_S, MINUTES_MAX),
            kept: RecentRequests::default(),
            errors: ErrorGroups::default(),
            this_minute: ThisMinute::new(0),
            parts: RecentParts::default(),
            name: String::new(),
            redaction: Redaction::default(),
            releases: Releases::default(),
            bounds: Bounds::default(),
            clean_statements: CleanStatements::default(),
            witness: None,
            packed: Packed::default(),
            sources: Sources::default(),
            routes_elsewhere: 0,
            rejected_at: None,
            evicted_at: None,
            malformed_reports: 0,
            dropped_entries: 0,
        }
    }

    /// Creates an empty aggregate that never stores values of secret names.
    #[must_use]
    pub fn redacting(limits: Limits, redaction: Redaction) -> Aggregate {
        Aggregate { redaction, ..Aggregate::new(limits) }
    }

    /// Sets the releases, whose labels the details of requests have.
    #[must_use]
    pub fn labelled(self, releases: Releases) -> Aggregate {
        Aggregate { releases, ..self }
    }

    /// Sets the bounds of exported histograms.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> Aggregate {
        Aggregate { bounds, ..self }
    }

    /// Returns the bounds of exported histograms.
    #[must_use]
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Sets the witness, which is notified of each request of this server.
    #[must_use]
    pub fn witnessed(self, witness: Option<Arc<dyn Witness>>) -> Aggregate {
        Aggregate { witness, ..self }
    }

    /// Adds requests that ended at about `now`, in seconds since 1970.
    pub fn take(&mut self, batch: &Batch, now: u64) {
        self.take_and(batch, now, |_| ());
    }

    /// Like [`Aggregate::take`], but also passes each request that is not packed to `tell` when it
    /// is added.
    pub fn take_and(&mut self, batch: &Batch, now: u64, mut tell: impl FnMut(&Seen)) {
        if self.this_minute.at == 0 {
            self.this_minute = ThisMinute::new(now);
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.marks.clear();
        if let Some(witness) = &self.witness {
            witness.looks_for(&mut packed.marks);
            packed.marks.sort_unstable();
        }
        batch.alike().for_each(|alike| self.take_alike(&alike, &mut packed, now));
        self.packed = packed;
        for finished in batch.whole() {
            let entries = self.entries(finished.report);
            let clean = self.redaction.clean(&entries, &mut self.clean_statements);
            let entries = clean.as_deref().map_or(entries, cleaned);
            let path = self.redaction.text(finished.path);
            let finished = Finished { path: &path, ..finished };
            let mut name = std::mem::take(&mut self.name);
            let route = named_route(&entries).unwrap_or_else(|| route_of(&finished, &mut name));
            let of_pool = of_pool(finished.pool, route);
            let route = of_pool.as_deref().unwrap_or(route);
            let scene = self.witness.as_ref().and_then(|w| w.ended(&finished, route));
            let (finished, entries, scene) = (&finished, &entries[..], scene.as_ref());
            let seen = Seen { finished, route, entries, now, scene };
            self.add(&seen);
            tell(&seen);
            self.name = name;
        }
    }

    fn take_alike(&mut self, alike: &Alike, packed: &mut Packed, now: u64) {
        let Packed { counting, sums, marks, by_worker } = packed;
        let common = alike.common();
        let mut name = std::mem::take(&mut self.name);
        let route = route_of(&common, &mut name);
        let of_pool = of_pool(common.pool, route);
        let route = of_pool.as_deref().unwrap_or(route);
        if let Some(witness) = &self.witness {
            alike.by_worker(by_worker);
            alike.marked(marks).for_each(|mark| witness.saw(mark, route));
            witness.counted(&common, by_worker, route);
        }
        if alike.len() < ALIKE_MIN {
            for finished in alike.each() {
                self.add(&Seen { finished: &finished, route, entries: &[], now, scene: None });
            }
        } else {
            alike.sums(counting, sums);
            self.place(route, sums.requests, sums.common.status, now).count_all(sums);
            self.by_model[common.numbers.model as usize].add_sums(sums);
            self.seconds.at(now).add_sums(sums);
            self.minutes.at(now).add_sums(sums);
        }
        self.name = name;
    }

    /// Adds CPU time that the server itself used up to `now`.
    pub fn take_front(&mut self, ns: u64, now: u64) {
        for series in [&mut self.seconds, &mut self.minutes] {
            let moment = series.at(now);
            moment.front_ns = moment.front_ns.saturating_add(ns);
        }
    }

    /// Adds a request of another machine, given as (host, site). The route is the request's path.
    pub(crate) fn take_elsewhere(
        &mut self,
        source: (&str, &str),
        finished: &Finished,
        entries: Vec<Entry>,
        now: u64,
    ) {
        let clean = self.redaction.clean(&entries, &mut self.clean_statements);
        let entries = clean.as_deref().map_or(entries, cleaned);
        let path = self.redaction.text(finished.path).into_owned();
        let finished = &Finished { path: &path, ..*finished };
        let folded = fold(finished.path);
        let route = if self.has_room_elsewhere(&folded) { &*folded } else { OTHER };
        self.add(&Seen { finished, route, entries: &entries, now, scene: None });
        self.sources.add(source, &finished.numbers, now);
    }

    /// Returns whether a route of another machine gets separate figures.
    fn has_room_elsewhere(&mut self, route: &str) -> bool {
        if self.routes.get(route).is_some() {
            return true;
        }
        let has_room = self.routes_elsewhere < self.limits.routes_max / ELSEWHERE_PART;
        self.routes_elsewhere += usize::from(has_room);
        has_room
    }

    fn add(&mut self, seen: &Seen) {
        let Seen { finished, route: name, entries, now, scene } = *seen;
        let numbers = &finished.numbers;
        let route = self.place(name, 1, numbers.status, now);
        route.count(numbers);
        let mut waiting_ns = 0_u64;
        for entry in entries {
            route.add(entry);
            if let Entry::Wait(wait) = entry {
                waiting_ns = waiting_ns.saturating_add(wait.ns);
            }
        }
        route.add_waiting(numbers, waiting_ns);
        let of_model = &mut self.by_model[numbers.model as usize];
        of_model.add(numbers);
        of_model.add_waiting(numbers, waiting_ns);
        self.seconds.at(now).add(numbers, waiting_ns);
        self.minutes.at(now).add(numbers, waiting_ns);
        let is_kept = numbers.wall_ns >= self.limits.slow_ns || numbers.status >= 500;
        if is_kept || entries.iter().any(|entry| matches!(entry, Entry::Error(_))) {
            let kept = RecentRequest {
                scene: scene.cloned(),
                release: self.release_of(finished),
                ..RecentRequest::new(finished, name, entries)
            };
            let kept = Arc::new(kept);
            self.errors.add(&kept, now);
            if !is_kept {
                return; // The request of a reported exception is kept in its group.
            }
            self.this_minute.kept.put(Arc::clone(&kept));
            self.kept.put(kept);
        }
    }

    /// Returns the label of the release that served a request; empty: none was given.
    fn release_of(&self, finished: &Finished) -> Box<str> {
        if finished.numbers.model == Model::Elsewhere {
            return Box::default();
        }
        (&*self.releases.label_of(finished.pool, finished.numbers.generation)).into()
    }

    /// Returns the figures of a route, for this number of requests with this status. A route named
    /// `(other)` is counted as one beyond the limit.
    fn place(&mut self, name: &str, requests: u64, status: u16, now: u64) -> &mut RouteFigures {
        if name == OTHER {
            return self.routes.other(requests);
        }
        if self.has_room(name, status, now) {
            return self.routes.entry_for(name, requests);
        }
        self.rejected_at = Some(now);
        self.routes.other(requests)
    }

    /// Returns whether a route has figures of its own, or gets them.
    fn has_room(&mut self, name: &str, status: u16, now: u64) -> bool {
        let most = self.limits.routes_max;
        // Below this number of routes, each has room: nothing needs to be looked up.
        if self.routes.len() < most / CLIENT_ERRORS_PART || self.routes.get(name).is_some() {
            return true;
        }
        let is_client_error = (400..500).contains(&status);
        if is_client_error {
            return self.routes.len() < most.div_ceil(CLIENT_ERRORS_PART);
        }
        if self.routes.is_full() {
            self.evict(now);
        }
        !self.routes.is_full()
    }

    /// Adds the routes with the fewest successful requests to `(other)`.
    fn evict(&mut self, now: u64) {
        if self.evicted_at.is_some_and(|at| now >= at && now - at < EVICTION_PAUSE_S) {
            return;
        }
        self.evicted_at = Some(now);
        let many = self.limits.routes_max.div_ceil(EVICTED_PART);
        let rank = |route: &RouteFigures| {
            Some(route.successes()).filter(|successes| *successes < ESTABLISHED_MIN)
        };
        for (_, route) in self.routes.evict(many, rank, |route| route.costs.requests) {
            if route.costs.elsewhere == route.costs.requests {
                self.routes_elsewhere = self.routes_elsewhere.saturating_sub(1);
            }
            self.routes.other(0).absorb(&route);
        }
    }

    /// Returns whether routes had no room lately.
    #[must_use]
    pub fn routes_are_full(&self, now: u64) -> bool {
        self.rejected_at.is_some_and(|at| now < at.saturating_add(FULL_S))
    }

    /// Returns the minute that is over at `now`, once, if anything happened in it. Must be called
    /// before each [`Aggregate::take`].
    pub fn close_minute(&mut self, now: u64) -> Option<Minute> {
        let is_over = now - now % MINUTE_S > self.this_minute.at;
        is_over.then(|| self.close(ThisMinute::new(now))).flatten()
    }

    /// Ends the current part of the minute at `now`, as a reload does: the requests of both
    /// releases are then in different parts. Returns the ended part of the minute, if anything
    /// happened in it.
    pub fn close_part(&mut self, now: u64) -> Option<Minute> {
        // A clock that was set back continues the minute.
        let now = now.max(self.this_minute.since);
        if now - now % MINUTE_S > self.this_minute.at {
            return self.close_minute(now);
        }
        self.close(ThisMinute::new(now))
    }

    fn close(&mut self, next: ThisMinute) -> Option<Minute> {
        let is_divided = next.at == self.this_minute.at;
        let until = if is_divided { next.since } else { self.this_minute.at + MINUTE_S };
        let mut ended = std::mem::replace(&mut self.this_minute, next);
        let routes = self.routes.named_places_mut();
        let routes: Vec<_> = routes
            .filter_map(|(name, route)| Some((Box::from(name), route.close_minute()?)))
            .collect();
        let routes = Arc::new(routes);
        if ended.at > 0 {
            self.parts.put(Part::new(ended.since, until, Arc::clone(&routes)), is_divided);
        }
        let minute = Minute { at: ended.at, routes, kept: ended.kept.drain(), ..Minute::default() };
        (!minute.routes.is_empty()).then_some(minute)
    }

    /// Returns the time since which the figures of each route are in memory, and these figures: all
    /// parts that are over, and the current one up to `now`. `None` before the first request.
    #[must_use]
    pub fn recent(&self, now: u64) -> Option<(u64, Vec<Part>)> {
        let mut parts: Vec<Part> = self.parts.iter().cloned().collect();
        if self.this_minute.at > 0 {
            let open = self.routes.named_places();
            let open = open.filter_map(|(name, route)| Some((name.into(), route.open_minute()?)));
            let until = now.max(self.this_minute.since) + 1;
            parts.push(Part::new(self.this_minute.since, until, Arc::new(open.collect())));
        }
        Some((parts.first()?.from, parts))
    }

    /// Returns the readable entries of a report.
    fn entries<'a>(&mut self, report: &'a [u8]) -> Vec<Entry<'a>> {
        let mut entries = Vec::new();
        for entry in Report::new(report) {
            match entry {
                Ok(Entry::Dropped(n)) => self.dropped_entries += u64::from(n),
                Ok(entry) => entries.push(entry),
                Err(_) => self.malformed_reports += 1,
            }
        }
        entries
    }

    /// Returns the costs of all requests. Each request belongs to one model.
    #[must_use]
    pub fn total(&self) -> Costs {
        let mut total = Costs::default();
        self.by_model.iter().for_each(|of_model| total.merge(of_model));
        total
    }

    /// Returns the costs of the requests with this execution model.
    #[must_use]
    pub fn of_model(&self, model: Model) -> &Costs {
        &self.by_model[model as usize]
    }

    /// Returns the saving of a pool's booted application. It is measured on routes with requests of
    /// both kinds. With an empty name, returns the saving of all routes.
    #[must_use]
    pub fn saving(&self, pool: &str) -> Option<Saving> {
        // Skips `(other)`: its requests are of different routes, so a comparison is meaningless.
        let named = self.routes.named_places().skip(1);
        let is_pools = |route: &str| {
            pool.is_empty() || route.strip_prefix(pool).is_some_and(|rest| rest.starts_with(": "))
        };
        let own = named.filter(|(route, _)| is_pools(route));
        Saving::of(own.map(|(_, route)| route.both_ways()))
    }

    /// Returns the other machines that report requests, as (host, site, figures).
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str, &SourceFigures)> {
        self.sources.iter()
    }

    /// Returns each route as (name, figures), `(other)` last.
    pub fn routes(&self) -> impl Iterator<Item = (&str, &RouteFigures)> {
        self.routes.iter()
    }

    /// Returns the figures of one route.
    #[must_use]
    pub fn route(&self, name: &str) -> Option<&RouteFigures> {
        self.routes.get(name)
    }

    /// Returns the number of separate routes, and the number of requests beyond the limit.
    #[must_use]
    pub fn routes_used(&self) -> (usize, u64) {
        (self.routes.len(), self.routes.beyond())
    }

    /// Returns the last seconds.
    #[must_use]
    pub fn seconds(&self) -> &Series {
        &self.seconds
    }

    /// Returns the last minutes.
    #[must_use]
    pub fn minutes(&self) -> &Series {
        &self.minutes
    }

    /// Returns slow and failed requests, latest first.
    #[must_use]
    pub fn kept(&self) -> &RecentRequests {
        &self.kept
    }

    /// Returns the groups of errors.
    #[must_use]
    pub fn errors(&self) -> &ErrorGroups {
        &self.errors
    }

    /// Returns the latest kept request with this id: a slow or failed one, or one with an error.
    #[must_use]
    pub fn request(&self, id: &str) -> Option<&Arc<RecentRequest>> {
        self.kept.find(id).or_else(|| self.errors.find(id))
    }

    /// Returns the number of malformed reports, and of entries that did not fit into a report.
    #[must_use]
    pub fn lost_entries(&self) -> (u64, u64) {
        (self.malformed_reports, self.dropped_entries)
    }
}

#[cfg(test)]
mod tests;
