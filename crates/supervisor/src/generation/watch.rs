//! Watchdog: finds processes that were stopped, or that hang outside of a request. Pure:
//! observations come in, verdicts go out.
//!
//! It counts checks, not time. After the whole server was frozen, all processes are in their former
//! state, and none of them counts as hung.

use samovar_ring::{WorkerReport, WorkerState};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Workers check for requests once a second: more frequent checks would see no change.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Number of checks within a limit, so that a single early or late check does not decide.
const LOOKS: u32 = 5;
const LOOKS_MIN: u32 = 3;
/// Maximum boot time of an application, as a multiple of the boot limit.
const BOOTS: u32 = 5;
/// Time for a template to end PHP after its channel was closed.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// State of a worker at its last change.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    beat: u32,
    requests: u64,
    state: WorkerState,
    has_request: bool,
    returns: bool,
}

/// Next step for a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send it a ping.
    Ask,
    /// Kill it: its time is over.
    Kill,
}

/// The watchdog's state.
#[derive(Debug)]
pub(crate) struct Watch {
    interval: Duration,
    /// Maximum number of checks without a change of an idle process, or of one that returns to its
    /// image; 0: no limit.
    idle_looks: u32,
    /// Maximum number of checks while a template starts PHP.
    start_looks: u32,
    /// Maximum number of checks while a worker or an image process boots the application.
    boot_looks: u32,
    /// Maximum number of checks while the application's own code may run between two requests.
    after_looks: u32,
    leave_looks: u32,
    looked: Instant,
    workers: HashMap<i32, (Seen, u32)>,
    /// Template to which the following counters belong. They are reset for its successor, however
    /// soon that starts.
    template: i32,
    /// Number of checks since the template replied.
    without_response: u32,
    starting: u32,
    leaving: u32,
}

impl Watch {
    /// Creates a watchdog. A limit of zero means no limit.
    ///
    /// - `idle_limit`: for a process without work, and for the return to the image
    /// - `after_limit`: for other activity of a worker between two requests, such as scripts with a
    ///   loop of their own
    /// - `boot_limit`: for the start of PHP, and [`BOOTS`] times as long for an application's boot,
    ///   whose duration cannot be predicted
    pub(crate) fn new(
        idle_limit: Duration,
        after_limit: Duration,
        boot_limit: Duration,
        now: Instant,
    ) -> Watch {
        let interval = (idle_limit / LOOKS).max(INTERVAL_MIN);
        let looks = |limit: Duration| {
            let looks = limit.as_millis().div_ceil(interval.as_millis());
            let looks = u32::try_from(looks).unwrap_or(u32::MAX);
            if looks == 0 { 0 } else { looks.max(LOOKS_MIN) }
        };
        Watch {
            interval,
            idle_looks: looks(idle_limit),
            start_looks: if idle_limit.is_zero() { 0 } else { looks(boot_limit) },
            boot_looks: if idle_limit.is_zero() { 0 } else { looks(boot_limit * BOOTS) },
            after_looks: looks(after_limit),
            leave_looks: looks(LEAVE_LIMIT),
            looked: now,
            workers: HashMap::new(),
            template: 0,
            without_response: 0,
            starting: 0,
            leaving: 0,
        }
    }

    /// Whether a check is due.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.looked) >= self.interval;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// Returns the number of the template's pings that the image process may leave without a reply;
    /// 0: any number.
    pub(crate) fn idle_looks(&self) -> u32 {
        self.idle_looks
    }

    /// Returns the number of such pings during which an application may boot; 0: any number.
    pub(crate) fn boot_looks(&self) -> u32 {
        self.boot_looks
    }

    /// Checks each worker once, and returns those that must be killed.
    pub(crate) fn look(&mut self, workers: impl Iterator<Item = (i32, WorkerReport)>) -> Vec<i32> {
        let mut before = std::mem::take(&mut self.workers);
        let mut silent = Vec::new();
        for (pid, report) in workers {
            let seen = Seen {
                beat: report.beat,
                requests: report.requests,
                state: report.state,
                has_request: report.has_request,
                returns: report.returns,
            };
            let former = before.remove(&pid).filter(|(former, _)| *former == seen);
            let looks = former.map_or(0, |(_, looks)| looks + 1);
            let limit = self.looks_for(&seen);
            if limit > 0 && looks >= limit {
                silent.push(pid);
            }
            self.workers.insert(pid, (seen, looks));
        }
        silent
    }

    fn looks_for(&self, seen: &Seen) -> u32 {
        match seen.state {
            // The front has deadlines for its request.
            _ if seen.has_request => 0,
            WorkerState::Starting | WorkerState::Idle => self.idle_looks,
            WorkerState::Busy if seen.returns => self.idle_looks,
            WorkerState::Busy => self.after_looks,
            WorkerState::Booting => self.boot_looks,
        }
    }

    /// Checks the template once. `starts`: it is starting PHP. `waits`: it only waits for orders.
    /// `leaves`: its channel was closed.
    pub(crate) fn look_at_template(
        &mut self,
        pid: i32,
        starts: bool,
        waits: bool,
        leaves: bool,
    ) -> Option<Verdict> {
        if self.template != pid {
            (self.template, self.without_response, self.starting, self.leaving) = (pid, 0, 0, 0);
        }
        self.starting = if starts { self.starting + 1 } else { 0 };
        if self.start_looks > 0 && self.starting > self.start_looks {
            return Some(Verdict::Kill);
        }
        self.leaving = if leaves { self.leaving + 1 } else { 0 };
        if self.leaving > self.leave_looks {
            return Some(Verdict::Kill);
        }
        if !waits || leaves || self.idle_looks == 0 {
            self.without_response = 0;
            return None;
        }
        self.without_response += 1;
        Some(if self.without_response > self.idle_looks { Verdict::Kill } else { Verdict::Ask })
    }

    /// Notes that the template has replied.
    pub(crate) fn template_responded(&mut self) {
        self.without_response = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_ring::Model;

    fn report(state: WorkerState, beat: u32, has_request: bool) -> WorkerReport {
        let model = Model::Script;
        let (requests, hot_pages, rollbacks, leave, returns) = (0, 0, 0, None, false);
        WorkerReport {
            state,
            model,
            requests,
            has_request,
            returns,
            beat,
            hot_pages,
            rollbacks,
            leave,
        }
    }

    const BOOT_S: u64 = 30;

    fn watch(idle: u64, after: u64) -> Watch {
        let seconds = Duration::from_secs;
        Watch::new(seconds(idle), seconds(after), seconds(BOOT_S), Instant::now())
    }

    /// Returns the number of checks after which a worker with these reports is killed.
    fn looks(watch: &mut Watch, seen: impl Fn(u32) -> WorkerReport) -> Option<u32> {
        (1..100).find(|look| !watch.look([(7, seen(*look))].into_iter()).is_empty())
    }

    #[test]
    fn silent_worker_is_killed_after_limit_of_its_state() {
        use WorkerState as S;
        for (state, has_request, expected) in [
            (S::Idle, false, Some(6)),
            (S::Starting, false, Some(6)),
            (S::Busy, true, None),
            (S::Busy, false, Some(31)),
            (S::Booting, false, Some(76)),
        ] {
            let found = looks(&mut watch(10, 60), |_| report(state, 5, has_request));
            assert_eq!(found, expected, "{state:?} {has_request}");
        }
        assert_eq!(looks(&mut watch(10, 60), |look| report(S::Idle, look, false)), None);
        assert_eq!(looks(&mut watch(0, 0), |_| report(S::Idle, 1, false)), None);
        assert_eq!(looks(&mut watch(0, 0), |_| report(S::Booting, 1, false)), None);
        assert_eq!(looks(&mut watch(1, 0), |_| report(S::Idle, 1, false)), Some(4));
    }

    /// Work after a response may take long, but a return to the image contains no application code.
    #[test]
    fn return_to_image_has_idle_limit() {
        let returning = |_| WorkerReport { returns: true, ..report(WorkerState::Busy, 5, false) };
        for after in [0, 60, 300] {
            assert_eq!(looks(&mut watch(10, after), returning), Some(6), "{after}");
        }
        assert_eq!(looks(&mut watch(0, 60), returning), None);
    }

    #[test]
    fn worker_successor_starts_with_new_count() {
        let mut watch = watch(10, 60);
        let idle = || report(WorkerState::Idle, 1, false);
        for pid in 1..100 {
            assert_eq!(watch.look([(pid / 4, idle())].into_iter()), [0i32; 0]);
        }
    }

    #[test]
    fn template_without_reply_to_pings_is_killed() {
        let mut watch = watch(10, 60);
        for _ in 0..20 {
            assert_eq!(watch.look_at_template(7, true, false, false), None, "it starts");
            assert_eq!(watch.look_at_template(7, false, true, false), Some(Verdict::Ask));
            watch.template_responded();
        }
        for _ in 0..5 {
            assert_eq!(watch.look_at_template(7, false, true, false), Some(Verdict::Ask));
        }
        assert_eq!(watch.look_at_template(7, false, true, false), Some(Verdict::Kill));
    }

    /// Regression: a template that was stopped before PHP had started was never killed, so no
    /// workers started.
    #[test]
    fn template_that_never_starts_is_killed() {
        let mut watch = watch(10, 60);
        for pid in 7..9 {
            let looks =
                (1..100).find(|_| watch.look_at_template(pid, true, false, false).is_some());
            assert_eq!(looks, Some(16));
        }
    }

    /// Regression: a successor that started before the next check was killed for its predecessor's
    /// missing replies.
    #[test]
    fn template_successor_starts_with_new_count() {
        let mut watch = watch(10, 60);
        for pid in 7..20 {
            let looks = |watch: &mut Watch| {
                (1..100).find(|_| {
                    watch.look_at_template(pid, false, true, false) == Some(Verdict::Kill)
                })
            };
            assert_eq!(looks(&mut watch), Some(6));
        }
        for pid in 20..100 {
            let seen = watch.look_at_template(pid, true, false, false);
            assert_eq!(seen, None, "each of them has just begun to start");
        }
    }

    #[test]
    fn closed_template_that_does_not_exit_is_killed() {
        for idle in [0, 10] {
            let mut watch = watch(idle, 60);
            let looks = (1..100).find(|_| watch.look_at_template(7, false, true, true).is_some());
            assert_eq!(looks, Some(if idle == 0 { 11 } else { 6 }));
        }
    }
}
