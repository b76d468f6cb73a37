//! Does what the state machine says: one thread that waits for messages, signals, commands and time.

mod end;
mod handle;

use crate::consoles::{Console, Consoles};
use crate::os::{self, Signal, Signals};
use crate::state::{Action, Event, Role, State};
use crate::template::{Message, Template};
use samovar_ring::{Lane, LeaveReason, Model, Ring, Supervision, WorkerState};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tracing::{info, warn};

pub(crate) use end::describe;
pub use end::{Ended, Failed};
pub use handle::{Command, Handle, Report, WorkerLine};

pub use crate::template::{Finding, Image, TemplateCommand};

/// How often the machine is asked without an event: backoffs end, models change.
const TICK: Duration = Duration::from_millis(100);
/// Exit status of a worker that wants a successor at once (crates/worker/csrc/boundary.h).
const EXIT_REPLACE: i32 = 83;
/// Most findings that are kept for `samovar status`.
const FINDINGS_MAX: usize = 32;
/// Between "the workers may leave" and SIGKILL.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// What the supervisor needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The template.
    pub command: TemplateCommand,
    /// Worker processes.
    pub workers: usize,
    /// How long the first boot may take before the server is called ready without it.
    pub boot_limit: Duration,
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
pub fn run(running: Running, settings: &Settings, hooks: &mut impl Hooks) -> Result<Ended, Failed> {
    let now = Instant::now();
    let supervision = Supervision::new(running.ring.clone());
    let mut supervisor = Supervisor {
        state: State::new(settings.workers, now),
        running,
        settings,
        supervision,
        template: None,
        consoles: Consoles::new(settings.consoles.clone()),
        events: VecDeque::new(),
        ready: Readiness::Starting,
        started: now,
        stop_by: None,
        stop_requests: 0,
    };
    supervisor.run(hooks)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Starting,
    TemplateReady,
    Ready,
}

struct Supervisor<'a> {
    state: State,
    running: Running,
    settings: &'a Settings,
    supervision: Supervision,
    template: Option<Template>,
    consoles: Consoles,
    events: VecDeque<Event>,
    ready: Readiness,
    started: Instant,
    stop_by: Option<Instant>,
    stop_requests: u32,
}

impl Supervisor<'_> {
    fn run(&mut self, hooks: &mut impl Hooks) -> Result<Ended, Failed> {
        self.events.push_back(Event::Tick);
        loop {
            while let Some(event) = self.events.pop_front() {
                let actions = self.state.step(&event, Instant::now());
                for action in actions {
                    if action == Action::Exit && self.consoles.are_gone() {
                        let hurried = self.stop_requests > 1;
                        return Ok(if hurried { Ended::Hurried } else { Ended::Drained });
                    }
                    self.act(&action)?;
                }
            }
            let ready = self.ready != Readiness::Starting;
            self.consoles.settle(self.template.as_ref(), ready);
            self.publish();
            self.wait(hooks)?;
            self.look_at_models();
            self.look_at_readiness(hooks);
            if self.stop_by.is_some_and(|by| by <= Instant::now()) {
                self.stop_by = None;
                self.events.push_back(Event::StopNow);
            }
            self.events.push_back(Event::Tick);
        }
    }

    fn wait(&mut self, hooks: &mut impl Hooks) -> Result<(), Failed> {
        let channel = self.template.as_ref().map_or(-1, Template::fd);
        let wake = self.running.handle.wake.as_raw_fd();
        let fds = [channel, self.running.signals.as_raw_fd(), wake];
        let [message, signal, command] = os::poll(fds, TICK);
        if message {
            self.read_template()?;
        }
        if signal {
            for signal in self.running.signals.take() {
                match signal {
                    Signal::Child => self.reap()?,
                    Signal::Reopen => hooks.reopen_logs(),
                    Signal::Stop => self.stop_requested(hooks),
                }
            }
        }
        if command {
            os::silence(wake);
            self.read_commands();
        }
        Ok(())
    }

    fn stop_requested(&mut self, hooks: &mut impl Hooks) {
        self.stop_requests += 1;
        if self.stop_requests == 1 {
            self.consoles.stop();
            hooks.stop_requested();
        } else {
            // Somebody is in a hurry: the second signal does not wait for requests.
            self.consoles.hurry();
            self.events.extend([Event::Stop, Event::StopNow]);
        }
    }

    fn read_commands(&mut self) {
        while let Ok(command) = self.running.commands.try_recv() {
            match command {
                Command::Kill { incarnation, reason } => {
                    warn!(incarnation, reason, "a worker is killed");
                    self.events.push_back(Event::Kill { incarnation });
                }
                Command::ScriptsWait => self.events.push_back(Event::ScriptsWait),
                Command::StopConsoles => self.consoles.stop(),
                Command::Stop => {
                    self.consoles.stop();
                    self.stop_by = Some(Instant::now() + LEAVE_LIMIT);
                    self.events.push_back(Event::Stop);
                }
            }
        }
    }

    fn read_template(&mut self) -> Result<(), Failed> {
        while let Some(template) = &mut self.template
            && let Some(message) = template.receive()?
        {
            match message {
                Message::Event(event) => self.events.push_back(event),
                Message::Logged(event, text) => {
                    info!("{text}");
                    if matches!(event, Event::TemplateReady { .. }) {
                        self.ready = self.ready.max_with(Readiness::TemplateReady);
                    }
                    self.events.push_back(event);
                }
                Message::Died { index, pid, status } => self.worker_ended(index, pid, status),
                Message::Image(image) => self.image_is(image),
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

    /// The boot of a new image process begins with its findings, and ends with what came of it.
    fn image_is(&mut self, image: Image) {
        info!(mode = image.mode, bytes = image.bytes, boot = ?image.boot, "the application has booted");
        self.running.handle.snapshot().image = Some(image);
    }

    fn found(&mut self, finding: Finding) -> Result<(), Failed> {
        let Finding { kind, action, what, place, advice } = &finding;
        let errors = &self.settings.image_errors;
        let forbidden = action != "note" && errors.iter().any(|e| e == kind || e == "all");
        if forbidden && self.ready != Readiness::Ready {
            return Err(Failed::Finding(finding));
        }
        warn!(kind, action, opened = place, hint = advice, "the booted application holds {what}");
        let mut snapshot = self.running.handle.snapshot();
        if snapshot.findings.len() == FINDINGS_MAX {
            snapshot.findings.remove(0);
        }
        snapshot.findings.retain(|f| *f != finding);
        snapshot.findings.push(finding);
        Ok(())
    }

    fn worker_ended(&mut self, index: usize, pid: i32, status: i32) {
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == EXIT_REPLACE {
            self.worker_left(index, pid);
            return;
        }
        if self.stop_by.is_none() {
            warn!(pid, "worker {}", describe(status));
        }
        self.events.push_back(Event::WorkerDied { pid });
    }

    fn worker_left(&mut self, index: usize, pid: i32) {
        let report = self.supervision.report(index);
        let reason = report.and_then(|r| r.leave).map_or("unknown", LeaveReason::name);
        if report.is_some_and(|r| r.leave == Some(LeaveReason::Checkpoint)) {
            // Its successors boot ahead.
            self.events.push_back(Event::Resident);
        }
        info!(pid, reason, "a worker makes room for a fresh one");
        *self.running.handle.snapshot().refork_reasons.entry(reason).or_default() += 1;
        self.events
            .push_back(Event::WorkerLeft { pid, served: report.is_some_and(|r| r.requests > 0) });
    }

    /// Our own children: the template, and orphans of a template that died.
    fn reap(&mut self) -> Result<(), Failed> {
        // A death and the template's last words may come together: the words first.
        self.read_template()?;
        while let Some((pid, status)) = os::reap() {
            if self.template.as_ref().is_some_and(|t| t.pid == pid) {
                self.template = None;
                if self.ready == Readiness::Starting {
                    return Err(Failed::Template { status });
                }
                if self.stop_by.is_none() {
                    warn!(pid, "template {}", describe(status));
                }
                self.consoles.template_died();
                self.events.push_back(Event::TemplateDied);
                continue;
            }
            // A console worker whose template died.
            if self.consoles.ended(pid, status) {
                continue;
            }
            // A worker whose template died, or an orphan that a request has left: only the first is told of.
            let known = self.processes().find(|(_, p, _)| *p == pid).map(|(index, ..)| index);
            match known {
                Some(index) => self.worker_ended(index, pid, status),
                None => self.events.push_back(Event::WorkerDied { pid }),
            }
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), Failed> {
        match *action {
            Action::StartTemplate => {
                self.supervision.reseal();
                match Template::start(&self.settings.command, &self.running.ring) {
                    Ok(template) => self.template = Some(template),
                    Err(error) if self.ready == Readiness::Starting => return Err(error.into()),
                    Err(error) => {
                        warn!(%error, "cannot start the template");
                        self.events.push_back(Event::TemplateDied);
                    }
                }
            }
            Action::Fork { index, incarnation, role } => {
                self.fork(index, incarnation, role);
            }
            Action::Repair { index, incarnation } => {
                let orphans = self.supervision.repair(index, incarnation);
                if orphans > 0 {
                    info!(index, orphans, "requests lost their worker");
                }
            }
            Action::Kill { pid } => os::kill(pid),
            Action::StopWorkers => self.supervision.stop(),
            // Asked for again with each tick: console workers would be asked to leave by its end.
            Action::CloseTemplate if !self.consoles.are_gone() => {}
            Action::CloseTemplate => {
                if let Some(template) = &mut self.template {
                    template.close();
                }
            }
            Action::Exit => {}
        }
        Ok(())
    }

    fn fork(&mut self, index: usize, incarnation: samovar_ring::Incarnation, role: Role) {
        self.supervision.reseal();
        let asked = self.template.as_ref().map(|t| t.fork(index, incarnation, role));
        if !matches!(asked, Some(Ok(()))) {
            // The template is dying: its end will be noticed, and settles the rest.
            self.events.push_back(Event::ForkFailed { index });
        }
    }

    fn processes(&self) -> impl Iterator<Item = (usize, i32, Instant)> {
        let places = self.state.places().iter().enumerate();
        places.filter_map(|(index, p)| p.process().map(|(pid, _, since)| (index, pid, since)))
    }

    fn publish(&self) {
        let mut snapshot = self.running.handle.snapshot();
        snapshot.processes.clear();
        snapshot.processes.extend(self.processes());
        snapshot.consoles = self.consoles.entries().collect();
        snapshot.restarts = self.state.restarts();
        snapshot.reforks = self.state.reforks();
        let started = u64::from(self.ready != Readiness::Starting);
        snapshot.generation = started + self.state.template_restarts();
    }

    /// An application turns resident when its first request finds out; then its successors boot ahead,
    /// and scripts beside it may have lost their last worker.
    fn look_at_models(&mut self) {
        let resident = |(index, ..): (usize, i32, Instant)| {
            self.supervision.report(index).is_some_and(|r| r.model != Model::Script)
        };
        if !self.state.is_resident() && self.processes().any(resident) {
            self.events.push_back(Event::Resident);
        }
        if self.state.is_resident() && self.supervision.queued(Lane::Script) > 0 {
            self.events.push_back(Event::ScriptsWait);
        }
    }

    fn look_at_readiness(&mut self, hooks: &mut impl Hooks) {
        if self.ready != Readiness::TemplateReady {
            return;
        }
        let running = self.processes().count();
        let waiting = |(index, ..): (usize, i32, Instant)| {
            self.supervision
                .report(index)
                .is_some_and(|r| matches!(r.state, WorkerState::Idle | WorkerState::Busy))
        };
        let late = self.started.elapsed() > self.settings.boot_limit;
        let all = running == self.settings.workers && self.processes().all(waiting);
        if late && !all {
            warn!("the application has not booted in time; requests wait for it");
        }
        if all || late {
            self.ready = Readiness::Ready;
            hooks.ready();
        }
    }
}

impl Readiness {
    fn max_with(self, other: Readiness) -> Readiness {
        if self == Readiness::Ready { self } else { other }
    }
}
