//! The section Insight: what is measured of requests, where it is kept, and who may look.

use crate::schema::log_target::LogTarget;
use crate::schema::notation;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::LogFormat;

use super::row::{self, count, path};

/// What its settings have in common: they count at the start.
const PLAIN: Setting = Setting { group: Group::Insight, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "admin",
        flag: "admin",
        value: "ADDR",
        kind: Kind::List {
            allowed: "an address such as `127.0.0.1:9090` or `[::1]:9090`",
            clear: |settings| settings.admin.clear(),
            push: |settings, text| notation::listen(text).map(|listen| settings.admin.push(listen)),
        },
        default: Preset::Derived("none: nobody can look"),
        doc: "Address for operators: metrics, health, figures; can be given several times",
        long: "/metrics for Prometheus, /health and /ready for load balancers, /api for programs. No \
               client of the site is answered there, and no operator at `listen`. Who can reach it \
               sees paths and figures of all requests: use loopback, or set `admin_token`.",
        on_reload: OnReload::Kept(|old, new| old.admin != new.admin),
        ..PLAIN
    },
    Setting {
        key: "admin_token",
        flag: "admin-token",
        value: "TOKEN",
        kind: Kind::Text {
            allowed: "at least 16 printable ASCII characters without spaces",
            set: |settings, text, _| {
                let is_token = text.len() >= 16 && text.bytes().all(|b| b.is_ascii_graphic());
                is_token.then(|| settings.admin_token = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none is asked for"),
        doc: "What operators must send as `Authorization: Bearer TOKEN`",
        long: "/health and /ready need none. Best set in the environment: the command line is seen \
               by all users of the machine.",
        on_reload: OnReload::Kept(|old, new| old.admin_token != new.admin_token),
        ..PLAIN
    },
    Setting {
        key: "admin_hosts",
        flag: "admin-hosts",
        value: "NAME",
        kind: Kind::List {
            allowed: "a host name without its port",
            clear: |settings| settings.admin_hosts.clear(),
            push: |settings, text| {
                let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
                is_name.then(|| settings.admin_hosts.push(text.to_owned()))
            },
        },
        default: Preset::Derived("addresses and `localhost` alone"),
        doc: "Name by which operators may ask; can be given several times",
        long: "A browser can be led to any address under a name of somebody else's choice, so names \
               must be known here.",
        on_reload: OnReload::Kept(|old, new| old.admin_hosts != new.admin_hosts),
        ..PLAIN
    },
    Setting {
        key: "insight.enabled",
        flag: "insight-enabled",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.insight.enabled),
        default: Preset::Text("true"),
        doc: "Whether requests are measured one by one, where somebody can look",
        long: "They are where `admin`, `insight.store`, `insight.slow_log`, `insight.otlp`, \
               `insight.pinba` or `insight.pinba_listen` is set.",
        on_reload: OnReload::Kept(|old, new| old.insight.enabled != new.insight.enabled),
        ..PLAIN
    },
    Setting {
        key: "insight.routes_max",
        flag: "insight-routes-max",
        value: "N",
        kind: count(1, 100_000, |settings| &mut settings.insight.routes_max),
        default: Preset::Text("1000"),
        doc: "Most routes that are told apart; all others are `(other)`",
        long: "One takes 10 to 20 KB of memory.",
        on_reload: OnReload::Kept(|old, new| old.insight.routes_max != new.insight.routes_max),
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
        doc: "How many requests to the booted application run as whole scripts, to see what that takes",
        long: "GET and HEAD alone, by workers for scripts, where one has nothing to do. `samovar status` then says \
               what the checkpoint saves, and where it saves nothing.",
        ..PLAIN
    },
    Setting {
        key: "insight.slow_request",
        flag: "insight-slow-request",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.insight.slow_request },
        default: Preset::Text("1s"),
        doc: "Time from which on a request's details are kept",
        long: "Those of the last slow and failed ones; without query string, cookies and body.",
        on_reload: OnReload::Kept(|old, new| old.insight.slow_request != new.insight.slow_request),
        ..PLAIN
    },
    Setting {
        key: "insight.store",
        flag: "insight-store",
        value: "FILE",
        kind: path(|settings, path| settings.insight.store = Some(path), "a file"),
        default: Preset::Derived("none: what is older than the memory reaches is gone"),
        doc: "File for the history: minutes per route, events, slow requests",
        long: "An SQLite database. A disk that is full costs history and nothing else.",
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
        doc: "Most bytes of that file; the oldest hours are forgotten",
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
        doc: "Most days that are kept in that file",
        on_reload: OnReload::Kept(|old, new| old.insight.days_max != new.insight.days_max),
        ..PLAIN
    },
    Setting {
        key: "insight.slow_log",
        flag: "insight-slow-log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`off`, `-` (stdout), the path of a file, `syslog`, `syslog:FACILITY` or `journald`",
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
        doc: "File to log slow requests to; -: stdout; off: nowhere; syslog or journald: as for `log`",
        long: "A line for each that took `insight.slow_request` or longer: where its time went, and \
               what it waited for. SIGUSR1 opens the file again.",
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
        doc: "How slow requests are logged",
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
        doc: "Most slow requests that are logged in one second",
        long: "The next line says how many were not.",
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
            push: |settings, text| {
                let is_word = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
                is_word.then(|| settings.insight.redact.push(text.to_ascii_lowercase()))
            },
        },
        default: Preset::Derived(
            "`password`, `passwd`, `secret`, `token`, `authorization`, `cookie`, `api_key`, `apikey`",
        ),
        doc: "Word that makes a tag secret whose name has it; can be given several times",
        long: "In any case. Values of such tags are kept and sent nowhere. Yours replace the usual \
               words: give those too that are still meant.",
        on_reload: OnReload::Kept(|old, new| old.insight.redact != new.insight.redact),
        ..PLAIN
    },
];
