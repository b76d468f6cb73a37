//! The section FastCGI: what web servers may send to `fcgi://` addresses. The limits and time-outs of requests hold too.

use crate::schema::setting::{Group, Kind, Preset, Setting};

use super::row::{self, count};

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::FastCgi, ..row::PLAIN };

/// Longest path, and longest answer.
const TEXT_BYTES_MAX: usize = 256;
const PATH: &str = "a path such as `/status`";

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "fastcgi.params_max",
        flag: "fastcgi-params-max",
        value: "N",
        kind: count(32, 4096, |settings| &mut settings.fastcgi.params_max),
        default: Preset::Text("512"),
        doc: "Most FastCGI parameters of a request, headers among them; beyond: 431",
        long: "How many bytes they may have together is limits.head_bytes_max.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.idle_timeout",
        flag: "fastcgi-idle-timeout",
        value: "TIME",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.fastcgi.idle_timeout,
        },
        default: Preset::Text("10m"),
        doc: "Most time between two requests on a web server's connection",
        long: "Longer than what the web server itself has for its idle connections (nginx: \
               keepalive_timeout of the upstream), or it may send a request while this end closes.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.status_path",
        flag: "fastcgi-status-path",
        value: "PATH",
        kind: Kind::Text {
            allowed: PATH,
            set: |settings, text, _| {
                is_path(text).then(|| settings.fastcgi.status_path = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "SCRIPT_NAME by which a web server asks for php-fpm's status page",
        long: "As php-fpm's pm.status_path: text, or what ?json and ?full say.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.ping_path",
        flag: "fastcgi-ping-path",
        value: "PATH",
        kind: Kind::Text {
            allowed: PATH,
            set: |settings, text, _| {
                is_path(text).then(|| settings.fastcgi.ping_path = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "SCRIPT_NAME by which a web server asks whether anybody is there",
        long: "As php-fpm's ping.path; 503 while no worker has booted.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.ping_response",
        flag: "fastcgi-ping-response",
        value: "TEXT",
        kind: Kind::Text {
            allowed: "a text of up to 256 bytes",
            set: |settings, text, _| {
                let is_short = (1..=TEXT_BYTES_MAX).contains(&text.len());
                is_short.then(|| text.clone_into(&mut settings.fastcgi.ping_response))
            },
        },
        default: Preset::Text("pong"),
        doc: "The answer to that",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.connect_timeout",
        flag: "fastcgi-connect-timeout",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.fastcgi.connect_timeout },
        default: Preset::Text("5s"),
        doc: "Most time until the php-fpm of a location takes a connection, beyond: 504",
        long: "The wait for one of fastcgi.connections_max, beyond which it is 503, counts likewise. Of several that a location \
               names, the next one is tried, for as long again. What holds for its answer are timeouts.answer, \
               timeouts.request and timeouts.path.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.connections_max",
        flag: "fastcgi-connections-max",
        value: "N",
        kind: count(1, 65_536, |settings| &mut settings.fastcgi.connections_max),
        default: Preset::Text("64"),
        doc: "Most connections to the php-fpm of a location at the same time; further requests wait",
        long: "Of several that a location names, to each of them.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.queue_max",
        flag: "fastcgi-queue-max",
        value: "N",
        kind: count(0, 65_536, |settings| &mut settings.fastcgi.queue_max),
        default: Preset::Text("512"),
        doc: "Most requests of all locations that wait for such a connection, beyond: 503 at once",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.kept_max",
        flag: "fastcgi-kept-max",
        value: "N",
        kind: count(0, 65_536, |settings| &mut settings.fastcgi.kept_max),
        default: Preset::Text("0"),
        doc: "Most of them that are kept for five seconds for the next request",
        long: "Each of them keeps a process of that php-fpm from everybody else meanwhile: fewer than its pm.max_children.",
        ..PLAIN
    },
];

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control)
}
