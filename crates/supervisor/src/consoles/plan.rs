//! Console workers (`[[console]]`): decides which process to start, terminate or kill next.
//!
//! A pure state machine like `workers`: time and events come in, actions go out.

use crate::backoff::Backoff;
use crate::settings::ConsoleSettings;
use std::time::{Duration, Instant};

/// A process with a shorter life failed immediately, so its successor waits.
const SHORT_LIFE: Duration = Duration::from_secs(5);
/// Wait of that successor.
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(250), max: Duration::from_secs(30) };

/// Timeout for the template's reply to a fork order.
const ASK_LIMIT: Duration = Duration::from_secs(10);

/// State of a place's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleState {
    /// There is no process; the next one waits for its start time.
    Waiting,
    /// The process is being forked.
    Starting,
    /// The process runs.
    Running,
    /// The process received SIGTERM and has not ended yet.
    Leaving,
}

impl ConsoleState {
    /// Returns the state's name in `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            ConsoleState::Waiting => "waiting",
            ConsoleState::Starting => "starting",
            ConsoleState::Running => "running",
            ConsoleState::Leaving => "leaving",
        }
    }
}

/// An action for a console worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Order process `number` of this command from the template.
    Start { command: usize, number: usize, life: u32 },
    /// Send SIGTERM to a process, for this reason.
    Ask { pid: i32, why: &'static str },
    /// Send SIGKILL to a process whose time to exit is over.
    Kill { pid: i32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Waiting { until: Instant },
    Asked { life: u32, since: Instant },
    Running { pid: i32, since: Instant },
    Leaving { pid: i32, since: Instant, kill_at: Instant },
}

/// A place for a process. The place stays; its processes change.
#[derive(Clone, Debug)]
pub(crate) struct ConsolePlace {
    pub(crate) command: usize,
    /// Number of the process, from 1 to the command's `count`.
    pub(crate) number: usize,
    life: Life,
    short_lives: u32,
    pub(crate) restarts: u64,
}

impl ConsolePlace {
    pub(crate) fn state(&self) -> ConsoleState {
        match self.life {
            Life::Waiting { .. } => ConsoleState::Waiting,
            Life::Asked { .. } => ConsoleState::Starting,
            Life::Running { .. } => ConsoleState::Running,
            Life::Leaving { .. } => ConsoleState::Leaving,
        }
    }

    pub(crate) fn process(&self) -> Option<(i32, Instant)> {
        match self.life {
            Life::Running { pid, since } | Life::Leaving { pid, since, .. } => Some((pid, since)),
            _ => None,
        }
    }
}

/// The places of all console workers.
#[derive(Debug)]
pub(crate) struct ConsolePlaces {
    commands: Vec<ConsoleSettings>,
    all: Vec<ConsolePlace>,
    next_life: u32,
    /// Reason why no more processes are started.
    stopping: Option<&'static str>,
}

impl ConsolePlaces {
    pub(crate) fn new(commands: Vec<ConsoleSettings>, now: Instant) -> ConsolePlaces {
        let place = |command, number| ConsolePlace {
            command,
            number,
            life: Life::Waiting { until: now },
            short_lives: 0,
            restarts: 0,
        };
        let all = commands
            .iter()
            .enumerate()
            .flat_map(|(index, c)| (1..=c.count).map(move |number| place(index, number)))
            .collect();
        ConsolePlaces { commands, all, next_life: 1, stopping: None }
    }

    pub(crate) fn command(&self, index: usize) -> &ConsoleSettings {
        &self.commands[index]
    }

    pub(crate) fn places(&self) -> &[ConsolePlace] {
        &self.all
    }

    /// Whether no process runs and none is being started.
    pub(crate) fn are_gone(&self) -> bool {
        self.all.iter().all(|place| matches!(place.life, Life::Waiting { .. }))
    }

    /// Handles a successful fork. Returns false if it is too late: its place has given up.
    pub(crate) fn started(&mut self, life: u32, pid: i32, now: Instant) -> bool {
        let Some(place) = self.asked(life) else { return false };
        place.life = Life::Running { pid, since: now };
        true
    }

    /// Whether the reply for this life is still pending.
    pub(crate) fn is_asked(&self, life: u32) -> bool {
        self.all.iter().any(|p| matches!(p.life, Life::Asked { life: l, .. } if l == life))
    }

    pub(crate) fn failed(&mut self, life: u32, now: Instant) {
        if let Some(place) = self.asked(life) {
            place.short_lives = place.short_lives.saturating_add(1);
            place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
        }
    }

    /// Handles the end of a process. If it was a console worker, returns its command's name and
    /// whether it was terminated on request.
    pub(crate) fn ended(&mut self, pid: i32, now: Instant) -> Option<(&str, bool)> {
        let place = self.all.iter_mut().find(|p| p.process().is_some_and(|(p, _)| p == pid))?;
        let since = place.process().map_or(now, |(_, since)| since);
        let asked_to = matches!(place.life, Life::Leaving { .. });
        let short = now - since < SHORT_LIFE && !asked_to;
        place.short_lives = if short { place.short_lives.saturating_add(1) } else { 0 };
        place.restarts += u64::from(self.stopping.is_none());
        place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
        Some((&self.commands[place.command].name, asked_to))
    }

    /// Cancels pending fork orders, because the template has died or the server stops now.
    pub(crate) fn forget_asked(&mut self, now: Instant) {
        for place in &mut self.all {
            if matches!(place.life, Life::Asked { .. }) {
                place.life = Life::Waiting { until: now };
            }
        }
    }

    /// Terminates all processes, and starts no more.
    pub(crate) fn stop(&mut self, why: &'static str) {
        self.stopping.get_or_insert(why);
    }

    /// Kills all processes without waiting for their exit.
    pub(crate) fn stop_now(&mut self, why: &'static str, now: Instant) {
        self.stop(why);
        self.forget_asked(now);
        for place in &mut self.all {
            if let Some((pid, since)) = place.process() {
                place.life = Life::Leaving { pid, since, kill_at: now };
            }
        }
    }

    /// Returns the actions that follow from the state. `memory` returns a process's resident bytes;
    /// it is called only if needed. `elsewhere` returns whether another generation still has a
    /// process with that name and number; ours then waits for its end.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        template_ready: bool,
        memory: impl Fn(i32) -> u64,
        elsewhere: impl Fn(&str, usize) -> bool,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        let may_start = template_ready && self.stopping.is_none();
        for place in &mut self.all {
            let command = &self.commands[place.command];
            match place.life {
                Life::Waiting { until } if until <= now && may_start => {
                    if elsewhere(&command.name, place.number) {
                        continue;
                    }
                    let life = self.next_life;
                    self.next_life = life.wrapping_add(1);
                    place.life = Life::Asked { life, since: now };
                    actions.push(Action::Start {
                        command: place.command,
                        number: place.number,
                        life,
                    });
                }
                // A template that does not reply must not delay a stop.
                Life::Asked { since, .. } if now - since >= ASK_LIMIT => {
                    place.short_lives = place.short_lives.saturating_add(1);
                    place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
                }
                Life::Running { pid, since } => {
                    let why = if let Some(why) = self.stopping {
                        why
                    } else if !command.time_max.is_zero() && now - since >= command.time_max {
                        "time_max reached"
                    } else if memory(pid) > command.memory_max {
                        "memory_max exceeded"
                    } else {
                        continue;
                    };
                    place.life = Life::Leaving { pid, since, kill_at: now + command.stop_timeout };
                    actions.push(Action::Ask { pid, why });
                }
                Life::Leaving { pid, since, kill_at } if kill_at <= now => {
                    // Not repeated soon: a process that survives SIGKILL for a moment is blocked in
                    // the kernel.
                    place.life = Life::Leaving { pid, since, kill_at: now + BACKOFF.max };
                    actions.push(Action::Kill { pid });
                }
                _ => {}
            }
        }
        actions
    }

    fn asked(&mut self, life: u32) -> Option<&mut ConsolePlace> {
        self.all.iter_mut().find(|p| matches!(p.life, Life::Asked { life: l, .. } if l == life))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        consoles: ConsolePlaces,
        now: Instant,
    }

    const SMALL: fn(i32) -> u64 = |_| 1 << 20;

    impl Bench {
        fn new(count: usize) -> Bench {
            let console = ConsoleSettings {
                name: "mail".into(),
                script: "bin/console".into(),
                arguments: Vec::new(),
                folder: "/".into(),
                count,
                memory_max: 100 << 20,
                time_max: Duration::from_mins(1),
                stop_timeout: Duration::from_secs(10),
            };
            let now = Instant::now();
            Bench { consoles: ConsolePlaces::new(vec![console], now), now }
        }
        fn settle(&mut self) -> Vec<Action> {
            self.consoles.settle(self.now, true, SMALL, |_, _| false)
        }
        /// Starts all due processes; process ids are 100 + life.
        fn start(&mut self) -> Vec<i32> {
            let mut pids = Vec::new();
            for action in self.settle() {
                let Action::Start { life, .. } = action else { panic!("{action:?}") };
                let pid = 100 + i32::try_from(life).unwrap();
                self.consoles.started(life, pid, self.now);
                pids.push(pid);
            }
            pids
        }
        fn later(&mut self, time: Duration) -> &mut Bench {
            self.now += time;
            self
        }
        fn ended(&mut self, pid: i32) {
            let ended = self.consoles.ended(pid, self.now);
            assert_eq!(ended.map(|(name, _)| name), Some("mail"));
        }
    }

    #[test]
    fn start_waits_for_process_of_older_generation() {
        let mut bench = Bench::new(3);
        let settle = |bench: &mut Bench, still: &[usize]| -> Vec<usize> {
            let there = |name: &str, number| name == "mail" && still.contains(&number);
            let actions = bench.consoles.settle(bench.now, true, SMALL, there);
            let number = |action: &Action| match *action {
                Action::Start { number, .. } => number,
                ref other => panic!("{other:?}"),
            };
            actions.iter().map(number).collect()
        };
        assert_eq!(settle(&mut bench, &[1, 2, 3]), [0usize; 0]);
        assert_eq!(settle(&mut bench, &[1, 3]), [2]);
        assert_eq!(settle(&mut bench, &[1, 3]), [0usize; 0], "it is on its way");
        assert_eq!(settle(&mut bench, &[]), [1, 3]);
    }

    #[test]
    fn start_waits_for_template() {
        let mut bench = Bench::new(2);
        assert_eq!(bench.consoles.settle(bench.now, false, SMALL, |_, _| false), []);
        assert_eq!(bench.start(), [101, 102]);
        assert_eq!(bench.settle(), [], "they run");
    }

    #[test]
    fn wait_grows_with_consecutive_failures() {
        let mut bench = Bench::new(1);
        let mut waits = Vec::new();
        for _ in 0..12 {
            let mut waited = Duration::ZERO;
            let pid = loop {
                if let [pid] = bench.start()[..] {
                    break pid;
                }
                waited += Duration::from_millis(10);
                bench.later(Duration::from_millis(10));
            };
            waits.push(waited.as_millis());
            bench.later(Duration::from_millis(1)).ended(pid);
        }
        assert_eq!(waits[..6], [0, 0, 250, 500, 1000, 2000]);
        assert_eq!(waits[11], 30_000);
    }

    #[test]
    fn long_lived_process_is_replaced_immediately() {
        let mut bench = Bench::new(1);
        let [pid] = bench.start()[..] else { panic!() };
        bench.later(Duration::from_secs(6)).ended(pid);
        assert_eq!(bench.start(), [102]);
        assert_eq!(bench.consoles.places()[0].restarts, 1);
        assert_eq!(bench.consoles.ended(4711, bench.now), None, "not ours");
    }

    #[test]
    fn process_over_limit_is_terminated_then_killed() {
        let mut bench = Bench::new(1);
        let [pid] = bench.start()[..] else { panic!() };
        let asked = bench.later(Duration::from_mins(1)).settle();
        assert!(matches!(asked[..], [Action::Ask { pid: p, .. }] if p == pid), "{asked:?}");
        assert_eq!(bench.later(Duration::from_secs(9)).settle(), []);
        assert_eq!(bench.later(Duration::from_secs(1)).settle(), [Action::Kill { pid }]);
        assert_eq!(bench.settle(), [], "once");
        bench.ended(pid);
        assert_eq!(bench.start().len(), 1, "one that was asked to leave did not fail");
    }

    #[test]
    fn process_over_memory_limit_is_terminated() {
        let mut bench = Bench::new(1);
        bench.start();
        let actions = bench.consoles.settle(bench.now, true, |_| 101 << 20, |_, _| false);
        assert!(matches!(actions[..], [Action::Ask { why, .. }] if why.contains("memory")));
    }

    #[test]
    fn stop_waits_for_processes() {
        let mut bench = Bench::new(2);
        let pids = bench.start();
        bench.consoles.stop("the server is stopping");
        assert_eq!(bench.settle().len(), 2);
        bench.ended(pids[0]);
        assert_eq!(bench.settle(), [], "no successor");
        assert!(!bench.consoles.are_gone());
        bench.consoles.stop_now("the server is stopping", bench.now);
        assert_eq!(bench.settle(), [Action::Kill { pid: pids[1] }]);
        bench.ended(pids[1]);
        assert!(bench.consoles.are_gone());
        assert_eq!(bench.consoles.places()[0].restarts, 0);
    }

    #[test]
    fn template_death_cancels_only_pending_forks() {
        let mut bench = Bench::new(2);
        let [Action::Start { life, .. }, _] = bench.settle()[..] else { panic!() };
        bench.consoles.started(life, 7, bench.now);
        bench.consoles.forget_asked(bench.now);
        let states: Vec<_> = bench.consoles.places().iter().map(ConsolePlace::state).collect();
        assert_eq!(states, [ConsoleState::Running, ConsoleState::Waiting]);
    }

    #[test]
    fn stop_does_not_wait_for_silent_template() {
        let mut bench = Bench::new(1);
        bench.settle();
        bench.consoles.stop("the server is stopping");
        bench.settle();
        assert!(!bench.consoles.are_gone());
        bench.later(ASK_LIMIT).settle();
        assert!(bench.consoles.are_gone());
    }

    #[test]
    fn stop_now_refuses_late_process() {
        let mut bench = Bench::new(1);
        let [Action::Start { life, .. }] = bench.settle()[..] else { panic!() };
        assert!(bench.consoles.is_asked(life));
        bench.consoles.stop_now("the server is stopping", bench.now);
        assert!(bench.consoles.are_gone() && !bench.consoles.is_asked(life));
        assert!(!bench.consoles.started(life, 7, bench.now), "too late");
    }

    #[test]
    fn failed_fork_is_retried() {
        let mut bench = Bench::new(1);
        let [Action::Start { life, .. }] = bench.settle()[..] else { panic!() };
        bench.consoles.failed(life, bench.now);
        assert_eq!(bench.start().len(), 1);
    }
}
