//! Other machines that report their requests: names, figures, and the time of the last request.

use crate::bounded_map::Capped;
use crate::finished::Numbers;

/// Maximum number of separate senders.
const SOURCES_MAX: usize = 100;
/// Separator between host and site; names do not contain it.
const SEPARATOR: char = '\u{1f}';

/// Figures of one sender. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceFigures {
    /// Number of requests.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Wall time of the requests.
    pub wall_ns: u64,
    /// CPU time of the requests.
    pub cpu_ns: u64,
    /// Time of the latest request, in seconds since 1970.
    pub last_seen: u64,
}

/// All senders.
#[derive(Clone, Debug)]
pub(crate) struct Sources(Capped<SourceFigures>);

impl Default for Sources {
    fn default() -> Sources {
        Sources(Capped::new(SOURCES_MAX))
    }
}

impl Sources {
    pub(crate) fn add(&mut self, (host, site): (&str, &str), numbers: &Numbers, now: u64) {
        let of = self.0.entry(&format!("{host}{SEPARATOR}{site}"));
        of.requests += 1;
        of.errors += u64::from(numbers.status >= 500);
        of.wall_ns = of.wall_ns.saturating_add(numbers.wall_ns);
        of.cpu_ns = of.cpu_ns.saturating_add(numbers.cpu_ns);
        of.last_seen = of.last_seen.max(now);
    }

    /// Returns the senders as (host, site, figures); those beyond the limit are one entry without a
    /// site.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str, &SourceFigures)> {
        self.0.iter().map(|(key, of)| {
            let (host, server) = key.split_once(SEPARATOR).unwrap_or((key, ""));
            (host, server, of)
        })
    }
}
