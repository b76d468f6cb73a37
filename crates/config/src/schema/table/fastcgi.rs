//! The section FastCGI: requests from web servers to `fcgi://` addresses, and connections to
//! php-fpm. The limits and timeouts of requests also apply.

use crate::schema::setting::{Group, Kind, Preset, Setting};

use super::row::{self, count};

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::FastCgi, ..row::PLAIN };

/// Maximum length of a path, and of the ping response.
const TEXT_BYTES_MAX: usize = 256;
const PATH: &str = "a path such as `/status`";

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "fastcgi.params_max",
        flag: "fastcgi-params-max",
        value: "N",
        kind: count(32, 4096, |settings| &mut settings.fastcgi.params_max),
        default: Preset::Text("512"),
        doc: "Maximum number of FastCGI parameters of a request, with headers; above: 431",
        long: "Their total size is limited by limits.head_bytes_max.",
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
        doc: "Maximum time between two requests on a web server's connection",
        long: "It must be longer than the web server's own timeout for idle connections (nginx: \
               keepalive_timeout of the upstream). Otherwise the web server may send a request \
               while Samovar closes the connection.",
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
        doc: "SCRIPT_NAME of the status page in php-fpm's format, for web servers",
        long: "Like php-fpm's pm.status_path: text, or the format that ?json and ?full select.",
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
        doc: "SCRIPT_NAME of the health check (ping), for web servers",
        long: "Like php-fpm's ping.path. The response is 503 until a worker has booted.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.ping_response",
        flag: "fastcgi-ping-response",
        value: "TEXT",
        kind: Kind::Text {
            allowed: "a text of 1 to 256 bytes",
            set: |settings, text, _| {
                let is_short = (1..=TEXT_BYTES_MAX).contains(&text.len());
                is_short.then(|| text.clone_into(&mut settings.fastcgi.ping_response))
            },
        },
        default: Preset::Text("pong"),
        doc: "Response to fastcgi.ping_path",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.connect_timeout",
        flag: "fastcgi-connect-timeout",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.fastcgi.connect_timeout },
        default: Preset::Text("5s"),
        doc: "Maximum time to get a connection to a location's php-fpm; after that: 504",
        long: "It includes the wait for a free connection (fastcgi.connections_max); if none \
               becomes free: 503. If a location names several servers, the next one is tried, with \
               the same timeout. The response itself is limited by timeouts.response, \
               timeouts.request and timeouts.path.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.connections_max",
        flag: "fastcgi-connections-max",
        value: "N",
        kind: count(1, 65_536, |settings| &mut settings.fastcgi.connections_max),
        default: Preset::Text("64"),
        doc: "Maximum number of connections to each php-fpm of locations",
        long: "Further requests wait for a free connection.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.queue_max",
        flag: "fastcgi-queue-max",
        value: "N",
        kind: count(0, 65_536, |settings| &mut settings.fastcgi.queue_max),
        default: Preset::Text("512"),
        doc: "Maximum number of requests that wait for such a connection; above: 503",
        long: "The requests of all locations count together. The 503 is sent immediately.",
        ..PLAIN
    },
    Setting {
        key: "fastcgi.idle_connections_max",
        flag: "fastcgi-idle-connections-max",
        former_flag: Some("fastcgi-kept-max"),
        former_key: Some("fastcgi.kept_max"),
        value: "N",
        kind: count(0, 65_536, |settings| &mut settings.fastcgi.idle_connections_max),
        default: Preset::Text("0"),
        doc: "Maximum number of idle connections that are kept for the next request",
        long: "A connection is kept for five seconds. Meanwhile it occupies a process of that \
               php-fpm: set it lower than the php-fpm's pm.max_children.",
        ..PLAIN
    },
];

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control)
}
