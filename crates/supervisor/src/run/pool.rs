//! One generation: a template, the workers and console workers that are forked from it, and the machine that says what
//! comes next.

use super::end::{Failed, describe};
use super::{Finding, Image, Settings};
use crate::consoles::Consoles;
use crate::os;
use crate::state::{Action, Event, Lives, Role, State};
use crate::template::{Message, Template};
use samovar_ring::{
    Incarnation, Lane, LeaveReason, Model, Ring, Standing, Supervision, WorkerState,
};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::time::Instant;
use tracing::{info, warn};

/// Exit status of a worker that wants a successor at once (crates/worker/csrc/boundary.h).
const EXIT_REPLACE: i32 = 83;
/// Most findings that are kept for `samovar status`.
const FINDINGS_MAX: usize = 32;

/// What all generations share.
pub(super) struct Ground {
    pub(super) ring: Ring,
    pub(super) supervision: Supervision,
    pub(super) lives: Lives,
    /// The server ends: all workers leave.
    pub(super) is_stopping: bool,
    /// Why workers left for a fresh fork, and how many.
    pub(super) refork_reasons: BTreeMap<&'static str, u64>,
}

/// How far a generation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Readiness {
    Starting,
    TemplateReady,
    /// Its workers have waited for requests, or had long enough.
    Ready,
}

pub(super) struct Pool {
    /// Counts the templates that have served, from 1.
    pub(super) number: u64,
    pub(super) settings: Settings,
    pub(super) standing: Standing,
    pub(super) state: State,
    pub(super) consoles: Consoles,
    pub(super) ready: Readiness,
    pub(super) started: Instant,
    pub(super) image: Option<Image>,
    pub(super) findings: Vec<Finding>,
    /// The application's boot ended without asking for requests; they run it whole.
    pub(super) boot_failed: bool,
    template: Option<Template>,
    events: VecDeque<Event>,
    /// Workers that are still there are killed then.
    stop_by: Option<Instant>,
    has_gone: bool,
    is_given_up: bool,
}

impl Pool {
    /// `standing`: [`Standing::Hold`] until [`Self::serve`].
    pub(super) fn new(number: u64, settings: Settings, standing: Standing, lives: Lives) -> Pool {
        let now = Instant::now();
        Pool {
            number,
            standing,
            state: State::new(settings.workers, lives, now),
            consoles: Consoles::new(settings.consoles.clone()),
            settings,
            ready: Readiness::Starting,
            started: now,
            image: None,
            findings: Vec::new(),
            boot_failed: false,
            template: None,
            events: VecDeque::from([Event::Tick]),
            stop_by: None,
            has_gone: false,
            is_given_up: false,
        }
    }

    /// The template's channel, -1 when there is none.
    pub(super) fn fd(&self) -> RawFd {
        self.template.as_ref().map_or(-1, Template::fd)
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// All processes of it have ended.
    pub(super) fn has_gone(&self) -> bool {
        self.has_gone && self.consoles.are_gone()
    }

    /// Does what has become due.
    pub(super) fn turn(&mut self, ground: &Ground) -> Result<(), Failed> {
        // A worker may have written over the others' standing: nobody would take requests any more.
        self.state.cells().for_each(|cell| ground.supervision.insist(cell, self.standing));
        if self.stop_by.is_some_and(|by| by <= Instant::now()) {
            self.stop_by = None;
            if self.standing == Standing::Retire && !ground.is_stopping {
                let busy = self.processes().count();
                warn!(busy, "workers of an older generation are killed: timeouts.drain is over");
            }
            self.tell(Event::StopNow);
        }
        while let Some(event) = self.events.pop_front() {
            for action in self.state.step(&event, Instant::now()) {
                self.act(&action, ground)?;
            }
        }
        Ok(())
    }

    /// `elsewhere`: whether another generation still has a console worker of that name and number.
    pub(super) fn settle_consoles(&mut self, elsewhere: &dyn Fn(&str, usize) -> bool) {
        let may_start = self.standing == Standing::Serve && self.ready != Readiness::Starting;
        self.consoles.settle(self.template.as_ref(), may_start, elsewhere);
    }

    /// From now on its workers take requests.
    pub(super) fn serve(&mut self, ground: &Ground) {
        self.standing = Standing::Serve;
        self.ready = Readiness::Ready;
        self.place_workers(ground);
    }

    /// Its workers leave when their request is done; at `stop_by` they are killed. Console workers are asked to leave.
    pub(super) fn retire(&mut self, stop_by: Option<Instant>, why: &'static str, ground: &Ground) {
        self.standing = Standing::Retire;
        self.place_workers(ground);
        self.consoles.stop(why);
        self.stop(stop_by);
    }

    /// As [`Self::retire`] for the workers; the console workers are told elsewhere.
    pub(super) fn stop(&mut self, stop_by: Option<Instant>) {
        self.stop_by = self.stop_by.into_iter().chain(stop_by).min();
        self.tell(Event::Stop);
    }

    /// Nothing of it has answered a request: it ends at once.
    pub(super) fn give_up(&mut self, ground: &Ground) {
        self.is_given_up = true;
        self.retire(None, "the reload is given up", ground);
        self.tell(Event::StopNow);
        match &self.template {
            Some(template) => os::kill_group(template.pid),
            None => self.tell(Event::TemplateDied),
        }
    }

    /// Nobody is waited for any more.
    pub(super) fn hurry(&mut self) {
        self.consoles.hurry("the server stops");
        self.events.extend([Event::Stop, Event::StopNow]);
    }

    /// What the template has said since the last time.
    pub(super) fn read_template(&mut self, ground: &mut Ground) -> Result<(), Failed> {
        while let Some(template) = &mut self.template
            && let Some(message) = template.receive().inspect_err(|_| template.close())?
        {
            match message {
                Message::Event(event) => self.tell(event),
                Message::Logged(event, text) => {
                    info!("{text}");
                    if matches!(event, Event::TemplateReady { .. }) {
                        self.ready = self.ready.max(Readiness::TemplateReady);
                    }
                    self.tell(event);
                }
                Message::Died { index, pid, status } => {
                    self.worker_ended(index, pid, status, ground);
                }
                // The boot of a new image process begins with its findings, and ends with what came of it.
                Message::Image(image) => {
                    info!(mode = image.mode, bytes = image.bytes, boot = ?image.boot, "the application has booted");
                    self.boot_failed = false;
                    self.image = Some(image);
                }
                Message::BootFailed => self.boot_failed = true,
                Message::Finding(finding) => self.found(finding)?,
                Message::ConsoleStarted { life, pid } => self.consoles.started(life, pid),
                Message::ConsoleFailed { life, why } => self.consoles.failed(life, &why),
                Message::ConsoleDied { pid, status } => {
                    self.consoles.ended(pid, status);
                }
                Message::Unknown(text) => warn!(text, "the template said something unknown"),
            }
        }
        Ok(())
    }

    fn found(&mut self, finding: Finding) -> Result<(), Failed> {
        let Finding { kind, action, what, place, advice } = &finding;
        let errors = &self.settings.image_errors;
        let forbidden = action != "note" && errors.iter().any(|e| e == kind || e == "all");
        if forbidden && self.ready != Readiness::Ready {
            return Err(Failed::Finding(finding));
        }
        warn!(kind, action, opened = place, hint = advice, "the booted application holds {what}");
        if self.findings.len() == FINDINGS_MAX {
            self.findings.remove(0);
        }
        self.findings.retain(|f| *f != finding);
        self.findings.push(finding);
        Ok(())
    }

    /// A child of the supervisor has ended; whether it was this generation's.
    pub(super) fn reaped(
        &mut self,
        pid: i32,
        status: i32,
        ground: &mut Ground,
    ) -> Result<bool, Failed> {
        if self.template.as_ref().is_some_and(|t| t.pid == pid) {
            self.template = None;
            self.consoles.template_died();
            self.tell(Event::TemplateDied);
            match self.standing {
                Standing::Hold => return Err(Failed::Template { status }),
                Standing::Serve if self.ready == Readiness::Starting => {
                    return Err(Failed::Template { status });
                }
                Standing::Serve if !ground.is_stopping => {
                    warn!(pid, "template {}", describe(status));
                }
                Standing::Serve | Standing::Retire => {}
            }
            return Ok(true);
        }
        // A console worker whose template died.
        if self.consoles.ended(pid, status) {
            return Ok(true);
        }
        // A worker whose template died, or an orphan that a request has left: only the first is told of.
        let known = self.processes().find(|(_, p, _)| *p == pid).map(|(index, ..)| index);
        if let Some(index) = known {
            self.worker_ended(index, pid, status, ground);
        }
        Ok(known.is_some())
    }

    fn worker_ended(&mut self, index: usize, pid: i32, status: i32, ground: &mut Ground) {
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == EXIT_REPLACE {
            self.worker_left(index, pid, ground);
            return;
        }
        let is_told_to = self.standing == Standing::Retire && (status == 0 || self.is_given_up);
        if !ground.is_stopping && !is_told_to {
            warn!(pid, "worker {}", describe(status));
        }
        self.tell(Event::WorkerDied { pid });
    }

    fn worker_left(&mut self, index: usize, pid: i32, ground: &mut Ground) {
        let report = ground.supervision.report(index);
        let reason = report.and_then(|r| r.leave).map_or("unknown", LeaveReason::name);
        if report.is_some_and(|r| r.leave == Some(LeaveReason::Checkpoint)) {
            // Its successors boot ahead.
            self.tell(Event::Resident);
        }
        info!(pid, reason, "a worker makes room for a fresh one");
        *ground.refork_reasons.entry(reason).or_default() += 1;
        self.tell(Event::WorkerLeft { pid, served: report.is_some_and(|r| r.requests > 0) });
    }

    fn act(&mut self, action: &Action, ground: &Ground) -> Result<(), Failed> {
        match *action {
            Action::StartTemplate => {
                ground.supervision.reseal();
                match Template::start(&self.settings.command, &ground.ring) {
                    Ok(template) => self.template = Some(template),
                    Err(error) if self.ready == Readiness::Starting => return Err(error.into()),
                    Err(error) => {
                        warn!(%error, "cannot start the template");
                        self.tell(Event::TemplateDied);
                    }
                }
            }
            Action::Fork { index, incarnation, role } => {
                self.fork(index, incarnation, role, ground);
            }
            Action::Repair { index, incarnation } => {
                let orphans = ground.supervision.repair(index, incarnation);
                if orphans > 0 {
                    info!(index, orphans, "requests lost their worker");
                }
            }
            Action::Kill { pid } => os::kill(pid),
            Action::StopWorkers if ground.is_stopping => ground.supervision.stop(),
            // It was told when it retired.
            Action::StopWorkers => {}
            // Asked for again with each tick: console workers would be asked to leave by its end.
            Action::CloseTemplate if !self.consoles.are_gone() => {}
            Action::CloseTemplate => {
                if let Some(template) = &mut self.template {
                    template.close();
                }
            }
            Action::Exit => self.has_gone = true,
        }
        Ok(())
    }

    fn place_workers(&self, ground: &Ground) {
        self.state.cells().for_each(|cell| ground.supervision.place(cell, self.standing));
    }

    fn fork(&mut self, index: usize, incarnation: Incarnation, role: Role, ground: &Ground) {
        ground.supervision.reseal();
        ground.supervision.place(index, self.standing);
        let asked = self.template.as_ref().map(|t| t.fork(index, incarnation, role));
        if !matches!(asked, Some(Ok(()))) {
            // The template is dying: its end will be noticed, and settles the rest.
            self.tell(Event::ForkFailed { index });
        }
    }

    /// Cell, process and begin of each worker.
    pub(super) fn processes(&self) -> impl Iterator<Item = (usize, i32, Instant)> {
        let places = self.state.places().iter();
        places.filter_map(|p| p.process().map(|(pid, _, since)| (p.cell(), pid, since)))
    }

    /// An application turns resident when its first request finds out; then its successors boot ahead,
    /// and scripts beside it may have lost their last worker.
    pub(super) fn look_at_models(&mut self, ground: &Ground) {
        let resident = |(index, ..): (usize, i32, Instant)| {
            ground.supervision.report(index).is_some_and(|r| r.model != Model::Script)
        };
        if !self.state.is_resident() && self.processes().any(resident) {
            self.tell(Event::Resident);
        }
        if self.standing == Standing::Serve
            && self.state.is_resident()
            && ground.supervision.queued(Lane::Script) > 0
        {
            self.tell(Event::ScriptsWait);
        }
    }

    /// Whether all workers wait for requests, or run one.
    pub(super) fn is_up(&self, ground: &Ground) -> bool {
        let waiting = |(index, ..): (usize, i32, Instant)| {
            ground
                .supervision
                .report(index)
                .is_some_and(|r| matches!(r.state, WorkerState::Idle | WorkerState::Busy))
        };
        let wanted = self.state.places().len();
        self.ready != Readiness::Starting
            && wanted > 0
            && self.processes().count() == wanted
            && self.processes().all(waiting)
    }

    /// Whether `timeouts.boot` is over.
    pub(super) fn is_late(&self) -> bool {
        self.started.elapsed() > self.settings.boot_limit
    }

    /// When workers that are told to leave now are killed.
    pub(super) fn drain_end(&self) -> Instant {
        Instant::now() + self.settings.drain_limit
    }
}
