//! What to do next: a pure state machine. Time and events come in, actions go out; nothing is done here.

use crate::backoff::Backoff;
use samovar_ring::Incarnation;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A worker that lived shorter than this died "at once": its successor waits.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// How long it waits.
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(50), max: Duration::from_secs(5) };

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The template has started PHP; `resident`: its front controller calls `Samovar\serve`.
    TemplateReady {
        /// Boot the application in each worker before its first request.
        resident: bool,
    },
    /// The template process is gone.
    TemplateDied,
    /// A fork succeeded.
    Forked {
        /// The worker's cell.
        index: usize,
        /// Its life.
        incarnation: Incarnation,
        /// Its process.
        pid: i32,
    },
    /// A fork failed (processes or memory ran out).
    ForkFailed {
        /// The worker's cell.
        index: usize,
    },
    /// A worker process is gone.
    WorkerDied {
        /// Its process.
        pid: i32,
    },
    /// A worker process has left, and wants a successor at once.
    WorkerLeft {
        /// Its process.
        pid: i32,
        /// It had answered a request before: whoever leaves without having done any work waits like one that died.
        served: bool,
    },
    /// A worker reports that the application is resident.
    Resident,
    /// Requests for scripts beside a resident front controller have nobody to run them.
    ScriptsWait,
    /// These cells of the ring are free for what [`State::lacks`].
    Room {
        /// Their numbers.
        cells: Vec<usize>,
    },
    /// A worker must be killed: hung, or it wrote garbage.
    Kill {
        /// Its life, as the ring's slot names it.
        incarnation: u32,
    },
    /// Some time has passed.
    Tick,
    /// No more requests come: let the workers leave.
    Stop,
    /// The workers had long enough.
    StopNow,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a template process.
    StartTemplate,
    /// Ask the template for a worker.
    Fork {
        /// The worker's cell.
        index: usize,
        /// Its life.
        incarnation: Incarnation,
        /// What it is for.
        role: Role,
    },
    /// Clean the ring up after a dead worker.
    Repair {
        /// The worker's cell.
        index: usize,
        /// Its former life.
        incarnation: Incarnation,
    },
    /// SIGKILL.
    Kill {
        /// The process.
        pid: i32,
    },
    /// Tell the workers through the ring to leave when idle.
    StopWorkers,
    /// Close the template's channel: it leaves.
    CloseTemplate,
    /// All processes are gone.
    Exit,
}

/// What a worker is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Any request.
    Any,
    /// Any request, and the resident application is booted first.
    Boot,
    /// Scripts beside the resident front controller.
    Script,
}

impl Role {
    /// The word in the template's protocol.
    pub fn word(self) -> &'static str {
        match self {
            Role::Any => "any",
            Role::Boot => "boot",
            Role::Script => "script",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Life {
    /// No process; the next may start at this time.
    Waiting { until: Instant },
    /// The template was asked.
    Asked { incarnation: Incarnation },
    /// It runs.
    Alive { incarnation: Incarnation, pid: i32, since: Instant },
}

/// Numbers the lives of all workers in the ring, whichever pool they belong to.
#[derive(Clone, Debug)]
pub struct Lives(Rc<Cell<Incarnation>>);

impl Default for Lives {
    fn default() -> Lives {
        Lives(Rc::new(Cell::new(Incarnation::FIRST)))
    }
}

impl Lives {
    fn next(&self) -> Incarnation {
        let life = self.0.get();
        self.0.set(life.next());
        life
    }
}

/// A worker's place: it stays, processes come and go in it.
#[derive(Clone, Debug)]
pub struct Place {
    cell: usize,
    script: bool,
    life: Life,
    short_lives: u32,
}

impl Place {
    /// Its cell in the ring.
    pub fn cell(&self) -> usize {
        self.cell
    }

    /// Process, life and its begin, if a process is there.
    pub fn process(&self) -> Option<(i32, Incarnation, Instant)> {
        match self.life {
            Life::Alive { incarnation, pid, since } => Some((pid, incarnation, since)),
            _ => None,
        }
    }

    /// Whether it is for scripts beside a resident front controller.
    pub fn is_script(&self) -> bool {
        self.script
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Template {
    Waiting {
        until: Instant,
    },
    Starting {
        since: Instant,
    },
    Ready {
        since: Instant,
    },
    /// It died; its workers are dying too, and must be gone before the next starts.
    Ending {
        until: Instant,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    No,
    /// No more workers are started.
    Asked,
    /// The workers had long enough; one that was asked for may still be booting, and is not waited for.
    Hurried,
}

/// The state machine.
#[derive(Debug)]
pub struct State {
    places: Vec<Place>,
    workers: usize,
    template: Template,
    short_templates: u32,
    resident: bool,
    scripts: bool,
    lives: Lives,
    stopping: Stopping,
    restarts: u64,
    reforks: u64,
    template_restarts: u64,
}

impl State {
    /// A pool of `workers`, which [`State::lacks`] all its cells; the first [`Event::Tick`] starts the template.
    pub fn new(workers: usize, lives: Lives, now: Instant) -> State {
        State {
            places: Vec::new(),
            workers,
            template: Template::Waiting { until: now },
            short_templates: 0,
            resident: false,
            scripts: false,
            lives,
            stopping: Stopping::No,
            restarts: 0,
            reforks: 0,
            template_restarts: 0,
        }
    }

    /// The workers' places.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Cells that nobody else may use. Those of a pool that stops come free one by one.
    pub fn cells(&self) -> impl Iterator<Item = usize> {
        let is_left = |p: &&Place| !self.is_stopping() || !matches!(p.life, Life::Waiting { .. });
        self.places.iter().filter(is_left).map(Place::cell)
    }

    /// How many more cells it needs.
    pub fn lacks(&self) -> usize {
        if self.is_stopping() {
            return 0;
        }
        let wanted = if self.scripts { 2 * self.workers } else { self.workers };
        wanted.saturating_sub(self.places.len())
    }

    /// Whether it has, or wants, workers for scripts beside a resident front controller.
    pub fn has_scripts(&self) -> bool {
        self.scripts
    }

    /// Workers that died and were replaced.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Workers that left for a fresh fork.
    pub fn reforks(&self) -> u64 {
        self.reforks
    }

    /// How often the template was started after the first time.
    pub fn template_restarts(&self) -> u64 {
        self.template_restarts
    }

    /// Whether the application is known to be resident.
    pub fn is_resident(&self) -> bool {
        self.resident
    }

    fn is_stopping(&self) -> bool {
        self.stopping != Stopping::No
    }

    /// Takes one event; says what to do.
    #[must_use]
    pub fn step(&mut self, event: &Event, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        match *event {
            Event::TemplateReady { resident } => {
                self.template = Template::Ready { since: now };
                self.resident |= resident;
            }
            Event::TemplateDied => self.template_died(now, &mut actions),
            Event::Forked { index, incarnation, pid } => self.forked(index, incarnation, pid, now),
            Event::ForkFailed { index } => self.fork_failed(index, now),
            Event::WorkerDied { pid } => self.worker_died(pid, None, now, &mut actions),
            Event::WorkerLeft { pid, served } => {
                self.worker_died(pid, Some(served), now, &mut actions);
            }
            Event::Resident => self.resident = true,
            Event::ScriptsWait => self.scripts |= self.resident,
            Event::Room { ref cells } => self.take_cells(cells, now),
            Event::Kill { incarnation } => self.kill(incarnation, &mut actions),
            Event::Tick => {}
            Event::Stop => {
                if self.stopping == Stopping::No {
                    self.stopping = Stopping::Asked;
                }
                actions.push(Action::StopWorkers);
            }
            Event::StopNow => {
                self.stopping = Stopping::Hurried;
                let pids = self.places.iter().filter_map(Place::process);
                actions.extend(pids.map(|(pid, ..)| Action::Kill { pid }));
            }
        }
        self.settle(now, &mut actions);
        actions
    }

    fn template_died(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let lived = match self.template {
            Template::Ready { since } | Template::Starting { since } => now - since,
            _ => Duration::ZERO,
        };
        self.short_templates = count_short(self.short_templates, lived);
        self.template = Template::Ending { until: now + BACKOFF.after(self.short_templates) };
        for place in &mut self.places {
            let index = place.cell;
            if let Life::Asked { incarnation } = place.life {
                // It may have forked and not lived to say so; the child died with it.
                actions.push(Action::Repair { index, incarnation });
                place.life = Life::Waiting { until: now };
            }
        }
    }

    fn forked(&mut self, index: usize, incarnation: Incarnation, pid: i32, now: Instant) {
        if let Some(place) = self.place(index)
            && place.life == (Life::Asked { incarnation })
        {
            place.life = Life::Alive { incarnation, pid, since: now };
        }
    }

    fn place(&mut self, cell: usize) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| place.cell == cell)
    }

    fn fork_failed(&mut self, index: usize, now: Instant) {
        if let Some(place) = self.place(index) {
            place.short_lives = place.short_lives.saturating_add(1);
            place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
        }
    }

    /// `left`: it left by itself, having served or not.
    fn worker_died(
        &mut self,
        dead: i32,
        left: Option<bool>,
        now: Instant,
        actions: &mut Vec<Action>,
    ) {
        for place in &mut self.places {
            let index = place.cell;
            let Life::Alive { incarnation, pid, since } = place.life else { continue };
            if pid != dead {
                continue;
            }
            place.short_lives = match left {
                Some(true) => 0,
                _ => count_short(place.short_lives, now - since),
            };
            place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
            self.restarts += u64::from(self.stopping == Stopping::No && left.is_none());
            self.reforks += u64::from(left.is_some());
            actions.push(Action::Repair { index, incarnation });
        }
    }

    /// The first `workers` places take any request, further ones are for scripts.
    fn take_cells(&mut self, cells: &[usize], now: Instant) {
        for cell in cells.iter().take(self.lacks()) {
            let script = self.places.len() >= self.workers;
            let life = Life::Waiting { until: now };
            self.places.push(Place { cell: *cell, script, life, short_lives: 0 });
        }
    }

    fn kill(&self, incarnation: u32, actions: &mut Vec<Action>) {
        let pids = self.places.iter().filter_map(Place::process);
        let hit = pids.filter(|(_, life, _)| life.get() == incarnation);
        actions.extend(hit.map(|(pid, ..)| Action::Kill { pid }));
    }

    /// What follows from the state alone, whatever the event was.
    fn settle(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let alive = self.places.iter().any(|p| matches!(p.life, Life::Alive { .. }));
        if self.is_stopping() {
            return self.settle_stop(alive, actions);
        }
        match self.template {
            Template::Waiting { until } if until <= now => {
                self.template = Template::Starting { since: now };
                actions.push(Action::StartTemplate);
            }
            Template::Ending { until } if !alive => {
                self.template = Template::Waiting { until };
                self.template_restarts += 1;
            }
            Template::Ready { .. } => self.fork_waiting(now, actions),
            _ => {}
        }
    }

    fn settle_stop(&mut self, alive: bool, actions: &mut Vec<Action>) {
        let asked = self.places.iter().any(|p| matches!(p.life, Life::Asked { .. }));
        match self.template {
            Template::Waiting { .. } | Template::Ending { .. } if !alive => {
                actions.push(Action::Exit);
            }
            Template::Ready { .. } | Template::Starting { .. }
                if !alive && (!asked || self.stopping == Stopping::Hurried) =>
            {
                actions.push(Action::CloseTemplate);
            }
            _ => {}
        }
    }

    fn fork_waiting(&mut self, now: Instant, actions: &mut Vec<Action>) {
        for place in &mut self.places {
            let index = place.cell;
            if !matches!(place.life, Life::Waiting { until } if until <= now) {
                continue;
            }
            let role = match (place.script, self.resident) {
                (true, _) => Role::Script,
                (false, true) => Role::Boot,
                (false, false) => Role::Any,
            };
            let incarnation = self.lives.next();
            place.life = Life::Asked { incarnation };
            actions.push(Action::Fork { index, incarnation, role });
        }
    }
}

fn count_short(before: u32, lived: Duration) -> u32 {
    if lived < SHORT_LIFE { before.saturating_add(1) } else { 0 }
}

#[cfg(test)]
mod tests;
