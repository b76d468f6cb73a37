//! The time range of a page and the period that it is compared with, as the query names them:
//! `range=`, or `from=` and `to=`; `compare=`.
//!
//! All pages and the API use this type. Links keep the query's own parameters only, so a page
//! without a selection has the default everywhere.

use crate::format;
use crate::known_releases::{KnownRelease, Label};
use crate::query::Query;
use std::fmt;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 3_600;
pub(crate) const DAY_S: u64 = 86_400;
/// Length from which a range consists of whole hours: the history then reads sums of hours.
const WHOLE_HOURS_S: u64 = 2 * DAY_S;
/// Maximum length of a range in seconds: the longest history.
const LENGTH_MAX_S: u64 = 3_650 * DAY_S;
/// Minimum length of the period before a release, so that it can be compared at once.
const BEFORE_RELEASE_MIN_S: u64 = HOUR_S;
/// Maximum number of labels that an error message lists.
const RELEASES_SHOWN_MAX: usize = 10;
/// Maximum length of a value that an error message repeats.
const VALUE_SHOWN_MAX: usize = 40;

/// Ranges that end now: (value of `range`, name, seconds).
pub(crate) const LAST: [(&str, &str, u64); 5] = [
    ("15m", "15 min", 15 * MINUTE_S),
    ("1h", "1 h", HOUR_S),
    ("6h", "6 h", 6 * HOUR_S),
    ("1d", "1 day", DAY_S),
    ("7d", "7 days", 7 * DAY_S),
];
const RELEASE: &str = "release";
const PREVIOUS_RELEASE: &str = "previous-release";
/// Begin of a value with the label of a release.
const NAMED: &str = "release:";
const START: &str = "start";

/// Length and position of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// One of [`LAST`], by its index.
    Last(usize),
    /// Since the begin of this release: the last start or reload, or the first one with its label.
    Release,
    /// The release before this one.
    PreviousRelease,
    /// The last release with this label.
    Named(Label),
    /// Since the start of the server.
    Start,
    /// From a time to another one, or to now. Seconds since 1970.
    Custom(u64, Option<u64>),
}

/// The period to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    None,
    /// The period of equal length directly before the range.
    Previous,
    /// The same time a day earlier.
    Day,
    /// Before this release.
    Release,
    /// The last release with this label.
    Named(Label),
}

impl Against {
    pub(crate) const ALL: [(Against, &'static str, &'static str); 4] = [
        (Against::Previous, "previous", "previous period"),
        (Against::Day, "day", "a day earlier"),
        (Against::Release, "release", "before this release"),
        (Against::None, "none", "nothing"),
    ];

    pub(crate) fn key(self) -> String {
        if let Against::Named(label) = self {
            return format!("{NAMED}{}", label.text());
        }
        Self::ALL.iter().find(|(one, ..)| *one == self).map_or("", |(_, key, _)| key).to_owned()
    }

    fn of_key(key: &str) -> Option<Against> {
        let label = key.strip_prefix(NAMED).and_then(Label::new);
        let known = Self::ALL.iter().find(|(_, known, _)| *known == key).map(|(one, ..)| *one);
        known.or(label.map(Against::Named))
    }
}

/// Selection of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) span: Span,
    pub(crate) against: Against,
    /// Whether the query has the range, and the comparison.
    is_given: (bool, bool),
}

/// A value of the query that is not a range, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidRange {
    pub(crate) what: String,
    pub(crate) hint: String,
}

impl fmt::Display for InvalidRange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.what, self.hint)
    }
}

/// A period in seconds since 1970; `to` is excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Period {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Period {
    pub(crate) fn seconds(self) -> u64 {
        self.to.saturating_sub(self.from).max(1)
    }

    pub(crate) fn contains(self, at: u64) -> bool {
        (self.from..self.to).contains(&at)
    }

    /// `2026-11-28 10:00:00 to 11:00:00 UTC`.
    pub(crate) fn in_words(self) -> String {
        let (from, to) = (format::moment(self.from), format::moment(self.to));
        let is_same_day = format::date(self.from) == format::date(self.to);
        let to = if is_same_day { format::clock(self.to) } else { to };
        format!("{from} to {to} UTC")
    }
}

/// Times that a range can refer to, in seconds since 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) now: u64,
    /// Start of the server.
    pub(crate) start: u64,
    /// Releases of all pools, in the order of their begin.
    pub(crate) releases: Vec<KnownRelease>,
}

impl Known {
    /// Returns this release: the one that began last.
    pub(crate) fn release(&self) -> Option<&KnownRelease> {
        self.releases.last()
    }

    /// Returns the release before this one, of the same pool, that has a range.
    pub(crate) fn previous_release(&self) -> Option<&KnownRelease> {
        let (this, others) = self.releases.split_last()?;
        others.iter().rfind(|one| one.pool == this.pool && !one.is_momentary())
    }

    /// Returns the last release with this label that has a range.
    pub(crate) fn named(&self, label: &Label) -> Option<&KnownRelease> {
        self.releases.iter().rfind(|one| one.label == label.text() && !one.is_momentary())
    }
}

/// A range with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) period: Period,
    /// The period to compare with; an error says why there is none. `Ok(None)`: none was selected.
    pub(crate) against: Result<Option<Period>, String>,
}

impl Default for Range {
    fn default() -> Range {
        Range { span: Span::Last(1), against: Against::Previous, is_given: (false, false) }
    }
}

impl Range {
    /// Reads the selection from a query.
    pub(crate) fn of(query: &Query, now: u64) -> Result<Range, InvalidRange> {
        let get = |name| query.get(name).filter(|value| !value.trim().is_empty());
        let undecodable = ["range", "from", "to", "compare"]
            .into_iter()
            .find(|name| query.has(name) && query.get(name).is_none());
        if let Some(name) = undecodable {
            return invalid(format!("`{name}` is not UTF-8"), "percent-encode the value");
        }
        let time = |name| get(name).map(|text| time(name, &text)).transpose();
        let (range, from, to) = (get("range"), time("from")?, time("to")?);
        let span = match (range, from, to) {
            (_, Some(from), to) => Some(custom(from, to, now)?),
            (_, None, Some(_)) => {
                return invalid("`to` needs `from`".to_owned(), "add from=2026-11-28T10:00");
            }
            (Some(key), None, None) => Some(Span::of_key(&key)?),
            (None, None, None) => None,
        };
        let against = get("compare").map(|key| {
            Against::of_key(&key).ok_or_else(|| {
                let keys = Against::ALL.map(|(_, key, _)| key).join(", ");
                unknown("compare", &key, &format!("{keys}, or release:LABEL"))
            })
        });
        let against = against.transpose()?;
        let default = Range::default();
        let is_given = (span.is_some(), against.is_some());
        let span = span.unwrap_or(default.span);
        let usual = if span.is_release() { Against::Release } else { default.against };
        Ok(Range { span, against: against.unwrap_or(usual), is_given })
    }

    /// Returns whether the selection refers to a release that may not be known.
    pub(crate) fn names_releases(&self) -> bool {
        let is_named = matches!(self.span, Span::PreviousRelease | Span::Named(_));
        is_named || matches!(self.against, Against::Named(_))
    }

    /// Returns an error if the selection refers to a release that is not known.
    pub(crate) fn check(&self, known: &Known) -> Result<(), InvalidRange> {
        let labels = [
            if let Span::Named(label) = self.span { Some(label) } else { None },
            if let Against::Named(label) = self.against { Some(label) } else { None },
        ];
        if let Some(label) = labels.iter().flatten().find(|label| known.named(label).is_none()) {
            if let Some(one) = known.releases.iter().rfind(|one| one.label == label.text()) {
                let name = shortened(label.text());
                return invalid(
                    format!("release `{name}` served for less than a second"),
                    &format!("select a time around {} UTC", format::moment(one.from)),
                );
            }
            let mut all: Vec<_> = known.releases.iter().map(|one| &*one.label).collect();
            all.retain(|label| !label.is_empty());
            all.reverse();
            all.truncate(RELEASES_SHOWN_MAX);
            let hint = match all.join(", ") {
                none if none.is_empty() => "no release has a label: see `release`".to_owned(),
                known => format!("known releases are {known}"),
            };
            let what = format!("no release `{}` is known", shortened(label.text()));
            return invalid(what, &hint);
        }
        if self.span == Span::PreviousRelease && known.previous_release().is_none() {
            return invalid(
                "no release before this one is known".to_owned(),
                "a server knows earlier ones only if it has a history: see `insight.store`",
            );
        }
        Ok(())
    }

    /// Returns the parameters that the query had, for links.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = if self.is_given.0 { self.span.pairs() } else { Vec::new() };
        if self.is_given.1 {
            pairs.push(("compare", self.against.key()));
        }
        pairs
    }

    /// Returns whether the query has a range.
    pub(crate) fn is_given(&self) -> bool {
        self.is_given.0
    }

    /// Returns the selection, with this span if the query has none.
    pub(crate) fn or(self, span: Span) -> Range {
        if self.is_given.0 { self } else { Range { span, ..self } }
    }

    /// Returns the same selection with another span.
    pub(crate) fn with_span(self, span: Span) -> Range {
        Range { span, is_given: (true, self.is_given.1), ..self }
    }

    /// Returns the same selection with another comparison.
    pub(crate) fn with_against(self, against: Against) -> Range {
        Range { against, is_given: (self.is_given.0, true), ..self }
    }

    /// Returns the times of the selection.
    pub(crate) fn resolve(&self, known: &Known) -> Resolved {
        let end = known.now + 1;
        let period = match self.span {
            Span::Last(index) => {
                let length = LAST[index.min(LAST.len() - 1)].2;
                whole(Period { from: known.now.saturating_sub(length), to: end })
            }
            Span::Release => of_release(known.release(), known),
            Span::PreviousRelease => of_release(known.previous_release(), known),
            Span::Named(label) => of_release(known.named(&label), known),
            Span::Start => Period { from: known.start.min(known.now), to: end },
            Span::Custom(from, to) => {
                whole(Period { from, to: to.unwrap_or(end).clamp(from + 1, end.max(from + 1)) })
            }
        };
        Resolved { period, against: self.against_of(period, known) }
    }

    fn against_of(&self, period: Period, known: &Known) -> Result<Option<Period>, String> {
        let length = match self.span {
            Span::Last(index) => LAST[index.min(LAST.len() - 1)].2,
            _ => period.seconds(),
        };
        let before = |to: u64, length: u64| Period { from: to.saturating_sub(length), to };
        match self.against {
            Against::None => Ok(None),
            // Of a release, the previous period is that before it: at once long enough.
            Against::Previous | Against::Release if self.span.is_release() => {
                Ok(Some(before(period.from, length.max(BEFORE_RELEASE_MIN_S))))
            }
            Against::Previous => Ok(Some(before(period.from, length))),
            Against::Day => {
                let shifted = |at: u64| at.saturating_sub(DAY_S);
                if length > DAY_S {
                    return Err("the range is longer than a day: the periods overlap".to_owned());
                }
                Ok(Some(Period { from: shifted(period.from), to: shifted(period.to) }))
            }
            Against::Release => {
                let Some(KnownRelease { from: at, .. }) = known.release() else {
                    return Err("no start or reload is known".to_owned());
                };
                if period.from < *at {
                    return Err(
                        "the range begins before this release: select the range Release".to_owned()
                    );
                }
                Ok(Some(before(*at, length.max(BEFORE_RELEASE_MIN_S))))
            }
            Against::Named(label) => {
                let other = of_release(known.named(&label), known);
                if other.from < period.to && period.from < other.to {
                    return Err(format!("release {} served in the range itself", label.text()));
                }
                Ok(Some(other))
            }
        }
    }
}

impl Span {
    fn of_key(key: &str) -> Result<Span, InvalidRange> {
        if let Some(index) = LAST.iter().position(|(known, ..)| *known == key) {
            return Ok(Span::Last(index));
        }
        if let Some(label) = key.strip_prefix(NAMED).and_then(Label::new) {
            return Ok(Span::Named(label));
        }
        match key {
            RELEASE => Ok(Span::Release),
            PREVIOUS_RELEASE => Ok(Span::PreviousRelease),
            START => Ok(Span::Start),
            _ => {
                let keys: Vec<_> = LAST.iter().map(|(key, ..)| *key).collect();
                let keys = format!(
                    "{}, {RELEASE}, {PREVIOUS_RELEASE}, {NAMED}LABEL, {START}; or from and to",
                    keys.join(", ")
                );
                Err(unknown("range", key, &keys))
            }
        }
    }

    /// Returns whether the span is that of a release.
    pub(crate) fn is_release(self) -> bool {
        matches!(self, Span::Release | Span::PreviousRelease | Span::Named(_))
    }

    /// Returns the parameters of the span.
    pub(crate) fn pairs(self) -> Vec<(&'static str, String)> {
        match self {
            Span::Last(index) => vec![("range", LAST[index.min(LAST.len() - 1)].0.to_owned())],
            Span::Release => vec![("range", RELEASE.to_owned())],
            Span::PreviousRelease => vec![("range", PREVIOUS_RELEASE.to_owned())],
            Span::Named(label) => vec![("range", format!("{NAMED}{}", label.text()))],
            Span::Start => vec![("range", START.to_owned())],
            Span::Custom(from, to) => {
                let mut pairs = vec![("from", input(from))];
                pairs.extend(to.map(|to| ("to", input(to))));
                pairs
            }
        }
    }

    /// Returns all spans except custom ones, with their names.
    pub(crate) fn all() -> impl Iterator<Item = (Span, &'static str)> {
        let last = LAST.iter().enumerate().map(|(index, (_, name, _))| (Span::Last(index), *name));
        last.chain([
            (Span::PreviousRelease, "Release before"),
            (Span::Release, "Release"),
            (Span::Start, "Start"),
        ])
    }
}

/// Formats a time as the value of `<input type="datetime-local">`.
pub(crate) fn input(at: u64) -> String {
    format!("{}T{}", format::date(at), format::clock(at))
}

/// Returns the time for which a release served; without one, the time since the server's start.
fn of_release(release: Option<&KnownRelease>, known: &Known) -> Period {
    let end = known.now + 1;
    let from = release.map_or(known.start, |one| one.from).min(known.now);
    let to = release.and_then(|one| one.to).unwrap_or(end);
    Period { from, to: to.clamp(from + 1, end) }
}

/// Rounds a period to whole minutes, or hours if it is long. The current minute or hour belongs to
/// it.
fn whole(period: Period) -> Period {
    let step = if period.seconds() >= WHOLE_HOURS_S { HOUR_S } else { MINUTE_S };
    Period { from: period.from - period.from % step, to: period.to }
}

fn custom(from: u64, to: Option<u64>, now: u64) -> Result<Span, InvalidRange> {
    let hint = "times are UTC, such as from=2026-11-28T10:00&to=2026-11-28T11:00";
    if from > now {
        return invalid(format!("`from` is in the future: {} UTC", format::moment(from)), hint);
    }
    let end = to.unwrap_or(now + 1);
    if end <= from {
        let (from, to) = (format::moment(from), format::moment(end));
        return invalid(format!("the range ends at {to}, not after its begin at {from}"), hint);
    }
    // The end of today is a common end.
    if end.min(now) - from > LENGTH_MAX_S {
        return invalid(format!("the range is longer than {} days", LENGTH_MAX_S / DAY_S), hint);
    }
    Ok(Span::Custom(from, to.map(|to| to.min(now + 1))))
}

/// Parses a time in seconds since 1970, or as `2026-11-28`, `2026-11-28T10:00`,
/// `2026-11-28 10:00:30Z`.
fn time(name: &str, text: &str) -> Result<u64, InvalidRange> {
    let text = text.trim();
    parse(text).map_or_else(
        || {
            let what = format!("`{name}` is not a time: `{}`", shortened(text));
            invalid(what, "write a UTC time such as 2026-11-28T10:00, or seconds since 1970")
        },
        Ok,
    )
}

fn parse(text: &str) -> Option<u64> {
    const SECONDS_MAX: u64 = 253_402_300_799; // the end of the year 9999
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().filter(|seconds| *seconds <= SECONDS_MAX);
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |of: &str, separator: char, lengths: &[usize]| -> Option<Vec<u64>> {
        let parts: Vec<_> = of.split(separator).collect();
        let is_number = |(part, length): (&&str, &usize)| {
            part.len() == *length && part.bytes().all(|b| b.is_ascii_digit())
        };
        let is_valid = parts.len() <= lengths.len() && parts.iter().zip(lengths).all(is_number);
        is_valid.then(|| parts.iter().filter_map(|part| part.parse().ok()).collect())
    };
    let date = numbers(date, '-', &[4, 2, 2])?;
    let &[year, month, day] = &date[..] else { return None };
    let clock = numbers(clock, ':', &[2, 2, 2])?;
    let (hour, minute, second) = match clock[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_time || !is_date {
        return None;
    }
    let days = days_since_1970(year, month, day);
    let at = days * DAY_S + hour * HOUR_S + minute * MINUTE_S + second;
    // The 31st of February is none.
    (format::date(at) == format!("{year:04}-{month:02}-{day:02}")).then_some(at)
}

/// Howard Hinnant's `days_from_civil`.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn shortened(text: &str) -> String {
    match text.floor_char_boundary(VALUE_SHOWN_MAX) {
        end if end == text.len() => text.to_owned(),
        end => format!("{}…", &text[..end]),
    }
}

fn unknown(name: &str, value: &str, known: &str) -> InvalidRange {
    let what = format!("unknown value of `{name}`: `{}`", shortened(value));
    InvalidRange { what, hint: format!("use one of {known}") }
}

fn invalid<T>(what: String, hint: &str) -> Result<T, InvalidRange> {
    Err(InvalidRange { what, hint: hint.to_owned() })
}

#[cfg(test)]
mod tests;
