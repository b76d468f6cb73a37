//! A query → the stacks of a period, from stored and current data, and those of a second period to
//! compare with.

use crate::current_minute::{Minute, Row, named, own_name};
use crate::store::{Selection, Store, StoreError};
use samovar_spy::profile::Profile;
use samovar_spy::profile::packed::pack;
use samovar_wire::{Against, ProfileQuestion, ProfileResponse, ProfileSide};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of a generation: the store's numbers have a sign.
const GENERATION_MAX: u64 = i64::MAX as u64 - 1;
/// Maximum number of distinct stacks in a result.
const STACKS_MAX: usize = 20_000;
/// Maximum number of stacks sent over the socket.
const SENT_STACKS_MAX: usize = 8_000;
/// Maximum number of routes listed in a result.
const ROUTES_MAX: usize = 100;
/// Default length of the period in seconds.
const USUAL_S: u64 = 600;
const MINUTE_S: u64 = 60;

/// Profile of one period.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Start in seconds since 1970.
    pub from: u64,
    /// End in seconds since 1970.
    pub to: u64,
    /// Generations whose workers were sampled.
    pub generations: BTreeSet<u64>,
    /// Requests that ended in this period; 0 if requests are not counted.
    pub requests: u64,
    /// The stacks.
    pub profile: Profile,
    /// Whether there were more rows than one query reads. The oldest are then missing.
    pub is_cut: bool,
}

/// The requested profile, or the reason why there is none.
#[derive(Clone, Debug, Default)]
pub struct ProfileResult {
    /// Reason why no data is available.
    pub error: Option<String>,
    /// The requested pool; empty if the query named none.
    pub pool: String,
    /// Samples per second of each busy worker.
    pub hertz: u32,
    /// The requested profile.
    pub now: Side,
    /// The profile to compare with.
    pub before: Option<Side>,
    /// Routes of that period with their number of samples.
    pub routes: Vec<(String, u64)>,
}

impl ProfileResult {
    pub(crate) fn refused(why: impl Into<String>) -> ProfileResult {
        ProfileResult { error: Some(why.into()), ..ProfileResult::default() }
    }

    /// Converts the result to the control socket's format.
    #[must_use]
    pub fn to_wire(&self) -> ProfileResponse {
        ProfileResponse {
            error: self.error.clone(),
            pool: self.pool.clone(),
            hertz: self.hertz,
            now: self.now.to_wire(),
            before: self.before.as_ref().map(Side::to_wire),
            routes: self.routes.clone(),
        }
    }
}

impl Side {
    fn to_wire(&self) -> ProfileSide {
        let packed = pack(&self.profile, SENT_STACKS_MAX);
        ProfileSide {
            from: self.from,
            to: self.to,
            generations: self.generations.iter().copied().collect(),
            requests: self.requests,
            profile: serde_json::to_value(packed).unwrap_or_default(),
            is_cut: self.is_cut || self.profile.len() > SENT_STACKS_MAX,
        }
    }

    fn add(&mut self, generation: u64, requests: u64, profile: &Profile) {
        self.requests += requests;
        self.profile.merge(profile, STACKS_MAX);
        if !profile.is_empty() && generation > 0 {
            self.generations.insert(generation);
        }
    }
}

/// Data for a result.
pub(crate) struct Sources<'a> {
    pub(crate) store: &'a Store,
    /// The current minute.
    pub(crate) running: &'a Minute,
    /// Current time in seconds since 1970.
    pub(crate) now: u64,
    pub(crate) run: u64,
    pub(crate) hertz: u32,
    /// Name of the default pool if there are several pools.
    pub(crate) default_pool: &'static str,
}

impl Sources<'_> {
    /// Returns the result of a query.
    pub(crate) fn respond(&self, question: &ProfileQuestion) -> ProfileResult {
        self.try_to_response(question)
            .unwrap_or_else(|error| ProfileResult::refused(error.to_string()))
    }

    fn try_to_response(&self, question: &ProfileQuestion) -> Result<ProfileResult, StoreError> {
        let to = if question.to == 0 { self.now + 1 } else { question.to };
        let usual = to.saturating_sub(USUAL_S);
        let from = if question.from == 0 { usual } else { question.from };
        let mut wanted = Selection {
            route: self.route(question)?,
            // Stored data has whole minutes only.
            from: from - from % MINUTE_S,
            to,
            pool: self.pool(question)?,
            generation: question.generation.map(|generation| (self.run, generation)),
        };
        let pool = question.pool.clone().unwrap_or_default();
        let mut response = ProfileResult { pool, hertz: self.hertz, ..ProfileResult::default() };
        let other = match question.against {
            None => None,
            Some(Against::Earlier { seconds }) => Some(Selection {
                from: wanted.from.saturating_sub(seconds),
                to: wanted.to.saturating_sub(seconds),
                generation: None,
                ..wanted.clone()
            }),
            Some(Against::Reload) => match self.before_reload(&mut wanted)? {
                Some(other) => Some(other),
                None => return Ok(ProfileResult::refused(NO_RELOAD)),
            },
            Some(Against::Generation { number }) => {
                let pool = wanted.pool.clone().unwrap_or_default();
                // The period is that of the current time, or the end of a named generation.
                if let Some(own) = question.generation
                    && let Some(last) = self.last_of(&wanted, &pool, own)?
                {
                    wanted = last;
                }
                match self.last_of(&wanted, &pool, number)? {
                    Some(other) => Some(other),
                    None => return Ok(ProfileResult::refused(no_generation(number))),
                }
            }
        };
        response.routes = self.routes(&wanted)?;
        response.now = self.side(&wanted)?;
        response.before = other.map(|other| self.side(&other)).transpose()?;
        response.error = self.nothing(question, &response);
        Ok(response)
    }

    /// Returns the pool of a query. Each pool counts its own generations, so a query that needs one
    /// and names no pool means the route's pool, or the default one.
    fn pool(&self, question: &ProfileQuestion) -> Result<Option<String>, StoreError> {
        if let Some(named) = &question.pool {
            return Ok(Some(own_name(named, self.default_pool).to_owned()));
        }
        if question.generation.is_none()
            && !question.against.is_some_and(Against::is_of_generations)
        {
            return Ok(None);
        }
        let Some(route) = &question.route else { return Ok(Some(String::new())) };
        Ok(Some(self.pool_of(route)?.unwrap_or_default()))
    }

    /// Returns the pool of a route; `None`: the route was not sampled.
    fn pool_of(&self, route: &str) -> Result<Option<String>, StoreError> {
        match self.running.rows.iter().find(|(name, _)| **name == *route) {
            Some((_, row)) => Ok(Some(row.pool.to_string())),
            None => self.store.pool_of(route),
        }
    }

    /// Returns the full name of the route. A query that names the pool can leave the pool out of
    /// the route's name.
    fn route(&self, question: &ProfileQuestion) -> Result<Option<String>, StoreError> {
        let (Some(route), Some(pool)) = (&question.route, &question.pool) else {
            return Ok(question.route.clone());
        };
        let is_whole =
            self.pool_of(route)?.is_some_and(|of| of == own_name(pool, self.default_pool));
        Ok(Some(if is_whole { route.clone() } else { named(pool, route).into_owned() }))
    }

    /// Returns the selection of a generation's last samples, in a period as long as that of
    /// `wanted`; `None`: it has no samples.
    fn last_of(
        &self,
        wanted: &Selection,
        pool: &str,
        generation: u64,
    ) -> Result<Option<Selection>, StoreError> {
        let is_its = |row: &Row| {
            *row.pool == *pool && row.generation == generation && !row.profile.is_empty()
        };
        if generation > GENERATION_MAX {
            return Ok(None);
        }
        let is_running = self.running.rows.iter().any(|(_, row)| is_its(row));
        let kept = self.store.before(pool, generation + 1)?;
        let kept = kept.filter(|(found, _)| *found == generation).map(|(_, last)| last);
        let last = if is_running { Some(self.running.at) } else { kept };
        let length = wanted.to.saturating_sub(wanted.from).max(MINUTE_S);
        Ok(last.map(|last| Selection {
            from: (last + MINUTE_S).saturating_sub(length),
            to: last + MINUTE_S,
            generation: Some((self.run, generation)),
            ..wanted.clone()
        }))
    }

    /// Returns the selection of the previous generation's last samples, and limits `wanted` to the
    /// generation after it.
    fn before_reload(&self, wanted: &mut Selection) -> Result<Option<Selection>, StoreError> {
        let pool = wanted.pool.clone().unwrap_or_default();
        let is_pools = |row: &Row| *row.pool == *pool && !row.profile.is_empty();
        let runs = self.running.rows.iter().filter(|(_, row)| is_pools(row));
        let running = runs.map(|(_, row)| row.generation).max();
        let latest = self.store.latest(&pool)?.into_iter().chain(running).max();
        let Some(generation) = wanted.generation.map(|(_, g)| g).or(latest) else {
            return Ok(None);
        };
        wanted.generation = Some((self.run, generation));
        let kept = self.store.before(&pool, generation)?;
        let of_running = |row: &&(Box<str>, Row)| {
            row.1.generation < generation && row.1.generation > 0 && is_pools(&row.1)
        };
        let running = self.running.rows.iter().filter(of_running).map(|(_, row)| row.generation);
        let running = running.max().map(|generation| (generation, self.running.at));
        let Some((before, last)) = kept.into_iter().chain(running).max() else { return Ok(None) };
        let length = wanted.to.saturating_sub(wanted.from);
        let to = last + MINUTE_S;
        Ok(Some(Selection {
            from: to.saturating_sub(length.max(MINUTE_S)),
            to,
            generation: Some((self.run, before)),
            ..wanted.clone()
        }))
    }

    fn routes(&self, wanted: &Selection) -> Result<Vec<(String, u64)>, StoreError> {
        let mut all: BTreeMap<String, u64> = self.store.routes(wanted)?.into_iter().collect();
        if self.is_running_wanted(wanted) {
            for (route, row) in self.running_of(wanted) {
                *all.entry(route.to_string()).or_default() += row.profile.total().samples;
            }
        }
        let mut all: Vec<_> = all.into_iter().filter(|(_, samples)| *samples > 0).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(ROUTES_MAX);
        Ok(all)
    }

    fn running_of<'a>(
        &'a self,
        wanted: &'a Selection,
    ) -> impl Iterator<Item = &'a (Box<str>, Row)> {
        let is_pools = |row: &Row| wanted.pool.as_deref().is_none_or(|pool| *row.pool == *pool);
        self.running.rows.iter().filter(move |(_, row)| is_pools(row))
    }

    fn is_running_wanted(&self, wanted: &Selection) -> bool {
        self.running.at >= wanted.from && self.running.at < wanted.to
    }

    fn side(&self, wanted: &Selection) -> Result<Side, StoreError> {
        let mut side = Side { from: wanted.from, to: wanted.to, ..Side::default() };
        if self.is_running_wanted(wanted) {
            for (route, row) in self.running_of(wanted) {
                let is_route = wanted.route.as_deref().is_none_or(|wanted| *wanted == **route);
                let is_generation = wanted.generation.is_none_or(|(_, g)| g == row.generation);
                if is_route && is_generation {
                    side.add(row.generation, row.requests, &row.profile);
                }
            }
        }
        let take =
            |row: crate::store::StoredProfile| side.add(row.generation, row.requests, &row.profile);
        let is_cut = self.store.rows(wanted, take)?;
        side.is_cut = is_cut;
        Ok(side)
    }

    /// Returns an explanation if the result is empty.
    fn nothing(&self, question: &ProfileQuestion, response: &ProfileResult) -> Option<String> {
        let is_empty = |side: &Side| side.profile.is_empty();
        if !is_empty(&response.now) && !response.before.as_ref().is_some_and(is_empty) {
            return None;
        }
        let when = if is_empty(&response.now) { "in that time" } else { "in the time before" };
        let hint = if self.hertz == 0 {
            "set profile.hertz, which is 0".to_owned()
        } else if question.route.is_some() && !response.routes.is_empty() {
            let names = response.routes.iter().take(5).map(|(name, _)| format!("`{name}`"));
            format!("the sampled routes are: {}", names.collect::<Vec<_>>().join(", "))
        } else {
            format!(
                "workers are sampled {} times a second while they have requests; query a longer \
                 period",
                self.hertz
            )
        };
        Some(format!("no samples {when}\nhint: {hint}"))
    }
}

fn no_generation(number: u64) -> String {
    format!(
        "generation {number} has no samples in this run of the server\nhint: `samovar status` \
         shows the current generation; profiles are kept for `profile.days_max` days"
    )
}

const NO_RELOAD: &str = "there is no previous generation to compare with\nhint: run `samovar \
                         reload`, per pool with --pool NAME; to compare with an earlier run of \
                         the server, pass a time, such as --against 1h-ago";

#[cfg(test)]
mod tests;
