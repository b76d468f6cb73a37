//! One worker, from one look to the next.

use super::peers::Peers;
use super::readers::{Readers, Unreadable};
use super::{Counters, Look, Observer, Sampling, Scene, SlowScene};
use crate::handle::Process;
use crate::inquest::blocked;
use crate::os;
use samovar_ring::{Model, RequestLine, Run, Supervision, WorkerReport, WorkerState, monotonic_ns};
use samovar_spy::{Account, Activity, Reader, Reading};
use std::os::fd::OwnedFd;
use tracing::{info, warn};

/// Torn stacks in a row after which the process is looked at anew: something else may be where its stack was.
const TORN_MAX: u32 = 50;
/// Calls of a slow request that are told.
const CALLS_MAX: usize = 32;

/// What a look is taken with.
pub(super) struct Eyes<'a> {
    /// Which pool's they are.
    pub(super) pool: usize,
    pub(super) supervision: &'a Supervision,
    pub(super) readers: &'a mut Readers,
    pub(super) counters: &'a Counters,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) sampling: Sampling,
}

/// What is known of a worker.
pub(super) struct Watched {
    pid: i32,
    generation: u64,
    reader: Option<Reader>,
    process: Option<OwnedFd>,
    account: Account,
    peers: Peers,
    /// The request that it runs, and what is asked for.
    request: Option<(Run, RequestLine)>,
    slow: Option<Run>,
    /// CPU time when it was last seen to run.
    cpu_ns: Option<u64>,
    torn_in_a_row: u32,
}

impl Watched {
    /// One that is seen for the first time. `stays_open`: there is room for descriptors of its own.
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

    /// A process in which an application boots.
    pub(super) fn of_boot(pid: i32, generation: u64) -> Watched {
        Watched { generation, ..Watched::new(pid, true) }
    }

    /// Looks at it, which boots.
    pub(super) fn look_at_boot(&mut self, wall_ns: u64, eyes: &mut Eyes<'_>) {
        if let Some(reading) = self.read(eyes) {
            // Which one its application chooses is not known yet.
            self.told(reading, Model::Script, true, wall_ns, eyes);
        }
    }

    /// Whether it is seen for the first time, or counts to another generation than before: that of a template that has died
    /// is numbered anew.
    pub(super) fn is_other_generation(&mut self, process: &Process) -> bool {
        let is_other = process.generation != self.generation;
        if is_other {
            (self.generation, self.reader) = (process.generation, None);
        }
        is_other
    }

    /// Looks at it, if it is busy.
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
            // Its memory is being put back: there is no stack to be read.
            let scene =
                if report.model == Model::Checkpoint { Scene::Rollback } else { Scene::Reset };
            let cpu_ns = self.used();
            eyes.counters.add(false);
            return self.tell(report.model, is_boot, scene, (wall_ns, cpu_ns), eyes);
        }
        let Some(reading) = self.read(eyes) else { return };
        // What was read in between may be the next request's.
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
                // What a worker has used stands for the stacks at which it was seen to run.
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

    /// The stack, if the process may be read and has not gone. Why it may not is told once.
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
                        warn!(pid = self.pid, "the stacks of workers cannot be read: {why}");
                    }
                    return None;
                }
            }
            if eyes.counters.note("") {
                info!("the stacks of workers can be read");
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

    /// CPU time since this was last asked.
    fn used(&mut self) -> u64 {
        let Some(now) = self.account.cpu_ns() else { return 0 };
        let before = self.cpu_ns.replace(now).unwrap_or(now);
        now.saturating_sub(before)
    }

    /// Tells of a request that has just become slow.
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
            Some(Reading::Torn { .. }) => vec!["it moves too fast to be read".to_owned()],
            None => vec!["its stack cannot be read".to_owned()],
        };
        SlowScene { blocked: blocked.unwrap_or_else(|| "it has just ended".to_owned()), calls }
    }
}
