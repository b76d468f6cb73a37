//! One generation: a template, the workers and console workers forked from it, and the state
//! machine that decides the next steps.

mod ground;
mod overdue;
mod pending;
mod recycling;
mod scaling;
mod state;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use ground::{Ground, LEAVE_LIMIT, Readiness};
pub(crate) use pending::{Coming, Step};
pub(crate) use state::Generation;

use crate::end::{Failed, describe};
use crate::news::{KillWhy, News};
use crate::one_shots::WaitingOneShots;
use crate::os;
use crate::template::Template;
use crate::workers::{Action, Event};
use ground::is_waiting;
use samovar_channel::{
    self as channel, EXIT_REPLACE, Finding, Heard, LinkingState, Role, WorkerId,
};
use samovar_ring::{Death, DesiredState, Incarnation, Lane, LeaveReason, Model};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;
use tracing::{info, warn};
use watch::Verdict;

/// Maximum number of findings kept for `samovar status`.
const FINDINGS_MAX: usize = 32;

impl Generation {
    /// Returns the template's channel, while there is one.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.template.as_ref().and_then(Template::fd)
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Whether no event is queued.
    pub(crate) fn is_settled(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether all its processes have ended.
    pub(crate) fn has_gone(&self) -> bool {
        self.has_gone && self.consoles.are_gone() && self.one_shots.are_gone()
    }

    /// Executes everything that is due.
    pub(crate) fn step(&mut self, ground: &Ground) -> Result<(), Failed> {
        // A worker may have overwritten the desired state of others, so that they take no requests
        // any more. The state is written again.
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

    /// Settles the console workers. `elsewhere` returns whether another generation still has one
    /// with that name and number.
    pub(crate) fn settle_consoles(&mut self, elsewhere: &dyn Fn(&str, usize) -> bool) {
        let may_start = self.desired == DesiredState::Serve && self.ready != Readiness::Starting;
        self.consoles.settle(self.template.as_ref(), may_start, elsewhere);
        self.one_shots.settle();
    }

    /// Starts the commands that wait, if it can fork.
    pub(crate) fn start_one_shots(&mut self, waiting: &mut WaitingOneShots, ground: &Ground) {
        let may_start = self.desired == DesiredState::Serve && self.ready != Readiness::Starting;
        if let Some(template) = self.template.as_ref().filter(|it| may_start && !it.is_closed()) {
            for one in waiting.take() {
                self.one_shots.start(one, template, &ground.intake);
            }
        }
    }

    /// Lets its workers take requests.
    pub(crate) fn serve(&mut self, ground: &Ground) {
        self.desired = DesiredState::Serve;
        self.ready = Readiness::Ready;
        self.place_workers(ground);
    }

    /// Makes its workers exit after their current request, and kills them at `stop_by`. Console
    /// workers are terminated.
    pub(crate) fn retire(&mut self, stop_by: Option<Instant>, why: &'static str, ground: &Ground) {
        self.desired = DesiredState::Retire;
        self.place_workers(ground);
        self.consoles.stop(why);
        self.stop(stop_by);
    }

    /// Like [`Self::retire`], but only for the workers. The console workers are stopped separately.
    pub(crate) fn stop(&mut self, stop_by: Option<Instant>) {
        self.stop_by = self.stop_by.into_iter().chain(stop_by).min();
        self.tell(Event::Stop);
    }

    /// Ends the generation immediately. It has responded to no request.
    pub(crate) fn give_up(&mut self, ground: &Ground) {
        self.is_given_up = true;
        self.retire(None, "the reload was cancelled", ground);
        self.tell(Event::StopNow);
        match &self.template {
            Some(template) => os::kill_group(template.pid),
            None => self.tell(Event::TemplateDied),
        }
    }

    /// Kills all processes without waiting for their exit.
    pub(crate) fn stop_now(&mut self) {
        self.consoles.stop_now("the server is stopping");
        self.one_shots.stop_now();
        self.events.extend([Event::Stop, Event::StopNow]);
    }

    /// Reads the template's messages since the last call.
    pub(crate) fn read_template(&mut self, ground: &mut Ground) -> Result<(), Failed> {
        while let Some(template) = &mut self.template
            && let Some(heard) = template.hear().inspect_err(|_| template.close())?
        {
            match heard {
                Heard::Message(event, _) => self.hear(event, ground)?,
                Heard::Garbled(garbled) => warn!(%garbled, "unknown message of the template"),
                // The template's death reports everything that is missing.
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
                    warn!("libphp is not linked directly: {}", linking.why);
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
            // The boot of a new image process begins with its findings and ends with its result.
            channel::Event::Image(image) => {
                info!(
                    mode = image.mode.word(),
                    bytes = image.bytes,
                    boot = ?image.boot,
                    "the application has booted"
                );
                self.boot_failed = false;
                self.booting = None;
                self.image = Some(image);
            }
            // Process ids of 1 and below cannot belong to a template.
            channel::Event::Booting { pid } => self.booting = Some(pid).filter(|pid| *pid > 1),
            channel::Event::BootFailed => {
                self.boot_failed = true;
                self.booting = None;
            }
            channel::Event::Finding(finding) => self.found(finding)?,
            channel::Event::Opcache(opcache) => self.opcache = Some(opcache),
            channel::Event::Php(setup) => self.setup = Some(Arc::new(setup.bounded())),
            channel::Event::Pong => self.watch.template_responded(),
            channel::Event::ConsoleForked { life, pid } => {
                if !self.one_shots.started(life, pid) {
                    self.consoles.started(life, pid);
                }
            }
            channel::Event::ConsoleFailed { life, why } => {
                if !self.one_shots.failed(life, &why) {
                    self.consoles.failed(life, &why);
                }
            }
            channel::Event::ConsoleDied { pid, status } => {
                let _ = self.one_shots.ended(pid, status) || self.consoles.ended(pid, status);
            }
        }
        Ok(())
    }

    fn found(&mut self, finding: Finding) -> Result<(), Failed> {
        let Finding { kind, action, what: object, place, advice } = &finding;
        let errors = &self.settings.image_errors;
        let forbidden =
            errors.iter().any(|error| error == kind || (error == "all" && action != "note"));
        if forbidden && self.ready != Readiness::Ready {
            return Err(Failed::Finding(finding));
        }
        warn!(kind, action, opened = place, hint = advice, "preflight finding: {object}");
        if self.findings.len() == FINDINGS_MAX {
            self.findings.remove(0);
        }
        self.findings.retain(|f| *f != finding);
        self.findings.push(finding);
        Ok(())
    }

    /// Handles the end of a child of the supervisor. Returns whether it belonged to this
    /// generation.
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
            self.one_shots.template_died();
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
        // The process may be a console worker or a command whose template died.
        if self.one_shots.ended(pid, status) || self.consoles.ended(pid, status) {
            return Ok(true);
        }
        // The process is a worker whose template died, or an orphan left by a request. Only the
        // former is handled.
        let known = self.processes().find(|(_, p, _)| *p == pid).map(|(index, ..)| index);
        if let Some(index) = known {
            // The cause is reported for its template, so this is not counted as a crash.
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
        // A replay of a request that kills its worker is no event of the application.
        let is_of_replay = self.workers.is_spare(index);
        if !ground.is_stopping && !is_told_to && !was_killed && !is_of_replay {
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
            // Its successors boot before their first request.
            self.tell(Event::Resident);
        }
        if !self.workers.is_spare(index) {
            info!(pid, reason, "a worker exits to be replaced by a fresh fork");
            *ground.refork_reasons.entry(reason).or_default() += 1;
            ground.tell(News::Left(reason));
        }
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
            // The workers were notified when the generation retired.
            Action::StopWorkers => {}
            // Not yet: the end of the template would terminate console workers and commands. The
            // action is repeated with each tick.
            Action::CloseTemplate if !self.consoles.are_gone() || !self.one_shots.are_gone() => {}
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

    /// Returns the desired state of the worker in that cell.
    pub(crate) fn desired_of(&self, cell: usize) -> DesiredState {
        if self.workers.is_leaving(cell) {
            DesiredState::Retire
        } else if self.workers.is_spare(cell) && self.desired == DesiredState::Serve {
            DesiredState::Hold
        } else {
            self.desired
        }
    }

    fn fork(&mut self, index: usize, incarnation: Incarnation, role: Role, ground: &Ground) {
        ground.supervision.reseal();
        ground.supervision.set_desired_state(index, self.desired_of(index));
        ground.supervision.set_generation(index, self.number);
        // Each worker has its own pipe, so that lines do not mix and a flood from one does not
        // displace the others. If no pipe can be created (too many open files), the worker prints
        // to the template's pipe.
        let (output, speaker) = ground.intake.pipe().ok().unzip();
        let worker = WorkerId { cell: index, life: incarnation };
        let asked = self.template.as_ref().map(|t| t.fork(worker, role, output.as_ref()));
        self.outputs.extend(speaker.map(|speaker| (index, speaker)));
        if !matches!(asked, Some(Ok(()))) {
            // The template is dying; its end will be noticed and handled.
            self.tell(Event::ForkFailed { index, incarnation });
        }
    }

    /// Returns cell, process id and start time of each worker.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (usize, i32, Instant)> {
        let places = self.workers.places().iter();
        places.filter_map(|p| p.process().map(|(pid, _, since)| (p.cell(), pid, since)))
    }

    /// Kills processes that do not respond. Their death is then handled like any other.
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
                warn!(pid, suppressed, "no heartbeat of a worker without a request, killing it");
            }
            ground.kills.count(KillWhy::Watchdog, 1);
            ground.tell(News::Killed("no heartbeat while it had no request".to_owned()));
            ground.kill(pid);
        }
        let Some(template) = &self.template else { return };
        let (starts, waits) = (self.workers.has_starting_template(), self.workers.has_template());
        match self.watch.look_at_template(template.pid, starts, waits, template.is_closed()) {
            // If the channel is full, the template already has enough to reply to.
            Some(Verdict::Ask) => {
                let _ = template.ping(self.watch.idle_looks(), self.watch.boot_looks());
            }
            Some(Verdict::Kill) => {
                warn!(pid = template.pid, "no heartbeat of the template, killing it");
                ground.kills.count(KillWhy::Watchdog, 1);
                ground.tell(News::Killed("no heartbeat of the template".to_owned()));
                ground.kill(template.pid);
            }
            None => {}
        }
    }

    /// Checks for a resident application. The first request can reveal that the application is
    /// resident. From then on, new workers boot before their first request, and other scripts may
    /// have no worker left.
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

    /// Returns the application's model, as reported by its workers. If they have died while the
    /// code changes, returns the model reported earlier.
    pub(crate) fn model(&self, ground: &Ground) -> Model {
        let places = self.workers.places().iter().filter(|place| !place.is_script());
        let mut models =
            places.filter_map(|p| ground.supervision.report(p.cell())).map(|r| r.model);
        models.find(|model| *model != Model::Script).unwrap_or(self.seen_model)
    }

    /// Whether all workers wait for requests or run one.
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

    /// Whether `timeouts.boot` has expired.
    pub(crate) fn is_late(&self) -> bool {
        self.started.elapsed() > self.settings.boot_limit
    }

    /// Returns the time at which workers that retire now are killed.
    pub(crate) fn drain_end(&self) -> Instant {
        Instant::now() + self.settings.drain_limit
    }
}
