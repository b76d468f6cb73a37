//! Settings that apply only to the requests of some paths. Pure.

use super::private::glob;
use samovar_config::Settings;
use std::time::Duration;

/// Settings for the requests of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Maximum run time in a worker; zero: unlimited. `None`: the general limit.
    pub(crate) time: Option<Duration>,
    /// Other requests are rejected before this one.
    pub(crate) is_priority: bool,
    /// The request counts for `profile.trace`.
    pub(crate) may_trace: bool,
}

/// Path patterns and their settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TermsOfPaths {
    /// Sorted by length of the pattern, longest first.
    times: Vec<(Vec<u8>, Duration)>,
    priority: Vec<Vec<u8>>,
    /// Empty: all paths.
    traced: Vec<Vec<u8>>,
}

impl TermsOfPaths {
    pub(crate) fn new(settings: &Settings) -> TermsOfPaths {
        let pairs = settings.timeouts.path.iter();
        let mut times: Vec<_> =
            pairs.map(|(pattern, time)| (pattern.clone().into_bytes(), *time)).collect();
        times.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
        let priority = settings.limits.priority_paths.iter();
        let priority = priority.map(|pattern| pattern.clone().into_bytes()).collect();
        let traced = settings.profile.trace_paths.iter();
        let traced = traced.map(|pattern| pattern.clone().into_bytes()).collect();
        TermsOfPaths { times, priority, traced }
    }

    /// Returns the settings for `path`, which must be decoded and normalized.
    pub(crate) fn of(&self, path: &[u8]) -> Terms {
        let time = self.times.iter().find(|(pattern, _)| glob(pattern, path));
        let is_priority = self.priority.iter().any(|pattern| glob(pattern, path));
        let may_trace =
            self.traced.is_empty() || self.traced.iter().any(|pattern| glob(pattern, path));
        Terms { time: time.map(|(_, time)| *time), is_priority, may_trace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_matching_pattern_sets_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = Settings::defaults(folder.path()).expect("defaults");
        for (pattern, seconds) in
            [("/*", 5), ("/export/*", 600), ("/export/small*", 20), ("/events", 0), ("/?", 7)]
        {
            settings.timeouts.path.insert(pattern.to_owned(), Duration::from_secs(seconds));
        }
        settings.limits.priority_paths.push("/export*".to_owned());
        settings.profile.trace_paths.push("/ex*".to_owned());
        let terms = TermsOfPaths::new(&settings);
        for (path, seconds) in [
            ("/", 5),
            ("/a", 5),
            ("/export", 5),
            ("/export/", 600),
            ("/export/a/b.csv", 600),
            ("/export/small.csv", 20),
            ("/events", 0),
            ("/events/", 5),
            ("/EXPORT/a", 5),
        ] {
            let is_priority = path.starts_with("/export");
            let may_trace = path.starts_with("/ex");
            let expected =
                Terms { time: Some(Duration::from_secs(seconds)), is_priority, may_trace };
            assert_eq!(terms.of(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(TermsOfPaths::default().of(b"/"), Terms { may_trace: true, ..Terms::default() });
    }
}
