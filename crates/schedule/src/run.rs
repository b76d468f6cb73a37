//! A run: its start, its end, and the channel for both.

use samovar_log::Voice;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// Exit code 0, or the job is stored.
    Succeeded,
    /// Another exit code, a signal, or the job could not be stored.
    Failed,
    /// It was stopped, because its time was over.
    TimedOut,
    /// It was stopped, for its next run or because the server stopped.
    Stopped,
    /// It could not be started.
    NotStarted,
    /// The server died while it ran.
    Interrupted,
}

impl RunResult {
    /// All results.
    pub(crate) const ALL: [RunResult; 6] = [
        RunResult::Succeeded,
        RunResult::Failed,
        RunResult::TimedOut,
        RunResult::Stopped,
        RunResult::NotStarted,
        RunResult::Interrupted,
    ];

    /// Returns the name in the status, in metrics and in the store.
    pub fn name(self) -> &'static str {
        match self {
            RunResult::Succeeded => "succeeded",
            RunResult::Failed => "failed",
            RunResult::TimedOut => "timed_out",
            RunResult::Stopped => "stopped",
            RunResult::NotStarted => "not_started",
            RunResult::Interrupted => "interrupted",
        }
    }
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Result.
    pub result: RunResult,
    /// Details for people: `exit code 3`; may be empty.
    pub detail: String,
}

impl RunEnd {
    /// Creates an end.
    pub fn new(result: RunResult, detail: impl Into<String>) -> RunEnd {
        RunEnd { result, detail: detail.into() }
    }
}

/// Work of a schedule.
pub trait Work: Send {
    /// Starts a run. Does not wait.
    fn start(&self, launch: Launch);
    /// Stops a run, whose end is then reported. Does not wait.
    fn stop(&self, run: u64);
    /// Describes it for people: `app:report --daily`.
    fn text(&self) -> String;
}

/// A run to start.
pub struct Launch {
    /// Number of the run, unique in the server.
    pub run: u64,
    /// Receives the output. Dropped when there is no more.
    pub output: Box<dyn Voice>,
    /// Reports the start and the end.
    pub reporter: Reporter,
}

/// An event of a run.
#[derive(Debug)]
pub(crate) enum RunEvent {
    Began {
        pid: i32,
    },
    Ended(RunEnd),
    /// Its output is complete.
    OutputEnded,
}

/// Reports the start and the end of a run. If it is dropped without an end, the run was lost.
pub struct Reporter {
    run: u64,
    send: Box<dyn Fn(u64, RunEvent) + Send>,
    has_ended: bool,
}

impl Reporter {
    pub(crate) fn new(run: u64, send: Box<dyn Fn(u64, RunEvent) + Send>) -> Reporter {
        Reporter { run, send, has_ended: false }
    }

    /// Reports the process of the run.
    pub fn began(&self, pid: i32) {
        (self.send)(self.run, RunEvent::Began { pid });
    }

    /// Reports the end.
    pub fn ended(mut self, end: RunEnd) {
        self.has_ended = true;
        (self.send)(self.run, RunEvent::Ended(end));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if !self.has_ended {
            let end = RunEnd::new(RunResult::NotStarted, "the server has lost it");
            (self.send)(self.run, RunEvent::Ended(end));
        }
    }
}
