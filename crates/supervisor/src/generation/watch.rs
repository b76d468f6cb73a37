//! Who gives no sign of life: processes that were stopped, or hang where nothing should. Pure: what is seen comes in,
//! verdicts go out.
//!
//! Looks are counted, not time: a server that was frozen as a whole finds its processes as it left them, and has
//! waited for none.

use samovar_ring::{WorkerReport, WorkerState};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Workers look for requests once a second: more often there is nothing new to be seen.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Looks within a limit, so that one look that comes early or late does not decide.
const LOOKS: u32 = 5;
const LOOKS_MIN: u32 = 3;
/// An application that boots for so many times the limit will not come.
const BOOTS: u32 = 5;
/// For a template that was told to leave, to end PHP.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// What is known of a worker since it last changed.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    beat: u32,
    requests: u64,
    state: WorkerState,
    has_request: bool,
    returns: bool,
}

/// What a template is asked, and when it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Ask whether it is there.
    Ask,
    /// It has had its time.
    Kill,
}

/// Who was seen when.
#[derive(Debug)]
pub(crate) struct Watch {
    interval: Duration,
    /// Looks at an idle process, and at one that returns to its image; 0: it may be as silent as it likes.
    idle_looks: u32,
    /// Looks at a template that starts PHP.
    start_looks: u32,
    /// Looks at a worker, or an image process, that boots the application.
    boot_looks: u32,
    /// Looks at one in which the application's own code may run between two requests.
    after_looks: u32,
    leave_looks: u32,
    looked: Instant,
    workers: HashMap<i32, (Seen, u32)>,
    /// The template that the following is about: one that comes after it begins anew, however soon it comes.
    template: i32,
    /// Looks since the template has answered.
    unanswered: u32,
    starting: u32,
    leaving: u32,
}

impl Watch {
    /// `idle_limit`: for a process that has nothing to do, and for the return to the image; `after_limit`: for what else a worker does
    /// between two requests, as scripts with a loop of their own may; `boot_limit`: for the start of PHP, and [`BOOTS`] times as long for an
    /// application's boot, of which nobody knows how long it takes. Zero: for ever.
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
            unanswered: 0,
            starting: 0,
            leaving: 0,
        }
    }

    /// Whether it is time for a look.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.looked) >= self.interval;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// How often the image process may leave the template's question unanswered; 0: always.
    pub(crate) fn idle_looks(&self) -> u32 {
        self.idle_looks
    }

    /// How many such questions the boot of an application may outlast; 0: all.
    pub(crate) fn boot_looks(&self) -> u32 {
        self.boot_looks
    }

    /// One look at each worker there is; those that must be killed.
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

    /// One look at the template, a process. `starts`: it starts PHP; `waits`: it has nothing to do but to wait for orders;
    /// `leaves`: it was told to leave.
    pub(crate) fn look_at_template(
        &mut self,
        pid: i32,
        starts: bool,
        waits: bool,
        leaves: bool,
    ) -> Option<Verdict> {
        if self.template != pid {
            (self.template, self.unanswered, self.starting, self.leaving) = (pid, 0, 0, 0);
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
            self.unanswered = 0;
            return None;
        }
        self.unanswered += 1;
        Some(if self.unanswered > self.idle_looks { Verdict::Kill } else { Verdict::Ask })
    }

    /// The template has answered.
    pub(crate) fn template_answered(&mut self) {
        self.unanswered = 0;
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

    /// After how many looks a worker that shows this again and again is killed.
    fn looks(watch: &mut Watch, seen: impl Fn(u32) -> WorkerReport) -> Option<u32> {
        (1..100).find(|look| !watch.look([(7, seen(*look))].into_iter()).is_empty())
    }

    #[test]
    fn an_idle_worker_that_does_not_look_is_found() {
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

    /// What follows an answer may take its time, but not what is none of the application's.
    #[test]
    fn a_return_to_the_image_is_as_short_as_silence() {
        let returning = |_| WorkerReport { returns: true, ..report(WorkerState::Busy, 5, false) };
        for after in [0, 60, 300] {
            assert_eq!(looks(&mut watch(10, after), returning), Some(6), "{after}");
        }
        assert_eq!(looks(&mut watch(0, 60), returning), None);
    }

    #[test]
    fn a_successor_is_not_its_predecessor() {
        let mut watch = watch(10, 60);
        let idle = || report(WorkerState::Idle, 1, false);
        for pid in 1..100 {
            assert_eq!(watch.look([(pid / 4, idle())].into_iter()), [0i32; 0]);
        }
    }

    #[test]
    fn a_template_is_asked_while_it_waits_and_killed_when_it_does_not_answer() {
        let mut watch = watch(10, 60);
        for _ in 0..20 {
            assert_eq!(watch.look_at_template(7, true, false, false), None, "it starts");
            assert_eq!(watch.look_at_template(7, false, true, false), Some(Verdict::Ask));
            watch.template_answered();
        }
        for _ in 0..5 {
            assert_eq!(watch.look_at_template(7, false, true, false), Some(Verdict::Ask));
        }
        assert_eq!(watch.look_at_template(7, false, true, false), Some(Verdict::Kill));
    }

    /// One that was stopped before it had started PHP was waited for in vain, and with it all workers.
    #[test]
    fn a_template_that_never_starts_is_killed_and_so_is_its_successor() {
        let mut watch = watch(10, 60);
        for pid in 7..9 {
            let looks =
                (1..100).find(|_| watch.look_at_template(pid, true, false, false).is_some());
            assert_eq!(looks, Some(16));
        }
    }

    /// It is there before anybody looks again, and was killed for what its predecessor had not answered.
    #[test]
    fn a_successor_that_comes_at_once_is_asked_as_often() {
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
    fn a_template_that_does_not_leave_is_killed() {
        for idle in [0, 10] {
            let mut watch = watch(idle, 60);
            let looks = (1..100).find(|_| watch.look_at_template(7, false, true, true).is_some());
            assert_eq!(looks, Some(if idle == 0 { 11 } else { 6 }));
        }
    }
}
