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
];

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control)
}
