//! Is it well? One line, and what stands against it.

use crate::figures::Piece;
use crate::query::link;
use crate::{Sources, human};
use samovar_insight::store::EventKind;
use samovar_wire::{About, Status};

/// Failed requests of the last minute from which on it is not well, as a share.
const ERRORS_SHARE_MAX: f64 = 0.01;
/// The longest time in the queue of the last minute from which on it is not well.
const QUEUE_NS_MAX: u64 = 500_000_000;
/// Seconds for which a crash is news.
const NEWS_S: u64 = 300;

/// Something that is not well, and where more about it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) text: String,
    pub(crate) link: String,
}

impl Trouble {
    fn new(text: impl Into<String>, link: impl Into<String>) -> Trouble {
        Trouble { text: text.into(), link: link.into() }
    }
}

/// All that is not well; the first is the worst.
pub(crate) fn troubles(
    sources: &Sources,
    status: &Status,
    last_minute: Option<&Piece>,
    now: u64,
) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    if let Err(why) = sources.host.ready(None) {
        // Of several pools each has a line, behind one for all.
        let said = why.lines().filter(|line| !line.ends_with("ready"));
        let why = said.collect::<Vec<_>>().join("; ");
        troubles.push(Trouble::new(format!("Not ready for requests: {why}"), "/workers"));
    }
    if let Some(minute) = last_minute {
        troubles.extend(of_minute(minute));
    }
    for trouble in samovar_wire::troubles(status) {
        let place = match trouble.about {
            // Readiness has said so in its own words.
            About::Readiness => continue,
            About::Workers => "/workers",
            About::Image => "/image",
            About::Logs => "/history",
        };
        troubles.push(Trouble::new(capitalised(&trouble.text), place));
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
            troubles.push(Trouble::new(format!("{n} {what}"), "/history"));
        }
    }
    let history = sources.insight.as_ref().and_then(|insight| insight.history());
    if let Some(history) = history.filter(|history| !history.trouble.is_empty()) {
        troubles.push(Trouble::new(format!("No history: {}", history.trouble), "/history"));
    }
    troubles
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn of_minute(minute: &Piece) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let (errors, requests) = (minute.errors as f64, minute.requests as f64);
    if errors > requests * ERRORS_SHARE_MAX {
        let share = human::percent(errors, requests);
        let text = format!("{share} of the last minute's requests failed");
        troubles.push(Trouble::new(text, link("/routes", &[("sort", "errors")])));
    }
    if minute.queue_ns_max > QUEUE_NS_MAX {
        let longest = human::time(minute.queue_ns_max);
        troubles.push(Trouble::new(
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
    fn one_of_a_hundred_may_fail() {
        let texts = |errors, queue_ns_max| {
            let minute = Piece { requests: 100, errors, queue_ns_max, ..Piece::default() };
            of_minute(&minute).into_iter().map(|t| t.text).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(texts(1, 0), "");
        assert_eq!(texts(2, 0), "2 % of the last minute's requests failed");
        assert_eq!(texts(0, 700_000_000), "Requests waited up to 700 ms for a worker");
    }
}
