//! The supervisor's sampler and crates/profile, put together: what is seen of workers goes where it is kept and asked for.

use crate::convert::push_options;
use crate::descriptors;
use anyhow::{Context, Result};
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_insight::{Fate, Model, Scene, Turn};
use samovar_profile::{At, Options, Profiles, Pusher, Sample};
use samovar_ring::RequestLine;
use samovar_spy::profile::Weight;
use samovar_supervisor as supervisor;
use samovar_supervisor::{Handle, Look, Observer, Sampler, SlowScene};
use samovar_wire::ProfileStatus;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What is appended to the name of the history's file.
const SUFFIX: &str = ".profiles";

const DAY: Duration = Duration::from_hours(24);

/// Both of them.
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
    /// Opens what is kept, when its turn has come; `None`: nobody is to look at workers. `is_measured`: crates/insight tells of
    /// requests' ends.
    pub(crate) fn open(
        settings: &Settings,
        is_measured: bool,
        turn: Turn,
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
            turn,
            push: pusher.clone(),
        });
        let profiles = Arc::new(profiles.context("cannot start to keep profiles")?);
        Ok(Some(Sampling {
            profiles,
            sampler: OnceLock::new(),
            pusher,
            slow,
            hertz,
            keeps_files: descriptors::abound(settings),
        }))
    }

    /// Begins to look at the workers of these pools, the default one first; they have no names where there is one.
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
            // Nobody else has begun.
            let _ = self.sampler.set(sampler);
        }
        Ok(())
    }

    /// How it fares.
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
            pushed_total: pushed(Fate::Passed),
            push_lost_total: pushed(Fate::Lost),
            push_refused_total: pushed(Fate::Refused),
        }
    }

    /// The end: the last minute is kept.
    pub(crate) fn finish(&self) {
        if let Some(sampler) = self.sampler.get() {
            sampler.finish();
        }
        self.profiles.finish();
    }
}

/// Who sends profiles elsewhere, if somebody is to.
fn pusher(settings: &Settings) -> Result<Option<Pusher>> {
    let Some((endpoint, options)) = push_options(settings) else { return Ok(None) };
    if settings.profile.hertz == 0 {
        tracing::warn!("there is nothing for `profile.push` to send: `profile.hertz` is 0");
    }
    let pusher = Pusher::start(options);
    pusher.with_context(|| format!("`profile.push` = `{endpoint}`")).map(Some)
}

/// The sampler's observer.
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
        self.profiles.turn();
    }
}

/// Id, script and path.
fn parts(line: &RequestLine) -> (&str, &str, &str) {
    (&line.id, &line.script, &line.path)
}
