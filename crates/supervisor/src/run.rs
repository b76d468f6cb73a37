//! The supervisor's loop: one thread waits for messages, signals, commands and time, and executes
//! the decisions of the state machines.
//!
//! Usually there is one generation; during a reload there are two (`reload`).

mod pools;
mod reload;
mod tracer;

pub use pools::run;

use crate::consoles::{ConsoleSnapshot, Elsewhere};
use crate::end::Failed;
use crate::generation::{Coming, Generation, Ground, LEAVE_LIMIT, Readiness};
use crate::handle::{Command, Handle, Process, Reload};
use crate::news::{KillWhy, Kills, Lines, News};
use crate::os::{self, Signals};
use crate::overrun_diagnosis::{Case, OverrunDiagnosis};
use crate::settings::Settings;
use crate::workers::{Event, Lives, WorkerPlace};
use samovar_log::Intake;
use samovar_published::Publishing;
use samovar_ring::{DesiredState, PermitWatch, Ring, Run, Supervision, WORKERS_MAX};
use samovar_shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tracing::warn;

/// Interval at which the state machines run without an event: backoffs end, models change.
const TICK: Duration = Duration::from_millis(100);
/// Interval while a new generation boots, so that a reload is not delayed.
const TICK_COMING: Duration = Duration::from_millis(5);
/// Interval while requests wait and workers may be added for them.
const TICK_URGENT: Duration = Duration::from_millis(25);
/// Maximum time for which a worker holds its run permit without waiting. After it, other workers
/// may run too: this one computes for long, or waits without having reported it.
const TURN_LIMIT: Duration = Duration::from_millis(100);
/// Maximum number of generations: one serves, one may be starting, the others finish requests.
const GENERATIONS_MAX: usize = 8;
/// Maximum number of generations that record call graphs.
const TRACERS_MAX: usize = 4;
const PLACES_MAX: usize = GENERATIONS_MAX + TRACERS_MAX;

/// Callbacks to the owner. Called on the supervisor's thread; must not block.
pub trait Hooks {
    /// The workers wait for requests, or the time limit for that is over.
    fn ready(&mut self, boot: Boot);
    /// SIGTERM, SIGINT or SIGHUP was received: drain the front, then send [`Command::Stop`].
    fn stop_requested(&mut self);
    /// SIGUSR1 was received: log files were moved away.
    fn reopen_logs(&mut self);
    /// SIGUSR2 was received: send [`Command::Reload`].
    fn reload_requested(&mut self);
    /// SIGRTMIN was received: start a [`Successor`](crate::successor::Successor).
    fn upgrade_requested(&mut self);
    /// A child that the supervisor did not start has ended, with that status.
    fn child_ended(&mut self, pid: i32, status: i32);
    /// The supervisor has done its due work. Called at least ten times a second.
    fn turned(&mut self);
    /// An event of a worker of that pool. The name is empty if there is only one pool.
    fn news(&mut self, pool: &str, news: News);
}

/// Result of the first boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// All workers are up.
    Up,
    /// Not all workers are up after `boot_limit`.
    Late,
    /// All workers are up, but the application could not be booted in advance: they run it as whole
    /// scripts.
    Failed,
}

/// A supervisor that has blocked its signals, and has started nothing yet.
pub struct Running {
    signals: Signals,
    /// The pools, the default pool first.
    posts: Vec<Post>,
}

/// The parts of a pool that exist before it runs.
pub(crate) struct Post {
    /// Name of the pool; empty if it is the only one.
    name: String,
    ring: Ring,
    shared: Shared,
    published: Publishing,
    intake: Intake,
    handle: Handle,
    commands: Receiver<Command>,
    diagnosis: Arc<OverrunDiagnosis>,
    /// Console workers of the previous server.
    before: Elsewhere,
}

impl Post {
    fn new(
        name: &str,
        ring: Ring,
        (shared, published): (Shared, Publishing),
        intake: Intake,
        diagnosis: Arc<OverrunDiagnosis>,
    ) -> io::Result<Post> {
        let (handle, commands) = Handle::new(&ring)?;
        let (name, before) = (name.to_owned(), Elsewhere::These(Vec::new()));
        Ok(Post { name, ring, shared, published, intake, handle, commands, diagnosis, before })
    }
}

impl Running {
    /// Prepares the supervisor. Must be called on the main thread before any other thread starts:
    /// threads inherit the signal mask. The template is bound to the life of the thread that starts
    /// it.
    ///
    /// - `memory`: shared memory of the workers, except that for requests, and the published
    ///   values, which workers only read
    /// - `intake`: receives the output of all processes
    pub fn prepare(
        ring: Ring,
        memory: (Shared, Publishing),
        intake: Intake,
    ) -> io::Result<Running> {
        let signals = os::block_signals()?;
        os::adopt_orphans();
        let diagnosis = Arc::new(OverrunDiagnosis::start()?);
        let posts = vec![Post::new("", ring, memory, intake, diagnosis)?];
        Ok(Running { signals, posts })
    }

    /// Delays the console workers of all pools added so far, until [`Command::Consoles`] informs
    /// each pool of those that another server still runs.
    pub fn hold_consoles(&mut self) {
        self.posts.iter_mut().for_each(|post| post.before = Elsewhere::All);
    }

    /// Returns the default pool's handle.
    pub fn handle(&self) -> Handle {
        self.posts[0].handle.clone()
    }
}

/// Counters of generations that have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    grown: u64,
    shrunk: u64,
    restarts: u64,
    reforks: u64,
    recycled: u64,
}

impl Counts {
    fn with(self, generation: &Generation) -> Counts {
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

/// The supervisor of one pool.
struct Supervisor {
    post: Post,
    /// Settings for the next template after the pool has failed.
    settings: Settings,
    /// Time of the next attempt, if the pool has failed.
    fallen_until: Option<Instant>,
    /// Result of the first boot.
    boot: Option<Boot>,
    ground: Ground,
    /// At most one generation has [`DesiredState::Serve`], and one [`DesiredState::Hold`].
    generations: Vec<Generation>,
    /// Number of templates that have served so far.
    number: u64,
    gone: Counts,
    /// The reload in progress.
    coming: Option<Coming>,
    /// A reload that was requested before the server itself was up.
    awaited: Option<Reload>,
    /// Number of reloads started.
    attempts: u64,
    /// The front is draining or drained: nothing new is started.
    is_ending: bool,
    /// The front has ended unexpectedly.
    is_broken: bool,
    /// Holders of run permits at the last check, and its time.
    turns: PermitWatch,
    turns_seen: Instant,
    /// Cores of the machine, or those that this process may use.
    cores: usize,
    /// Earliest start of the next tracer generation after a failed one.
    tracer_after: Instant,
}

/// Wait before a pool that could not start is tried again.
const FALLEN: Duration = Duration::from_secs(5);

impl Supervisor {
    fn new(post: Post, settings: Settings) -> Supervisor {
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
            generations: vec![generation],
            number: 1,
            gone: Counts::default(),
            coming: None,
            awaited: None,
            attempts: 0,
            is_ending: false,
            is_broken: false,
            turns: PermitWatch::default(),
            turns_seen: Instant::now(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            tracer_after: Instant::now(),
        }
    }

    /// Whether all generations are gone and none will follow.
    fn is_over(&self, is_first: bool) -> bool {
        self.generations.is_empty() && (is_first || self.is_ending)
    }

    /// Handles a pool that cannot start or continue: ends its generations, and schedules another
    /// attempt.
    fn fall(&mut self, failed: &Failed) {
        warn!(again = ?FALLEN, "the pool cannot run, its requests are rejected; other pools keep \
                                serving: {failed}");
        self.boot = self.boot.or(Some(Boot::Failed));
        self.fallen_until = Some(Instant::now() + FALLEN);
        self.give_up(&failed.to_string());
        let living = self.generations.iter_mut().filter(|g| g.desired != DesiredState::Retire);
        living.for_each(|generation| generation.give_up(&self.ground));
    }

    /// Starts a failed pool again, after all its generations are gone.
    fn rise(&mut self) {
        let is_due = self.fallen_until.is_some_and(|until| Instant::now() >= until);
        if self.is_ending || !is_due || !self.generations.is_empty() {
            return;
        }
        self.fallen_until = None;
        self.number += 1;
        let (lives, intake) = (self.ground.lives.clone(), &self.ground.intake);
        let (settings, serve) = (self.settings.clone(), DesiredState::Serve);
        let generation = Generation::new(self.number, settings, 0, serve, lives, intake);
        self.generations.push(generation);
    }

    /// Runs all periodic checks.
    fn look(&mut self) {
        for generation in &mut self.generations {
            generation.look_at_models(&self.ground);
            generation.watch(&self.ground);
            generation.recycle(&self.ground);
            generation.scale(&self.ground);
        }
        self.check_permits();
        self.look_at_readiness();
        self.look_at_awaited();
        self.look_at_coming();
        self.look_at_tracer();
        self.rise();
        self.tell_all(&Event::Tick);
    }

    fn step(&mut self) -> Result<(), Failed> {
        for at in 0..self.generations.len() {
            let generation = &mut self.generations[at];
            let before = generation.workers.template_restarts();
            let desired = generation.desired;
            let mut result = generation.step(&self.ground);
            // The events may have created a need for more cells.
            if result.is_ok() && generation.workers.lacks() > 0 {
                let cells = self.free_cells();
                let generation = &mut self.generations[at];
                generation.tell(Event::Room { cells });
                result = generation.step(&self.ground);
            }
            let generation = &self.generations[at];
            let is_new = generation.workers.template_restarts() > before;
            if is_new && desired == DesiredState::Serve && !generation.is_tracer {
                self.count_generation(at);
            }
            self.survive(at, desired, result)?;
        }
        self.settle_consoles();
        let gone = self.generations.extract_if(.., |generation| generation.has_gone());
        self.gone = gone.fold(self.gone, |sum, generation| sum.with(&generation));
        Ok(())
    }

    /// Numbers the new template of that generation, which serves from now on.
    fn count_generation(&mut self, at: usize) {
        self.number += 1;
        self.generations[at].number = self.number;
    }

    fn tell_all(&mut self, event: &Event) {
        self.generations.iter_mut().for_each(|generation| generation.tell(event.clone()));
    }

    /// Settles the console workers of all generations. A console worker starts after its
    /// predecessor has exited.
    fn settle_consoles(&mut self) {
        let living: Vec<Vec<(String, usize)>> =
            self.generations.iter().map(|p| p.consoles.living()).collect();
        for (at, generation) in self.generations.iter_mut().enumerate() {
            let others = living.iter().enumerate().filter(|(other, _)| *other != at);
            let theirs: Vec<&(String, usize)> = others.flat_map(|(_, living)| living).collect();
            let before = &self.post.before;
            generation.settle_consoles(&|name, number| {
                let is_same = |their: &&(String, usize)| their.0 == name && their.1 == number;
                before.has(name, number) || theirs.iter().any(is_same)
            });
        }
    }

    /// Sets the number of run permits, if there are more workers than may run. Lets other workers
    /// run in addition to those that hold a permit for too long.
    fn check_permits(&mut self) {
        let cells = self.generations.iter().flat_map(|generation| generation.workers.cells());
        let in_use = cells.max().map_or(0, |cell| cell + 1);
        let mut live = vec![false; in_use];
        let processes = self.generations.iter().flat_map(Generation::processes);
        processes.for_each(|(cell, ..)| live[cell] = true);
        let limit = self.serving().map_or(0, |generation| generation.settings.workers.running_max);
        let takers = self.generations.iter().filter(|g| g.desired != DesiredState::Hold);
        let count = takers.map(|generation| generation.processes().count()).sum::<usize>();
        let limit = if count > limit { limit } else { 0 };
        let woken_max = if count > self.cores { self.cores } else { 0 };
        self.ground.supervision.set_permits(limit, woken_max, in_use.max(1));
        if self.turns_seen.elapsed() >= TURN_LIMIT {
            self.turns_seen = Instant::now();
            let is_live = |cell: usize| live.get(cell).is_some_and(|is_live| *is_live);
            self.ground.supervision.repair_permits(&mut self.turns, is_live);
        }
    }

    /// Returns the cells of the ring that no generation uses.
    fn free_cells(&self) -> Vec<usize> {
        let mut used = [false; WORKERS_MAX];
        let cells = self.generations.iter().flat_map(|generation| generation.workers.cells());
        cells.for_each(|cell| used[cell] = true);
        (0..WORKERS_MAX).filter(|cell| !used[*cell]).collect()
    }

    fn read_template(&mut self, at: usize) -> Result<(), Failed> {
        let generation = &mut self.generations[at];
        let (desired, result) = (generation.desired, generation.read_template(&mut self.ground));
        self.survive(at, desired, result)
    }

    fn stop_now(&mut self) {
        self.ground.is_stopping = true;
        self.generations.iter_mut().for_each(Generation::stop_now);
    }

    fn begin_to_end(&mut self) {
        self.is_ending = true;
        self.give_up("the server is stopping");
        self.generations
            .iter_mut()
            .for_each(|generation| generation.consoles.stop("the server is stopping"));
    }

    fn read_commands(&mut self) {
        while let Ok(command) = self.post.commands.try_recv() {
            match command {
                Command::Kill { incarnation, reason, run } => {
                    // The run may have ended meanwhile, and the worker may run another request.
                    if run.is_none_or(|run| self.ground.supervision.is_running(run)) {
                        if let Some(suppressed) = self.ground.lines.killed.pass() {
                            warn!(incarnation, reason, suppressed, "killing a worker");
                        }
                        let why = run.map_or(KillWhy::Garbage, |_| KillWhy::Overrun);
                        self.ground.kills.count(why, 1);
                        self.ground.tell(News::Killed(reason.to_owned()));
                        self.tell_all(&Event::Kill { incarnation });
                    }
                }
                Command::Overrun { run, overrun, request, id, ran } => {
                    let worker = self.worker_of(run);
                    let pool = self.post.name.clone();
                    let case = Case { pool, worker, overrun, request, id, ran };
                    self.post.diagnosis.hand_in(case);
                }
                Command::ScriptsWait => {
                    if let Some(generation) = self.serving_mut() {
                        generation.tell(Event::ScriptsWait);
                    }
                }
                Command::Draining => self.begin_to_end(),
                Command::Consoles(before) => self.post.before = before,
                Command::Reload(reload) => self.begin_reload(reload),
                Command::StopNow => {
                    self.is_broken = true;
                    self.begin_to_end();
                    self.stop_now();
                }
                Command::Probed { attempt, result } => self.hear_probe(attempt, result),
                Command::Admitted { attempt, result } => self.hear_gate(attempt, result),
                Command::Stop => {
                    self.begin_to_end();
                    self.ground.is_stopping = true;
                    let by = Some(Instant::now() + LEAVE_LIMIT);
                    self.generations.iter_mut().for_each(|generation| generation.stop(by));
                }
            }
        }
    }

    /// Returns the process that still executes the run: its process id and pidfd.
    fn worker_of(&self, run: Run) -> Option<(i32, Arc<OwnedFd>)> {
        let mut places = self.generations.iter().flat_map(|g| g.workers.places());
        let process = places.find_map(|p| p.process().filter(|(_, life, _)| *life == run.worker));
        let worker =
            process.and_then(|(pid, ..)| Some((pid, Arc::new(os::open_process(pid).ok()?))));
        // Checked after the pidfd is open: before that, the id could have passed to another
        // process.
        worker.filter(|_| self.ground.supervision.is_running(run))
    }

    /// Handles the end of a child. Returns whether it belonged to this pool.
    fn reaped(&mut self, pid: i32, status: i32) -> (bool, Result<(), Failed>) {
        let mut is_known = false;
        for at in 0..self.generations.len() {
            let generation = &mut self.generations[at];
            let (desired, result) =
                (generation.desired, generation.reaped(pid, status, &mut self.ground));
            is_known |= !matches!(result, Ok(false));
            let survived = self.survive(at, desired, result.map(|_| ()));
            if survived.is_err() {
                return (is_known, survived);
            }
        }
        (is_known, Ok(()))
    }

    fn publish(&self) {
        let counts = self.generations.iter().fold(self.gone, Counts::with);
        let mut snapshot = self.post.handle.snapshot();
        snapshot.processes.clear();
        for generation in &self.generations {
            let process = |place: &WorkerPlace| {
                let (pid, life, since) = place.process()?;
                Some(Process {
                    cell: place.cell(),
                    pid,
                    life,
                    since,
                    generation: generation.number,
                    desired: generation.desired_of(place.cell()),
                })
            };
            snapshot.processes.extend(generation.workers.places().iter().filter_map(process));
        }
        let booting = |generation: &Generation| Some((generation.booting?, generation.number));
        snapshot.booting.clear();
        let boots = self.generations.iter().filter(|generation| !generation.is_tracer);
        snapshot.booting.extend(boots.filter_map(booting));
        // Places of other generations are shown only while they have a process.
        let is_shown = |generation: &Generation, entry: &ConsoleSnapshot| {
            generation.desired == DesiredState::Serve || entry.has_process()
        };
        snapshot.consoles.clear();
        for generation in &self.generations {
            snapshot
                .consoles
                .extend(generation.consoles.entries().filter(|entry| is_shown(generation, entry)));
        }
        snapshot.grown = counts.grown;
        snapshot.shrunk = counts.shrunk;
        snapshot.restarts = counts.restarts;
        snapshot.reforks = counts.reforks;
        snapshot.recycled = counts.recycled;
        snapshot.refork_reasons.clone_from(&self.ground.refork_reasons);
        snapshot.kills = self.ground.kills.by_reason();
        snapshot.is_ending = self.is_ending;
        let living = self.generations.iter().flat_map(|generation| generation.consoles.living());
        snapshot.living_consoles = living.collect();
        snapshot.is_reloading = self.coming.is_some() || self.awaited.is_some();
        if let Some(generation) = self.serving() {
            let is_started = generation.ready != Readiness::Starting;
            snapshot.generation = if is_started { generation.number } else { 0 };
            snapshot.boot_failed = generation.boot_failed;
            snapshot.image = generation.image;
            snapshot.linking.clone_from(&generation.linking);
            snapshot.php.clone_from(&generation.php);
            snapshot.engine.clone_from(&generation.engine);
            snapshot.findings.clone_from(&generation.findings);
            snapshot.scale = generation.scale_lines();
        } else if self.fallen_until.is_some() {
            (snapshot.generation, snapshot.boot_failed) = (0, true);
        }
    }

    /// Marks the first generation as ready when its workers wait for requests, or when the time
    /// limit is over.
    fn look_at_readiness(&mut self) {
        let Some(generation) = self.serving() else { return };
        if generation.ready != Readiness::TemplateReady {
            return;
        }
        let (late, all) = (generation.is_late(), generation.is_up(&self.ground));
        if late && !all {
            warn!("the application did not boot in time; requests wait for it");
        }
        if all || late {
            if let Some(generation) = self.serving_mut() {
                generation.ready = Readiness::Ready;
            }
            let boot = match self.serving() {
                _ if !all => Boot::Late,
                Some(generation) if generation.boot_failed => Boot::Failed,
                _ => Boot::Up,
            };
            self.boot = self.boot.or(Some(boot));
        }
    }
}
