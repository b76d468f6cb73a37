//! State of one generation. The steps that change it are in `generation` and the files next to this
//! one.

use super::ground::Readiness;
use super::watch::Watch;
use crate::consoles::Consoles;
use crate::one_shots::OneShots;
use crate::recycle::Suspects;
use crate::scale::Scale;
use crate::settings::Settings;
use crate::template::Template;
use crate::workers::{Event, Lives, Workers};
use samovar_channel::{Engine, Finding, Image, Linking, Opcache, PhpSetup};
use samovar_log::{Intake, Speaker};
use samovar_ring::{DesiredState, Model};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

#[expect(clippy::struct_excessive_bools, reason = "independent facts about one generation")]
pub(crate) struct Generation {
    /// Number of the generation, from 1; counts the templates that have served.
    pub(crate) number: u64,
    pub(crate) settings: Settings,
    /// Its workers record call graphs, in addition to the generation with that number.
    pub(crate) is_tracer: bool,
    /// It was started for one replay.
    pub(crate) replay: Option<u64>,
    pub(crate) desired: DesiredState,
    /// It serves a share of the requests while its workers are held.
    pub(crate) is_canary: bool,
    pub(crate) workers: Workers,
    pub(crate) consoles: Consoles,
    pub(crate) one_shots: OneShots,
    pub(crate) ready: Readiness,
    /// Last model seen of its workers, if it was not the script model.
    pub(super) seen_model: Model,
    pub(crate) started: Instant,
    pub(crate) image: Option<Image>,
    pub(crate) linking: Option<Linking>,
    pub(crate) opcache: Option<Opcache>,
    /// Directives and extensions of PHP, after it has started.
    pub(crate) setup: Option<Arc<PhpSetup>>,
    /// PHP's version; empty before PHP has started.
    pub(crate) php: String,
    /// The libphp that the settings name.
    pub(crate) engine: Option<Engine>,
    pub(crate) findings: Vec<Finding>,
    /// The application's boot ended without waiting for requests; requests run the whole script.
    pub(crate) boot_failed: bool,
    /// Process in which the application is booting now.
    pub(crate) booting: Option<i32>,
    pub(super) template: Option<Template>,
    pub(super) watch: Watch,
    /// Guard of the output pipe of the worker in each cell.
    pub(super) outputs: BTreeMap<usize, Speaker>,
    pub(super) events: VecDeque<Event>,
    /// Time at which workers that have not exited are killed.
    pub(super) stop_by: Option<Instant>,
    pub(super) has_gone: bool,
    pub(super) is_given_up: bool,
    pub(super) recycled_at: Instant,
    pub(super) recycle_looks: usize,
    pub(super) recycle_suspects: Suspects,
    /// Scaling of the workers for any request, and of those for scripts.
    pub(super) scales: [Scale; 2],
}

impl Generation {
    /// Creates a generation. `desired` is [`DesiredState::Hold`] until [`Self::serve`]. `busy`:
    /// number of busy workers of its predecessor.
    pub(crate) fn new(
        number: u64,
        settings: Settings,
        busy: usize,
        desired: DesiredState,
        lives: Lives,
        intake: &Intake,
    ) -> Generation {
        let now = Instant::now();
        let count = settings.workers;
        let begin = busy.clamp(count.min, count.max);
        Generation {
            number,
            desired,
            is_canary: false,
            workers: Workers::new(begin, count.min, lives, now),
            consoles: Consoles::new(settings.consoles.clone(), intake.clone()),
            one_shots: OneShots::default(),
            watch: Watch::new(
                settings.watchdog_limit,
                settings.after_limit,
                settings.boot_limit,
                now,
            ),
            is_tracer: settings.command.options.traces,
            replay: None,
            settings,
            ready: Readiness::Starting,
            seen_model: Model::Script,
            started: now,
            image: None,
            linking: None,
            opcache: None,
            setup: None,
            php: String::new(),
            engine: None,
            findings: Vec::new(),
            boot_failed: false,
            booting: None,
            template: None,
            outputs: BTreeMap::new(),
            events: VecDeque::from([Event::Tick]),
            stop_by: None,
            has_gone: false,
            is_given_up: false,
            recycled_at: now,
            recycle_looks: 0,
            recycle_suspects: Suspects::default(),
            scales: [Scale::new(&count, false), Scale::new(&count, true)],
        }
    }
}
