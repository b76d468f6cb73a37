//! The section Insight: measurements of requests, their storage, and access to them.

use crate::schema::log_target::LogTarget;
use crate::schema::secret::AdminToken;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::LogFormat;
use crate::schema::{domain, notation};

use super::row::{self, count, path};
use std::time::Duration;

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Insight, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "admin",
        flag: "admin",
        value: "ADDR",
        kind: Kind::List {
            allowed: "an address such as `127.0.0.1:9090` or `[::1]:9090`",
            clear: |settings| settings.admin.clear(),
            push: |settings, text, _| {
                notation::listen(text).map(|listen| settings.admin.push(listen))
            },
        },
        default: Preset::Derived("none: there is no admin listener"),
        doc: "Address of the admin listener: metrics, health, dashboard (repeatable)",
        long: "/metrics for Prometheus, /health and /ready for load balancers, /api for programs. \
               The site is not served there, and these pages are not served on `listen`. Any \
               client with the token sees paths and metrics of all requests.",
        on_reload: OnReload::Kept(|old, new| old.admin != new.admin),
        ..PLAIN
    },
    Setting {
        key: "admin_token",
        flag: "admin-token",
        value: "TOKEN",
        kind: Kind::Text {
            allowed: "`none`, or at least 16 printable ASCII characters without spaces",
            set: |settings, text, _| {
                let is_token = text.len() >= 16 && text.bytes().all(|b| b.is_ascii_graphic());
                settings.admin_token = match text {
                    "none" => AdminToken::Open,
                    text => is_token.then(|| AdminToken::Given(text.into()))?,
                };
                Some(())
            },
        },
        default: Preset::Derived("generated, and stored in `admin_token_file`"),
        doc: "Token that the admin listener requires as `Authorization: Bearer TOKEN`",
        long: "A browser asks for it as a password; the name is ignored. /health and /ready do not \
               require it. An address that other machines reach needs a token in the settings. \
               none: no token is required. Every program on this machine can then read the pages, \
               PHP included: a page that fetches any URL would show them.",
        on_reload: OnReload::Kept(|old, new| old.admin_token != new.admin_token),
        is_secret: true,
        ..PLAIN
    },
    Setting {
        key: "admin_token_file",
        flag: "admin-token-file",
        value: "FILE",
        kind: path(|settings, path| settings.admin_token_file = path, "a file"),
        default: Preset::Derived(
            "`admin-token` in $STATE_DIRECTORY, else for root in /var/lib/samovar, else in \
             ~/.local/state/samovar",
        ),
        doc: "File of the generated admin token",
        long: "Created if missing, with access for the user that starts the server only. Delete it \
               and restart the server for a new token. Not used if `admin_token` is set.",
        on_reload: OnReload::Kept(|old, new| old.admin_token_file != new.admin_token_file),
        finish: Some(domain::finish_token_file),
        ..PLAIN
    },
    Setting {
        key: "admin_hosts",
        flag: "admin-hosts",
        value: "NAME",
        kind: Kind::List {
            allowed: "a host name without its port",
            clear: |settings| settings.admin_hosts.clear(),
            push: |settings, text, _| {
                let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
                is_name.then(|| settings.admin_hosts.push(text.to_owned()))
            },
        },
        default: Preset::Derived("IP addresses and `localhost` only"),
        doc: "Host name that the admin listener accepts (repeatable)",
        long: "A browser can be led to any address under an attacker's host name (DNS rebinding), \
               so names must be listed here.",
        on_reload: OnReload::Kept(|old, new| old.admin_hosts != new.admin_hosts),
        ..PLAIN
    },
    Setting {
        key: "insight.enabled",
        flag: "insight-enabled",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.insight.enabled),
        default: Preset::Text("true"),
        doc: "Whether requests are measured individually, if a consumer is configured",
        long: "Consumers are `admin`, `insight.store`, `insight.slow_log`, `insight.otlp`, \
               `insight.pinba` and `insight.pinba_listen`.",
        on_reload: OnReload::Kept(|old, new| old.insight.enabled != new.insight.enabled),
        ..PLAIN
    },
    Setting {
        key: "insight.routes_max",
        flag: "insight-routes-max",
        value: "N",
        kind: count(1, 100_000, |settings| &mut settings.insight.routes_max),
        default: Preset::Text("1000"),
        doc: "Maximum number of distinct routes; all others are `(other)`",
        long: "A route takes 10 to 20 KB of memory, and the last minutes of all routes together at \
               most 16 MB. If there are more, routes with few successful \
               requests make room for new ones. 404s count as the route `(not found)`.",
        on_reload: OnReload::Kept(|old, new| old.insight.routes_max != new.insight.routes_max),
        ..PLAIN
    },
    Setting {
        key: "insight.buckets",
        flag: "insight-buckets",
        value: "BOUNDS",
        kind: Kind::Text {
            allowed: "`fine`, `coarse`, or 2 to 64 ascending times from `1ms` to `1h`, such as \
                      `10ms,50ms,250ms`",
            set: |settings, text, _| buckets(text).map(|found| settings.insight.buckets = found),
        },
        default: Preset::Text("fine"),
        doc: "Bounds of the histograms in /metrics",
        long: "fine: 31 bounds from 0.5 ms to 10 s, at most 1.5 times apart. coarse: 14 bounds, at \
               most 2.5 times apart. A route has a series for each bound, and three more. A \
               percentile that Prometheus interpolates is off by the distance of two bounds at \
               most.",
        on_reload: OnReload::Kept(|old, new| old.insight.buckets != new.insight.buckets),
        ..PLAIN
    },
    Setting {
        key: "insight.script_share",
        flag: "insight-script-share",
        value: "PERCENT",
        kind: Kind::Text {
            allowed: "a share from `0%` to `100%`, such as `0.1%`",
            set: |settings, text, _| {
                super::exports::share(text).map(|ppm| settings.insight.script_share_ppm = ppm)
            },
        },
        default: Preset::Text("0%"),
        doc: "Share of requests that run as whole scripts, to measure the checkpoint's savings",
        long: "Only GET and HEAD requests to the booted application, and only if a worker for \
               scripts is idle. `samovar status` then shows the savings of the checkpoint, and \
               where there are none.",
        ..PLAIN
    },
    Setting {
        key: "insight.slow_request",
        flag: "insight-slow-request",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.insight.slow_request },
        default: Preset::Text("1s"),
        doc: "Duration from which the details of a request are kept",
        long: "The details of the last slow and failed requests are kept, without query string, \
               cookies and body.",
        on_reload: OnReload::Kept(|old, new| old.insight.slow_request != new.insight.slow_request),
        ..PLAIN
    },
    Setting {
        key: "insight.store",
        flag: "insight-store",
        value: "FILE",
        kind: path(|settings, path| settings.insight.store = Some(path), "a file"),
        default: Preset::Derived("none: history is kept in memory only"),
        doc: "File for the history: minutes per route, events, slow requests",
        long: "An SQLite database. If the disk is full, only history is lost.",
        on_reload: OnReload::Kept(|old, new| old.insight.store != new.insight.store),
        ..PLAIN
    },
    Setting {
        key: "insight.store_bytes_max",
        flag: "insight-store-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 40,
            field: |settings| &mut settings.insight.store_bytes_max,
        },
        default: Preset::Text("256M"),
        doc: "Maximum size of `insight.store`; the oldest data is deleted",
        long: "Minutes older than two days are deleted first, and the sums of their hours stay; \
               then the oldest hours.",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.store_bytes_max != new.insight.store_bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.days_max",
        flag: "insight-days-max",
        value: "N",
        kind: count(1, 3_650, |settings| &mut settings.insight.days_max),
        default: Preset::Text("30"),
        doc: "Maximum age of data in `insight.store`, in days",
        on_reload: OnReload::Kept(|old, new| old.insight.days_max != new.insight.days_max),
        ..PLAIN
    },
    Setting {
        key: "insight.slow_log",
        flag: "insight-slow-log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`off`, `-` (stdout), the path of a file, `syslog`, `syslog:FACILITY` or \
                      `journald`",
            set: |settings, text, base| {
                settings.insight.slow_log = match text {
                    "off" => LogTarget::Off,
                    "-" => LogTarget::Stdout,
                    _ => LogTarget::parse(text, base)?,
                };
                Some(())
            },
        },
        default: Preset::Text("off"),
        doc: "Destination of the slow log; -: stdout; off: none; syslog, journald: as for `log`",
        long: "One line per request that took `insight.slow_request` or longer, with its time per \
               phase and its waits. SIGUSR1 opens the file again.",
        on_reload: OnReload::Kept(|old, new| old.insight.slow_log != new.insight.slow_log),
        ..PLAIN
    },
    Setting {
        key: "insight.slow_log_format",
        flag: "insight-slow-log-format",
        value: "FORMAT",
        kind: Kind::Word {
            words: LogFormat::WORDS,
            set: |settings, index| settings.insight.slow_log_format = LogFormat::ALL[index],
        },
        default: Preset::Text("text"),
        doc: "Format of the slow log",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.slow_log_format != new.insight.slow_log_format
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.slow_log_per_second",
        flag: "insight-slow-log-per-second",
        value: "N",
        kind: count(1, 10_000, |settings| &mut settings.insight.slow_log_per_second),
        default: Preset::Text("10"),
        doc: "Maximum number of slow requests that are logged per second",
        long: "The next line shows the number of requests that were left out.",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.slow_log_per_second != new.insight.slow_log_per_second
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.redact",
        flag: "insight-redact",
        value: "WORD",
        kind: Kind::List {
            allowed: "a word without spaces",
            clear: |settings| settings.insight.redact.clear(),
            push: |settings, text, _| {
                let is_word = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
                is_word.then(|| settings.insight.redact.push(text.to_ascii_lowercase()))
            },
        },
        default: Preset::Derived(
            "`password`, `passwd`, `secret`, `token`, `authorization`, `cookie`, \
             `api_key`, `apikey`, `sessid`",
        ),
        doc: "Word in the name of a tag that makes its value secret (repeatable)",
        long: "Case is ignored. Values of such tags are neither stored nor sent. The same holds \
               for `WORD=value` and `WORD: value` in names of routes, values of tags and paths. \
               Your list replaces the default words: repeat those that you still need.",
        on_reload: OnReload::Kept(|old, new| old.insight.redact != new.insight.redact),
        ..PLAIN
    },
];

/// Maximum number of bounds of a histogram.
const BUCKETS_MAX: usize = 64;
/// Longest bound: a longer time is counted as an hour.
const BUCKET_MAX: Duration = Duration::from_hours(1);
/// Bounds of `coarse`, in µs.
const COARSE_US: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// Reads the bounds of histograms; none for `fine`.
fn buckets(text: &str) -> Option<Vec<Duration>> {
    match text {
        "fine" => return Some(Vec::new()),
        "coarse" => return Some(COARSE_US.map(Duration::from_micros).to_vec()),
        _ => {}
    }
    let parts = text.split(',').take(BUCKETS_MAX + 1);
    let bounds: Vec<_> =
        parts.map(|part| notation::duration(part.trim())).collect::<Option<_>>()?;
    let is_ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
    let is_within = bounds[0] > Duration::ZERO && bounds.iter().all(|bound| *bound <= BUCKET_MAX);
    ((2..=BUCKETS_MAX).contains(&bounds.len()) && is_ascending && is_within).then_some(bounds)
}

#[cfg(test)]
mod tests {
    use super::buckets;

    #[test]
    fn bounds_are_checked() {
        let ms = |text: &str| -> Option<Vec<_>> {
            buckets(text).map(|all| all.iter().map(std::time::Duration::as_millis).collect())
        };
        assert_eq!(ms("fine"), Some(Vec::new()));
        assert_eq!(ms("coarse").map(|all| (all.len(), all[13])), Some((14, 10_000)));
        assert_eq!(ms("1ms, 20ms,1s,1h"), Some(vec![1, 20, 1_000, 3_600_000]));
        let many = |n| (1..=n).map(|ms| format!("{ms}ms")).collect::<Vec<_>>().join(",");
        assert_eq!(ms(&many(64)).map(|all| all.len()), Some(64));
        let too_many = many(65);
        for text in [
            "", "medium", "1ms", "0,1ms", "2ms,1ms", "1ms,1ms", "1ms,2h", "1,2", "1ms,,2ms",
            &too_many,
        ] {
            assert_eq!(ms(text), None, "{text}");
        }
    }
}
