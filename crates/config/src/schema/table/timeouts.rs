//! The section Time-outs: after which the server gives up waiting.

use std::time::Duration;

use crate::schema::notation;
use crate::schema::setting::{Field, Group, Kind, Preset, Setting};

use super::row;

/// What its settings have in common.
const PLAIN: Setting = Setting { value: "TIME", group: Group::Timeouts, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "timeouts.header",
        flag: "header-timeout",
        kind: timeout(|settings| &mut settings.timeouts.header),
        default: Preset::Text("30s"),
        doc: "Most time for the head of a request to arrive",
        ..PLAIN
    },
    Setting {
        key: "timeouts.idle",
        flag: "idle-timeout",
        kind: timeout(|settings| &mut settings.timeouts.idle),
        default: Preset::Text("75s"),
        doc: "Most time between two requests on a connection",
        ..PLAIN
    },
    Setting {
        key: "timeouts.body",
        flag: "body-timeout",
        kind: timeout(|settings| &mut settings.timeouts.body),
        default: Preset::Text("60s"),
        doc: "Most time between two pieces of a request's body; beyond: 408",
        ..PLAIN
    },
    Setting {
        key: "timeouts.write",
        flag: "write-timeout",
        kind: timeout(|settings| &mut settings.timeouts.write),
        default: Preset::Text("60s"),
        doc: "Most time in which the client takes no byte of the answer",
        ..PLAIN
    },
    Setting {
        key: "timeouts.queue",
        flag: "queue-timeout",
        kind: timeout(|settings| &mut settings.timeouts.queue),
        default: Preset::Text("30s"),
        doc: "Most time a request waits for a worker; beyond: 503",
        ..PLAIN
    },
    Setting {
        key: "timeouts.answer",
        flag: "answer-timeout",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.timeouts.answer,
        },
        default: Preset::Text("60s"),
        doc: "Most time in which a worker gives no byte of the answer; beyond: 504",
        long: "The script is ended, and its worker replaced. One that goes on when its client has gone (ignore_user_abort) owes no \
               byte then. 0: a worker may be silent for ever.",
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
        doc: "Most time for which a worker runs a request, however much it sends meanwhile; beyond: 504",
        long: "When the answer has begun, the client's connection is cut. The time in the queue does not count. 0: as long as \
               the answer time-out lets it, as downloads and event streams need.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.path",
        flag: "path-timeout",
        value: "PATTERN=TIME",
        kind: Kind::Pairs {
            allowed: "`pattern=time`, such as `/export/*=10m`: a pattern begins with `/`, `*` stands for any characters",
            put: |settings, text| {
                let (pattern, time) = notation::path_time(text)?;
                settings.timeouts.path.insert(pattern, time);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "The same for requests of some paths; can be given several times",
        long: "There it holds instead of the request time-out and of the answer time-out. Of several patterns that fit, the \
               longest holds. In the file: the table [timeouts.path], patterns in quotes. 0: never.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.extended",
        flag: "extended-timeout",
        kind: Kind::Timeout {
            zero: Some("none gets more"),
            field: |settings| &mut settings.timeouts.extended,
        },
        default: Preset::Text("10m"),
        doc: "Most time for a request that asks for more by Samovar\\extend_deadline()",
        long: "What it asks for moves the deadlines of the answer, of the request, and of what goes on after it.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.grace",
        flag: "grace-timeout",
        kind: Kind::Timeout {
            zero: Some("at once"),
            field: |settings| &mut settings.timeouts.grace,
        },
        default: Preset::Text("2s"),
        doc: "Most time for a script whose time is over to end by itself, before its worker is killed",
        long: "It is ended by a fatal error, so that its shutdown functions run. One that waits in a library does not notice.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.after",
        flag: "after-timeout",
        kind: Kind::Timeout { zero: Some("never"), field: |settings| &mut settings.timeouts.after },
        default: Preset::Text("5m"),
        doc: "Most time for which a script goes on after its answer is complete, or its client has gone",
        long: "Then it is ended, its worker replaced, and the request logged. Without its client, and with an answer that is not \
               complete, the times of answer and request hold besides: fastcgi_finish_request() completes it. 0: for ever; each \
               such script keeps a worker from all others.",
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
        doc: "Most time in which an idle worker, one that returns to its image, the template or the image process gives no sign of life",
        long: "It was stopped, or hangs where nothing should: it is killed and replaced. At least 3s. 0: such processes are \
               left alone, as for a debugger.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.drain",
        flag: "drain-timeout",
        kind: timeout(|settings| &mut settings.timeouts.drain),
        default: Preset::Text("30s"),
        doc: "Most time for requests in flight to finish when the server is stopped or reloaded",
        long: "Scripts that go on behind their answer, or without their client, have this time too. What is not done then is ended.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.boot",
        flag: "boot-timeout",
        kind: timeout(|settings| &mut settings.timeouts.boot),
        default: Preset::Text("60s"),
        doc: "Most time for the workers to start and boot the application",
        long: "The server is called ready without them then. A reload is given up.",
        ..PLAIN
    },
];

const fn timeout(field: Field<Duration>) -> Kind {
    Kind::Timeout { zero: None, field }
}
