//! Decides whether a request has exceeded one of its time limits in a worker, and which. A pure
//! function.

use samovar_config::Timeouts;
use samovar_ring::Overrun;
use std::time::Duration;

/// State of the client that the worker runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A client waits for the response.
    Client,
    /// The client disconnected before it had the whole response.
    Gone,
    /// The client has the whole response; the script still runs.
    Served,
}

/// Points in time of a worker's run, in ms of the front's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) audience: Audience,
    pub(super) now_ms: u64,
    /// Time at which a worker took the request.
    pub(super) running_since_ms: u64,
    /// Time since which the worker has been expected to send a byte.
    pub(super) quiet_since_ms: u64,
    /// Time since which no client waits.
    pub(super) alone_since_ms: u64,
    /// Run time that the script itself requested.
    pub(super) wanted_ms: u32,
    /// Whether the script itself has declared that it goes on without its client.
    pub(super) outlives: bool,
}

/// Returns the time limit that the run has exceeded, if any. `path` is the limit of the request's
/// path; it replaces `timeouts.request` and `timeouts.response`.
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
    let response = path.map_or(timeouts.response, |_| Duration::ZERO);
    let has_client_left = course.audience != Audience::Client;
    if has_client_left && is_over(timeouts.post_response, course.alone_since_ms) {
        return Some(Overrun::After);
    }
    if course.audience == Audience::Served {
        return None;
    }
    if is_over(request, course.running_since_ms) {
        return Some(Overrun::Request);
    }
    if course.audience == Audience::Gone && course.outlives {
        // No client is left that waits for a byte.
        return None;
    }
    is_over(response, course.quiet_since_ms).then_some(Overrun::Response)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Audience::{Client, Gone, Served};
    use Overrun::{After, Request, Response};

    /// Values of `response request after extended` in seconds.
    fn timeouts([response, request, after, extended]: [u64; 4]) -> Timeouts {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = samovar_config::Settings::defaults(folder.path()).expect("defaults");
        let s = Duration::from_secs;
        Timeouts {
            response: s(response),
            request: s(request),
            post_response: s(after),
            extended: s(extended),
            ..settings.timeouts
        }
    }

    /// `running quiet alone wanted` are durations in seconds.
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
    fn run_past_a_limit_reports_that_limit() {
        let usual = [60, 100, 300, 600];
        check(usual, None, Client, [59, 59, 0, 0], None);
        check(usual, None, Client, [60, 60, 0, 0], Some(Response));
        check(usual, None, Client, [99, 1, 0, 0], None);
        check(usual, None, Client, [100, 1, 0, 0], Some(Request));
        check(usual, None, Gone, [100, 1, 2, 0], Some(Request));
        check(usual, None, Gone, [70, 60, 2, 0], Some(Response));
        check([0, 0, 300, 0], None, Gone, [300, 300, 299, 0], None);
        check([0, 0, 300, 0], None, Gone, [300, 300, 300, 0], Some(After));
        check([0, 0, 0, 0], None, Gone, [9000, 9000, 9000, 0], None);
        check(usual, None, Served, [299, 299, 299, 0], None);
        check(usual, None, Served, [310, 310, 300, 0], Some(After));
    }

    #[test]
    fn script_that_outlives_client_ignores_response_timeout() {
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
        assert_eq!(found(Client, usual, [60, 60, 0]), Some(Response));
        assert_eq!(found(Gone, usual, [399, 399, 299]), None);
        assert_eq!(found(Gone, usual, [400, 400, 299]), Some(Request));
        assert_eq!(found(Gone, usual, [301, 301, 300]), Some(After));
    }

    #[test]
    fn path_limit_replaces_request_and_response_timeouts() {
        let usual = [60, 100, 300, 600];
        check(usual, Some(200), Client, [199, 199, 0, 0], None);
        check(usual, Some(200), Client, [200, 1, 0, 0], Some(Request));
        check(usual, Some(5), Client, [5, 1, 0, 0], Some(Request));
        check(usual, Some(0), Client, [9000, 9000, 0, 0], None);
        check(usual, Some(0), Served, [9000, 9000, 300, 0], Some(After));
    }

    #[test]
    fn script_extension_is_capped_by_extended_timeout() {
        let usual = [60, 100, 300, 600];
        check(usual, None, Client, [150, 150, 0, 151], None);
        check(usual, None, Client, [151, 151, 0, 151], Some(Request));
        check(usual, None, Client, [599, 599, 0, 9999], None);
        check(usual, None, Client, [600, 600, 0, 9999], Some(Request));
        check(usual, None, Served, [599, 9, 400, 9999], None);
        check(usual, None, Served, [600, 9, 400, 9999], Some(After));
        check(usual, Some(5), Client, [20, 20, 0, 30], None);
        // The script has requested less time than it has already.
        check(usual, None, Client, [20, 20, 0, 10], None);
        // Scripts cannot extend their time if `timeouts.extended` is 0.
        check([60, 100, 300, 0], None, Client, [100, 1, 0, 500], Some(Request));
    }
}
