//! The thread that owns the plan: it starts runs, takes their ends, and stores both.

use crate::clock::Now;
use crate::output::{Output, OutputVoice};
use crate::plan::{Action, Entry, Plan, State};
use crate::record::Record;
use crate::run::{Launch, Reporter, RunEnd, RunEvent, RunResult};
use crate::schedule::Schedule;
use crate::shared_store::{SharedRuns, SharedStore};
use crate::store::{RunStore, Store, StoreError};
use samovar_cron::Times;
use samovar_wire::{ScheduleResults, ScheduleStatus};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum sleep: a clock that was set is noticed within this time.
const SLEEP_MAX_MS: u64 = 1_000;
/// Interval at which a server without the lock tries to take it.
const LOCK_LOOK_MS: u64 = 100;
/// Interval between two looks at the runs of the server that has the lock.
const SHOW_MS: u64 = 5_000;
/// Maximum wait for the rest of the output after the end of a run. A daemon may hold it open.
const OUTPUT_WAIT_MS: u64 = 500;
/// Interval between two log lines about the store.
const COMPLAIN_MS: u64 = 60_000;
/// Time after which a server that waits for the lock of another one says so.
const FOREIGN_MS: u64 = 60_000;
/// Maximum time that the server's stop waits for the last results.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
/// Maximum characters of an output in the status.
const SHOWN_CHARS_MAX: usize = 300;

/// Where the last runs are.
pub enum RunPlace {
    /// In a file of this machine.
    File(PathBuf),
    /// In a Redis that several machines share.
    Shared(SharedRuns),
}

/// Needs of the thread.
pub struct ScheduleOptions {
    /// The store of the last runs.
    pub place: RunPlace,
    /// All schedules.
    pub schedules: Vec<Schedule>,
    /// Returns whether the server stops, so that nothing is started.
    pub is_stopping: Box<dyn Fn() -> bool + Send>,
}

/// A command of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Returns all schedules.
    List,
    /// Returns one schedule, and the output of its last run.
    Show(String),
    /// Starts a run.
    Run(String),
}

type CommandDone = Box<dyn FnOnce(Result<(Vec<ScheduleStatus>, String), String>) + Send>;

enum Message {
    Event(u64, RunEvent),
    Command(Command, CommandDone),
    Set(Vec<Schedule>),
    Finish(Sender<()>),
}

/// Handle to the thread. Cheap to clone.
#[derive(Clone)]
pub struct Schedules {
    sender: Sender<Message>,
    shown: Arc<Mutex<Vec<ScheduleStatus>>>,
}

impl std::fmt::Debug for Schedules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedules").finish_non_exhaustive()
    }
}

impl Schedules {
    /// Opens the store, and starts the thread, which runs until the process ends.
    pub fn start(options: ScheduleOptions) -> Result<Schedules, StoreError> {
        let now = Now::read();
        let (sender, messages) = channel();
        let shown = Arc::<Mutex<Vec<ScheduleStatus>>>::default();
        let ScheduleOptions { schedules, is_stopping, place } = options;
        let store = open(place, now)?;
        let thread = Thread {
            plan: Plan::new(schedules, now),
            store,
            messages,
            sender: sender.clone(),
            is_stopping,
            outputs: HashMap::new(),
            ending: HashMap::new(),
            shown: Arc::clone(&shown),
            since: now,
            shown_ms: 0,
            complained_ms: None,
            is_foreign_logged: false,
            locked_ms: 0,
        };
        let spawned = std::thread::Builder::new().name("schedules".into());
        spawned.spawn(move || thread.run()).map_err(StoreError::Thread)?;
        Ok(Schedules { sender, shown })
    }

    /// Returns the state of all schedules.
    pub fn status(&self) -> Vec<ScheduleStatus> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Executes a command. The callback must not wait.
    pub fn command(
        &self,
        command: Command,
        done: impl FnOnce(Result<(Vec<ScheduleStatus>, String), String>) + Send + 'static,
    ) {
        // The thread lives as long as the process.
        let _ = self.sender.send(Message::Command(command, Box::new(done)));
    }

    /// Applies new settings. Runs continue.
    pub fn set(&self, schedules: Vec<Schedule>) {
        let _ = self.sender.send(Message::Set(schedules));
    }

    /// Waits until everything that was reported so far is stored.
    pub fn finish(&self) {
        let (done, finished) = channel();
        let _ = self.sender.send(Message::Finish(done));
        let _ = finished.recv_timeout(FINISH_LIMIT);
    }
}

/// Opens the store.
fn open(place: RunPlace, now: Now) -> Result<Box<dyn RunStore>, StoreError> {
    let path = match place {
        RunPlace::File(path) => path,
        RunPlace::Shared(shared) => return Ok(Box::new(SharedStore::new(shared))),
    };
    let (store, aside) = Store::open(&path, now.wall_ms)?;
    if let Some(aside) = aside {
        tracing::error!(
            aside = %aside.display(),
            "the store of schedules is damaged; starting with an empty one\nhint: the last runs \
             of all schedules are unknown, so `catch_up` has no effect at this start"
        );
    }
    Ok(Box::new(store))
}

struct Thread {
    plan: Plan,
    store: Box<dyn RunStore>,
    messages: Receiver<Message>,
    sender: Sender<Message>,
    is_stopping: Box<dyn Fn() -> bool + Send>,
    /// Outputs of the runs; `None` in the second place: it is not complete.
    outputs: HashMap<u64, (Output, bool)>,
    /// Runs whose process has ended, but not their output; and the end of the wait.
    ending: HashMap<u64, (RunEnd, u64)>,
    shown: Arc<Mutex<Vec<ScheduleStatus>>>,
    since: Now,
    /// Time of the last look at the runs of another server.
    shown_ms: u64,
    /// Time of the last log line about the store.
    complained_ms: Option<u64>,
    is_foreign_logged: bool,
    /// Time of the last attempt to take or extend the lock.
    locked_ms: u64,
}

impl Thread {
    fn run(mut self) {
        loop {
            let mut finished = Vec::new();
            let mut next = self.wait();
            let now = Now::read();
            while let Some(message) = next {
                match message {
                    Message::Event(run, event) => self.hear(run, event, now),
                    Message::Command(command, done) => done(self.obey(&command, now)),
                    Message::Set(schedules) => self.set(schedules, now),
                    Message::Finish(done) => finished.push(done),
                }
                next = self.messages.try_recv().ok();
            }
            if !finished.is_empty() {
                self.ending.values_mut().for_each(|(_, until)| *until = 0);
            }
            self.end_late(now);
            self.take_lock(now);
            let actions = if (self.is_stopping)() { Vec::new() } else { self.plan.turn(now) };
            // Before the start: a server that dies must not repeat the run.
            let is_stored = self.save(now);
            for action in actions {
                match action {
                    // Another machine could start it too.
                    Action::Start { run, .. } if !is_stored && self.store.extension().is_some() => {
                        let why = "the store of schedules cannot be used";
                        let end = RunEnd::new(RunResult::NotStarted, why);
                        self.plan.ended(run, &end, String::new(), now);
                    }
                    action => self.act(action),
                }
            }
            self.plan.tidy();
            self.publish(now);
            if !finished.is_empty() && (self.is_stopping)() {
                self.plan.deactivate();
                self.store.unlock();
            }
            for done in finished {
                let _ = done.send(());
            }
        }
    }

    fn wait(&self) -> Option<Message> {
        let now = Now::read();
        let stops = (self.is_stopping)();
        let plan = self.plan.wait_ms(now).filter(|_| !stops).unwrap_or(SLEEP_MAX_MS);
        let extension = self.store.extension().map(ms);
        let lock = match (self.plan.is_active(), extension) {
            (_, Some(extension)) => extension,
            (true, None) => SLEEP_MAX_MS,
            (false, None) => LOCK_LOOK_MS,
        };
        let ends = self.ending.values().map(|(_, until)| until.saturating_sub(now.steady_ms));
        let limit = ends.chain([plan, lock, SLEEP_MAX_MS]).min().unwrap_or(0);
        // It cannot disconnect: the thread has a sender itself.
        self.messages.recv_timeout(Duration::from_millis(limit)).ok()
    }

    /// Takes the lock, if no other server has it.
    fn take_lock(&mut self, now: Now) {
        if self.plan.is_active() {
            return self.keep_lock(now);
        }
        let is_late = |interval: Duration| {
            now.steady_ms.saturating_sub(self.locked_ms) >= ms(interval).min(SLEEP_MAX_MS)
        };
        if (self.is_stopping)() || !self.store.extension().is_none_or(is_late) {
            return;
        }
        self.locked_ms = now.steady_ms;
        let records = self.store.lock().and_then(|is_locked| {
            let shows = now.steady_ms.saturating_sub(self.shown_ms) >= SHOW_MS;
            let records = if is_locked || shows { Some(self.store.load()?) } else { None };
            Ok((is_locked, records))
        });
        match records {
            Ok((true, Some(records))) => self.plan.activate(&records, now),
            Ok((_, records)) => {
                if let Some(records) = records {
                    self.shown_ms = now.steady_ms;
                    self.plan.show(&records);
                }
                let waited = now.steady_ms.saturating_sub(self.since.steady_ms);
                if waited >= FOREIGN_MS && !std::mem::replace(&mut self.is_foreign_logged, true) {
                    tracing::warn!(
                        lock = self.store.place(),
                        "another server runs the schedules of this store\nhint: this is normal \
                         for a second server of the same application; another application needs \
                         another folder for `jobs.store`, or another `jobs.redis_prefix`"
                    );
                }
            }
            Err(error) => self.complain(&error, now),
        }
    }

    /// Extends a lock that can get lost, and stops to start runs if it is lost.
    fn keep_lock(&mut self, now: Now) {
        let Some(extension) = self.store.extension() else { return };
        if now.steady_ms.saturating_sub(self.locked_ms) >= ms(extension) {
            self.locked_ms = now.steady_ms;
            if let Err(error) = self.store.lock() {
                self.complain(&error, now);
            }
        }
        if !self.store.is_locked() {
            tracing::warn!(
                "this server has lost the lease of the schedules: it starts no runs\nhint: another \
                 server continues; check the connection to Redis"
            );
            self.plan.deactivate();
            self.shown_ms = 0;
        }
    }

    fn hear(&mut self, run: u64, event: RunEvent, now: Now) {
        match event {
            RunEvent::Began { pid } => self.plan.began(run, pid),
            RunEvent::Ended(end) => {
                self.ending.insert(run, (end, now.steady_ms + OUTPUT_WAIT_MS));
            }
            RunEvent::OutputEnded => {
                if let Some((_, is_complete)) = self.outputs.get_mut(&run) {
                    *is_complete = true;
                }
            }
        }
    }

    /// Ends the runs whose output is complete, or whose wait for it is over.
    fn end_late(&mut self, now: Now) {
        let outputs = &self.outputs;
        let is_over = |run: &u64, (_, until): &mut (RunEnd, u64)| {
            *until <= now.steady_ms || outputs.get(run).is_none_or(|(_, is_complete)| *is_complete)
        };
        let over: Vec<_> = self.ending.extract_if(is_over).collect();
        for (run, (end, _)) in over {
            let output = self.outputs.remove(&run).map(|(output, _)| output.text());
            let output = output.unwrap_or_default();
            self.plan.ended(run, &end, output.clone(), now);
            let is_it =
                |entry: &&Entry| entry.record.result == Some(end.result) && entry.last_run == run;
            if let Some(entry) = self.plan.entries.iter().find(is_it) {
                log(entry, &end, &output);
            }
        }
    }

    fn set(&mut self, schedules: Vec<Schedule>, now: Now) {
        let records = self.store.load().unwrap_or_else(|error| {
            self.complain(&error, now);
            HashMap::new()
        });
        self.plan.set(schedules, &records, now);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start { entry, run } => {
                let output = Output::default();
                self.outputs.insert(run, (output.clone(), false));
                let send = || -> Box<dyn Fn(u64, RunEvent) + Send> {
                    let sender = self.sender.clone();
                    Box::new(move |run, event| {
                        // The thread lives as long as the process.
                        let _ = sender.send(Message::Event(run, event));
                    })
                };
                let voice = OutputVoice { output, run, send: send() };
                let reporter = Reporter::new(run, send());
                let launch = Launch { run, output: Box::new(voice), reporter };
                self.plan.entries[entry].schedule.work.start(launch);
            }
            Action::Stop { entry, run } => self.plan.entries[entry].schedule.work.stop(run),
        }
    }

    /// Stores all changed records. If the disk fails, schedules run nevertheless: one of them may
    /// be the one that makes room.
    ///
    /// Returns false if it failed.
    fn save(&mut self, now: Now) -> bool {
        // Another server stores its own.
        if !self.plan.is_active() && self.store.extension().is_some() {
            return true;
        }
        let changed = self.plan.entries.iter().filter(|entry| entry.is_changed);
        let changed: Vec<(&str, &Record)> =
            changed.map(|entry| (entry.schedule.name.as_str(), &entry.record)).collect();
        if changed.is_empty() {
            return true;
        }
        let saved = self.store.save(&changed);
        match &saved {
            Ok(()) => self.plan.entries.iter_mut().for_each(|entry| entry.is_changed = false),
            Err(error) => self.complain(error, now),
        }
        saved.is_ok()
    }

    fn complain(&mut self, error: &StoreError, now: Now) {
        let is_due = |at: u64| now.steady_ms.saturating_sub(at) >= COMPLAIN_MS;
        if self.complained_ms.is_none_or(is_due) {
            self.complained_ms = Some(now.steady_ms);
            if self.store.extension().is_some() {
                tracing::error!("{error}\nhint: schedules start again when Redis can be reached");
            } else {
                tracing::error!("{error}\nhint: schedules run, but a restart may repeat a run");
            }
        }
    }

    fn obey(
        &mut self,
        command: &Command,
        now: Now,
    ) -> Result<(Vec<ScheduleStatus>, String), String> {
        match command {
            Command::List => Ok((self.statuses(now), String::new())),
            Command::Show(name) => {
                let entry = &self.plan.entries[self.plan.find(name)?];
                let running = match entry.state {
                    State::Running { run, .. } => self.outputs.get(&run),
                    _ => None,
                };
                let output = running.map(|(output, _)| output.text());
                let output = output.unwrap_or_else(|| entry.record.output.clone());
                Ok((vec![self.status(entry, now)], output))
            }
            Command::Run(name) => {
                if (self.is_stopping)() {
                    return Err("the server is stopping".to_owned());
                }
                self.plan.run_now(name)?;
                Ok((Vec::new(), String::new()))
            }
        }
    }

    fn publish(&self, now: Now) {
        let statuses = self.statuses(now);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = statuses;
    }

    fn statuses(&self, now: Now) -> Vec<ScheduleStatus> {
        self.plan.entries.iter().map(|entry| self.status(entry, now)).collect()
    }

    fn status(&self, entry: &Entry, now: Now) -> ScheduleStatus {
        let (record, counts) = (&entry.record, &entry.counts);
        let zone = match &entry.schedule.times {
            Times::Cron(_, zone) => Some(zone),
            Times::Every(_) => None,
        };
        let (state, pid, running_ms) = match entry.state {
            State::Running { since, pid, .. } => {
                ("running", pid, now.steady_ms.saturating_sub(since.steady_ms))
            }
            State::Queued => ("queued", 0, 0),
            State::Waiting if self.plan.is_active() => ("waiting", 0, 0),
            State::Waiting => ("standby", 0, 0),
        };
        let next_ms = entry.next_wall_ms(now).unwrap_or(0);
        let count = |result: RunResult| counts.by_result[result as usize];
        ScheduleStatus {
            name: entry.schedule.name.clone(),
            times: entry.schedule.times.to_string(),
            timezone: zone.map_or_else(String::new, |zone| zone.name().to_owned()),
            work: entry.schedule.work.text(),
            state: state.to_owned(),
            pid,
            running_ms,
            next_ms,
            next: zone.filter(|_| next_ms > 0).map_or_else(String::new, |z| z.local(next_ms)),
            started_ms: record.started_ms,
            duration_ms: record.ended_ms.saturating_sub(record.started_ms),
            result: record.result.map_or_else(String::new, |result| result.name().to_owned()),
            detail: record.detail.clone(),
            output: last_chars(&record.output),
            succeeded_ms: record.succeeded_ms,
            runs: ScheduleResults {
                succeeded: count(RunResult::Succeeded),
                failed: count(RunResult::Failed),
                timed_out: count(RunResult::TimedOut),
                stopped: count(RunResult::Stopped),
                not_started: count(RunResult::NotStarted),
                interrupted: count(RunResult::Interrupted),
                skipped: counts.skipped,
            },
            run_ms_total: counts.run_ms,
        }
    }
}

fn last_chars(output: &str) -> String {
    let at = output.char_indices().rev().nth(SHOWN_CHARS_MAX - 1).map_or(0, |(at, _)| at);
    output[at..].to_owned()
}

fn log(entry: &Entry, end: &RunEnd, output: &str) {
    let (name, result) = (&entry.schedule.name, end.result.name());
    let ms = entry.record.ended_ms.saturating_sub(entry.record.started_ms);
    if end.result == RunResult::Succeeded {
        tracing::info!(name, result, ms, "a schedule has run");
        return;
    }
    let detail = &end.detail;
    if end.result == RunResult::Stopped {
        tracing::info!(name, result, ms, detail, "a run of a schedule was stopped");
        return;
    }
    let line = output.lines().last().unwrap_or_default();
    let line: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    tracing::warn!(
        name,
        result,
        ms,
        detail,
        "a run of a schedule has failed: {line}\nhint: `samovar schedule show {name}` has its \
         output"
    );
}

/// Returns a time in milliseconds.
fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
