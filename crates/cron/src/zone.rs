//! A time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time zone, with its rules for the change of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub(crate) rules: TimeZone,
    name: String,
}

impl Zone {
    /// Returns the zone with this name of the IANA database, such as `Europe/Berlin`.
    pub fn named(name: &str) -> Option<Zone> {
        let rules = TimeZone::get(name).ok()?;
        Some(Zone { name: rules.iana_name().unwrap_or(name).to_owned(), rules })
    }

    /// Returns the zone of the machine: `TZ`, else `/etc/localtime`, else UTC.
    pub fn of_machine() -> Zone {
        let rules = TimeZone::try_system().unwrap_or(TimeZone::UTC);
        let name = rules.iana_name().unwrap_or("that of the machine").to_owned();
        Zone { rules, name }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the minute of the local day of a Unix time in milliseconds.
    pub fn minute_of_day(&self, unix_ms: u64) -> Option<u16> {
        let local = timestamp(unix_ms)?.to_zoned(self.rules.clone());
        Some(u16::try_from(local.hour()).ok()? * 60 + u16::try_from(local.minute()).ok()?)
    }

    /// Returns the local time of a Unix time in milliseconds, with its distance from UTC:
    /// `2026-03-29 03:00:00+02:00`.
    pub fn local(&self, unix_ms: u64) -> String {
        let Some(at) = timestamp(unix_ms) else { return String::new() };
        at.to_zoned(self.rules.clone()).strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
    }
}

pub(crate) fn timestamp(unix_ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(unix_ms).ok()?).ok()
}
