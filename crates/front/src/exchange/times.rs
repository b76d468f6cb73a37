//! Whether the time of a request in a worker is over, and which: pure.

use samovar_config::Timeouts;
use samovar_ring::Overrun;
use std::time::Duration;

/// Who waits for what a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A client waits for the answer.
    Client,
    /// The client has gone before it had all.
    Gone,
    /// The client has all; the script goes on.
    Served,
}

/// Points in time of a worker's run, by the front's clock, ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) audience: Audience,
    pub(super) now_ms: u64,
    /// Since when a worker has it.
    pub(super) running_since_ms: u64,
    /// Since when the worker owes a byte.
    pub(super) quiet_since_ms: u64,
    /// Since when no client waits.
    pub(super) alone_since_ms: u64,
    /// For how long the script wants to run: its own word.
    pub(super) wanted_ms: u32,
    /// Whether the script goes on when its client has gone: its own word, too.
    pub(super) outlives: bool,
}

/// Which of its times the run has used up. `path`: what holds for the request's path instead of the times of request and
/// answer.
pub(super) fn overrun(
    timeouts: &Timeouts,
    path: Option<Duration>,
    course: &Course,
) -> Option<Overrun> {
    let wanted = Duration::from_millis(u64::from(course.wanted_ms)).min(timeouts.extended);
    let is_over = |limit: Duration, since_ms: u64| {
        !limit.is_zero() && course.now_ms.saturating_sub(since_ms) >= millis(limit)
    };
    if !wanted.is_zero() && !is_over(wanted, course.running_since_ms) {
        return None;
    }
    let request = path.unwrap_or(timeouts.request);
    let answer = path.map_or(timeouts.answer, |_| Duration::ZERO);
    let has_client_left = course.audience != Audience::Client;
    if has_client_left && is_over(timeouts.after, course.alone_since_ms) {
        return Some(Overrun::After);
    }
    if course.audience == Audience::Served {
        return None;
    }
    if is_over(request, course.running_since_ms) {
        return Some(Overrun::Request);
    }
    if course.audience == Audience::Gone && course.outlives {
        // It owes nobody a byte.
        return None;
    }
    is_over(answer, course.quiet_since_ms).then_some(Overrun::Answer)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Audience::{Client, Gone, Served};
    use Overrun::{After, Answer, Request};

    /// `answer request after extended`, seconds.
    fn timeouts([answer, request, after, extended]: [u64; 4]) -> Timeouts {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = samovar_config::Settings::defaults(folder.path()).expect("defaults");
        let s = Duration::from_secs;
        Timeouts {
            answer: s(answer),
            request: s(request),
            after: s(after),
            extended: s(extended),
            ..settings.timeouts
        }
    }

    /// `running quiet alone wanted`: for how many seconds.
    fn check(
        limits: [u64; 4],
        path: Option<u64>,
        audience: Audience,
        [running, quiet, alone, wanted]: [u64; 4],
        expected: Option<Overrun>,
    ) {
        let now_ms = 10_000_000;
        let ago = |seconds: u64| now_ms - seconds * 1000;
        let course = Course {
            audience,
            now_ms,
            running_since_ms: ago(running),
            quiet_since_ms: ago(quiet),
            alone_since_ms: ago(alone),
            wanted_ms: (wanted * 1000) as u32,
            outlives: false,
        };
        let found = overrun(&timeouts(limits), path.map(Duration::from_secs), &course);
        assert_eq!(found, expected, "{limits:?} {path:?} {course:?}");
    }

    #[test]
    fn times_of_a_run() {
        let usual = [60, 100, 300, 600];
        check(usual, None, Client, [59, 59, 0, 0], None);
        check(usual, None, Client, [60, 60, 0, 0], Some(Answer));
        check(usual, None, Client, [99, 1, 0, 0], None);
        check(usual, None, Client, [100, 1, 0, 0], Some(Request));
        check(usual, None, Gone, [100, 1, 2, 0], Some(Request));
        check(usual, None, Gone, [70, 60, 2, 0], Some(Answer));
        check([0, 0, 300, 0], None, Gone, [300, 300, 299, 0], None);
        check([0, 0, 300, 0], None, Gone, [300, 300, 300, 0], Some(After));
        check([0, 0, 0, 0], None, Gone, [9000, 9000, 9000, 0], None);
        check(usual, None, Served, [299, 299, 299, 0], None);
        check(usual, None, Served, [310, 310, 300, 0], Some(After));
    }

    #[test]
    fn who_outlives_its_client_owes_no_byte() {
        let found = |audience, limits, [running, quiet, alone]: [u64; 3]| {
            let (now_ms, ago) = (10_000_000, |seconds: u64| 10_000_000 - seconds * 1000);
            let course = Course {
                audience,
                now_ms,
                running_since_ms: ago(running),
                quiet_since_ms: ago(quiet),
                alone_since_ms: ago(alone),
                wanted_ms: 0,
                outlives: true,
            };
            overrun(&timeouts(limits), None, &course)
        };
        let usual = [60, 400, 300, 600];
        assert_eq!(found(Client, usual, [60, 60, 0]), Some(Answer));
        assert_eq!(found(Gone, usual, [399, 399, 299]), None);
        assert_eq!(found(Gone, usual, [400, 400, 299]), Some(Request));
        assert_eq!(found(Gone, usual, [301, 301, 300]), Some(After));
    }

    #[test]
    fn a_path_has_a_time_of_its_own() {
        let usual = [60, 100, 300, 600];
        check(usual, Some(200), Client, [199, 199, 0, 0], None);
        check(usual, Some(200), Client, [200, 1, 0, 0], Some(Request));
        check(usual, Some(5), Client, [5, 1, 0, 0], Some(Request));
        check(usual, Some(0), Client, [9000, 9000, 0, 0], None);
        check(usual, Some(0), Served, [9000, 9000, 300, 0], Some(After));
    }

    #[test]
    fn a_script_may_ask_for_more_but_not_for_ever() {
        let usual = [60, 100, 300, 600];
        check(usual, None, Client, [150, 150, 0, 151], None);
        check(usual, None, Client, [151, 151, 0, 151], Some(Request));
        check(usual, None, Client, [599, 599, 0, 9999], None);
        check(usual, None, Client, [600, 600, 0, 9999], Some(Request));
        check(usual, None, Served, [599, 9, 400, 9999], None);
        check(usual, None, Served, [600, 9, 400, 9999], Some(After));
        check(usual, Some(5), Client, [20, 20, 0, 30], None);
        // It has asked for less than it has.
        check(usual, None, Client, [20, 20, 0, 10], None);
        // Nobody gets more.
        check([60, 100, 300, 0], None, Client, [100, 1, 0, 500], Some(Request));
    }
}
