//! Connects the supervisor's sampler with crates/profile, which stores its samples and answers
//! queries.

use crate::convert::push_options;
use crate::descriptors;
use anyhow::{Context, Result};
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_insight::{Fate, HandoverGate, Model, Scene};
use samovar_profile::{At, Options, Profiles, Pusher, Sample};
use samovar_ring::RequestLine;
use samovar_spy::profile::Weight;
use samovar_supervisor as supervisor;
use samovar_supervisor::{Handle, Look, Observer, Sampler, SlowScene};
use samovar_wire::ProfileStatus;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Suffix appended to the path of the history's file.
const SUFFIX: &str = ".profiles";

const DAY: Duration = Duration::from_hours(24);

/// The sampler and the profiles.
#[derive(Debug)]
pub(crate) struct Sampling {
    pub(crate) profiles: Arc<Profiles>,
    sampler: OnceLock<Sampler>,
    pusher: Option<Arc<Pusher>>,
    slow: Option<Duration>,
    hertz: u32,
    keeps_files: bool,
}

impl Sampling {
    /// Opens the profiles as soon as their turn comes. Returns `None` if workers need not be
    /// sampled. `is_measured`: crates/insight reports ends of requests.
    pub(crate) fn open(
        settings: &Settings,
        is_measured: bool,
        handover_gate: HandoverGate,
    ) -> Result<Option<Sampling>> {
        let hertz = u32::try_from(settings.profile.hertz).unwrap_or(u32::MAX);
        let slow = is_measured.then_some(settings.insight.slow_request);
        if hertz == 0 && slow.is_none() {
            return Ok(None);
        }
        let beside = settings.insight.store.clone().filter(|_| is_measured && hertz > 0);
        let path = beside.map(|path| {
            let mut name = path.into_os_string();
            name.push(SUFFIX);
            PathBuf::from(name)
        });
        let pusher = pusher(settings)?.map(Arc::new);
        let profiles = Profiles::start(Options {
            path,
            bytes_max: settings.profile.bytes_max,
            keep: DAY * u32::try_from(settings.profile.days_max).unwrap_or(u32::MAX),
            hertz,
            is_told: is_measured,
            default_pool: DEFAULT_POOL,
            trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
            handover_gate,
            push: pusher.clone(),
        });
        let profiles = Arc::new(profiles.context("cannot start the store of profiles")?);
        Ok(Some(Sampling {
            profiles,
            sampler: OnceLock::new(),
            pusher,
            slow,
            hertz,
            keeps_files: descriptors::abound(settings),
        }))
    }

    /// Starts sampling the workers of these pools, the default pool first. The name is empty if
    /// there is one pool.
    pub(crate) fn begin(&self, pools: Vec<(String, Handle)>) -> Result<()> {
        let (names, workers): (Vec<String>, Vec<Handle>) = pools.into_iter().unzip();
        let sampling = supervisor::Sampling {
            hertz: self.hertz,
            slow: self.slow,
            keeps_files: self.keeps_files,
        };
        let observer = Box::new(Seen { profiles: Arc::clone(&self.profiles), names });
        let sampler = Sampler::start(&workers, sampling, observer);
        if let Some(sampler) = sampler.context("cannot start the sampler")? {
            // The sampler is started only once.
            let _ = self.sampler.set(sampler);
        }
        Ok(())
    }

    /// Returns the state of the sampler.
    pub(crate) fn status(&self) -> ProfileStatus {
        let report = self.sampler.get().map(Sampler::report).unwrap_or_default();
        let pushed =
            |fate| self.pusher.as_ref().map_or(0, |pusher: &Arc<Pusher>| pusher.tally().get(fate));
        ProfileStatus {
            hertz: self.hertz,
            samples_total: report.samples,
            torn_total: report.torn,
            cpu_seconds: report.cpu.as_secs_f64(),
            minutes_lost_total: self.profiles.minutes_lost(),
            trouble: report.trouble,
            pushes_total: pushed(Fate::Passed),
            pushes_dropped_total: pushed(Fate::Lost),
            pushes_rejected_total: pushed(Fate::Refused),
        }
    }

    /// Ends the sampler and stores the last minute, for the server's stop.
    pub(crate) fn finish(&self) {
        if let Some(sampler) = self.sampler.get() {
            sampler.finish();
        }
        self.profiles.finish();
    }
}

/// Returns the pusher of profiles, if one is configured.
fn pusher(settings: &Settings) -> Result<Option<Pusher>> {
    let Some((endpoint, options)) = push_options(settings) else { return Ok(None) };
    if settings.profile.hertz == 0 {
        tracing::warn!("`profile.push` is set, but there are no profiles: `profile.hertz` is 0");
    }
    let pusher = Pusher::start(options);
    pusher.with_context(|| format!("`profile.push` = `{endpoint}`")).map(Some)
}

/// Observer of the sampler.
struct Seen {
    profiles: Arc<Profiles>,
    names: Vec<String>,
}

impl Seen {
    fn name(&self, pool: usize) -> &str {
        self.names.get(pool).map_or("", |name| name)
    }
}

impl Observer for Seen {
    fn knows(&mut self, pool: usize, life: u32, generation: u64) {
        self.profiles.knows(self.name(pool), life, generation);
    }

    fn saw(&mut self, look: &Look<'_>) {
        let at = match look.scene {
            supervisor::Scene::Php(stack, activity) => At::Php(&stack.frames, activity),
            supervisor::Scene::NoCode => At::NoCode,
            supervisor::Scene::Rollback => At::Rollback,
            supervisor::Scene::Reset => At::Reset,
        };
        self.profiles.add(&Sample {
            pool: self.name(look.pool),
            generation: look.generation,
            model: match look.model {
                samovar_ring::Model::Script => Model::Script,
                samovar_ring::Model::Resident => Model::Resident,
                samovar_ring::Model::Checkpoint => Model::Checkpoint,
            },
            is_boot: look.is_boot,
            request: look.request.map(|(_, line)| parts(line)),
            at,
            weight: Weight { samples: 1, wall_ns: look.wall_ns, cpu_ns: look.cpu_ns },
        });
    }

    fn is_slow(&mut self, pool: usize, request: &RequestLine, scene: SlowScene) {
        let calls = scene.calls.into_iter().map(String::into_boxed_str).collect();
        let name = self.name(pool);
        self.profiles.is_slow(name, parts(request), Scene { blocked: scene.blocked.into(), calls });
    }

    fn turned(&mut self) {
        self.profiles.handover_gate();
    }
}

/// Returns id, script and path.
fn parts(line: &RequestLine) -> (&str, &str, &str) {
    (&line.id, &line.script, &line.path)
}
