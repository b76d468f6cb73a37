//! The section Profile: sampling and tracing of busy workers, and the storage of profiles.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::exports::{header, is_collector};
use super::row::{self, count, path};
use crate::schema::notation;

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Profile, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "profile.hertz",
        flag: "profile-hertz",
        value: "N",
        kind: count(0, 1_000, |settings| &mut settings.profile.hertz),
        default: Preset::Text("49"),
        doc: "Profiler samples per second of each busy worker; 0: none",
        long: "The PHP stack is read from outside: no code runs in the worker. `samovar profile` \
               and the dashboard show the samples.",
        on_reload: OnReload::Kept(|old, new| old.profile.hertz != new.profile.hertz),
        ..PLAIN
    },
    Setting {
        key: "profile.days_max",
        flag: "profile-days-max",
        value: "N",
        kind: count(1, 3_650, |settings| &mut settings.profile.days_max),
        default: Preset::Text("2"),
        doc: "Days for which profiles are kept, minute by minute",
        long: "Profiles are kept in memory. If `insight.store` is set, they are kept in a file \
               with its path and the suffix `.profiles`, which survives restarts. With two days, a \
               comparison with the same time yesterday is possible.",
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
        doc: "Maximum size of stored profiles; the oldest hours are deleted",
        long: "One minute of one route takes 1 to 50 KB.",
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
        doc: "Share of requests whose call graph is recorded: callers, callees, counts, times",
        long: "Separate workers do this: they have their own template, with PHP's observer \
               enabled. Other workers have no overhead. A request that finds them busy is not \
               traced. `samovar calls` and the dashboard show the graphs.",
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
            push: |settings, text, _| {
                let is_pattern = notation::path_pattern(text);
                is_pattern.then(|| settings.profile.trace_paths.push(text.to_owned()))
            },
        },
        default: Preset::Derived("all paths"),
        doc: "Paths that `profile.trace` applies to (repeatable)",
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
                is_long.then(|| settings.profile.trace_key = Some(text.into()))
            },
        },
        default: Preset::Derived("none: requests cannot ask for it"),
        doc: "Key for signatures with which a request can ask for its call graph",
        long: "The signature is in the header `X-Samovar-Trace` or the cookie `samovar_trace`. \
               `samovar calls --sign` creates one.",
        on_reload: OnReload::Kept(|old, new| old.profile.trace_key != new.profile.trace_key),
        is_secret: true,
        ..PLAIN
    },
    Setting {
        key: "profile.trace_workers",
        flag: "profile-trace-workers",
        value: "N",
        kind: count(1, 64, |settings| &mut settings.profile.trace_workers),
        default: Preset::Text("1"),
        doc: "Number of workers that record call graphs",
        long: "They exist if `profile.trace` or `profile.trace_key` is set.",
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
        default: Preset::Derived("none: no profiles are sent"),
        doc: "Pyroscope server that receives the profiles each minute, with its push API",
        long: "Other servers with that API work too: Alloy, Grafana Cloud. If the server is \
               unreachable or hangs, profiles are lost, and requests are not affected.",
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
            put: |settings, text, _| {
                let (name, value) = header(text)?;
                settings.profile.push.headers.insert(name, value.into());
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Header of each request to Pyroscope (repeatable)",
        long: "In the file: the table [profile.push_headers]. The tenant is `x-scope-orgid`. Set \
               secrets in the environment: the command line is visible to all users of the \
               machine.",
        on_reload: OnReload::Kept(|old, new| old.profile.push.headers != new.profile.push.headers),
        is_secret: true,
        ..PLAIN
    },
    Setting {
        key: "profile.push_labels",
        flag: "profile-push-labels",
        value: "NAME=VALUE",
        kind: Kind::Pairs {
            allowed: "`name=value` of a label, such as `env=prod`; service_name, route, model and \
                      generation are reserved",
            put: |settings, text, _| {
                let (name, value) = label(text)?;
                settings.profile.push.labels.insert(name, value);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Label of each profile that is sent (repeatable)",
        long: "In the file: the table [profile.push_labels]. All profiles have `service_name` \
               (`insight.service`), `hostname`, `route`, `model` and `generation`.",
        on_reload: OnReload::Kept(|old, new| old.profile.push.labels != new.profile.push.labels),
        ..PLAIN
    },
    Setting {
        key: "profile.push_timeout",
        flag: "profile-push-timeout",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.profile.push.timeout },
        default: Preset::Text("10s"),
        doc: "Timeout of each step of a request to Pyroscope",
        long: "Steps are connecting, sending, and waiting for the response.",
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
        doc: "Maximum size of profiles that wait for Pyroscope; the oldest are dropped",
        long: "One minute of one route takes 1 to 50 KB.",
        on_reload: OnReload::Kept(|old, new| {
            old.profile.push.bytes_max != new.profile.push.bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "profile.push_ca_file",
        flag: "profile-push-ca-file",
        former_flag: Some("profile-push-roots"),
        former_key: Some("profile.push_roots"),
        value: "FILE",
        kind: path(|settings, path| settings.profile.push.ca_file = Some(path), "a file in PEM"),
        default: Preset::Derived("the certificates that this machine trusts"),
        doc: "CA certificates to trust for an https:// Pyroscope server",
        on_reload: OnReload::Kept(|old, new| old.profile.push.ca_file != new.profile.push.ca_file),
        ..PLAIN
    },
];

/// Reads a label whose name is valid and not one of the server's own, which identify the source of
/// a profile.
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

/// Reads a share, as millionths: `1/1000`, `0.1%`, `0`.
fn part(text: &str) -> Option<u32> {
    if text == "0" {
        return Some(0);
    }
    if let Some((of, all)) = text.split_once('/') {
        let (of, all): (u64, u64) = (of.trim().parse().ok()?, all.trim().parse().ok()?);
        let ppm = (0 < of && of <= all).then(|| u128::from(of) * 1_000_000 / u128::from(all))?;
        // A share below one millionth would be rounded to 0 and trace nothing, so it is rejected.
        return u32::try_from(ppm).ok().filter(|ppm| *ppm > 0);
    }
    super::exports::share(text)
}

#[cfg(test)]
mod tests {
    use super::{label, part};

    #[test]
    fn reserved_label_is_refused() {
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
    fn share_is_read_in_millionths() {
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
            // Below one millionth: rejected, as it would be rounded to 0.
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
