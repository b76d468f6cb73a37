//! All figures of one server: what batches bring is added up here, what readers show is read here.

use crate::batch::{Alike, Batch, Sums};
use crate::capped::{Capped, OTHER};
use crate::finished::{Finished, Model};
use crate::fold::fold;
use crate::histogram::Counting;
use crate::kept::{Kept, KeptRequests};
use crate::pinba::Packet;
use crate::redaction::Redaction;
use crate::report::{Entry, Report};
use crate::route::{Costs, RouteFigures};
use crate::saving::Saving;
use crate::series::Series;
use crate::sink::{Seen, Witness};
use crate::sources::{SourceFigures, Sources};
use crate::store::Minute;
use std::borrow::Cow;
use std::sync::Arc;

/// Seconds that are kept one by one.
const SECONDS_MAX: usize = 15 * 60;
const MINUTE_S: u64 = 60;
/// Slow and failed requests of a minute that go to disk.
const KEPT_OF_MINUTE_MAX: usize = 100;
/// Minutes that are kept one by one: a day.
const MINUTES_MAX: usize = 24 * 60;

/// Requests of one kind from which on it is cheaper to add them up first.
const ALIKE_MIN: usize = 4;

/// The part of all routes that other machines may bring: the rest is this server's own.
const ELSEWHERE_PART: usize = 2;

/// What an aggregate keeps at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Routes that are told apart.
    pub routes_max: usize,
    /// Wall time from which on a request's details are kept, ns.
    pub slow_ns: u64,
}

/// Everything since the start, and the last minutes one by one.
#[derive(Clone, Debug)]
pub struct Aggregate {
    limits: Limits,
    routes: Capped<RouteFigures>,
    by_model: [Costs; Model::ALL.len()],
    seconds: Series,
    minutes: Series,
    kept: KeptRequests,
    this_minute: ThisMinute,
    /// A route's name while it is made.
    name: String,
    redaction: Redaction,
    witness: Option<Arc<dyn Witness>>,
    packed: Packed,
    sources: Sources,
    routes_elsewhere: usize,
    malformed_reports: u64,
    dropped_entries: u64,
}

/// Room for what packed requests come to while they are added up.
#[derive(Clone, Debug, Default)]
struct Packed {
    counting: Counting,
    sums: Sums,
    /// Of ids that the witness looks for.
    marks: Vec<u64>,
    by_worker: Vec<(u32, u64)>,
}

/// What goes to disk when the minute is over.
#[derive(Clone, Debug)]
struct ThisMinute {
    at: u64,
    kept: Vec<Arc<Kept>>,
}

impl ThisMinute {
    fn new(now: u64) -> ThisMinute {
        ThisMinute { at: now - now % MINUTE_S, kept: Vec::new() }
    }
}

impl Aggregate {
    /// Without any figures.
    #[must_use]
    pub fn new(limits: Limits) -> Aggregate {
        Aggregate {
            limits,
            routes: Capped::new(limits.routes_max),
            by_model: Default::default(),
            seconds: Series::new(1, SECONDS_MAX),
            minutes: Series::new(MINUTE_S, MINUTES_MAX),
            kept: KeptRequests::default(),
            this_minute: ThisMinute::new(0),
            name: String::new(),
            redaction: Redaction::default(),
            witness: None,
            packed: Packed::default(),
            sources: Sources::default(),
            routes_elsewhere: 0,
            malformed_reports: 0,
            dropped_entries: 0,
        }
    }

    /// Without any figures; values of these names are kept nowhere.
    #[must_use]
    pub fn redacting(limits: Limits, redaction: Redaction) -> Aggregate {
        Aggregate { redaction, ..Aggregate::new(limits) }
    }

    /// The same; this one is told of each request of this server.
    #[must_use]
    pub fn witnessed(self, witness: Option<Arc<dyn Witness>>) -> Aggregate {
        Aggregate { witness, ..self }
    }

    /// Adds requests that ended at about `now`, seconds since 1970.
    pub fn take(&mut self, batch: &Batch, now: u64) {
        self.take_and(batch, now, |_| ());
    }

    /// As [`Aggregate::take`]; each that is not packed is shown to `tell` when it is added.
    pub fn take_and(&mut self, batch: &Batch, now: u64, mut tell: impl FnMut(&Seen)) {
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
            let named = entries.iter().rev().find_map(|entry| match entry {
                Entry::Route(name) => Some(*name),
                _ => None,
            });
            let mut name = std::mem::take(&mut self.name);
            let route = named.unwrap_or_else(|| route_of(&finished, &mut name));
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
            place(&mut self.routes, route, sums.requests).count_all(sums);
            self.by_model[common.numbers.model as usize].add_sums(sums);
            self.seconds.at(now).add_sums(sums);
            self.minutes.at(now).add_sums(sums);
        }
        self.name = name;
    }

    /// Adds CPU time that the server itself has used until `now`.
    pub fn take_front(&mut self, ns: u64, now: u64) {
        for series in [&mut self.seconds, &mut self.minutes] {
            let moment = series.at(now);
            moment.front_ns = moment.front_ns.saturating_add(ns);
        }
    }

    /// Adds a request of another machine, as its packet tells of it. Its route is its script's name; packets within the
    /// packet are the caller's.
    pub fn take_packet(&mut self, packet: &Packet, now: u64) {
        let numbers = packet.numbers();
        let path = packet.script();
        let mut entries = packet.entries();
        for entry in &mut entries {
            self.redaction.apply(entry);
        }
        let finished = Finished { numbers, path, ..Finished::default() };
        let folded = fold(path);
        let route = if self.has_room_elsewhere(&folded) { &*folded } else { OTHER };
        self.add(&Seen { finished: &finished, route, entries: &entries, now, scene: None });
        self.sources.add(&packet.sender(), &numbers, now);
    }

    /// Whether a route that another machine tells of is told apart.
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
        let route = place(&mut self.routes, name, 1);
        route.count(numbers);
        let mut waiting_ns = 0_u64;
        for entry in entries {
            route.add(entry);
            if let Entry::Wait(wait) = entry {
                waiting_ns = waiting_ns.saturating_add(wait.ns);
            }
        }
        route.costs.add_waiting(numbers, waiting_ns);
        let of_model = &mut self.by_model[numbers.model as usize];
        of_model.add(numbers);
        of_model.add_waiting(numbers, waiting_ns);
        self.seconds.at(now).add(numbers, waiting_ns);
        self.minutes.at(now).add(numbers, waiting_ns);
        if numbers.wall_ns >= self.limits.slow_ns || numbers.status >= 500 {
            let kept = Kept { scene: scene.cloned(), ..Kept::new(finished, name, entries) };
            let kept = Arc::new(kept);
            if self.this_minute.kept.len() < KEPT_OF_MINUTE_MAX {
                self.this_minute.kept.push(Arc::clone(&kept));
            }
            self.kept.put(kept);
        }
    }

    /// The minute that is over at `now`, once, if anything happened in it. To be asked before each [`Aggregate::take`].
    pub fn close_minute(&mut self, now: u64) -> Option<Minute> {
        if now - now % MINUTE_S <= self.this_minute.at {
            return None;
        }
        let ended = std::mem::replace(&mut self.this_minute, ThisMinute::new(now));
        let routes = self.routes.named_places_mut();
        let routes: Vec<_> = routes
            .filter_map(|(name, route)| Some((Box::from(name), route.close_minute()?)))
            .collect();
        let minute = Minute { at: ended.at, routes, events: Vec::new(), kept: ended.kept };
        (!minute.routes.is_empty()).then_some(minute)
    }

    /// What can be read of a report.
    fn entries<'a>(&mut self, report: &'a [u8]) -> Vec<Entry<'a>> {
        let mut entries = Vec::new();
        for entry in Report::new(report) {
            match entry {
                Ok(Entry::Dropped(n)) => self.dropped_entries += u64::from(n),
                Ok(mut entry) => {
                    self.redaction.apply(&mut entry);
                    entries.push(entry);
                }
                Err(_) => self.malformed_reports += 1,
            }
        }
        entries
    }

    /// Of all requests: each is of one model.
    #[must_use]
    pub fn total(&self) -> Costs {
        let mut total = Costs::default();
        self.by_model.iter().for_each(|of_model| total.merge(of_model));
        total
    }

    /// Of the requests that ran so.
    #[must_use]
    pub fn of_model(&self, model: Model) -> &Costs {
        &self.by_model[model as usize]
    }

    /// What it saves a pool to boot ahead, where requests to the same routes ran both ways; of all, where there is one (an empty name).
    #[must_use]
    pub fn saving(&self, pool: &str) -> Option<Saving> {
        // Not of the others: what is among them is not alike.
        let named = self.routes.named_places().skip(1);
        let is_pools = |route: &str| {
            pool.is_empty() || route.strip_prefix(pool).is_some_and(|rest| rest.starts_with(": "))
        };
        let own = named.filter(|(route, _)| is_pools(route));
        Saving::of(own.map(|(_, route)| route.both_ways()))
    }

    /// (host, site, figures) of other machines that tell of their requests.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str, &SourceFigures)> {
        self.sources.iter()
    }

    /// (name, figures) of each route, `(other)` last.
    pub fn routes(&self) -> impl Iterator<Item = (&str, &RouteFigures)> {
        self.routes.iter()
    }

    /// The figures of one route.
    #[must_use]
    pub fn route(&self, name: &str) -> Option<&RouteFigures> {
        self.routes.get(name)
    }

    /// Routes that are told apart, and requests to those that are not.
    #[must_use]
    pub fn routes_used(&self) -> (usize, u64) {
        (self.routes.len(), self.routes.beyond())
    }

    /// The last seconds.
    #[must_use]
    pub fn seconds(&self) -> &Series {
        &self.seconds
    }

    /// The last minutes.
    #[must_use]
    pub fn minutes(&self) -> &Series {
        &self.minutes
    }

    /// Slow and failed requests, the latest first.
    #[must_use]
    pub fn kept(&self) -> &KeptRequests {
        &self.kept
    }

    /// Reports that broke their grammar, and entries that did not fit into theirs.
    #[must_use]
    pub fn lost_entries(&self) -> (u64, u64) {
        (self.malformed_reports, self.dropped_entries)
    }
}

/// Where a route's figures are, for so many requests. One that is called `(other)` is among the others, and counted as one of
/// them.
fn place<'a>(
    routes: &'a mut Capped<RouteFigures>,
    name: &str,
    requests: u64,
) -> &'a mut RouteFigures {
    if name == OTHER { routes.other(requests) } else { routes.entry_for(name, requests) }
}

/// A route's name with that of its pool, where there are several: two pools' `/` are two routes.
fn of_pool(pool: &str, route: &str) -> Option<String> {
    (!pool.is_empty()).then(|| format!("{pool}: {route}"))
}

/// The route of a request whose application says none: `index.php /users/{n}`. Its script is left out where the path says
/// it too. `name` is room for it.
fn route_of<'a>(finished: &Finished<'a>, name: &'a mut String) -> &'a str {
    route_by_path(finished.script, finished.path, name)
}

/// The same of a script and a path, for who knows no more of a request.
pub fn route_by_path<'a>(script: &str, path: &'a str, name: &'a mut String) -> &'a str {
    let path = fold(path);
    let script = script.trim_start_matches('/');
    if script.is_empty() || path.trim_start_matches('/').starts_with(script) {
        return match path {
            Cow::Borrowed(path) => path,
            Cow::Owned(path) => {
                *name = path;
                name
            }
        };
    }
    name.clear();
    for part in [script, " ", &path] {
        name.push_str(part);
    }
    name
}

#[cfg(test)]
mod tests;
