//! State of the supervisor of one pool: its generations and the reload in progress. The steps that
//! change it are in `run`, `reload` and `tracer`.

use super::hooks::Boot;
use super::prepared::Post;
use crate::generation::{Coming, Generation, Ground};
use crate::handle::{Published, Reload, SpareReady};
use crate::news::{Kills, Lines};
use crate::one_shots::WaitingOneShots;
use crate::settings::Settings;
use crate::workers::Lives;
use samovar_ring::{DesiredState, PermitWatch, Supervision};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

/// Maximum number of generations: one serves, one may be starting, the others finish requests.
pub(super) const GENERATIONS_MAX: usize = 8;
/// Maximum number of generations that record call graphs.
pub(super) const TRACERS_MAX: usize = 4;
pub(super) const PLACES_MAX: usize = GENERATIONS_MAX + TRACERS_MAX;

/// Counters of generations that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) grown: u64,
    pub(super) shrunk: u64,
    pub(super) restarts: u64,
    pub(super) reforks: u64,
    pub(super) recycled: u64,
}

impl Counts {
    pub(super) fn with(self, generation: &Generation) -> Counts {
        let lines = generation.scale_lines();
        Counts {
            grown: self.grown + lines.iter().map(|line| line.grown).sum::<u64>(),
            shrunk: self.shrunk + lines.iter().map(|line| line.shrunk).sum::<u64>(),
            restarts: self.restarts + generation.workers.restarts(),
            reforks: self.reforks + generation.workers.reforks(),
            recycled: self.recycled + generation.workers.recycled(),
        }
    }
}

/// Deaths of the canary's workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deaths {
    pub(super) since: Instant,
    /// Number of deaths at that time.
    pub(super) before: u64,
}

/// The worker for a replay.
pub(super) struct Spare {
    pub(super) id: u64,
    /// Number of the generation that it belongs to.
    pub(super) generation: u64,
    /// The generation was started for it.
    pub(super) has_own: bool,
    /// Number of templates that the generation had before.
    pub(super) templates: u64,
    pub(super) since: Instant,
    /// Taken when the worker is ready.
    pub(super) ready: Option<SpareReady>,
}

/// The supervisor of one pool.
pub(super) struct Supervisor {
    pub(super) post: Post,
    /// Settings for the next template after the pool has failed.
    pub(super) settings: Settings,
    /// Time of the next attempt, if the pool has failed.
    pub(super) fallen_until: Option<Instant>,
    /// Result of the first boot.
    pub(super) boot: Option<Boot>,
    pub(super) ground: Ground,
    /// Commands that wait for a generation that can fork.
    pub(super) one_shots: WaitingOneShots,
    /// At most one generation has [`DesiredState::Serve`], and one [`DesiredState::Hold`].
    pub(super) generations: Vec<Generation>,
    /// Number of templates that have served so far.
    pub(super) number: u64,
    pub(super) gone: Counts,
    /// The reload in progress.
    pub(super) coming: Option<Coming>,
    /// A reload that was requested before the server itself was up.
    pub(super) awaited: Option<Reload>,
    /// Deaths of the workers of the canary, while there is one.
    pub(super) canary_deaths: Option<Deaths>,
    /// Number of reloads started.
    pub(super) attempts: u64,
    /// Called after the next publication.
    pub(super) awaits_publication: Vec<Published>,
    /// The front is draining or drained: nothing new is started.
    pub(super) is_ending: bool,
    /// The front has ended unexpectedly.
    pub(super) is_broken: bool,
    /// Holders of run permits at the last check, and its time.
    pub(super) turns: PermitWatch,
    pub(super) turns_seen: Instant,
    /// Cores of the machine, or those that this process may use.
    pub(super) cores: usize,
    /// The worker for a replay.
    pub(super) spare: Option<Spare>,
    /// Earliest start of the next tracer generation after a failed one.
    pub(super) tracer_after: Instant,
}

impl Supervisor {
    pub(super) fn new(post: Post, settings: Settings) -> Supervisor {
        let lives = Lives::default();
        let ground = Ground {
            ring: post.ring.clone(),
            shared: post.shared.clone(),
            published: post.published.clone(),
            intake: post.intake.clone(),
            supervision: Supervision::new(post.ring.clone()),
            lives: lives.clone(),
            is_stopping: false,
            refork_reasons: BTreeMap::new(),
            news: RefCell::default(),
            kills: Kills::default(),
            lines: Lines::default(),
        };
        let (serve, intake) = (DesiredState::Serve, &ground.intake);
        let generation = Generation::new(1, settings.clone(), 0, serve, lives, intake);
        Supervisor {
            post,
            settings,
            fallen_until: None,
            boot: None,
            ground,
            one_shots: WaitingOneShots::default(),
            generations: vec![generation],
            number: 1,
            gone: Counts::default(),
            coming: None,
            awaited: None,
            canary_deaths: None,
            attempts: 0,
            awaits_publication: Vec::new(),
            is_ending: false,
            is_broken: false,
            turns: PermitWatch::default(),
            turns_seen: Instant::now(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            spare: None,
            tracer_after: Instant::now(),
        }
    }
}
