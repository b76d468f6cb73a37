//! The supervisor's loop: one thread waits for messages, signals, commands and time, and executes
//! the decisions of the state machines.
//!
//! Usually there is one generation; during a reload there are two (`reload`).

mod canary;
mod hooks;
mod pool;
mod pools;
mod prepared;
mod reload;
mod spare;
mod tracer;

pub use hooks::{Boot, Hooks};
pub use pools::run;
pub use prepared::Running;

use crate::consoles::ConsoleSnapshot;
use crate::end::Failed;
use crate::generation::{Generation, LEAVE_LIMIT, Readiness};
use crate::handle::{Command, Process, Published};
use crate::news::{KillWhy, News};
use crate::os;
use crate::overrun_diagnosis::Case;
use crate::workers::{Event, WorkerPlace};
use pool::{Counts, Supervisor};
use samovar_ring::{DesiredState, Run, WORKERS_MAX};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::warn;

/// Maximum time for which a worker holds its run permit without waiting. After it, other workers
/// may run too: this one computes for long, or waits without having reported it.
const TURN_LIMIT: Duration = Duration::from_millis(100);
/// Wait before a pool that could not start is tried again.
const FALLEN: Duration = Duration::from_secs(5);

impl Supervisor {
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
        self.look_at_canary();
        self.look_at_tracer();
        self.look_at_spare();
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
            generation.start_one_shots(&mut self.one_shots, &self.ground);
        }
        self.one_shots.settle();
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
        self.end_spare("the server is stopping");
        self.one_shots.refuse_all();
        for generation in &mut self.generations {
            generation.consoles.stop("the server is stopping");
            generation.one_shots.drain();
        }
    }

    fn read_commands(&mut self) {
        while let Ok(command) = self.post.commands.try_recv() {
            match command {
                Command::Kill { incarnation, reason, run } => {
                    if self.is_inspected(incarnation, reason, run) {
                        continue;
                    }
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
                Command::Overrun { run, overrun, request, id, ran, grace } => {
                    let worker = self.worker_of(run);
                    let pool = self.post.name.clone();
                    let case = Case { pool, run, worker, overrun, request, id, ran, grace };
                    self.post.diagnosis.hand_in(case);
                }
                Command::ScriptsWait => {
                    if let Some(generation) = self.serving_mut() {
                        generation.tell(Event::ScriptsWait);
                    }
                }
                Command::Draining => self.begin_to_end(),
                Command::Consoles(before) => self.post.before = before,
                Command::RunOnce(one) => {
                    self.one_shots.add(*one);
                    if self.is_ending {
                        self.one_shots.refuse_all();
                    }
                }
                Command::StopRun(id, why) => {
                    let mut all = self.generations.iter_mut();
                    let _ = all.any(|generation| generation.one_shots.stop(id, why))
                        || self.one_shots.refuse(id);
                }
                Command::Spare(order) => self.begin_spare(order),
                Command::EndSpare(id) if self.spare.as_ref().is_some_and(|it| it.id == id) => {
                    self.end_spare("the replay was cancelled");
                }
                // A reload has ended it already.
                Command::EndSpare(_) => {}
                Command::KillSpare(id) => self.kill_spare(id),
                Command::Publish(published) => self.awaits_publication.push(published),
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

    /// Returns whether the run is inspected at the moment. Then the command to kill its worker
    /// comes again after the inspection.
    fn is_inspected(&self, incarnation: u32, reason: &'static str, run: Option<Run>) -> bool {
        let Some(late) = run else { return false };
        let handle = self.post.handle.clone();
        let again = move || handle.send(Command::Kill { incarnation, reason, run });
        self.post.diagnosis.after(&self.post.name, late, again)
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

    /// Publishes the state, and calls the callbacks that wait for it.
    fn publish(&mut self) {
        self.write_snapshot();
        self.awaits_publication.drain(..).for_each(Published::tell);
    }

    fn write_snapshot(&self) {
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
                    is_tracer: generation.is_tracer,
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
        let coming = self.coming.as_ref();
        let is_coming = coming.is_some_and(|coming| !coming.is_running_canary());
        snapshot.is_reloading = is_coming || self.awaited.is_some();
        let canary = self.generations.iter().find(|generation| generation.is_serving_canary());
        snapshot.canary = canary.map_or(0, |generation| generation.number);
        if let Some(generation) = self.serving() {
            let is_started = generation.ready != Readiness::Starting;
            snapshot.generation = if is_started { generation.number } else { 0 };
            snapshot.boot_failed = generation.boot_failed;
            snapshot.image = generation.image;
            snapshot.linking.clone_from(&generation.linking);
            snapshot.opcache = generation.opcache;
            snapshot.setup.clone_from(&generation.setup);
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
