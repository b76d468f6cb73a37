//! Health check of the dashboard: one line with a verdict, and the problems.

use crate::figures::Piece;
use crate::format;
use crate::query::link;
use crate::sources::Sources;
use samovar_insight::store::EventKind;
use samovar_wire::{About, Status};

/// Share of failed requests in the last minute above which it is a problem.
const ERRORS_SHARE_MAX: f64 = 0.01;
/// Longest time in the queue in the last minute above which it is a problem.
const QUEUE_NS_MAX: u64 = 500_000_000;
/// Time in seconds for which a crash is reported.
const NEWS_S: u64 = 300;

/// A health problem, and a link to details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkedProblem {
    pub(crate) text: String,
    pub(crate) link: String,
}

impl LinkedProblem {
    fn new(text: impl Into<String>, link: impl Into<String>) -> LinkedProblem {
        LinkedProblem { text: text.into(), link: link.into() }
    }
}

/// Returns all problems; the first is the worst.
pub(crate) fn troubles(
    sources: &Sources,
    status: &Status,
    last_minute: Option<&Piece>,
    now: u64,
) -> Vec<LinkedProblem> {
    let mut troubles = Vec::new();
    if let Err(why) = sources.host.ready(None) {
        // With several pools, the text has a line for each pool after a line for all.
        let said = why.lines().filter(|line| !line.ends_with("ready"));
        let why = said.collect::<Vec<_>>().join("; ");
        troubles.push(LinkedProblem::new(format!("Not ready for requests: {why}"), "/workers"));
    }
    if let Some(minute) = last_minute {
        troubles.extend(of_minute(minute));
    }
    for trouble in samovar_wire::troubles(status) {
        let place = match trouble.about {
            // `Host::ready` already reports readiness, in its own words.
            About::Readiness => continue,
            About::Workers => "/workers",
            About::Image => "/image",
            About::Logs => "/history",
            About::Routes => "/routes",
        };
        troubles.push(LinkedProblem::new(capitalised(&trouble.text), place));
    }
    let events = sources.insight.as_ref().map(|insight| insight.events()).unwrap_or_default();
    let is_news = |at: u64| at + NEWS_S > now;
    let count = |kind| events.iter().filter(|e| e.kind == kind && is_news(e.at)).count();
    for (kind, what) in [
        (EventKind::Crash, "workers crashed in the last five minutes"),
        (EventKind::Kill, "workers were killed in the last five minutes"),
        (EventKind::ReloadFailed, "reloads failed in the last five minutes"),
    ] {
        let n = count(kind);
        if n > 0 {
            troubles.push(LinkedProblem::new(format!("{n} {what}"), "/history"));
        }
    }
    let history = sources.insight.as_ref().and_then(|insight| insight.history());
    if let Some(history) = history.filter(|history| !history.trouble.is_empty()) {
        troubles.push(LinkedProblem::new(format!("No history: {}", history.trouble), "/history"));
    }
    troubles
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn of_minute(minute: &Piece) -> Vec<LinkedProblem> {
    let mut troubles = Vec::new();
    let (errors, requests) = (minute.errors as f64, minute.requests as f64);
    if errors > requests * ERRORS_SHARE_MAX {
        let share = format::percent(errors, requests);
        let text = format!("{share} of the last minute's requests failed");
        troubles.push(LinkedProblem::new(text, link("/routes", &[("sort", "errors")])));
    }
    if minute.queue_ns_max > QUEUE_NS_MAX {
        let longest = format::time(minute.queue_ns_max);
        troubles.push(LinkedProblem::new(
            format!("Requests waited up to {longest} for a worker"),
            "/workers",
        ));
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::of_minute;
    use crate::figures::Piece;

    #[test]
    fn errors_above_one_per_cent_are_a_problem() {
        let texts = |errors, queue_ns_max| {
            let minute = Piece { requests: 100, errors, queue_ns_max, ..Piece::default() };
            of_minute(&minute).into_iter().map(|t| t.text).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(texts(1, 0), "");
        assert_eq!(texts(2, 0), "2 % of the last minute's requests failed");
        assert_eq!(texts(0, 700_000_000), "Requests waited up to 700 ms for a worker");
    }
}
