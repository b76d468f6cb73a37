//! Kinds of responses and failures, for the reason of a missed goal.

use serde::Serialize;
use std::collections::BTreeMap;

/// Share of unusual responses from which a measurement may be one of error pages.
const UNUSUAL_SHARE_MAX: f64 = 0.5;
/// Maximum number of statuses that are shown one by one.
const STATUSES_SHOWN: usize = 8;

/// Kind of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection could be opened.
    Connect,
    /// The connection ended before a response.
    Closed,
    /// The connection ended within a response.
    CutOff,
    /// The response is not valid HTTP/1.1.
    Malformed,
    /// The head has more fields or bytes than the client reads.
    HeadLimit,
    /// No complete response in time.
    Timeout,
    /// Status 429 or from 500 on.
    Refused,
}

impl FailureKind {
    /// The kind in words, for several requests.
    pub fn words(self) -> &'static str {
        match self {
            FailureKind::Connect => "without a connection",
            FailureKind::Closed => "closed without a response",
            FailureKind::CutOff => "cut off within the response",
            FailureKind::Malformed => "with a response that is no valid HTTP/1.1",
            FailureKind::HeadLimit => "with a head above the limits of this client",
            FailureKind::Timeout => "without a response in time",
            FailureKind::Refused => "with status 429 or 5xx",
        }
    }
}

/// Responses and failures of a step, those of its warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Responses {
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed requests by kind.
    pub failures: BTreeMap<FailureKind, u64>,
    /// Responses from 300 to 499, without 429, that are not the recorded one.
    pub unusual: u64,
}

impl Responses {
    /// Adds those of another step.
    pub fn add(&mut self, other: &Responses) {
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (kind, count) in &other.failures {
            *self.failures.entry(*kind).or_default() += count;
        }
        self.unusual += other.unusual;
    }

    /// Whether there are failures only, and none of them has a byte of a response.
    pub(super) fn is_silent(&self) -> bool {
        let is_silence = |kind: &FailureKind| {
            matches!(kind, FailureKind::Connect | FailureKind::Closed | FailureKind::Timeout)
        };
        self.statuses.is_empty()
            && !self.failures.is_empty()
            && self.failures.keys().all(is_silence)
    }

    /// The most frequent kind of failure.
    pub fn most_frequent(&self) -> Option<FailureKind> {
        self.failures.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| *kind)
    }

    /// Number of responses by status, the most frequent first.
    pub(super) fn statuses_in_words(&self) -> String {
        let mut all: Vec<_> = self.statuses.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let rest: u64 = all.iter().skip(STATUSES_SHOWN).map(|(_, count)| **count).sum();
        let shown = all.iter().take(STATUSES_SHOWN);
        let mut shown: Vec<_> =
            shown.map(|(status, count)| format!("{count} with {status}")).collect();
        if rest > 0 {
            shown.push(format!("{rest} with others"));
        }
        shown.join(", ")
    }

    /// Number of failures by kind, the most frequent first.
    pub(super) fn failures_in_words(&self) -> String {
        let mut all: Vec<_> = self.failures.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let each = all.iter().map(|(kind, count)| format!("{count} {}", kind.words()));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Remark about a measurement of redirects and error pages.
    #[allow(clippy::cast_precision_loss)] // Below 2^52.
    pub(super) fn remark(&self) -> Option<String> {
        let all: u64 = self.statuses.values().sum();
        let share = self.unusual as f64 / all.max(1) as f64;
        (share > UNUSUAL_SHARE_MAX).then(|| {
            format!(
                "{:.0} % of the responses are redirects or client errors (3xx, 4xx): these pages \
                 may cost less than those of visitors",
                100.0 * share
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_kinds_come_first() {
        let mut sum = Responses::default();
        assert_eq!((sum.most_frequent(), sum.remark()), (None, None));
        for (kind, count) in [(FailureKind::Timeout, 3), (FailureKind::CutOff, 2)] {
            let failures = BTreeMap::from([(kind, count)]);
            let one = Responses { failures, ..Responses::default() };
            sum.add(&one);
            sum.add(&one);
        }
        assert_eq!(sum.most_frequent(), Some(FailureKind::Timeout));
        let words = "6 without a response in time, 4 cut off within the response";
        assert_eq!(sum.failures_in_words(), words);
        sum.statuses = (200..212).map(|status| (status, u64::from(status - 199))).collect();
        let words = sum.statuses_in_words();
        assert!(words.starts_with("12 with 211, 11 with 210"), "{words}");
        assert!(words.ends_with("10 with others"), "{words}");
    }

    #[test]
    fn mostly_unusual_responses_have_a_remark() {
        for (unusual, is_noted) in [(0, false), (50, false), (51, true), (100, true)] {
            let statuses = BTreeMap::from([(200, 100 - unusual), (404, unusual)]);
            let responses = Responses { statuses, unusual, ..Responses::default() };
            assert_eq!(responses.remark().is_some(), is_noted, "{unusual}");
        }
    }
}
