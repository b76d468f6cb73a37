//! Machines that tell of their requests: which, how much, and when last.

use crate::capped::Capped;
use crate::finished::Numbers;
use crate::pinba::Sender;

/// Senders that are told apart.
const SOURCES_MAX: usize = 100;
/// Between host and site: no name has it.
const SEPARATOR: char = '\u{1f}';

/// What one of them has told. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceFigures {
    /// Requests.
    pub requests: u64,
    /// Those with a status of 500 or above.
    pub errors: u64,
    /// Their wall time.
    pub wall_ns: u64,
    /// Their CPU time.
    pub cpu_ns: u64,
    /// The latest, seconds since 1970.
    pub last_seen: u64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Sources(Capped<SourceFigures>);

impl Default for Sources {
    fn default() -> Sources {
        Sources(Capped::new(SOURCES_MAX))
    }
}

impl Sources {
    pub(crate) fn add(&mut self, sender: &Sender, numbers: &Numbers, now: u64) {
        let of = self.0.entry(&format!("{}{SEPARATOR}{}", sender.host, sender.server));
        of.requests += 1;
        of.errors += u64::from(numbers.status >= 500);
        of.wall_ns = of.wall_ns.saturating_add(numbers.wall_ns);
        of.cpu_ns = of.cpu_ns.saturating_add(numbers.cpu_ns);
        of.last_seen = of.last_seen.max(now);
    }

    /// (host, site, figures); those beyond the cap are one, without a site.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str, &SourceFigures)> {
        self.0.iter().map(|(key, of)| {
            let (host, server) = key.split_once(SEPARATOR).unwrap_or((key, ""));
            (host, server, of)
        })
    }
}
