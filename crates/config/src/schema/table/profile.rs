//! The section Profile: how workers are looked at while they run requests, and what is kept of that.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::exports::{header, is_collector};
use super::row::{self, count, path};
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
    Setting {
        key: "profile.push",
        flag: "profile-push",
        value: "URL",
        kind: Kind::Text {
            allowed: "an address such as `http://127.0.0.1:4040`, without /push.v1.PusherService",
            set: |settings, text, _| {
                is_collector(text).then(|| settings.profile.push.endpoint = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none: nobody is sent profiles"),
        doc: "Pyroscope that is sent what was seen of workers, each minute: its push API",
        long: "Or what speaks that API in front of it: Alloy, Grafana Cloud. One that is away or hangs costs \
               profiles, never a request.",
        on_reload: OnReload::Kept(|old, new| {
            old.profile.push.endpoint != new.profile.push.endpoint
        }),
        ..PLAIN
    },
    Setting {
        key: "profile.push_headers",
        flag: "profile-push-headers",
        value: "NAME=VALUE",
        kind: Kind::Pairs {
            allowed: "`name=value` of a header, such as `authorization=Bearer abc`",
            put: |settings, text| {
                let (name, value) = header(text)?;
                settings.profile.push.headers.insert(name, value);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Header of each request to Pyroscope; can be given several times",
        long: "In the file: the table [profile.push_headers]. A tenant is `x-scope-orgid`. Secrets are best set in \
               the environment: the command line is seen by all users of the machine.",
        on_reload: OnReload::Kept(|old, new| old.profile.push.headers != new.profile.push.headers),
        ..PLAIN
    },
    Setting {
        key: "profile.push_labels",
        flag: "profile-push-labels",
        value: "NAME=VALUE",
        kind: Kind::Pairs {
            allowed: "`name=value` of a label, such as `env=prod`; service_name, route, model and \
                      generation are the server's",
            put: |settings, text| {
                let (name, value) = label(text)?;
                settings.profile.push.labels.insert(name, value);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Label of each profile that is sent; can be given several times",
        long: "In the file: the table [profile.push_labels]. All have `service_name` (`insight.service`), \
               `hostname`, `route`, `model` and `generation`.",
        on_reload: OnReload::Kept(|old, new| old.profile.push.labels != new.profile.push.labels),
        ..PLAIN
    },
    Setting {
        key: "profile.push_timeout",
        flag: "profile-push-timeout",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.profile.push.timeout },
        default: Preset::Text("10s"),
        doc: "How long each step of a request to Pyroscope may take",
        long: "Connecting, sending, waiting for the answer.",
        on_reload: OnReload::Kept(|old, new| old.profile.push.timeout != new.profile.push.timeout),
        ..PLAIN
    },
    Setting {
        key: "profile.push_bytes_max",
        flag: "profile-push-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 64 << 10,
            max: 1 << 30,
            field: |settings| &mut settings.profile.push.bytes_max,
        },
        default: Preset::Text("16M"),
        doc: "Most bytes of profiles that wait for Pyroscope; the oldest make room",
        long: "A route's minute takes 1 to 50 KB.",
        on_reload: OnReload::Kept(|old, new| {
            old.profile.push.bytes_max != new.profile.push.bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "profile.push_roots",
        flag: "profile-push-roots",
        value: "FILE",
        kind: path(|settings, path| settings.profile.push.roots = Some(path), "a file in PEM"),
        default: Preset::Derived("those that the machine trusts"),
        doc: "Certificates to trust when Pyroscope's address is https://",
        on_reload: OnReload::Kept(|old, new| old.profile.push.roots != new.profile.push.roots),
        ..PLAIN
    },
];

/// What a label may be called, and not as those that say whose a profile is.
fn label(text: &str) -> Option<(String, String)> {
    const NAME_BYTES_MAX: usize = 1_024;
    const VALUE_BYTES_MAX: usize = 2_048;
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let is_ours = matches!(name, "service_name" | "route" | "model" | "generation");
    let is_fine = name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(is_word)
        && !name.starts_with("__")
        && !is_ours
        && !value.is_empty()
        && value.len() <= VALUE_BYTES_MAX;
    is_fine.then(|| (name.to_owned(), value.to_owned()))
}

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
    use super::{label, part};

    #[test]
    fn labels_that_would_say_whose_a_profile_is_are_refused() {
        for (text, is_one) in [
            ("env=prod", true),
            ("hostname=a b=c", true),
            ("_a1=x", true),
            ("1a=x", false),
            ("a-b=x", false),
            ("__name__=x", false),
            ("route=x", false),
            ("service_name=x", false),
            ("env=", false),
            ("env", false),
        ] {
            assert_eq!(label(text).is_some(), is_one, "{text}");
        }
    }

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
