//! The next time of an expression in a zone, across changes of the clock.
//!
//! Times of a day (`30 2 * * *`) run once a day: a time that the clock skips is moved to the moment
//! after the gap, and of a time that the clock repeats the first one counts. Intervals
//! (`*/5 * * * *`) run as time passes: none is added in a gap, and a repeated hour has its own.
//! This is the rule of cronie.

use crate::expression::Cron;
use crate::zone::{Zone, timestamp};
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp};

/// Maximum number of changes of the clock that a search crosses, and of local times that it
/// resolves.
const STEPS_MAX: usize = 1_000;

impl Cron {
    /// Returns its first time after this one; both are Unix times in milliseconds. `None`: it has
    /// none within 40 years.
    pub fn next(&self, after_ms: u64, zone: &Zone) -> Option<u64> {
        let after = timestamp(after_ms)?;
        let next = if self.is_interval() {
            self.next_of_interval(after, zone)
        } else {
            self.next_of_day(after, zone)
        };
        u64::try_from(next?.as_millisecond()).ok()
    }

    /// Between two changes of the clock, the distance from UTC is constant.
    fn next_of_interval(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let rules = &zone.rules;
        let mut from = after;
        for _ in 0..STEPS_MAX {
            let offset = rules.to_offset(from);
            let change = rules.following(from).next().map(|change| change.timestamp());
            let local = offset.to_datetime(from);
            // The time of the change itself counts.
            let back = SignedDuration::from_mins(i64::from(from != after));
            let next = self.next_local(local.checked_sub(back).ok()?)?;
            let next = offset.to_timestamp(next).ok()?;
            match change {
                Some(change) if next >= change => from = change,
                _ if next > after => return Some(next),
                _ => return None,
            }
        }
        None
    }

    fn next_of_day(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let rules = &zone.rules;
        let mut local = rules.to_datetime(after);
        for _ in 0..STEPS_MAX {
            local = self.next_local(local)?;
            let at = rules.to_ambiguous_timestamp(local);
            let next = match at.offset() {
                AmbiguousOffset::Gap { after, .. } => {
                    let before = after.to_timestamp(local).ok()?;
                    rules.following(before).next()?.timestamp()
                }
                _ => at.earlier().ok()?,
            };
            if next > after {
                return Some(next);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
