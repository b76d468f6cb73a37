//! The section Timeouts: time limits for waiting.

use std::time::Duration;

use crate::schema::notation;
use crate::schema::setting::{Field, Group, Kind, Preset, Setting};

use super::row;

/// Common values of this section's rows.
const PLAIN: Setting = Setting { value: "TIME", group: Group::Timeouts, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "timeouts.header",
        flag: "header-timeout",
        kind: timeout(|settings| &mut settings.timeouts.header),
        default: Preset::Text("30s"),
        doc: "Maximum time to wait for the head of a request; after that: 408",
        ..PLAIN
    },
    Setting {
        key: "timeouts.idle",
        flag: "idle-timeout",
        kind: timeout(|settings| &mut settings.timeouts.idle),
        default: Preset::Text("75s"),
        doc: "Maximum time between two requests on a connection",
        ..PLAIN
    },
    Setting {
        key: "timeouts.body",
        flag: "body-timeout",
        kind: timeout(|settings| &mut settings.timeouts.body),
        default: Preset::Text("60s"),
        doc: "Maximum time between two pieces of a request body; after that: 408",
        ..PLAIN
    },
    Setting {
        key: "timeouts.write",
        flag: "write-timeout",
        kind: timeout(|settings| &mut settings.timeouts.write),
        default: Preset::Text("60s"),
        doc: "Maximum time during which the client accepts no byte of the response",
        ..PLAIN
    },
    Setting {
        key: "timeouts.queue",
        flag: "queue-timeout",
        kind: timeout(|settings| &mut settings.timeouts.queue),
        default: Preset::Text("30s"),
        doc: "Maximum time that a request waits for a worker; after that: 503",
        ..PLAIN
    },
    Setting {
        key: "timeouts.response",
        flag: "response-timeout",
        former_flag: Some("answer-timeout"),
        former_key: Some("timeouts.answer"),
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.timeouts.response,
        },
        default: Preset::Text("60s"),
        doc: "Maximum time during which a worker sends no byte of the response; after that: 504",
        long: "The script is ended, and its worker is replaced. A script that continues without \
               its client (ignore_user_abort) is not limited by it. 0: no limit.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.request",
        flag: "request-timeout",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.timeouts.request,
        },
        default: Preset::Text("0"),
        doc: "Maximum run time of a request in its worker; after that: 504",
        long: "Data that the worker sends does not extend it. If the response has begun, the \
               client's connection is closed. Time in the queue does not count. 0: limited by \
               timeouts.response only, as downloads and event streams need.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.path",
        flag: "path-timeout",
        value: "PATTERN=TIME",
        kind: Kind::Pairs {
            allowed: "`pattern=time`, such as `/export/*=10m`; a pattern begins with `/`, and \
                      `*` matches any characters",
            put: |settings, text, _| {
                let (pattern, time) = notation::path_time(text)?;
                settings.timeouts.path.insert(pattern, time);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Maximum run time of requests for some paths (repeatable)",
        long: "It replaces timeouts.request and timeouts.response for these paths. If several \
               patterns match, the longest pattern applies. In the file: the table \
               [timeouts.path], with patterns in quotes. 0: no limit.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.extended",
        flag: "extended-timeout",
        kind: Kind::Timeout {
            zero: Some("no extension"),
            field: |settings| &mut settings.timeouts.extended,
        },
        default: Preset::Text("10m"),
        doc: "Maximum run time of a request that calls Samovar\\extend_deadline()",
        long: "The call moves the deadlines of timeouts.response, timeouts.request and \
               timeouts.post_response.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.grace",
        flag: "grace-timeout",
        kind: Kind::Timeout {
            zero: Some("immediately"),
            field: |settings| &mut settings.timeouts.grace,
        },
        default: Preset::Text("2s"),
        doc: "Maximum time between the timeout of a script and the end of its worker",
        long: "The script is ended by a fatal error, so that its shutdown functions run. After \
               this time its worker is killed. A script that waits inside a library does not \
               notice the fatal error.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.post_response",
        flag: "post-response-timeout",
        former_flag: Some("after-timeout"),
        former_key: Some("timeouts.after"),
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.timeouts.post_response,
        },
        default: Preset::Text("5m"),
        doc: "Maximum run time of a script after its response is complete or its client is gone",
        long: "After that the script is ended, its worker is replaced, and the request is logged. \
               If the client is gone and the response is not complete, timeouts.response and \
               timeouts.request apply too; fastcgi_finish_request() completes the response. 0: no \
               limit; each such script occupies a worker.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.watchdog",
        flag: "watchdog-timeout",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.timeouts.watchdog,
        },
        default: Preset::Text("10s"),
        doc: "Watchdog timeout of idle workers, rollbacks, templates and image processes",
        long: "A process without a heartbeat for this time is stopped or hangs: it is killed and \
               replaced. At least 3s. 0: no watchdog, for use with a debugger.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.drain",
        flag: "drain-timeout",
        kind: timeout(|settings| &mut settings.timeouts.drain),
        default: Preset::Text("30s"),
        doc: "Maximum time for requests in flight to finish on a stop or reload",
        long: "Scripts that run after their response, or without their client, have the same time. \
               After that they are ended.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.boot",
        flag: "boot-timeout",
        kind: timeout(|settings| &mut settings.timeouts.boot),
        default: Preset::Text("60s"),
        doc: "Maximum time for workers to start and boot the application",
        long: "After that the server is reported as ready without them. A reload is aborted.",
        ..PLAIN
    },
];

const fn timeout(field: Field<Duration>) -> Kind {
    Kind::Timeout { zero: None, field }
}
