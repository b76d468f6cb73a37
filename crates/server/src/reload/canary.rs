//! Starts a canary: a reload whose generation serves a share of the requests before it takes over.

use super::parts::Reloader;
use super::transaction::{self, Order, Plan};
use crate::canary::Start;
use crate::control::server::CanaryDone;
use anyhow::{Context, Result, bail};
use samovar_canary::Steps;
use samovar_front::{CanaryBy, CanaryRouting, ValidSettings};
use samovar_insight::store::EventKind;
use samovar_supervisor::{Command, Reload};
use samovar_wire::{
    CANARY_STEPS_MAX, CanaryAssignment, CanaryQuestion, CanaryResponse, ReloadOptions,
};
use std::hash::RandomState;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The callback of the client, until it is called.
#[derive(Clone)]
struct Client(Arc<Mutex<Option<CanaryDone>>>);

impl Client {
    /// Responds. Returns false if the client has got its response.
    fn respond(&self, response: CanaryResponse) -> bool {
        let done = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.is_some_and(|done| {
            done(response);
            true
        })
    }
}

/// A canary that can boot.
struct Prepared {
    at: usize,
    order: Order,
    plan: Arc<Plan>,
    routing: ValidSettings,
    steps: Steps,
    roots: [PathBuf; 2],
    release: String,
}

impl Reloader {
    /// Boots a canary. `done` is called once, on any thread.
    pub(crate) fn begin_canary(&self, question: &CanaryQuestion, done: CanaryDone) {
        let since = Instant::now();
        let client = Client(Arc::new(Mutex::new(Some(done))));
        if let Err(why) = self.0.state.begins_canary() {
            client.respond(CanaryResponse::refused(why.to_owned()));
            return;
        }
        match self.prepare_canary(question) {
            Ok(prepared) => self.order_canary(prepared, question.by, client, since),
            Err(error) => {
                self.0.state.ends_canary(None);
                let why = format!("{error:#}");
                self.0.note_refusal(&format!("canary: {why}"));
                client.respond(CanaryResponse::refused(why));
            }
        }
    }

    fn prepare_canary(&self, question: &CanaryQuestion) -> Result<Prepared> {
        if self.0.insight.is_none() {
            bail!(
                "the comparison needs the request accounting, which is off\nhint: set `admin` or \
                 `insight.store`, and restart the server"
            );
        }
        let steps = steps(question)?;
        let is_one = self.0.pools.is_empty();
        if !is_one && question.pool.is_none() {
            bail!("the server has several pools\nhint: add `--pool NAME`");
        }
        let CanaryQuestion { force, probe, release, .. } = question;
        let pool = question.pool.clone().filter(|_| !is_one);
        let options =
            ReloadOptions { force: *force, probe: probe.clone(), pool, release: release.clone() };
        let wanted = self.wanted(&ReloadOptions { pool: question.pool.clone(), ..options.clone() });
        let pool = *wanted?.first().context("there is a pool")?;
        if question.root.is_some() && pool.at > 0 {
            bail!(
                "`--root` is for the default pool\nhint: change the pool's `root` in the settings"
            );
        }
        let plan = self.plan(self.read_at(question.root.as_deref())?, &options);
        let prepared = self.prepare(pool, plan.settings[pool.at].clone(), &options)?;
        let routing = prepared.of_front.clone();
        let release = prepared.serving.release.clone();
        let roots = [&self.served()[pool.at].settings.root, &plan.settings[pool.at].root];
        let roots = roots.map(Clone::clone);
        let (_, order) = transaction::ordered(pool, prepared, &options, &plan);
        Ok(Prepared { at: pool.at, order, plan: Arc::new(plan), routing, steps, roots, release })
    }

    fn order_canary(
        &self,
        prepared: Prepared,
        by: CanaryAssignment,
        client: Client,
        since: Instant,
    ) {
        let Prepared { at, order, plan, routing, steps, roots, release } = prepared;
        let Some(pool) = self.0.pools().nth(at) else { return };
        let (own, of_gate) = (self.clone(), client.clone());
        let name = if self.0.pools.is_empty() { String::new() } else { pool.name.to_owned() };
        let front = pool.front.clone();
        let gate = move |generation: u64, admit| {
            let routing = CanaryRouting {
                settings: routing,
                // Workers report the low 16 bits.
                generation: u32::try_from(generation & 0xffff).unwrap_or_default(),
                share_ppm: steps.share(),
                by: assignment(by),
                keys: RandomState::new(),
            };
            if let Some(insight) = &own.0.insight {
                insight.want_all(true);
            }
            own.note_canary(at, generation, &release);
            let start =
                Start { pool: name, generation, release, roots, by, front, routing, steps, admit };
            own.0.canaries.begin(start);
            of_gate.respond(CanaryResponse {
                milliseconds: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
                canary: own.0.canaries.status(),
                error: None,
            });
        };
        let own = self.clone();
        let done = move |outcome: Result<u64, String>| own.end_canary(at, &plan, outcome, &client);
        let Order { settings, probe, may_change_model } = order;
        pool.supervisor.send(Command::Reload(Reload {
            settings,
            probe,
            gate: Some(Box::new(gate)),
            is_canary: true,
            may_change_model,
            done: Box::new(done),
        }));
    }

    /// Records that a canary serves its share.
    fn note_canary(&self, at: usize, generation: u64, label: &str) {
        let parts = &self.0;
        let Some(pool) = parts.pools().nth(at) else { return };
        parts.releases.begin_canary(parts.release(pool, generation, label));
        let named = if label.is_empty() { String::new() } else { format!(", release {label},") };
        let of = parts.prefix(pool);
        parts.note(EventKind::Canary, || {
            format!("{of}canary: generation {generation}{named} serves")
        });
    }

    /// The canary has taken over, or it is gone.
    fn end_canary(&self, at: usize, plan: &Plan, outcome: Result<u64, String>, client: &Client) {
        let parts = &self.0;
        let Some(pool) = parts.pools().nth(at) else { return };
        if let Ok(generation) = &outcome {
            let own = plan.brought().remove(&at);
            self.take_over(own.map(|brought| (at, brought)).into_iter().collect());
            let of = parts.prefix(pool);
            let label = self.served()[at].release.clone();
            parts.note_release((pool, *generation), &label, |named| {
                format!("{of}canary: generation {generation}{named} took over")
            });
        }
        parts.releases.end_canary();
        let generation = outcome.as_ref().map(|number| *number).map_err(|why| &**why);
        let is_wanted = parts.canaries.ended(generation);
        if let Some(insight) = &parts.insight {
            insight.want_all(false);
        }
        if let Err(why) = &outcome {
            if is_wanted {
                // A wanted end is no failure, and does not make the server unhealthy.
                let of = parts.prefix(pool);
                parts.note(EventKind::Canary, || format!("{of}canary: {why}"));
            } else {
                self.note_failure(pool, &format!("canary: {why}"));
            }
            client.respond(CanaryResponse::refused(why.clone()));
        }
        parts.state.ends_canary(outcome.ok());
    }
}

fn assignment(by: CanaryAssignment) -> CanaryBy {
    match by {
        CanaryAssignment::Cookie => CanaryBy::Cookie,
        CanaryAssignment::Client => CanaryBy::Client,
        CanaryAssignment::Random => CanaryBy::Random,
    }
}

fn steps(question: &CanaryQuestion) -> Result<Steps> {
    let shares = &question.shares_ppm;
    let is_ascending = shares.windows(2).all(|pair| pair[0] < pair[1]);
    let is_first_partial = shares.first().is_some_and(|first| (1..1_000_000).contains(first));
    let is_within = shares.iter().all(|share| *share <= 1_000_000);
    if !is_ascending || !is_first_partial || !is_within || shares.len() > CANARY_STEPS_MAX {
        bail!(
            "the shares of a canary must be above 0% and ascend, and the first must be below \
             100%\nhint: use for example `--canary 5%` or `--canary 1%,5%,25%,100%`"
        );
    }
    Ok(Steps::new(shares.clone(), Duration::from_secs(question.step_s)))
}
