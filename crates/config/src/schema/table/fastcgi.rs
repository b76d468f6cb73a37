//! The section FastCGI: what web servers may send to `fcgi://` addresses. The limits and time-outs of requests hold too.

use crate::schema::setting::{Group, Kind, Preset, Setting};

use super::row::{self, count};

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::FastCgi, ..row::PLAIN };

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
];
