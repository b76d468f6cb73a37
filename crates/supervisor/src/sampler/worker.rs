//! Samples one worker, and keeps its state between samples.

use super::counters::Counters;
use super::observer::{Look, Observer, Sampling, Scene, SlowScene};
use super::peers::Peers;
use super::readers::{Readers, Unreadable};
use crate::handle::Process;
use crate::os;
use crate::overrun_diagnosis::blocked;
use samovar_ring::{Model, RequestLine, Run, Supervision, WorkerReport, WorkerState, monotonic_ns};
use samovar_spy::{Account, Activity, Reader, Reading};
use std::os::fd::OwnedFd;
use tracing::{info, warn};

/// Number of consecutive torn stacks after which the reader is opened again: the stack may have
/// moved.
const TORN_MAX: u32 = 50;
/// Maximum number of reported calls of a slow request.
const CALLS_MAX: usize = 32;

/// Tools for taking a sample.
pub(super) struct Eyes<'a> {
    /// Index of the pool.
    pub(super) pool: usize,
    pub(super) supervision: &'a Supervision,
    pub(super) readers: &'a mut Readers,
    pub(super) counters: &'a Counters,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) sampling: Sampling,
}

/// State of a worker between samples.
pub(super) struct Watched {
    pid: i32,
    generation: u64,
    reader: Option<Reader>,
    process: Option<OwnedFd>,
    account: Account,
    peers: Peers,
    /// The request that it runs, with its method and path.
    request: Option<(Run, RequestLine)>,
    slow: Option<Run>,
    /// CPU time at the last sample in which it was running.
    cpu_ns: Option<u64>,
    torn_in_a_row: u32,
}

impl Watched {
    /// Creates the state of a new worker. `stays_open`: its files may stay open.
    pub(super) fn new(pid: i32, stays_open: bool) -> Watched {
        let number = pid.unsigned_abs();
        Watched {
            pid,
            generation: 0,
            reader: None,
            process: None,
            account: Account::new(number, number, stays_open),
            peers: Peers::default(),
            request: None,
            slow: None,
            cpu_ns: None,
            torn_in_a_row: 0,
        }
    }

    /// Creates the state of a process in which an application boots.
    pub(super) fn of_boot(pid: i32, generation: u64) -> Watched {
        Watched { generation, ..Watched::new(pid, true) }
    }

    /// Samples a booting process.
    pub(super) fn look_at_boot(&mut self, wall_ns: u64, eyes: &mut Eyes<'_>) {
        if let Some(reading) = self.read(eyes) {
            // The model that its application chooses is not known yet.
            self.told(reading, Model::Script, true, wall_ns, eyes);
        }
    }

    /// Whether the worker is new, or its generation has changed: a generation gets a new number
    /// when its template was restarted.
    pub(super) fn is_other_generation(&mut self, process: &Process) -> bool {
        let is_other = process.generation != self.generation;
        if is_other {
            (self.generation, self.reader) = (process.generation, None);
        }
        is_other
    }

    /// Samples the worker if it is busy.
    pub(super) fn look(&mut self, process: &Process, wall_ns: u64, eyes: &mut Eyes<'_>) {
        let Some(report) = eyes.supervision.report(process.cell) else { return };
        let is_boot = match report.state {
            WorkerState::Busy => false,
            WorkerState::Booting => true,
            WorkerState::Starting | WorkerState::Idle => return,
        };
        let taken = eyes.supervision.taken(process.cell);
        if let Some(taken) = taken {
            if self.request.as_ref().is_none_or(|(run, _)| *run != taken.run) {
                let line = eyes.supervision.request_line(taken.run.slot);
                self.request = eyes.supervision.is_running(taken.run).then_some((taken.run, line));
            }
            self.look_at_time(taken.run, taken.submitted_ns, eyes);
        } else {
            self.request = None;
        }
        if eyes.sampling.hertz > 0 {
            self.sample(&report, is_boot, wall_ns, eyes);
        }
    }

    fn sample(&mut self, report: &WorkerReport, is_boot: bool, wall_ns: u64, eyes: &mut Eyes<'_>) {
        if self.request.is_none() && !is_boot {
            // Its memory is being restored, so there is no stack to read.
            let scene =
                if report.model == Model::Checkpoint { Scene::Rollback } else { Scene::Reset };
            let cpu_ns = self.used();
            eyes.counters.add(false);
            return self.tell(report.model, is_boot, scene, (wall_ns, cpu_ns), eyes);
        }
        let Some(reading) = self.read(eyes) else { return };
        // The data read meanwhile may belong to the next request.
        if self.request.as_ref().is_some_and(|(run, _)| !eyes.supervision.is_running(*run)) {
            self.request = None;
            return eyes.counters.add(true);
        }
        self.told(reading, report.model, is_boot, wall_ns, eyes);
    }

    fn told(
        &mut self,
        reading: Reading,
        model: Model,
        is_boot: bool,
        wall_ns: u64,
        eyes: &mut Eyes<'_>,
    ) {
        eyes.counters.add(matches!(reading, Reading::Torn { .. }));
        match reading {
            Reading::Stack(stack) => {
                self.torn_in_a_row = 0;
                let activity = self.activity();
                // CPU time is attributed to the stacks at which the worker was running.
                let cpu_ns = if let Activity::Waiting { .. } = activity { 0 } else { self.used() };
                let scene = Scene::Php(&stack, &activity);
                self.tell(model, is_boot, scene, (wall_ns, cpu_ns), eyes);
            }
            Reading::Idle { .. } => {
                self.torn_in_a_row = 0;
                let cpu_ns = self.used();
                self.tell(model, is_boot, Scene::NoCode, (wall_ns, cpu_ns), eyes);
            }
            Reading::Torn { .. } => self.torn_in_a_row += 1,
        }
    }

    fn tell(
        &self,
        model: Model,
        is_boot: bool,
        scene: Scene<'_>,
        (wall_ns, cpu_ns): (u64, u64),
        eyes: &mut Eyes<'_>,
    ) {
        let request = self.request.as_ref().map(|(run, line)| (*run, line));
        let generation = self.generation;
        let pool = eyes.pool;
        let look = Look { pool, generation, model, is_boot, request, scene, wall_ns, cpu_ns };
        eyes.observer.saw(&look);
    }

    /// Reads the stack, if the process exists and may be read. The reason for a refusal is logged
    /// once.
    fn read(&mut self, eyes: &mut Eyes<'_>) -> Option<Reading> {
        let is_stale = self.torn_in_a_row >= TORN_MAX;
        if is_stale {
            (self.reader, self.torn_in_a_row) = (None, 0);
        }
        if self.reader.is_none() {
            match eyes.readers.open(self.generation, self.pid, is_stale) {
                Ok(reader) => self.reader = Some(reader),
                Err(Unreadable::Gone) => return None,
                Err(Unreadable::Refused(why)) => {
                    if eyes.counters.note(&why) {
                        warn!(pid = self.pid, "cannot read the stacks of workers: {why}");
                    }
                    return None;
                }
            }
            if eyes.counters.note("") {
                info!("the stacks of workers are readable again");
            }
        }
        let names = &mut eyes.readers.of(self.generation).names;
        let reading = self.reader.as_mut()?.read_first(names);
        if reading.is_err() {
            self.reader = None;
        }
        reading.ok()
    }

    fn activity(&mut self) -> Activity {
        let pid = self.pid;
        if self.process.is_none() {
            self.process = os::open_process(pid).ok();
        }
        let (peers, process) = (&mut self.peers, self.process.as_ref());
        self.account.activity(&mut |fd| peers.name(pid, process, fd))
    }

    /// Returns the CPU time used since the last call.
    fn used(&mut self) -> u64 {
        let Some(now) = self.account.cpu_ns() else { return 0 };
        let before = self.cpu_ns.replace(now).unwrap_or(now);
        now.saturating_sub(before)
    }

    /// Reports a request that has just become slow.
    fn look_at_time(&mut self, run: Run, submitted_ns: u64, eyes: &mut Eyes<'_>) {
        let Some(slow) = eyes.sampling.slow else { return };
        let age_ns = monotonic_ns().saturating_sub(submitted_ns);
        if self.slow == Some(run) || u128::from(age_ns) < slow.as_nanos() {
            return;
        }
        self.slow = Some(run);
        let Some((_, line)) = self.request.clone() else { return };
        let scene = self.scene(eyes);
        if eyes.supervision.is_running(run) {
            eyes.observer.is_slow(eyes.pool, &line, scene);
        }
    }

    fn scene(&mut self, eyes: &mut Eyes<'_>) -> SlowScene {
        let process = os::open_process(self.pid).ok();
        let blocked = process.map(|process| blocked::scene(self.pid, &process));
        let calls = match self.read(eyes) {
            Some(Reading::Stack(stack)) => {
                let named = stack.frames.iter().take(CALLS_MAX).map(ToString::to_string);
                let mut calls: Vec<_> = named.collect();
                if stack.is_cut || stack.frames.len() > CALLS_MAX {
                    calls.push("…".to_owned());
                }
                calls
            }
            Some(Reading::Idle { .. }) => vec!["in no PHP code".to_owned()],
            Some(Reading::Torn { .. }) => vec!["unknown: the stack changes too fast".to_owned()],
            None => vec!["unknown: the stack cannot be read".to_owned()],
        };
        SlowScene { blocked: blocked.unwrap_or_else(|| "exited".to_owned()), calls }
    }
}
