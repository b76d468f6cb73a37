//! One generation: a template, the workers and console workers that are forked from it, and the machine that says what
//! comes next.

mod coming;
mod late;
mod recycling;
mod scaling;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use coming::{Coming, Step};

use crate::consoles::Consoles;
use crate::end::{Failed, describe};
use crate::news::{KillWhy, Kills, Lines, News, NewsQueue};
use crate::os;
use crate::recycle::Suspects;
use crate::scale::Scale;
use crate::settings::Settings;
use crate::template::Template;
use crate::workers::{Action, Event, Lives, Workers};
use samovar_channel::{
    self as channel, EXIT_REPLACE, Engine, Finding, Heard, Image, Linking, LinkingState, Role,
    WorkerId,
};
use samovar_log::{Intake, Speaker};
use samovar_published::Publishing;
use samovar_ring::{
    Death, DesiredState, Incarnation, Lane, LeaveReason, Model, Ring, Supervision, WorkerReport,
    WorkerState,
};
use samovar_shared::Shared;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tracing::{info, warn};
use watch::{Verdict, Watch};

/// Between "the workers may leave" and SIGKILL, when the server ends.
pub(crate) const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// Most findings that are kept for `samovar status`.
const FINDINGS_MAX: usize = 32;

/// What all generations share.
pub(crate) struct Ground {
    pub(crate) ring: Ring,
    pub(crate) shared: Shared,
    pub(crate) published: Publishing,
    /// Where all processes print.
    pub(crate) intake: Intake,
    pub(crate) supervision: Supervision,
    pub(crate) lives: Lives,
    /// The server ends: all workers leave.
    pub(crate) is_stopping: bool,
    /// Why workers left for a fresh fork, and how many.
    pub(crate) refork_reasons: BTreeMap<&'static str, u64>,
    /// What the owner is told next.
    pub(crate) news: RefCell<NewsQueue>,
    pub(crate) kills: Kills,
    pub(crate) lines: Lines,
}

impl Ground {
    fn kill(&self, pid: i32) {
        self.news.borrow_mut().kills(pid);
        os::kill(pid);
    }

    pub(crate) fn tell(&self, news: News) {
        self.news.borrow_mut().put(news);
    }
}

/// How far a generation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Readiness {
    Starting,
    TemplateReady,
    /// Its workers have waited for requests, or had long enough.
    Ready,
}

#[expect(clippy::struct_excessive_bools, reason = "what happened to it, each by itself")]
pub(crate) struct Generation {
    /// Counts the templates that have served, from 1.
    pub(crate) number: u64,
    pub(crate) settings: Settings,
    /// Its workers take down call graphs, beside the generation of that number.
    pub(crate) is_tracer: bool,
    pub(crate) desired: DesiredState,
    pub(crate) workers: Workers,
    pub(crate) consoles: Consoles,
    pub(crate) ready: Readiness,
    /// What its workers have been once, if not scripts.
    seen_model: Model,
    pub(crate) started: Instant,
    pub(crate) image: Option<Image>,
    pub(crate) linking: Option<Linking>,
    /// PHP's version; empty before it has started.
    pub(crate) php: String,
    /// The libphp that the settings name.
    pub(crate) engine: Option<Engine>,
    pub(crate) findings: Vec<Finding>,
    /// The application's boot ended without asking for requests; they run it whole.
    pub(crate) boot_failed: bool,
    /// The process in which the application boots at the moment.
    pub(crate) booting: Option<i32>,
    template: Option<Template>,
    watch: Watch,
    /// What the worker in a cell prints goes there.
    outputs: BTreeMap<usize, Speaker>,
    events: VecDeque<Event>,
    /// Workers that are still there are killed then.
    stop_by: Option<Instant>,
    has_gone: bool,
    is_given_up: bool,
    recycled_at: Instant,
    recycle_looks: usize,
    recycle_suspects: Suspects,
    /// How many workers there should be: those for any request, and those for scripts.
    scales: [Scale; 2],
}

impl Generation {
    /// `desired`: [`DesiredState::Hold`] until [`Self::serve`]. `busy`: so many workers its predecessor has need of.
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
            workers: Workers::new(begin, count.min, lives, now),
            consoles: Consoles::new(settings.consoles.clone(), intake.clone()),
            watch: Watch::new(
                settings.watchdog_limit,
                settings.after_limit,
                settings.boot_limit,
                now,
            ),
            is_tracer: settings.command.options.traces,
            settings,
            ready: Readiness::Starting,
            seen_model: Model::Script,
            started: now,
            image: None,
            linking: None,
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

    /// The template's channel, while there is one.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.template.as_ref().and_then(Template::fd)
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// All processes of it have ended.
    pub(crate) fn has_gone(&self) -> bool {
        self.has_gone && self.consoles.are_gone()
    }

    /// Does what has become due.
    pub(crate) fn turn(&mut self, ground: &Ground) -> Result<(), Failed> {
        // A worker may have written over the others' desired: nobody would take requests any more.
        self.workers
            .cells()
            .for_each(|cell| ground.supervision.insist(cell, self.desired_of(cell)));
        if self.stop_by.is_some_and(|by| by <= Instant::now()) {
            self.stop_by = None;
            self.tell_of_late(ground);
            self.tell(Event::StopNow);
        }
        while let Some(event) = self.events.pop_front() {
            for action in self.workers.step(&event, Instant::now()) {
                self.act(&action, ground)?;
            }
        }
        Ok(())
    }

    /// `elsewhere`: whether another generation still has a console worker of that name and number.
    pub(crate) fn settle_consoles(&mut self, elsewhere: &dyn Fn(&str, usize) -> bool) {
        let may_start = self.desired == DesiredState::Serve && self.ready != Readiness::Starting;
        self.consoles.settle(self.template.as_ref(), may_start, elsewhere);
    }

    /// Lets its workers take requests.
    pub(crate) fn serve(&mut self, ground: &Ground) {
        self.desired = DesiredState::Serve;
        self.ready = Readiness::Ready;
        self.place_workers(ground);
    }

    /// Its workers leave when their request is done; at `stop_by` they are killed. Console workers are asked to leave.
    pub(crate) fn retire(&mut self, stop_by: Option<Instant>, why: &'static str, ground: &Ground) {
        self.desired = DesiredState::Retire;
        self.place_workers(ground);
        self.consoles.stop(why);
        self.stop(stop_by);
    }

    /// As [`Self::retire`] for the workers; the console workers are told elsewhere.
    pub(crate) fn stop(&mut self, stop_by: Option<Instant>) {
        self.stop_by = self.stop_by.into_iter().chain(stop_by).min();
        self.tell(Event::Stop);
    }

    /// Nothing of it has answered a request: it ends at once.
    pub(crate) fn give_up(&mut self, ground: &Ground) {
        self.is_given_up = true;
        self.retire(None, "the reload is given up", ground);
        self.tell(Event::StopNow);
        match &self.template {
            Some(template) => os::kill_group(template.pid),
            None => self.tell(Event::TemplateDied),
        }
    }

    /// Nobody is waited for any more.
    pub(crate) fn stop_now(&mut self) {
        self.consoles.stop_now("the server stops");
        self.events.extend([Event::Stop, Event::StopNow]);
    }

    /// What the template has said since the last time.
    pub(crate) fn read_template(&mut self, ground: &mut Ground) -> Result<(), Failed> {
        while let Some(template) = &mut self.template
            && let Some(heard) = template.hear().inspect_err(|_| template.close())?
        {
            match heard {
                Heard::Message(event, _) => self.hear(event, ground)?,
                Heard::Garbled(garbled) => warn!(%garbled, "the template said something unknown"),
                // Whatever it has not said, its death will show.
                Heard::End => template.close(),
            }
        }
        Ok(())
    }

    fn hear(&mut self, event: channel::Event, ground: &mut Ground) -> Result<(), Failed> {
        match event {
            channel::Event::Ready { php, resident, linking, engine } => {
                let of = engine.as_ref().map(|engine| format!(", of `{}`", engine.file));
                info!("PHP {php} is ready{}", of.unwrap_or_default());
                if linking.state == LinkingState::Refused {
                    warn!("libphp is not relinked: {}", linking.why);
                }
                self.linking = Some(linking);
                self.php = php;
                self.engine = engine;
                self.ready = self.ready.max(Readiness::TemplateReady);
                self.tell(Event::TemplateReady { resident });
            }
            channel::Event::Forked { worker: WorkerId { cell, life }, pid } => {
                self.tell(Event::Forked { index: cell, incarnation: life, pid });
            }
            channel::Event::Failed { worker: WorkerId { cell, life }, why } => {
                info!("cannot fork a worker: {why}");
                self.tell(Event::ForkFailed { index: cell, incarnation: life });
            }
            channel::Event::Died { worker, pid, status } => {
                self.worker_ended(worker.cell, pid, status, ground);
            }
            // The boot of a new image process begins with its findings, and ends with what came of it.
            channel::Event::Image(image) => {
                info!(mode = image.mode.word(), bytes = image.bytes, boot = ?image.boot, "the application has booted");
                self.boot_failed = false;
                self.booting = None;
                self.image = Some(image);
            }
            // 1 and what is below are no process of a template's.
            channel::Event::Booting { pid } => self.booting = Some(pid).filter(|pid| *pid > 1),
            channel::Event::BootFailed => {
                self.boot_failed = true;
                self.booting = None;
            }
            channel::Event::Finding(finding) => self.found(finding)?,
            channel::Event::Pong => self.watch.template_answered(),
            channel::Event::ConsoleForked { life, pid } => self.consoles.started(life, pid),
            channel::Event::ConsoleFailed { life, why } => self.consoles.failed(life, &why),
            channel::Event::ConsoleDied { pid, status } => {
                self.consoles.ended(pid, status);
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
    pub(crate) fn reaped(
        &mut self,
        pid: i32,
        status: i32,
        ground: &mut Ground,
    ) -> Result<bool, Failed> {
        if self.template.as_ref().is_some_and(|t| t.pid == pid) {
            self.template = None;
            self.booting = None;
            self.consoles.template_died();
            self.tell(Event::TemplateDied);
            match self.desired {
                DesiredState::Hold => return Err(Failed::Template { status }),
                DesiredState::Serve if self.ready == Readiness::Starting => {
                    return Err(Failed::Template { status });
                }
                DesiredState::Serve if !ground.is_stopping => {
                    warn!(pid, "template {}", describe(status));
                    let was_killed = ground.news.borrow_mut().was_killed(pid);
                    if !was_killed {
                        ground.tell(News::TemplateEnded(format!("template {}", describe(status))));
                    }
                }
                DesiredState::Serve | DesiredState::Retire => {}
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
            // What has ended it is told of its template.
            ground.news.get_mut().kills(pid);
            self.worker_ended(index, pid, status, ground);
        }
        Ok(known.is_some())
    }

    fn worker_ended(&mut self, index: usize, pid: i32, status: i32, ground: &mut Ground) {
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == EXIT_REPLACE {
            self.worker_left(index, pid, ground);
            return;
        }
        let is_told_to =
            self.desired_of(index) == DesiredState::Retire && (status == 0 || self.is_given_up);
        if !ground.is_stopping
            && !is_told_to
            && let Some(suppressed) = ground.lines.died.pass()
        {
            warn!(pid, suppressed, "worker {}", describe(status));
        }
        let was_killed = ground.news.borrow_mut().was_killed(pid);
        if !ground.is_stopping && !is_told_to && !was_killed {
            ground.tell(News::Crashed(format!("worker {}", describe(status))));
        }
        let report = ground.supervision.report(index);
        let served = report.is_some_and(|r| r.requests > 0 || r.has_request);
        self.tell(Event::WorkerDied { pid, death: Death::from_status(status), served });
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
        ground.tell(News::Left(reason));
        self.tell(Event::WorkerLeft { pid, served: report.is_some_and(|r| r.requests > 0) });
    }

    fn act(&mut self, action: &Action, ground: &Ground) -> Result<(), Failed> {
        match *action {
            Action::StartTemplate => {
                ground.supervision.reseal();
                let memory = (&ground.ring, &ground.shared, &ground.published);
                match Template::start(&self.settings.command, memory, &ground.intake) {
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
            Action::Repair { index, incarnation, death } => {
                let orphans = ground.supervision.repair(index, incarnation, death);
                if orphans > 0
                    && let Some(suppressed) = ground.lines.orphans.pass()
                {
                    info!(index, orphans, suppressed, "requests lost their worker");
                }
            }
            Action::Kill { pid } => ground.kill(pid),
            Action::Retire { index } => {
                ground.supervision.set_desired_state(index, DesiredState::Retire);
            }
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
        self.workers
            .cells()
            .for_each(|cell| ground.supervision.set_desired_state(cell, self.desired_of(cell)));
    }

    /// What is wanted of the worker in that cell.
    pub(crate) fn desired_of(&self, cell: usize) -> DesiredState {
        if self.workers.is_leaving(cell) { DesiredState::Retire } else { self.desired }
    }

    fn fork(&mut self, index: usize, incarnation: Incarnation, role: Role, ground: &Ground) {
        ground.supervision.reseal();
        ground.supervision.set_desired_state(index, self.desired);
        ground.supervision.set_generation(index, self.number);
        // A pipe for each, so that lines do not mix and none drowns the others. Without one (there are too many open
        // files) it prints where the template does.
        let (output, speaker) = ground.intake.pipe().ok().unzip();
        let worker = WorkerId { cell: index, life: incarnation };
        let asked = self.template.as_ref().map(|t| t.fork(worker, role, output.as_ref()));
        self.outputs.extend(speaker.map(|speaker| (index, speaker)));
        if !matches!(asked, Some(Ok(()))) {
            // The template is dying: its end will be noticed, and settles the rest.
            self.tell(Event::ForkFailed { index, incarnation });
        }
    }

    /// Cell, process and begin of each worker.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (usize, i32, Instant)> {
        let places = self.workers.places().iter();
        places.filter_map(|p| p.process().map(|(pid, _, since)| (p.cell(), pid, since)))
    }

    /// Kills who gives no sign of life. What follows from that is what follows from any death.
    pub(crate) fn watch(&mut self, ground: &Ground) {
        if !self.watch.is_due(Instant::now()) {
            return;
        }
        let workers: Vec<_> = self.processes().collect();
        let report = |(cell, pid, _): &(usize, i32, Instant)| {
            ground.supervision.report(*cell).map(|report| (*pid, report))
        };
        for pid in self.watch.look(workers.iter().filter_map(report)) {
            if let Some(suppressed) = ground.lines.quiet.pass() {
                warn!(
                    pid,
                    suppressed, "a worker without a request gives no sign of life, and is killed"
                );
            }
            ground.kills.count(KillWhy::Watchdog, 1);
            ground.tell(News::Killed("it had no request and gave no sign of life".to_owned()));
            ground.kill(pid);
        }
        let Some(template) = &self.template else { return };
        let (starts, waits) = (self.workers.has_starting_template(), self.workers.has_template());
        match self.watch.look_at_template(template.pid, starts, waits, template.is_closed()) {
            // Without room for one more it has enough to answer.
            Some(Verdict::Ask) => {
                let _ = template.ping(self.watch.idle_looks(), self.watch.boot_looks());
            }
            Some(Verdict::Kill) => {
                warn!(pid = template.pid, "the template gives no sign of life, and is killed");
                ground.kills.count(KillWhy::Watchdog, 1);
                ground.tell(News::Killed("the template gave no sign of life".to_owned()));
                ground.kill(template.pid);
            }
            None => {}
        }
    }

    /// An application turns resident when its first request finds out; then its successors boot ahead,
    /// and scripts beside it may have lost their last worker.
    pub(crate) fn look_at_models(&mut self, ground: &Ground) {
        let own = self.workers.places().iter().filter(|place| !place.is_script());
        let own = own.filter(|place| place.process().is_some());
        let mut seen = own.filter_map(|place| ground.supervision.report(place.cell()));
        if let Some(seen) = seen.find(|seen| is_waiting(seen) && seen.model != Model::Script) {
            self.seen_model = seen.model;
        }
        let resident = |(index, ..): (usize, i32, Instant)| {
            ground.supervision.report(index).is_some_and(|r| r.model != Model::Script)
        };
        if !self.workers.is_resident() && self.processes().any(resident) {
            self.tell(Event::Resident);
        }
        let lane = match self.desired {
            DesiredState::Serve => Lane::Script,
            DesiredState::Hold => Lane::ScriptProbe,
            DesiredState::Retire => return,
        };
        let lane = if self.is_tracer { lane.trace() } else { lane };
        if self.workers.is_resident() && ground.supervision.queued(lane) > 0 {
            self.tell(Event::ScriptsWait);
        }
    }

    /// How the application runs, as far as its workers say, or those before them: they may have died while its code changes.
    pub(crate) fn model(&self, ground: &Ground) -> Model {
        let places = self.workers.places().iter().filter(|place| !place.is_script());
        let mut models =
            places.filter_map(|p| ground.supervision.report(p.cell())).map(|r| r.model);
        models.find(|model| *model != Model::Script).unwrap_or(self.seen_model)
    }

    /// Whether all workers wait for requests, or run one.
    pub(crate) fn is_up(&self, ground: &Ground) -> bool {
        let waiting = |(index, ..): (usize, i32, Instant)| {
            ground.supervision.report(index).is_some_and(|report| is_waiting(&report))
        };
        let wanted = self.workers.places().len();
        self.ready != Readiness::Starting
            && wanted > 0
            && self.processes().count() == wanted
            && self.processes().all(waiting)
    }

    /// Whether `timeouts.boot` is over.
    pub(crate) fn is_late(&self) -> bool {
        self.started.elapsed() > self.settings.boot_limit
    }

    /// When workers that are told to leave now are killed.
    pub(crate) fn drain_end(&self) -> Instant {
        Instant::now() + self.settings.drain_limit
    }
}

/// Whether it has come as far as to take requests.
fn is_waiting(report: &WorkerReport) -> bool {
    matches!(report.state, WorkerState::Idle | WorkerState::Busy)
}
