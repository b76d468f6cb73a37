//! PHP versions, and the range of an upgrade.

use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// A version without its patch level: major × 100 + minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u16);

/// Versions that the rules describe, oldest first.
pub const KNOWN: [Version; 16] = [
    Version(503),
    Version(504),
    Version(505),
    Version(506),
    Version(700),
    Version(701),
    Version(702),
    Version(703),
    Version(704),
    Version(800),
    Version(801),
    Version(802),
    Version(803),
    Version(804),
    Version(805),
    Version(806),
];

/// Newest version with a complete set of rules.
const NEWEST: Version = Version(805);
/// Oldest version that an upgrade can start from.
const OLDEST: Version = KNOWN[0];

/// An upgrade: the changes after `from`, up to and including `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Version that the code runs on now.
    pub from: Version,
    /// Version that it shall run on.
    pub to: Version,
}

impl Range {
    /// Whether a change of this version is part of the upgrade.
    pub fn contains(self, version: Version) -> bool {
        self.from < version && version <= self.to
    }
}

impl Version {
    /// Returns the version of these numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self(major * 100 + minor)
    }

    /// Newest version with a complete set of rules.
    pub const fn newest() -> Self {
        NEWEST
    }

    /// Oldest version that an upgrade can start from.
    pub const fn oldest() -> Self {
        OLDEST
    }

    /// Number of its first release as in `PHP_VERSION_ID`.
    pub(crate) fn id(self) -> u32 {
        u32::from(self.0 / 100) * 10_000 + u32::from(self.0 % 100) * 100
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 100, self.0 % 100)
    }
}

impl FromStr for Version {
    type Err = String;

    /// Accepts `8.4` and `8.4.1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('.');
        let mut number = || parts.next().and_then(|part| part.parse::<u16>().ok());
        let version = match (number(), number()) {
            (Some(major), Some(minor)) if major < 100 && minor < 100 => Self::new(major, minor),
            _ => return Err(format!("`{text}` is not a PHP version\nhint: pass one such as 8.4")),
        };
        if KNOWN.contains(&version) && version <= NEWEST {
            return Ok(version);
        }
        Err(format!("PHP {version} is unknown\nhint: pass a version from {OLDEST} to {NEWEST}"))
    }
}

/// Returns the lowest PHP version that `require.php` of a composer.json accepts, with the
/// constraint. Versions before the oldest known one count as that one.
pub fn composer_minimum(composer_json: &[u8]) -> Option<(Version, String)> {
    let text = composer_json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(composer_json);
    let file: Value = serde_json::from_slice(text).ok()?;
    let constraint = file.get("require")?.get("php")?.as_str()?;
    let lowest = constraint.split("||").flat_map(|part| part.split('|')).filter_map(lower_bound);
    let lowest = lowest.min()?.clamp(OLDEST, NEWEST);
    Some((lowest, constraint.to_owned()))
}

/// Lowest version of one alternative: `^7.4`, `>=8.1 <8.5`, `~8.2.0`, `8.*`, `7.4 - 8.2`.
fn lower_bound(alternative: &str) -> Option<Version> {
    let mut words = alternative.split([' ', ',']).filter(|word| !word.is_empty());
    words.find_map(|word| {
        if word.starts_with('<') || word.starts_with("!=") {
            return None;
        }
        let digits = word.trim_start_matches(['^', '~', '>', '=', 'v']);
        let mut parts = digits.split('.');
        let major = parts.next()?.parse::<u16>().ok().filter(|major| *major < 100)?;
        let minor = parts.next().and_then(|part| part.parse::<u16>().ok()).unwrap_or(0);
        Some(Version::new(major, minor.min(99)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_text_accepts_patch_levels_and_rejects_unknown() {
        assert_eq!("8.4".parse(), Ok(Version::new(8, 4)));
        assert_eq!("7.4.33".parse(), Ok(Version::new(7, 4)));
        for text in ["", "8", "9.9", "x.y", "8.6", "5.2"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn lowest_version_of_constraint_is_taken() {
        let cases = [
            ("^7.4 || ^8.0", (7, 4)),
            (">=8.1", (8, 1)),
            ("~8.2.0", (8, 2)),
            ("8.*", (8, 0)),
            ("7.4 - 8.2", (7, 4)),
            (">=5.2", (5, 3)),
            ("^8.1|^7.2", (7, 2)),
            (">=7.1,<8.3", (7, 1)),
        ];
        for (constraint, (major, minor)) in cases {
            let json = format!(r#"{{"require": {{"php": "{constraint}"}}}}"#);
            let found = composer_minimum(json.as_bytes()).map(|(version, _)| version);
            assert_eq!(found, Some(Version::new(major, minor)), "{constraint}");
        }
        assert_eq!(composer_minimum(br#"{"require": {"php": "*"}}"#), None);
        assert_eq!(composer_minimum(b"{}"), None);
    }
}
