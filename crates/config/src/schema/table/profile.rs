//! The section Profile: how workers are looked at while they run requests, and what is kept of that.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::row::{self, count};
use crate::schema::notation;

/// What its settings have in common: they count at the start.
const PLAIN: Setting = Setting { group: Group::Profile, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "profile.hertz",
        flag: "profile-hertz",
        value: "N",
        kind: count(0, 1_000, |settings| &mut settings.profile.hertz),
        default: Preset::Text("49"),
        doc: "Looks per second at the PHP stack of each busy worker; 0: none",
        long: "From outside: no code runs in the worker for it. `samovar profile` and the dashboard show \
               what was seen.",
        on_reload: OnReload::Kept(|old, new| old.profile.hertz != new.profile.hertz),
        ..PLAIN
    },
    Setting {
        key: "profile.days_max",
        flag: "profile-days-max",
        value: "N",
        kind: count(1, 3_650, |settings| &mut settings.profile.days_max),
        default: Preset::Text("2"),
        doc: "Days that what was seen is kept, minute by minute",
        long: "In memory; where `insight.store` is set, in a file beside it, whose name ends with \
               `.profiles` and which outlives the server. Two: yesterday at this time is there.",
        on_reload: OnReload::Kept(|old, new| old.profile.days_max != new.profile.days_max),
        ..PLAIN
    },
    Setting {
        key: "profile.bytes_max",
        flag: "profile-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 40,
            field: |settings| &mut settings.profile.bytes_max,
        },
        default: Preset::Text("32M"),
        doc: "Most bytes of what is kept; the oldest hours are forgotten",
        long: "A minute of one route takes 1 to 50 KB.",
        on_reload: OnReload::Kept(|old, new| old.profile.bytes_max != new.profile.bytes_max),
        ..PLAIN
    },
    Setting {
        key: "profile.trace",
        flag: "profile-trace",
        value: "SHARE",
        kind: Kind::Text {
            allowed: "a share such as `1/1000` or `0.1%`, or `0`",
            set: |settings, text, _| part(text).map(|ppm| settings.profile.trace_ppm = ppm),
        },
        default: Preset::Text("0"),
        doc: "How many requests have their call graph taken down: who calls what, how often, for how long",
        long: "By workers of their own, which run beside the others from a second template with PHP's observer \
               on; the others pay nothing. A request that finds them busy is not traced. `samovar calls` and the \
               dashboard show the graphs.",
        on_reload: OnReload::Kept(|old, new| old.profile.trace_ppm != new.profile.trace_ppm),
        ..PLAIN
    },
    Setting {
        key: "profile.trace_paths",
        flag: "profile-trace-paths",
        value: "PATTERN",
        kind: Kind::List {
            allowed: "patterns of paths, such as `/basket/*`",
            clear: |settings| settings.profile.trace_paths.clear(),
            push: |settings, text| {
                let is_pattern = notation::path_pattern(text);
                is_pattern.then(|| settings.profile.trace_paths.push(text.to_owned()))
            },
        },
        default: Preset::Derived("all paths"),
        doc: "Paths whose requests `profile.trace` counts; can be given several times",
        long: "",
        on_reload: OnReload::Kept(|old, new| old.profile.trace_paths != new.profile.trace_paths),
        ..PLAIN
    },
    Setting {
        key: "profile.trace_key",
        flag: "profile-trace-key",
        value: "TEXT",
        kind: Kind::Text {
            allowed: "a text of at least 16 characters",
            set: |settings, text, _| {
                let is_long = text.chars().count() >= 16;
                is_long.then(|| settings.profile.trace_key = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none: no request can ask for it"),
        doc: "Key of the signature by which a request asks for its call graph",
        long: "In the header `X-Samovar-Trace` or the cookie `samovar_trace`; `samovar calls --sign` makes one.",
        on_reload: OnReload::Kept(|old, new| old.profile.trace_key != new.profile.trace_key),
        ..PLAIN
    },
    Setting {
        key: "profile.trace_workers",
        flag: "profile-trace-workers",
        value: "N",
        kind: count(1, 64, |settings| &mut settings.profile.trace_workers),
        default: Preset::Text("1"),
        doc: "Workers that take down call graphs, where `profile.trace` or `profile.trace_key` is set",
        long: "",
        on_reload: OnReload::Kept(|old, new| {
            old.profile.trace_workers != new.profile.trace_workers
        }),
        ..PLAIN
    },
];

/// Parts of a million: `1/1000`, `0.1%`, `0`.
fn part(text: &str) -> Option<u32> {
    if text == "0" {
        return Some(0);
    }
    if let Some((of, all)) = text.split_once('/') {
        let (of, all): (u64, u64) = (of.trim().parse().ok()?, all.trim().parse().ok()?);
        let ppm = (0 < of && of <= all).then(|| u128::from(of) * 1_000_000 / u128::from(all))?;
        // Less than one of a million is none, which somebody would look for in vain.
        return u32::try_from(ppm).ok().filter(|ppm| *ppm > 0);
    }
    super::exports::share(text)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_are_parts_of_a_million() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1/1", Some(1_000_000)),
            ("1/1000", Some(1_000)),
            ("1 / 1000", Some(1_000)),
            ("2/3", Some(666_666)),
            ("1/1000000", Some(1)),
            ("18446744073709551615/18446744073709551615", Some(1_000_000)),
            ("0.1%", Some(1_000)),
            ("100%", Some(1_000_000)),
            // Less than one of a million is none, and nobody asks for none in such words.
            ("1/1000001", None),
            ("0/5", None),
            ("3/2", None),
            ("1/0", None),
            ("-1/2", None),
            ("1/2/3", None),
            ("1/", None),
            ("/2", None),
            ("18446744073709551616/18446744073709551616", None),
            ("1", None),
            ("0.5", None),
            ("101%", None),
            ("half", None),
            ("", None),
        ] {
            assert_eq!(part(text), expected, "{text}");
        }
    }
}
