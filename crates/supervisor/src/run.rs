//! Does what the state machines say: one thread that waits for messages, signals, commands and time.
//!
//! Usually there is one generation (`pool`); a reload has a second one beside it for a while (`reload`).

mod end;
mod handle;
mod pool;
mod reload;

use crate::consoles::{Console, Entry};
use crate::os::{self, Signal, Signals};
use crate::state::{Event, Lives};
use pool::{Ground, Pool, Readiness};
use samovar_ring::{Ring, Standing, Supervision, WORKERS_MAX};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tracing::warn;

pub(crate) use end::describe;
pub use end::{Ended, Failed};
use handle::Process;
pub use handle::{Command, Handle, Report, WorkerLine};
pub use reload::{Reload, ReloadDone};

pub use crate::template::{Finding, Image, TemplateCommand};

/// How often the machines are asked without an event: backoffs end, models change.
const TICK: Duration = Duration::from_millis(100);
/// The same while a new generation boots: it is waited for.
const TICK_COMING: Duration = Duration::from_millis(5);
/// Between "the workers may leave" and SIGKILL, when the server ends.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// Generations at a time: one serves, one may come, the others finish requests.
const GENERATIONS_MAX: usize = 8;

/// What the supervisor needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The template.
    pub command: TemplateCommand,
    /// Worker processes.
    pub workers: usize,
    /// How long the first boot may take before the server is called ready without it, and how long a reload's may.
    pub boot_limit: Duration,
    /// How long the requests of a generation that was replaced may take.
    pub drain_limit: Duration,
    /// Kinds of findings that end the server instead of a fall-back; `all` for each.
    pub image_errors: Vec<String>,
    /// Console commands beside HTTP.
    pub consoles: Vec<Console>,
}

/// What the supervisor tells its owner; called on the supervisor's thread, must not block.
pub trait Hooks {
    /// The workers wait for requests.
    fn ready(&mut self);
    /// SIGTERM, SIGINT or SIGHUP came: drain the front, then send [`Command::Stop`].
    fn stop_requested(&mut self);
    /// SIGUSR1 came: log files were moved away.
    fn reopen_logs(&mut self);
    /// SIGUSR2 came: send [`Command::Reload`].
    fn reload_requested(&mut self);
}

/// A supervisor that has blocked its signals and not started anything.
pub struct Running {
    signals: Signals,
    ring: Ring,
    handle: Handle,
    commands: Receiver<Command>,
}

impl Running {
    /// Call it on the main thread before any other thread starts: threads inherit the signal mask, and the
    /// template is bound to the life of the thread that starts it.
    pub fn prepare(ring: Ring) -> io::Result<Running> {
        let signals = os::block_signals()?;
        os::adopt_orphans();
        let (handle, commands) = Handle::new(&ring)?;
        Ok(Running { signals, ring, handle, commands })
    }

    /// For other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

/// Supervises until [`Command::Stop`] has been carried out, or a second signal.
pub fn run(running: Running, settings: Settings, hooks: &mut impl Hooks) -> Result<Ended, Failed> {
    let lives = Lives::default();
    let ground = Ground {
        ring: running.ring.clone(),
        supervision: Supervision::new(running.ring.clone()),
        lives: lives.clone(),
        is_stopping: false,
        refork_reasons: BTreeMap::new(),
    };
    let mut supervisor = Supervisor {
        running,
        ground,
        pools: vec![Pool::new(1, settings, Standing::Serve, lives)],
        generation: 1,
        gone: Counts::default(),
        coming: None,
        is_ending: false,
        stop_requests: 0,
    };
    supervisor.run(hooks)
}

/// What generations that have gone leave behind.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    restarts: u64,
    reforks: u64,
}

impl Counts {
    fn with(self, pool: &Pool) -> Counts {
        Counts {
            restarts: self.restarts + pool.state.restarts(),
            reforks: self.reforks + pool.state.reforks(),
        }
    }
}

struct Supervisor {
    running: Running,
    ground: Ground,
    /// At most one has [`Standing::Serve`], and one [`Standing::Hold`].
    pools: Vec<Pool>,
    /// How many templates have served so far.
    generation: u64,
    gone: Counts,
    /// A reload is under way; whom to tell of its end.
    coming: Option<ReloadDone>,
    /// The front drains, or has done so: nothing new begins.
    is_ending: bool,
    stop_requests: u32,
}

impl Supervisor {
    fn run(&mut self, hooks: &mut impl Hooks) -> Result<Ended, Failed> {
        loop {
            self.turn()?;
            if self.pools.is_empty() {
                let hurried = self.stop_requests > 1;
                return Ok(if hurried { Ended::Hurried } else { Ended::Drained });
            }
            self.publish();
            self.wait(hooks)?;
            for pool in &mut self.pools {
                pool.look_at_models(&self.ground);
            }
            self.look_at_readiness(hooks);
            self.look_at_coming();
            self.tell_all(&Event::Tick);
        }
    }

    fn turn(&mut self) -> Result<(), Failed> {
        for at in 0..self.pools.len() {
            if self.pools[at].state.lacks() > 0 {
                let cells = self.free_cells();
                self.pools[at].tell(Event::Room { cells });
            }
            let pool = &mut self.pools[at];
            let before = pool.state.template_restarts();
            let (standing, result) = (pool.standing, pool.turn(&self.ground));
            if standing == Standing::Serve && pool.state.template_restarts() > before {
                self.count_generation(at);
            }
            self.survive(standing, result)?;
        }
        self.settle_consoles();
        let gone = self.pools.extract_if(.., |pool| pool.has_gone());
        self.gone = gone.fold(self.gone, |sum, pool| sum.with(&pool));
        Ok(())
    }

    /// Another template serves from now on, that of the pool there.
    fn count_generation(&mut self, at: usize) {
        self.generation += 1;
        self.pools[at].number = self.generation;
    }

    fn tell_all(&mut self, event: &Event) {
        self.pools.iter_mut().for_each(|pool| pool.tell(event.clone()));
    }

    /// A console worker begins when its predecessor has left.
    fn settle_consoles(&mut self) {
        let living: Vec<Vec<(String, usize)>> =
            self.pools.iter().map(|p| p.consoles.living()).collect();
        for (at, pool) in self.pools.iter_mut().enumerate() {
            let others = living.iter().enumerate().filter(|(other, _)| *other != at);
            let theirs: Vec<&(String, usize)> = others.flat_map(|(_, living)| living).collect();
            pool.settle_consoles(&|name, number| {
                theirs.iter().any(|their| their.0 == name && their.1 == number)
            });
        }
    }

    /// Cells of the ring that no generation uses.
    fn free_cells(&self) -> Vec<usize> {
        let mut used = [false; WORKERS_MAX];
        let cells = self.pools.iter().flat_map(|pool| pool.state.cells());
        cells.for_each(|cell| used[cell] = true);
        (0..WORKERS_MAX).filter(|cell| !used[*cell]).collect()
    }

    fn wait(&mut self, hooks: &mut impl Hooks) -> Result<(), Failed> {
        let wake = self.running.handle.wake.as_raw_fd();
        let mut fds = [-1; GENERATIONS_MAX + 2];
        for (fd, pool) in fds.iter_mut().zip(&self.pools) {
            *fd = pool.fd();
        }
        fds[GENERATIONS_MAX] = self.running.signals.as_raw_fd();
        fds[GENERATIONS_MAX + 1] = wake;
        let tick = if self.coming.is_some() { TICK_COMING } else { TICK };
        let readable = os::poll(fds, tick);
        for (at, is_readable) in readable.into_iter().enumerate().take(self.pools.len()) {
            if is_readable {
                self.read_template(at)?;
            }
        }
        if readable[GENERATIONS_MAX] {
            for signal in self.running.signals.take() {
                match signal {
                    Signal::Child => self.reap()?,
                    Signal::Reopen => hooks.reopen_logs(),
                    Signal::Reload => hooks.reload_requested(),
                    Signal::Stop => self.stop_requested(hooks),
                }
            }
        }
        if readable[GENERATIONS_MAX + 1] {
            os::silence(wake);
            self.read_commands();
        }
        Ok(())
    }

    fn read_template(&mut self, at: usize) -> Result<(), Failed> {
        let pool = &mut self.pools[at];
        let (standing, result) = (pool.standing, pool.read_template(&mut self.ground));
        self.survive(standing, result)
    }

    fn stop_requested(&mut self, hooks: &mut impl Hooks) {
        self.stop_requests += 1;
        self.begin_to_end();
        if self.stop_requests == 1 {
            hooks.stop_requested();
        } else {
            // Somebody is in a hurry: the second signal does not wait for requests.
            self.ground.is_stopping = true;
            self.pools.iter_mut().for_each(Pool::hurry);
        }
    }

    fn begin_to_end(&mut self) {
        self.is_ending = true;
        self.give_up("the server is stopping");
        self.pools.iter_mut().for_each(|pool| pool.consoles.stop("the server stops"));
    }

    fn read_commands(&mut self) {
        while let Ok(command) = self.running.commands.try_recv() {
            match command {
                Command::Kill { incarnation, reason } => {
                    warn!(incarnation, reason, "a worker is killed");
                    self.tell_all(&Event::Kill { incarnation });
                }
                Command::ScriptsWait => {
                    let mut pools = self.pools.iter_mut();
                    if let Some(pool) = pools.find(|p| p.standing == Standing::Serve) {
                        pool.tell(Event::ScriptsWait);
                    }
                }
                Command::Draining => self.begin_to_end(),
                Command::Reload(reload) => self.begin_reload(reload),
                Command::Stop => {
                    self.begin_to_end();
                    self.ground.is_stopping = true;
                    let by = Some(Instant::now() + LEAVE_LIMIT);
                    self.pools.iter_mut().for_each(|pool| pool.stop(by));
                }
            }
        }
    }

    /// Our own children: templates, and orphans of a template that died.
    fn reap(&mut self) -> Result<(), Failed> {
        // A death and the template's last words may come together: the words first.
        for at in 0..self.pools.len() {
            self.read_template(at)?;
        }
        while let Some((pid, status)) = os::reap() {
            let mut is_known = false;
            for at in 0..self.pools.len() {
                let pool = &mut self.pools[at];
                let (standing, result) =
                    (pool.standing, pool.reaped(pid, status, &mut self.ground));
                is_known |= !matches!(result, Ok(false));
                self.survive(standing, result.map(|_| ()))?;
            }
            if !is_known {
                // Perhaps a worker whose `forked` waits to be looked at.
                self.tell_all(&Event::WorkerDied { pid });
            }
        }
        Ok(())
    }

    fn publish(&self) {
        let counts = self.pools.iter().fold(self.gone, Counts::with);
        let mut snapshot = self.running.handle.snapshot();
        snapshot.processes.clear();
        for pool in &self.pools {
            let process = |(cell, pid, since)| Process {
                cell,
                pid,
                since,
                generation: pool.number,
                standing: pool.standing,
            };
            snapshot.processes.extend(pool.processes().map(process));
        }
        // Places of other generations are of interest only as long as somebody is in them.
        let is_shown =
            |pool: &Pool, entry: &Entry| pool.standing == Standing::Serve || entry.has_process();
        snapshot.consoles.clear();
        for pool in &self.pools {
            snapshot.consoles.extend(pool.consoles.entries().filter(|entry| is_shown(pool, entry)));
        }
        snapshot.restarts = counts.restarts;
        snapshot.reforks = counts.reforks;
        snapshot.refork_reasons.clone_from(&self.ground.refork_reasons);
        snapshot.is_reloading = self.coming.is_some();
        if let Some(pool) = self.serving() {
            let is_started = pool.ready != Readiness::Starting;
            snapshot.generation = if is_started { pool.number } else { 0 };
            snapshot.image.clone_from(&pool.image);
            snapshot.findings.clone_from(&pool.findings);
        }
    }

    /// The first generation is ready when its workers wait, or have had their time.
    fn look_at_readiness(&mut self, hooks: &mut impl Hooks) {
        let Some(pool) = self.pools.iter_mut().find(|p| p.standing == Standing::Serve) else {
            return;
        };
        if pool.ready != Readiness::TemplateReady {
            return;
        }
        let (late, all) = (pool.is_late(), pool.is_up(&self.ground));
        if late && !all {
            warn!("the application has not booted in time; requests wait for it");
        }
        if all || late {
            pool.ready = Readiness::Ready;
            hooks.ready();
        }
    }
}
