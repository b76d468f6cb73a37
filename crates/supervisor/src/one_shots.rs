//! Commands that run once, for schedules: forks them through the template, stops them at their
//! deadlines, and reports their end.
//!
//! A run belongs to the generation that has forked it, which lives until the run has ended. So a
//! reload lets it finish. Each run leads a process group of its own: a signal reaches the programs
//! that it has started, but no program that has left the group, such as a daemon.

use crate::os;
use crate::settings::ConsoleSettings;
use crate::template::Template;
use samovar_log::{Intake, Speaker, Voice};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Maximum wait for a generation that can fork.
const START_LIMIT: Duration = Duration::from_mins(1);
/// Timeout for the template's reply to a fork order.
const ASK_LIMIT: Duration = Duration::from_secs(10);
/// Interval between two SIGKILLs for a process that is blocked in the kernel.
const KILL_AGAIN: Duration = Duration::from_secs(30);
/// Fork orders above this number are for runs, those below for console workers.
const LIVES_FROM: u32 = 1 << 31;

/// A command to run once.
pub struct OneShot {
    /// Unique in the server.
    pub id: u64,
    /// The command. Its limits of age and memory are not used.
    pub command: ConsoleSettings,
    /// Maximum run time; zero: no limit.
    pub timeout: Duration,
    /// Time for which it may go on when the server stops.
    pub drain: Duration,
    /// Receives the output.
    pub output: Box<dyn Voice>,
    /// Called with the start, if there is one, then with the end. Must not block.
    pub report: OneShotReport,
}

/// Callback for the events of a run.
pub type OneShotReport = Box<dyn FnMut(OneShotEvent) + Send>;

impl std::fmt::Debug for OneShot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneShot").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneShotEvent {
    /// It has this process.
    Began(i32),
    /// There was no process, for this reason.
    NotStarted(String),
    /// The process has ended.
    Ended {
        /// Exit code; `None`: a signal ended it.
        code: Option<i32>,
        /// The signal.
        signal: Option<i32>,
        /// Reason for which it was stopped; `None`: it ended without that.
        stopped: Option<StopReason>,
    },
}

/// Why a run is stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its time is over.
    Timeout,
    /// The next run of the same schedule replaces it.
    Replaced,
    /// The server stops.
    Shutdown,
}

impl StopReason {
    fn words(self) -> &'static str {
        match self {
            StopReason::Timeout => "its timeout is over",
            StopReason::Replaced => "its next run is due",
            StopReason::Shutdown => "the server is stopping",
        }
    }
}

enum State {
    Asked { life: u32, give_up_at: Instant },
    Running { pid: i32, stop_at: Option<Instant> },
    Leaving { pid: i32, kill_at: Instant, why: StopReason },
}

struct Run {
    id: u64,
    name: String,
    stop_timeout: Duration,
    drain: Duration,
    timeout: Duration,
    state: State,
    /// Time at which it is stopped because the server stops.
    drained_at: Option<Instant>,
    report: OneShotReport,
    _speaker: Speaker,
}

impl Run {
    /// Whether the template has not replied to the order in time.
    fn is_unanswered(&self, now: Instant) -> bool {
        matches!(self.state, State::Asked { give_up_at, .. } if give_up_at <= now)
    }

    fn pid(&self) -> Option<i32> {
        match self.state {
            State::Asked { .. } => None,
            State::Running { pid, .. } | State::Leaving { pid, .. } => Some(pid),
        }
    }
}

/// The runs of one generation.
#[derive(Default)]
pub(crate) struct OneShots {
    runs: Vec<Run>,
    next_life: u32,
}

impl OneShots {
    /// Orders the process of a run.
    pub(crate) fn start(&mut self, one: OneShot, template: &Template, intake: &Intake) {
        let OneShot { id, command, timeout, drain, output, mut report } = one;
        let life = LIVES_FROM | self.next_life;
        self.next_life = self.next_life.wrapping_add(1) % LIVES_FROM;
        let ordered = intake.pipe_to(output).and_then(|(output, speaker)| {
            template.start_console(life, 0, &command, &output).map(|()| speaker)
        });
        match ordered {
            Ok(speaker) => self.runs.push(Run {
                id,
                name: command.name,
                stop_timeout: command.stop_timeout,
                drain,
                timeout,
                state: State::Asked { life, give_up_at: Instant::now() + ASK_LIMIT },
                drained_at: None,
                report,
                _speaker: speaker,
            }),
            Err(error) => report(OneShotEvent::NotStarted(error.to_string())),
        }
    }

    /// Handles a fork. Returns whether the order was for a run.
    pub(crate) fn started(&mut self, life: u32, pid: i32) -> bool {
        if life < LIVES_FROM {
            return false;
        }
        let is_it = |run: &Run| matches!(run.state, State::Asked { life: l, .. } if l == life);
        let Some(run) = self.runs.iter_mut().find(|run| is_it(run)) else {
            warn!(pid, "a scheduled command was forked too late, killing it");
            os::kill_run(pid);
            return true;
        };
        let stop_at = (!run.timeout.is_zero()).then(|| Instant::now() + run.timeout);
        run.state = State::Running { pid, stop_at };
        (run.report)(OneShotEvent::Began(pid));
        true
    }

    /// Handles a failed fork. Returns whether the order was for a run.
    pub(crate) fn failed(&mut self, life: u32, why: &str) -> bool {
        let is_it = |run: &mut Run| matches!(run.state, State::Asked { life: l, .. } if l == life);
        for mut run in self.runs.extract_if(.., is_it) {
            (run.report)(OneShotEvent::NotStarted(why.to_owned()));
        }
        life >= LIVES_FROM
    }

    /// Handles the end of a process. Returns whether it was that of a run.
    pub(crate) fn ended(&mut self, pid: i32, status: i32) -> bool {
        let Some(at) = self.runs.iter().position(|run| run.pid() == Some(pid)) else {
            return false;
        };
        let mut run = self.runs.swap_remove(at);
        let stopped = match run.state {
            State::Leaving { why, .. } => Some(why),
            _ => None,
        };
        if stopped.is_some() {
            // Programs that the command has started, and that ignore SIGTERM.
            os::kill_group(pid);
        }
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        (run.report)(OneShotEvent::Ended { code, signal, stopped });
        true
    }

    /// The template has died. Its runs get SIGTERM, and the supervisor reaps them.
    pub(crate) fn template_died(&mut self) {
        let is_asked = |run: &mut Run| matches!(run.state, State::Asked { .. });
        for mut run in self.runs.extract_if(.., is_asked) {
            (run.report)(OneShotEvent::NotStarted("the template has died".to_owned()));
        }
    }

    /// Stops a run. Returns whether it is here.
    pub(crate) fn stop(&mut self, id: u64, why: StopReason) -> bool {
        let Some(run) = self.runs.iter_mut().find(|run| run.id == id) else { return false };
        stop(run, why, Instant::now());
        true
    }

    /// The server stops: each run may go on for a time.
    pub(crate) fn drain(&mut self) {
        let now = Instant::now();
        for run in &mut self.runs {
            run.drained_at.get_or_insert(now + run.drain);
        }
    }

    /// Kills all runs.
    pub(crate) fn stop_now(&mut self) {
        self.drain();
        for pid in self.runs.iter().filter_map(Run::pid) {
            os::kill_run(pid);
        }
        let now = Instant::now();
        for run in &mut self.runs {
            match run.state {
                State::Running { pid, .. } => {
                    let (kill_at, why) = (now + KILL_AGAIN, StopReason::Shutdown);
                    run.state = State::Leaving { pid, kill_at, why };
                }
                State::Asked { ref mut give_up_at, .. } => *give_up_at = now,
                State::Leaving { .. } => {}
            }
        }
        self.settle();
    }

    pub(crate) fn are_gone(&self) -> bool {
        self.runs.is_empty()
    }

    /// Sends the signals that are due.
    pub(crate) fn settle(&mut self) {
        let now = Instant::now();
        let is_late = |run: &mut Run| run.is_unanswered(now);
        for mut run in self.runs.extract_if(.., is_late) {
            (run.report)(OneShotEvent::NotStarted("the template does not respond".to_owned()));
        }
        for run in &mut self.runs {
            let is_over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            match run.state {
                State::Running { stop_at, .. } if is_over(stop_at) => {
                    stop(run, StopReason::Timeout, now);
                }
                State::Running { .. } if is_over(run.drained_at) => {
                    stop(run, StopReason::Shutdown, now);
                }
                State::Leaving { pid, ref mut kill_at, .. } if *kill_at <= now => {
                    *kill_at = now + KILL_AGAIN;
                    let name = &run.name;
                    warn!(name, pid, "a scheduled command ignores SIGTERM, killing it");
                    os::kill_run(pid);
                }
                _ => {}
            }
        }
    }
}

fn stop(run: &mut Run, why: StopReason, now: Instant) {
    match run.state {
        State::Running { pid, .. } => {
            info!(name = run.name, pid, "stopping a scheduled command: {}", why.words());
            os::terminate_run(pid);
            run.state = State::Leaving { pid, kill_at: now + run.stop_timeout, why };
        }
        State::Asked { ref mut give_up_at, .. } => *give_up_at = now,
        State::Leaving { .. } => {}
    }
}

/// Runs that wait for a generation that can fork.
#[derive(Default)]
pub(crate) struct WaitingOneShots(Vec<(OneShot, Instant)>);

impl WaitingOneShots {
    pub(crate) fn add(&mut self, one: OneShot) {
        self.0.push((one, Instant::now() + START_LIMIT));
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = OneShot> {
        self.0.drain(..).map(|(one, _)| one)
    }

    /// Refuses all, because the server stops.
    pub(crate) fn refuse_all(&mut self) {
        for mut one in self.take() {
            (one.report)(OneShotEvent::NotStarted("the server is stopping".to_owned()));
        }
    }

    /// Refuses this one. Returns whether it was here.
    pub(crate) fn refuse(&mut self, id: u64) -> bool {
        let Some(at) = self.0.iter().position(|(one, _)| one.id == id) else { return false };
        let (mut one, _) = self.0.swap_remove(at);
        (one.report)(OneShotEvent::NotStarted("its next run is due".to_owned()));
        true
    }

    /// Refuses those that have waited too long.
    pub(crate) fn settle(&mut self) {
        let now = Instant::now();
        for (mut one, _) in self.0.extract_if(.., |(_, until)| *until <= now) {
            let why = format!("PHP was not ready within {START_LIMIT:?}");
            (one.report)(OneShotEvent::NotStarted(why));
        }
    }
}
