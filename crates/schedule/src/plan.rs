//! Which run to start or to stop next. Pure: time and events come in, actions go out.

use crate::clock::Now;
use crate::record::Record;
use crate::run::{RunEnd, RunResult};
use crate::schedule::{Overlap, Schedule};
use samovar_cron::Times;
use std::collections::{HashMap, VecDeque};

/// Maximum number of runs at the same time. Further ones wait.
pub(crate) const RUNS_MAX: usize = 32;
/// A clock that was set by more than this was corrected: times of a day are not made up for, and
/// may run again. Below, it is a summer time that the zone does not know. As in cronie.
const CORRECTION_MS: u64 = 3 * 3_600 * 1_000;

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start this run of the entry.
    Start { entry: usize, run: u64 },
    /// Stop this run of the entry.
    Stop { entry: usize, run: u64 },
}

/// The next time, on the clock of the schedule: that of the wall for cron.
#[derive(Clone, Copy, Debug)]
struct Next {
    due_ms: u64,
    /// The time and its random delay.
    start_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    /// It waits for the end of other schedules' runs.
    Queued,
    Running {
        run: u64,
        since: Now,
        pid: i32,
        is_stopping: bool,
    },
}

/// Counters since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) by_result: [u64; RunResult::ALL.len()],
    pub(crate) skipped: u64,
    pub(crate) run_ms: u64,
}

/// A schedule with its state.
pub(crate) struct Entry {
    pub(crate) schedule: Schedule,
    pub(crate) state: State,
    pub(crate) record: Record,
    pub(crate) counts: Counts,
    /// Number of the last run.
    pub(crate) last_run: u64,
    next: Option<Next>,
    /// Another run follows the present one.
    again: bool,
    /// It is not in the settings any more, and stays until its run has ended.
    is_removed: bool,
    /// The record differs from the store.
    pub(crate) is_changed: bool,
}

impl Entry {
    fn new(schedule: Schedule) -> Entry {
        Entry {
            schedule,
            state: State::Waiting,
            record: Record::default(),
            counts: Counts::default(),
            last_run: 0,
            next: None,
            again: false,
            is_removed: false,
            is_changed: false,
        }
    }

    fn clock(&self, now: Now) -> u64 {
        match self.schedule.times {
            Times::Cron(..) => now.wall_ms,
            Times::Every(_) => now.steady_ms,
        }
    }

    /// Returns the time of the next start, in Unix milliseconds.
    pub(crate) fn next_wall_ms(&self, now: Now) -> Option<u64> {
        let start_ms = self.next?.start_ms;
        Some(now.wall_ms.saturating_add(start_ms.saturating_sub(self.clock(now))))
    }

    fn plan(&mut self, due_ms: Option<u64>) {
        let jitter = u64::try_from(self.schedule.jitter.as_millis()).unwrap_or(0);
        let delay = if jitter == 0 { 0 } else { fastrand::u64(..=jitter) };
        self.next = due_ms.map(|due_ms| Next { due_ms, start_ms: due_ms.saturating_add(delay) });
    }

    /// Plans the first time after this one, on the schedule's clock.
    fn plan_after(&mut self, after_ms: u64, due_ms: u64) {
        let next = match &self.schedule.times {
            Times::Cron(cron, zone) => cron.next(after_ms, zone),
            Times::Every(interval) => {
                let interval = interval_ms(*interval);
                let missed = after_ms.saturating_sub(due_ms) / interval;
                Some(due_ms.saturating_add((missed + 1).saturating_mul(interval)))
            }
        };
        self.plan(next);
    }

    /// Plans the first time, from the last run of any server. `since`: from then on, this server
    /// runs, but another one may have had the lock.
    fn plan_first(&mut self, since: Now, now: Now) {
        let last = self.record.due_ms;
        match &self.schedule.times {
            Times::Cron(cron, zone) => {
                // A record of the future is from before the clock was set.
                let is_sane = last > 0 && last <= now.wall_ms.saturating_add(CORRECTION_MS);
                let last = Some(last).filter(|_| is_sane);
                let from = match last {
                    Some(last) if self.schedule.catches_up => last,
                    Some(last) => last.max(since.wall_ms),
                    None => since.wall_ms,
                };
                let next = cron.next(from, zone);
                self.plan(next);
            }
            Times::Every(interval) => {
                let interval = interval_ms(*interval);
                let passed = Some(now.wall_ms.saturating_sub(last))
                    .filter(|_| last > 0 && last <= now.wall_ms)
                    .unwrap_or(0);
                let is_missed = passed >= interval
                    && (self.schedule.catches_up || last + interval > since.wall_ms);
                let wait = if is_missed { 0 } else { interval - passed % interval };
                self.plan(Some(now.steady_ms.saturating_add(wait)));
            }
        }
    }
}

fn interval_ms(interval: std::time::Duration) -> u64 {
    u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// All schedules.
pub(crate) struct Plan {
    pub(crate) entries: Vec<Entry>,
    /// Entries that wait for a place.
    queued: VecDeque<usize>,
    next_run: u64,
    /// The start of this server.
    since: Now,
    last: Now,
    is_active: bool,
}

impl Plan {
    pub(crate) fn new(schedules: Vec<Schedule>, now: Now) -> Plan {
        let entries = schedules.into_iter().map(Entry::new).collect();
        let queued = VecDeque::new();
        Plan { entries, queued, next_run: 1, since: now, last: now, is_active: false }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Takes the last runs of all servers. Without the lock, they are only shown.
    pub(crate) fn show(&mut self, records: &HashMap<String, Record>) {
        for entry in &mut self.entries {
            let runs = matches!(entry.state, State::Running { .. });
            if let Some(record) = records.get(&entry.schedule.name).filter(|_| !runs) {
                entry.record = record.clone();
            }
        }
    }

    /// Begins: this server has the lock. A run without an end died with its server.
    pub(crate) fn activate(&mut self, records: &HashMap<String, Record>, now: Now) {
        self.show(records);
        self.is_active = true;
        self.last = now;
        for entry in &mut self.entries {
            // It may have had the lock before, and still have runs.
            let runs = matches!(entry.state, State::Running { .. });
            let record = &mut entry.record;
            if record.started_ms > 0 && record.result.is_none() && !runs {
                record.result = Some(RunResult::Interrupted);
                "the server has died".clone_into(&mut record.detail);
                record.ended_ms = record.started_ms;
                entry.counts.by_result[RunResult::Interrupted as usize] += 1;
                entry.is_changed = true;
            }
            entry.plan_first(self.since, now);
        }
    }

    /// Ends: another server may have the lock. Runs continue, but their ends are only logged.
    pub(crate) fn deactivate(&mut self) {
        self.is_active = false;
        self.queued.clear();
        for entry in &mut self.entries {
            (entry.next, entry.again, entry.is_changed) = (None, false, false);
            if entry.state == State::Queued {
                entry.state = State::Waiting;
            }
        }
    }

    /// Takes new settings. Entries with the same name keep their state.
    pub(crate) fn set(
        &mut self,
        schedules: Vec<Schedule>,
        records: &HashMap<String, Record>,
        now: Now,
    ) {
        for entry in &mut self.entries {
            entry.is_removed = true;
        }
        for schedule in schedules {
            let found = self.entries.iter_mut().find(|e| e.schedule.name == schedule.name);
            if let Some(entry) = found {
                entry.is_removed = false;
                let is_same = entry.schedule.times == schedule.times
                    && entry.schedule.jitter == schedule.jitter;
                entry.schedule = schedule;
                if !is_same && self.is_active {
                    let clock = entry.clock(now);
                    entry.plan_after(clock, clock);
                }
                continue;
            }
            let mut entry = Entry::new(schedule);
            if let Some(record) = records.get(&entry.schedule.name) {
                entry.record = record.clone();
            }
            if self.is_active {
                entry.plan_first(now, now);
            }
            self.entries.push(entry);
        }
        self.remove();
    }

    /// Removes the entries that are not in the settings and do not run.
    fn remove(&mut self) {
        let queued: Vec<String> =
            self.queued.drain(..).map(|at| self.entries[at].schedule.name.clone()).collect();
        self.entries.retain(|e| !e.is_removed || matches!(e.state, State::Running { .. }));
        let place = |name: &String| self.entries.iter().position(|e| e.schedule.name == *name);
        self.queued = queued.iter().filter_map(place).collect();
        for entry in self.entries.iter_mut().filter(|entry| entry.is_removed) {
            (entry.next, entry.again) = (None, false);
        }
    }

    /// Returns the actions that are due.
    pub(crate) fn turn(&mut self, now: Now) -> Vec<Action> {
        if !self.is_active {
            return Vec::new();
        }
        if let Some(by_ms) = now.was_set_since(self.last) {
            self.clock_was_set(by_ms, now);
        }
        self.last = now;
        let mut actions = Vec::new();
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            let clock = entry.clock(now);
            let Some(next) = entry.next.filter(|next| next.start_ms <= clock) else { continue };
            entry.plan_after(clock.max(next.due_ms), next.due_ms);
            entry.record.due_ms = match entry.schedule.times {
                Times::Cron(..) => next.due_ms,
                Times::Every(_) => now.wall_ms.saturating_sub(clock.saturating_sub(next.due_ms)),
            };
            entry.is_changed = true;
            actions.extend(self.fire(at));
        }
        self.start(now, &mut actions);
        actions
    }

    /// Runs it now, or as its overlap says.
    fn fire(&mut self, at: usize) -> Option<Action> {
        let entry = &mut self.entries[at];
        match (&mut entry.state, entry.schedule.overlap) {
            (State::Waiting, _) => {
                entry.state = State::Queued;
                self.queued.push_back(at);
            }
            (State::Running { .. }, Overlap::Queue) if !entry.again => entry.again = true,
            (State::Running { run, is_stopping, .. }, Overlap::Kill) if !*is_stopping => {
                (*is_stopping, entry.again) = (true, true);
                return Some(Action::Stop { entry: at, run: *run });
            }
            _ => entry.counts.skipped += 1,
        }
        None
    }

    /// Starts those that wait, as long as there are places.
    fn start(&mut self, now: Now, actions: &mut Vec<Action>) {
        let running = |entry: &&Entry| matches!(entry.state, State::Running { .. });
        let mut places = RUNS_MAX.saturating_sub(self.entries.iter().filter(running).count());
        while places > 0
            && let Some(at) = self.queued.pop_front()
        {
            places -= 1;
            let run = self.next_run;
            self.next_run += 1;
            let entry = &mut self.entries[at];
            entry.state = State::Running { run, since: now, pid: 0, is_stopping: false };
            entry.last_run = run;
            let record = &mut entry.record;
            (record.started_ms, record.ended_ms, record.result) = (now.wall_ms, 0, None);
            record.detail.clear();
            record.output.clear();
            entry.is_changed = true;
            actions.push(Action::Start { entry: at, run });
        }
    }

    /// Runs a schedule in addition to its times.
    pub(crate) fn run_now(&mut self, name: &str) -> Result<(), String> {
        let at = self.find(name)?;
        if !self.is_active {
            return Err(
                "another server runs the schedules of this store\nhint: run it there; another \
                 application needs another folder for `jobs.store`, or another `jobs.redis_prefix`"
                    .to_owned(),
            );
        }
        if self.entries[at].state != State::Waiting {
            return Err(format!("the schedule `{name}` runs already"));
        }
        self.fire(at);
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Result<usize, String> {
        let is_it = |entry: &Entry| entry.schedule.name == name && !entry.is_removed;
        self.entries.iter().position(is_it).ok_or_else(|| {
            let known: Vec<_> = self.entries.iter().map(|e| e.schedule.name.as_str()).collect();
            let name = name.escape_debug();
            format!(
                "there is no schedule `{name}`\nhint: the schedules are `{}`",
                known.join("`, `")
            )
        })
    }

    pub(crate) fn of_run(&mut self, run: u64) -> Option<&mut Entry> {
        let is_it = |e: &&mut Entry| matches!(e.state, State::Running { run: r, .. } if r == run);
        self.entries.iter_mut().find(is_it)
    }

    /// Takes the process of a run.
    pub(crate) fn began(&mut self, run: u64, began: i32) {
        if let Some(entry) = self.of_run(run)
            && let State::Running { pid, .. } = &mut entry.state
        {
            *pid = began;
        }
    }

    /// Takes the end of a run.
    pub(crate) fn ended(&mut self, run: u64, end: &RunEnd, output: String, now: Now) {
        let Some(entry) = self.of_run(run) else { return };
        if let State::Running { since, .. } = entry.state {
            let ms = now.steady_ms.saturating_sub(since.steady_ms);
            entry.counts.run_ms += ms;
            entry.record.ended_ms = entry.record.started_ms.saturating_add(ms);
        }
        entry.counts.by_result[end.result as usize] += 1;
        let record = &mut entry.record;
        record.result = Some(end.result);
        record.detail.clone_from(&end.detail);
        record.output = output;
        if end.result == RunResult::Succeeded {
            record.succeeded_ms = record.ended_ms;
        }
        entry.is_changed = true;
        entry.state = State::Waiting;
        if std::mem::take(&mut entry.again) {
            let name = entry.schedule.name.clone();
            if let Ok(at) = self.find(&name) {
                self.fire(at);
            }
        }
    }

    /// Removes entries whose last run has ended and is stored.
    pub(crate) fn tidy(&mut self) {
        let is_over = |e: &Entry| e.is_removed && e.state == State::Waiting && !e.is_changed;
        if self.entries.iter().any(is_over) {
            self.remove();
        }
    }

    /// Returns the milliseconds until there is something to do.
    pub(crate) fn wait_ms(&self, now: Now) -> Option<u64> {
        let wait = |e: &Entry| Some(e.next?.start_ms.saturating_sub(e.clock(now)));
        let running = self.entries.iter().filter(|e| matches!(e.state, State::Running { .. }));
        if !self.queued.is_empty() && running.count() < RUNS_MAX {
            return Some(0);
        }
        self.entries.iter().filter_map(wait).min()
    }

    /// The clock was set. Intervals by cron continue at the new time. Times of a day that a small
    /// change has skipped run once, and those that it repeats do not run again.
    fn clock_was_set(&mut self, by_ms: i64, now: Now) {
        tracing::info!(seconds = by_ms / 1_000, "the clock was set: planning schedules again");
        let is_correction = by_ms.unsigned_abs() > CORRECTION_MS;
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_removed) {
            if let Times::Cron(cron, _) = &entry.schedule.times
                && (is_correction || cron.is_interval())
            {
                entry.plan_after(now.wall_ms, now.wall_ms);
            }
        }
    }
}

#[cfg(test)]
mod tests;
