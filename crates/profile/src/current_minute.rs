//! Samples of the current minute by route, and of requests that still run, whose route is known
//! only when they end.
//!
//! A worker knows its route late, or never: the application may set it at any time, and the last
//! value counts. So the samples of a request are kept under its id until crates/insight has learned
//! its route. A request whose end is never reported is named by its path, as crates/insight names a
//! request without a route.

use crate::sample::Sample;
use foldhash::quality::RandomState;
use samovar_insight::{Finished, Model, OTHER, Scene, id_mark, route_by_path};
use samovar_spy::profile::Profile;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Route name for boots of the application.
pub const BOOT: &str = "(boot)";
/// Route name for the work of workers between requests.
pub const BETWEEN: &str = "(between requests)";

const MINUTE_S: u64 = 60;
/// Maximum number of routes of one minute; the others are counted as one.
const ROUTES_MAX: usize = 512;
/// Maximum number of distinct stacks of one route and minute.
const STACKS_MAX: usize = 5_000;
/// Maximum number of requests whose route is not known yet.
const OPEN_MAX: usize = 1_024;
/// Maximum number of distinct stacks of one such request; a job of an hour has more.
const OPEN_STACKS_MAX: usize = 2_000;
/// Maximum number of remembered requests that have ended; their workers may still run code after
/// the response.
const ENDED_MAX: usize = 256;
/// Maximum number of workers whose generation is remembered.
const LIVES_MAX: usize = 512;
/// Time in seconds without a sample after which a request counts as ended.
const SILENT_S: u64 = 120;

/// Samples of one route in a minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Pool of the workers; empty for the default pool.
    pub(crate) pool: Box<str>,
    /// Generation in the pool's own count.
    pub(crate) generation: u64,
    pub(crate) model: Model,
    /// Requests that ended in this minute; 0 if requests are not counted.
    pub(crate) requests: u64,
    pub(crate) profile: Profile,
}

impl Row {
    pub(crate) fn is_of(&self, pool: &str, generation: u64, model: Model) -> bool {
        (self.generation, self.model) == (generation, model) && *self.pool == *pool
    }
}

/// Rows by route, in the order of arrival.
#[derive(Debug, Default)]
struct Rows {
    named: Vec<(Box<str>, Vec<Row>)>,
    places: HashMap<Box<str>, usize, RandomState>,
    /// Index of the last route. Most samples repeat the previous route, and a comparison is cheaper
    /// than a lookup.
    last: usize,
}

impl Rows {
    fn entry(&mut self, route: &str) -> &mut Vec<Row> {
        if self.named.get(self.last).is_none_or(|(name, _)| **name != *route) {
            self.last = self.place(route);
        }
        &mut self.named[self.last].1
    }

    /// Returns the index of a route. Routes beyond the limit share one.
    fn place(&mut self, route: &str) -> usize {
        if let Some(place) = self.places.get(route) {
            return *place;
        }
        if self.named.len() >= ROUTES_MAX && route != OTHER {
            return self.place(OTHER);
        }
        self.places.insert(route.into(), self.named.len());
        self.named.push((route.into(), Vec::new()));
        self.named.len() - 1
    }
}

/// A completed minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Minute {
    /// Start of the minute, in seconds since 1970.
    pub(crate) at: u64,
    pub(crate) rows: Vec<(Box<str>, Row)>,
}

#[derive(Debug)]
struct Open {
    row: Row,
    /// Route name to use if no other is reported.
    route: String,
    seen_at: u64,
    scene: Option<Scene>,
    /// Mark of the request's id.
    mark: u64,
}

/// Samples that are not stored yet.
#[derive(Debug)]
pub(crate) struct Running {
    /// Whether ends of requests are reported.
    is_told: bool,
    /// Name of the default pool if there are several pools.
    default_pool: &'static str,
    minute: u64,
    rows: Rows,
    open: HashMap<Box<str>, Open, RandomState>,
    ended: VecDeque<(Box<str>, Box<str>)>,
    /// Pool, incarnation and generation of workers, latest last.
    lives: VecDeque<(Box<str>, u32, u64)>,
}

impl Running {
    pub(crate) fn new(is_told: bool, default_pool: &'static str, now: u64) -> Running {
        Running {
            is_told,
            default_pool,
            minute: now - now % MINUTE_S,
            rows: Rows::default(),
            open: HashMap::default(),
            ended: VecDeque::new(),
            lives: VecDeque::new(),
        }
    }

    /// Notes the generation of a worker, identified by its pool and incarnation.
    pub(crate) fn knows(&mut self, pool: &str, life: u32, generation: u64) {
        if self.lives.len() == LIVES_MAX {
            self.lives.pop_front();
        }
        self.lives.push_back((pool.into(), life, generation));
    }

    /// Returns the generation of a worker's incarnation. If it lived too briefly to be noted,
    /// returns the pool's latest generation.
    fn generation_of(&self, pool: &str, life: u32) -> u64 {
        let own = || self.lives.iter().rev().filter(|(its, ..)| **its == *pool);
        let known = own().find(|(_, known, _)| *known == life);
        known.or_else(|| own().next()).map_or(0, |(.., generation)| *generation)
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, sample: &Sample<'_>, now: u64) {
        let (generation, model) = (sample.generation, sample.model);
        let pool = own_name(sample.pool, self.default_pool);
        let Some((id, script, path)) = sample.request else {
            let route = if sample.is_boot { BOOT } else { BETWEEN };
            // The default pool's name is the same with and without other pools.
            let route = named(pool, route);
            return sample.add_to(&mut self.row(&route, pool, generation, model).profile);
        };
        let mut name = String::new();
        if let Some(open) = self.open.get_mut(id)
            && open.row.profile.len() < OPEN_STACKS_MAX
        {
            open.seen_at = now;
            if open.row.is_of(pool, generation, model) {
                return sample.add_to(&mut open.row.profile);
            }
            // Another request with the same id, such as the probe of the next reload; or a request
            // of which only its scene is known.
            let route = named(sample.pool, route_by_path(script, path, &mut name)).into_owned();
            let row = Row { pool: pool.into(), generation, model, ..Row::default() };
            let before = std::mem::replace(&mut open.row, row);
            let route = std::mem::replace(&mut open.route, route);
            sample.add_to(&mut open.row.profile);
            return self.keep(&route, &before);
        }
        if let Some((_, route)) = self.ended.iter().rev().find(|(ended, _)| **ended == *id) {
            let route = route.clone();
            return sample.add_to(&mut self.row(&route, pool, generation, model).profile);
        }
        let route = &*named(sample.pool, route_by_path(script, path, &mut name));
        let is_new = !self.open.contains_key(id);
        if !self.is_told || id.is_empty() || !is_new || self.open.len() >= OPEN_MAX {
            return sample.add_to(&mut self.row(route, pool, generation, model).profile);
        }
        let mut row = Row { pool: pool.into(), generation, model, ..Row::default() };
        sample.add_to(&mut row.profile);
        let mark = id_mark(id.as_bytes());
        let open = Open { row, route: route.to_owned(), seen_at: now, scene: None, mark };
        self.open.insert(id.into(), open);
    }

    /// Notes the state of a request at the time it became slow.
    pub(crate) fn is_slow(
        &mut self,
        pool: &str,
        (id, script, path): (&str, &str, &str),
        scene: Scene,
        now: u64,
    ) {
        if !self.is_told || id.is_empty() {
            return;
        }
        if let Some(open) = self.open.get_mut(id) {
            open.scene = Some(scene);
        } else if self.open.len() < OPEN_MAX {
            let mut name = String::new();
            let route = named(pool, route_by_path(script, path, &mut name)).into_owned();
            let own = own_name(pool, self.default_pool).into();
            let (row, scene) = (Row { pool: own, ..Row::default() }, Some(scene));
            let mark = id_mark(id.as_bytes());
            self.open.insert(id.into(), Open { row, route, seen_at: now, scene, mark });
        }
    }

    /// Handles the end of a request: its samples now belong to this route.
    pub(crate) fn ended(&mut self, finished: &Finished, route: &str) -> Option<Scene> {
        let numbers = &finished.numbers;
        if numbers.worker == 0 || numbers.model == Model::Elsewhere {
            return None;
        }
        self.counted(finished, &[(numbers.worker, 1)], route);
        self.saw(finished.id, route)
    }

    /// Counts ended requests: (worker, number of requests).
    pub(crate) fn counted(&mut self, common: &Finished, by_worker: &[(u32, u64)], route: &str) {
        let pool = own_name(common.pool, self.default_pool);
        for (worker, requests) in by_worker {
            let generation = self.generation_of(common.pool, *worker);
            self.row(route, pool, generation, common.numbers.model).requests += requests;
        }
    }

    /// Returns the marks of the ids of sampled requests that still run.
    pub(crate) fn marks(&self) -> impl Iterator<Item = u64> {
        self.open.values().map(|open| open.mark)
    }

    /// Handles the end of a sampled request, which is identified by its mark.
    pub(crate) fn saw_marked(&mut self, mark: u64, route: &str) {
        let found = self.open.iter().find(|(_, open)| open.mark == mark);
        if let Some(id) = found.map(|(id, _)| id.clone()) {
            // The scene is not needed here: slow requests are reported with their full id.
            let _ = self.saw(&id, route);
        }
    }

    /// Handles the end of a request that may have been sampled.
    pub(crate) fn saw(&mut self, id: &str, route: &str) -> Option<Scene> {
        // Most requests were not sampled.
        let open = if self.open.is_empty() { None } else { self.open.remove(id) }?;
        self.keep(route, &open.row);
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((id.into(), route.into()));
        open.scene
    }

    /// Adds the samples of a request to this route.
    fn keep(&mut self, route: &str, of: &Row) {
        if !of.profile.is_empty() {
            let row = self.row(route, &of.pool, of.generation, of.model);
            row.profile.merge(&of.profile, STACKS_MAX);
        }
    }

    fn row(&mut self, route: &str, pool: &str, generation: u64, model: Model) -> &mut Row {
        let rows = self.rows.entry(route);
        // The route's name includes the pool. Only the route beyond the limit has rows of several
        // pools.
        let at = rows.iter().position(|row| row.is_of(pool, generation, model));
        let at = at.unwrap_or_else(|| {
            rows.push(Row { pool: pool.into(), generation, model, ..Row::default() });
            rows.len() - 1
        });
        &mut rows[at]
    }

    /// Returns the minute that is over at `now`, if there is one.
    pub(crate) fn close_minute(&mut self, now: u64) -> Option<Minute> {
        let minute = now - now % MINUTE_S;
        if minute <= self.minute {
            return None;
        }
        let silent = |open: &Open| open.seen_at + SILENT_S < now;
        let gone: Vec<_> =
            self.open.iter().filter(|(_, o)| silent(o)).map(|(id, _)| id.clone()).collect();
        for id in gone {
            let Some(Open { row, route, .. }) = self.open.remove(&id) else { continue };
            self.keep(&route, &row);
        }
        let at = std::mem::replace(&mut self.minute, minute);
        let rows = std::mem::take(&mut self.rows).named;
        let rows = rows
            .into_iter()
            .flat_map(|(route, rows)| rows.into_iter().map(move |row| (route.clone(), row)));
        Some(Minute { at, rows: rows.collect() })
    }

    /// Returns the current minute as it would be stored if it were over. Running requests are named
    /// by their paths.
    pub(crate) fn copy(&self, mut is_wanted: impl FnMut(&str, &Row) -> bool) -> Minute {
        let known =
            self.rows.named.iter().flat_map(|(route, rows)| rows.iter().map(|r| (&**route, r)));
        let open = self.open.values().map(|open| (&*open.route, &open.row));
        let rows = known.chain(open).filter(|(route, row)| is_wanted(route, row));
        let rows = rows.map(|(route, row)| (Box::from(route), row.clone())).collect();
        Minute { at: self.minute, rows }
    }
}

/// Returns the name under which a pool's rows are stored: empty for the default pool, with and
/// without other pools.
pub(crate) fn own_name<'a>(pool: &'a str, default_pool: &str) -> &'a str {
    if pool == default_pool { "" } else { pool }
}

/// Returns the route's name with its pool. The `/` of two pools are two routes, as in
/// crates/insight.
pub(crate) fn named<'a>(pool: &str, route: &'a str) -> Cow<'a, str> {
    if pool.is_empty() { route.into() } else { format!("{pool}: {route}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::At;
    use samovar_insight::Numbers;
    use samovar_spy::profile::Weight;

    const NOW: u64 = 6_000;

    fn sample(id: &str) -> Sample<'_> {
        Sample {
            pool: "",
            generation: 1,
            model: Model::Script,
            is_boot: false,
            request: Some((id, "/index.php", "/users/42")),
            at: At::NoCode,
            weight: Weight { samples: 1, wall_ns: 10, cpu_ns: 5 },
        }
    }

    fn end(running: &mut Running, id: &str, route: &str) -> Option<Scene> {
        let numbers = Numbers { worker: 7, model: Model::Script, ..Numbers::default() };
        running.ended(&Finished { numbers, id, ..Finished::default() }, route)
    }

    fn told(minute: &Minute) -> Vec<(String, u64, u64)> {
        let row = |(route, row): &(Box<str>, Row)| {
            (route.to_string(), row.requests, row.profile.total().samples)
        };
        let mut all: Vec<_> = minute.rows.iter().map(row).collect();
        all.sort();
        all
    }

    #[test]
    fn samples_of_request_count_for_its_final_route() {
        let mut running = Running::new(true, "default", NOW);
        running.knows("", 7, 1);
        for id in ["a", "a", "b"] {
            running.add(&sample(id), NOW);
        }
        let by_path = ("index.php /users/{n}".to_owned(), 0, 3);
        let open = running.copy(|_, _| true);
        let sum: u64 = told(&open).iter().map(|(.., samples)| samples).sum();
        assert_eq!((told(&open)[0].0.clone(), sum), (by_path.0.clone(), by_path.2));
        end(&mut running, "a", "user_show");
        // The worker still runs after its response.
        running.add(&sample("a"), NOW);
        end(&mut running, "never seen", "user_show");
        let minute = running.close_minute(NOW + 60).expect("it is over");
        assert_eq!(told(&minute), [("user_show".to_owned(), 2, 3)]);
        // The end of `b` is never reported.
        assert_eq!(told(&running.close_minute(NOW + 600).expect("over")), [(by_path.0, 0, 1)]);
    }

    /// The probes of all reloads have one id, and their ends are not reported. The samples of one
    /// probe stay with its pool and generation when the next one is sampled.
    #[test]
    fn samples_of_requests_with_same_id_stay_separate() {
        let mut running = Running::new(true, "default", NOW);
        let probe = sample("reload-probe");
        for (pool, generation) in [("api", 2), ("default", 2), ("api", 3), ("api", 3)] {
            running.add(&Sample { pool, generation, ..probe }, NOW);
        }
        let open = running.copy(|_, _| true);
        let mut found: Vec<_> = open
            .rows
            .iter()
            .map(|(route, row)| (&**route, row.generation, row.profile.total().samples))
            .collect();
        found.sort_unstable();
        let [api, default] = ["api: index.php /users/{n}", "default: index.php /users/{n}"];
        assert_eq!(found, [(api, 2, 1), (api, 3, 2), (default, 2, 1)]);
    }

    #[test]
    fn pools_have_separate_routes_and_incarnations() {
        let mut running = Running::new(true, "default", NOW);
        running.knows("default", 7, 3);
        running.knows("api", 7, 5);
        let other = |id| Sample { pool: "api", generation: 5, ..sample(id) };
        running.add(&other("a"), NOW);
        running.add(&Sample { request: None, at: At::Rollback, ..other("") }, NOW);
        let boot = Sample { request: None, is_boot: true, generation: 3, ..other("") };
        running.add(&Sample { pool: "default", ..boot }, NOW);
        running.add(&boot, NOW);
        running.add(&Sample { pool: "default", generation: 3, ..sample("b") }, NOW);
        let numbers = Numbers { worker: 7, model: Model::Script, ..Numbers::default() };
        for (pool, id) in [("api", "a"), ("default", "b")] {
            let finished = Finished { numbers, id, pool, ..Finished::default() };
            running.ended(&finished, &format!("{pool}: /"));
        }
        let minute = running.close_minute(NOW + 60).expect("it is over");
        let mut seen: Vec<_> = (minute.rows.iter())
            .map(|(route, row)| (&**route, &*row.pool, row.generation, row.requests))
            .collect();
        seen.sort_unstable();
        let expected = [
            (BOOT, "", 3, 0),
            ("api: (between requests)", "api", 5, 0),
            ("api: (boot)", "api", 3, 0),
            ("api: /", "api", 5, 1),
            ("default: /", "", 3, 1),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn route_without_reported_ends_is_named_by_path() {
        let mut running = Running::new(false, "default", NOW);
        running.add(&sample("a"), NOW);
        running.add(&Sample { request: None, at: At::Rollback, ..sample("") }, NOW);
        running.add(&Sample { request: None, is_boot: true, ..sample("") }, NOW);
        let minute = running.close_minute(NOW + 60).expect("over");
        let names: Vec<_> = told(&minute).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, [BETWEEN, BOOT, "index.php /users/{n}"]);
    }

    #[test]
    fn slow_request_returns_scene_at_its_end() {
        let mut running = Running::new(true, "default", NOW);
        let scene = Scene { blocked: "computing".into(), calls: vec!["f()".into()] };
        running.is_slow("", ("a", "", "/"), scene.clone(), NOW);
        assert_eq!(end(&mut running, "b", "r"), None);
        assert_eq!(end(&mut running, "a", "r"), Some(scene));
        assert_eq!(end(&mut running, "a", "r"), None);
    }

    #[test]
    fn running_is_bounded_in_ids_and_paths() {
        let mut running = Running::new(true, "default", NOW);
        let ids: Vec<_> = (0..3 * OPEN_MAX).map(|n| format!("id{n}")).collect();
        for id in &ids {
            let path = format!("/{id}x");
            running.add(&Sample { request: Some((id, "", &path)), ..sample(id) }, NOW);
        }
        assert_eq!(running.open.len(), OPEN_MAX);
        assert!(running.rows.named.len() <= ROUTES_MAX + 1);
        let sum: u64 =
            running.copy(|_, _| true).rows.iter().map(|(_, r)| r.profile.total().samples).sum();
        assert_eq!(sum, 3 * OPEN_MAX as u64, "nothing is lost");
    }
}
