//! A pool's console workers (`[[console]]`). `plan` decides; this module forks through the
//! template, sends signals, and logs the workers' output.

mod plan;

pub use plan::ConsoleState;

use crate::end::describe;
use crate::os;
use crate::settings::ConsoleSettings;
use crate::template::Template;
use plan::{Action, ConsolePlaces};
use samovar_log::{Intake, Speaker, Voice};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Target of the lines that console workers print; they are logged at every log level.
pub const OUTPUT_TARGET: &str = "samovar::worker";

/// Longer lines are logged in pieces.
const LINE_BYTES_MAX: usize = 8 << 10;
/// Interval between two checks of the processes' memory.
const MEMORY_TICK: Duration = Duration::from_secs(1);

/// Console workers that another server still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Possibly all of them: nothing is known yet.
    All,
    /// Those with these names and numbers.
    These(Vec<(String, usize)>),
}

impl Elsewhere {
    pub(crate) fn has(&self, name: &str, number: usize) -> bool {
        match self {
            Elsewhere::All => true,
            Elsewhere::These(these) => these.iter().any(|it| it.0 == name && it.1 == number),
        }
    }
}

/// One console worker, for `samovar status`.
#[derive(Clone, Debug)]
pub struct ConsoleLine {
    /// Name of the command.
    pub name: String,
    /// Process id; 0 if there is no process.
    pub pid: i32,
    /// State of the process.
    pub state: ConsoleState,
    /// Number of processes in this place that ended and were replaced.
    pub restarts: u64,
    /// Resident memory of the process, in bytes.
    pub rss_bytes: u64,
    /// Time since the fork.
    pub age: Duration,
}

/// State that needs no system calls: copied under a lock, completed outside of it.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleSnapshot {
    name: String,
    state: ConsoleState,
    process: Option<(i32, Instant)>,
    restarts: u64,
}

impl ConsoleSnapshot {
    pub(crate) fn has_process(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn line(&self) -> ConsoleLine {
        ConsoleLine {
            name: self.name.clone(),
            pid: self.process.map_or(0, |(pid, _)| pid),
            state: self.state,
            restarts: self.restarts,
            rss_bytes: self.process.map_or(0, |(pid, _)| os::resident_bytes(pid)),
            age: self.process.map_or(Duration::ZERO, |(_, since)| since.elapsed()),
        }
    }
}

/// The console workers and their output.
pub(crate) struct Consoles {
    machine: ConsolePlaces,
    /// By life; moved to `running` when the process id is known.
    starting: HashMap<u32, Speaker>,
    running: HashMap<i32, Speaker>,
    memory_at: Instant,
    intake: Intake,
}

impl Consoles {
    pub(crate) fn new(commands: Vec<ConsoleSettings>, intake: Intake) -> Consoles {
        let now = Instant::now();
        Consoles {
            machine: ConsolePlaces::new(commands, now),
            starting: HashMap::new(),
            running: HashMap::new(),
            memory_at: now,
            intake,
        }
    }

    /// Starts, terminates and kills processes as needed. `elsewhere` returns whether another
    /// generation still has a process with that name and number.
    pub(crate) fn settle(
        &mut self,
        template: Option<&Template>,
        ready: bool,
        elsewhere: &dyn Fn(&str, usize) -> bool,
    ) {
        let now = Instant::now();
        let look = now >= self.memory_at;
        if look {
            self.memory_at = now + MEMORY_TICK;
        }
        self.starting.retain(|life, _| self.machine.is_asked(*life));
        let memory = |pid| if look { os::resident_bytes(pid) } else { 0 };
        for action in self.machine.settle(now, ready && template.is_some(), memory, elsewhere) {
            match action {
                Action::Start { command, number, life } => {
                    self.start(template, command, number, life);
                }
                Action::Ask { pid, why } => {
                    info!(pid, "stopping a console worker: {why}");
                    os::terminate(pid);
                }
                Action::Kill { pid } => {
                    warn!(pid, "a console worker did not exit within its stop_timeout, killing it");
                    os::kill(pid);
                }
            }
        }
    }

    fn start(&mut self, template: Option<&Template>, command: usize, number: usize, life: u32) {
        let command = self.machine.command(command);
        let begun = template.map(|template| {
            let (name, pool) = (command.name.clone(), samovar_log::pool::current());
            let voice = Output { name, pool: pool.unwrap_or_default(), lines: Lines::default() };
            let (output, speaker) = self.intake.pipe_to(Box::new(voice))?;
            template.start_console(life, number, command, &output).map(|()| speaker)
        });
        match begun {
            Some(Ok(speaker)) => {
                self.starting.insert(life, speaker);
            }
            Some(Err(error)) => {
                warn!(name = command.name, %error, "cannot start a console worker");
                self.machine.failed(life, Instant::now());
            }
            None => self.machine.failed(life, Instant::now()),
        }
    }

    pub(crate) fn started(&mut self, life: u32, pid: i32) {
        let speaker = self.starting.remove(&life);
        if !self.machine.started(life, pid, Instant::now()) {
            warn!(pid, "a console worker was forked too late, killing it");
            os::kill(pid);
        } else if let Some(speaker) = speaker {
            self.running.insert(pid, speaker);
        }
    }

    pub(crate) fn failed(&mut self, life: u32, why: &str) {
        warn!(why, "cannot fork a console worker");
        self.starting.remove(&life);
        self.machine.failed(life, Instant::now());
    }

    /// Handles the end of a process. Returns whether it was a console worker.
    pub(crate) fn ended(&mut self, pid: i32, status: i32) -> bool {
        let Some((name, asked_to)) = self.machine.ended(pid, Instant::now()) else { return false };
        let how = describe(status);
        // Many commands have no handler for SIGTERM.
        let obeyed =
            asked_to && libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM;
        if status == 0 || obeyed {
            info!(name, pid, "a console worker {how}");
        } else {
            warn!(name, pid, "a console worker {how}");
        }
        self.running.remove(&pid);
        true
    }

    pub(crate) fn template_died(&mut self) {
        self.starting.clear();
        self.machine.forget_asked(Instant::now());
    }

    pub(crate) fn stop(&mut self, why: &'static str) {
        self.machine.stop(why);
    }

    pub(crate) fn stop_now(&mut self, why: &'static str) {
        self.machine.stop_now(why, Instant::now());
    }

    /// Returns name and number of each process that runs or is being started.
    pub(crate) fn living(&self) -> Vec<(String, usize)> {
        let places = self.machine.places().iter();
        let living = places.filter(|place| place.state() != ConsoleState::Waiting);
        let name = |place: &plan::ConsolePlace| self.machine.command(place.command).name.clone();
        living.map(|place| (name(place), place.number)).collect()
    }

    pub(crate) fn are_gone(&self) -> bool {
        self.machine.are_gone()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = ConsoleSnapshot> {
        self.machine.places().iter().map(|place| ConsoleSnapshot {
            name: self.machine.command(place.command).name.clone(),
            state: place.state(),
            process: place.process(),
            restarts: place.restarts,
        })
    }
}

/// Logs the output of a console worker line by line.
struct Output {
    name: String,
    /// Name of its pool; empty if there is only one pool.
    pool: String,
    lines: Lines,
}

impl Voice for Output {
    fn hear(&mut self, bytes: &[u8]) -> bool {
        let _named = samovar_log::pool::enter(&self.pool);
        self.lines.take(bytes, |line| info!(target: OUTPUT_TARGET, name = self.name, "{line}"));
        self.lines.0.is_empty()
    }

    fn end_line(&mut self) {
        let _named = samovar_log::pool::enter(&self.pool);
        self.lines.end(|line| info!(target: OUTPUT_TARGET, name = self.name, "{line}"));
    }
}

/// Splits bytes into lines; a line above the limit becomes several.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, bytes: &[u8], log: impl Fn(&str)) {
        for byte in bytes {
            if *byte == b'\n' || self.0.len() == LINE_BYTES_MAX {
                self.end(&log);
            }
            if *byte != b'\n' {
                self.0.push(*byte);
            }
        }
    }

    /// Logs the current line, unless it is blank: consoles print blank lines around titles.
    fn end(&mut self, log: impl Fn(&str)) {
        let line = String::from_utf8_lossy(&self.0);
        let line = line.trim_end();
        if !line.is_empty() {
            log(line);
        }
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn output_is_split_into_lines() {
        let seen = RefCell::new(Vec::new());
        let log = |line: &str| seen.borrow_mut().push(line.to_owned());
        let mut lines = Lines::default();
        lines.take(b"one\r\n\n  \ntw", log);
        lines.take(b"o\nno end", log);
        lines.end(log);
        assert_eq!(*seen.borrow(), ["one", "two", "no end"]);
    }

    #[test]
    fn line_without_end_is_cut() {
        let seen = RefCell::new(Vec::new());
        let mut lines = Lines::default();
        lines.take(&vec![b'x'; 2 * LINE_BYTES_MAX + 1], |line| seen.borrow_mut().push(line.len()));
        assert_eq!(*seen.borrow(), [LINE_BYTES_MAX, LINE_BYTES_MAX]);
        assert_eq!(lines.0.len(), 1);
    }
}
