//! A question → stacks of some time, by what is kept and by what still runs; and those of another time beside them.

use crate::running::{Minute, Row, named, own_name};
use crate::store::{Selection, Store, StoreError};
use samovar_spy::profile::Profile;
use samovar_spy::profile::packed::pack;
use samovar_wire::{Against, ProfileAnswer, ProfileQuestion, ProfileSide};
use std::collections::{BTreeMap, BTreeSet};

/// Different stacks of an answer.
const STACKS_MAX: usize = 20_000;
/// What is sent over a socket.
const SENT_STACKS_MAX: usize = 8_000;
/// Routes that an answer names.
const ROUTES_MAX: usize = 100;
/// How much is looked at unless somebody says.
const USUAL_S: u64 = 600;
const MINUTE_S: u64 = 60;

/// What workers did in some time.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// When it began, seconds since 1970.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// Whose workers were seen.
    pub generations: BTreeSet<u64>,
    /// Requests that ended meanwhile; 0: nobody counts them.
    pub requests: u64,
    /// Their stacks.
    pub profile: Profile,
    /// There was more than is read at once: the oldest is left out.
    pub is_cut: bool,
}

/// What was asked for, or why there is none.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Why there is nothing to be shown.
    pub error: Option<String>,
    /// The pool that was asked for; empty: none was.
    pub pool: String,
    /// Looks per second at each busy worker.
    pub hertz: u32,
    /// What was asked for.
    pub now: Side,
    /// What it is compared with.
    pub before: Option<Side>,
    /// (name, samples) of the routes of that time.
    pub routes: Vec<(String, u64)>,
}

impl Answer {
    pub(crate) fn refused(why: impl Into<String>) -> Answer {
        Answer { error: Some(why.into()), ..Answer::default() }
    }

    /// As the control socket has it.
    #[must_use]
    pub fn to_wire(&self) -> ProfileAnswer {
        ProfileAnswer {
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

/// What an answer is made of.
pub(crate) struct Sources<'a> {
    pub(crate) store: &'a Store,
    /// The minute that is not over.
    pub(crate) running: &'a Minute,
    /// Seconds since 1970.
    pub(crate) now: u64,
    pub(crate) run: u64,
    pub(crate) hertz: u32,
    /// What the default pool is called where there are others.
    pub(crate) default_pool: &'static str,
}

impl Sources<'_> {
    /// Answers.
    pub(crate) fn answer(&self, question: &ProfileQuestion) -> Answer {
        self.try_to_answer(question).unwrap_or_else(|error| Answer::refused(error.to_string()))
    }

    fn try_to_answer(&self, question: &ProfileQuestion) -> Result<Answer, StoreError> {
        let to = if question.to == 0 { self.now + 1 } else { question.to };
        let usual = to.saturating_sub(USUAL_S);
        let from = if question.from == 0 { usual } else { question.from };
        let mut wanted = Selection {
            route: self.route(question)?,
            // Whole minutes: what is kept knows no smaller ones.
            from: from - from % MINUTE_S,
            to,
            pool: self.pool(question)?,
            generation: question.generation.map(|generation| (self.run, generation)),
        };
        let pool = question.pool.clone().unwrap_or_default();
        let mut answer = Answer { pool, hertz: self.hertz, ..Answer::default() };
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
                None => return Ok(Answer::refused(NO_RELOAD)),
            },
        };
        answer.routes = self.routes(&wanted)?;
        answer.now = self.side(&wanted)?;
        answer.before = other.map(|other| self.side(&other)).transpose()?;
        answer.error = self.nothing(question, &answer);
        Ok(answer)
    }

    /// Whose workers are meant. Generations are a pool's: who asks for one, and names none, means that of the route, or the default one.
    fn pool(&self, question: &ProfileQuestion) -> Result<Option<String>, StoreError> {
        if let Some(named) = &question.pool {
            return Ok(Some(own_name(named, self.default_pool).to_owned()));
        }
        if question.generation.is_none() && question.against != Some(Against::Reload) {
            return Ok(None);
        }
        let Some(route) = &question.route else { return Ok(Some(String::new())) };
        Ok(Some(self.pool_of(route)?.unwrap_or_default()))
    }

    /// Whose route it is; `None`: it was not seen.
    fn pool_of(&self, route: &str) -> Result<Option<String>, StoreError> {
        match self.running.rows.iter().find(|(name, _)| **name == *route) {
            Some((_, row)) => Ok(Some(row.pool.to_string())),
            None => self.store.pool_of(route),
        }
    }

    /// The route by its whole name: who has said which pool he means need not repeat it.
    fn route(&self, question: &ProfileQuestion) -> Result<Option<String>, StoreError> {
        let (Some(route), Some(pool)) = (&question.route, &question.pool) else {
            return Ok(question.route.clone());
        };
        let is_whole =
            self.pool_of(route)?.is_some_and(|of| of == own_name(pool, self.default_pool));
        Ok(Some(if is_whole { route.clone() } else { named(pool, route).into_owned() }))
    }

    /// What the generation before was seen at, up to its end; the generation that followed it is what is wanted then.
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
        let take = |row: crate::store::Kept| side.add(row.generation, row.requests, &row.profile);
        let is_cut = self.store.rows(wanted, take)?;
        side.is_cut = is_cut;
        Ok(side)
    }

    /// Why there is nothing, if there is not.
    fn nothing(&self, question: &ProfileQuestion, answer: &Answer) -> Option<String> {
        let is_empty = |side: &Side| side.profile.is_empty();
        if !is_empty(&answer.now) && !answer.before.as_ref().is_some_and(is_empty) {
            return None;
        }
        let when = if is_empty(&answer.now) { "in that time" } else { "in the time before" };
        let hint = if self.hertz == 0 {
            "profile.hertz is 0: nobody looks at workers".to_owned()
        } else if question.route.is_some() && !answer.routes.is_empty() {
            let names = answer.routes.iter().take(5).map(|(name, _)| format!("`{name}`"));
            format!("routes that were seen: {}", names.collect::<Vec<_>>().join(", "))
        } else {
            format!(
                "workers are looked at {} times a second while they have requests; a longer time has more",
                self.hertz
            )
        };
        Some(format!("no worker was seen at work {when}\nhint: {hint}"))
    }
}

const NO_RELOAD: &str = "there is no generation before to compare with\n\
    hint: a reload makes one, of each pool (--pool NAME) for itself; what an earlier run of the server has left is asked for by time, as in --against 1h-ago";

#[cfg(test)]
mod tests;
