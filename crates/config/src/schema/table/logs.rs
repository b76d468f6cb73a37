//! The section Logs: what is written down, and how.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::{AccessLog, AccessLogFormat, LogFormat, LogLevel};

use super::row;

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Logs, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "log",
        flag: "log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`-` (stderr) or the path of a file",
            set: |settings, text, base| {
                settings.log = match text {
                    "-" => None,
                    "" => return None,
                    _ => Some(base.join(text)),
                };
                Some(())
            },
        },
        default: Preset::Text("-"),
        doc: "File that the server's own log, and what its processes print, are appended to; -: stderr",
        long: "What is wrong at the start, before the addresses are bound, is on stderr in any case. \
               SIGUSR1 opens the file again, after it was moved away.",
        on_reload: OnReload::Kept(|old, new| old.log != new.log),
        ..PLAIN
    },
    Setting {
        key: "access_log",
        flag: "access-log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`off`, `-` (stdout) or the path of a file",
            set: |settings, text, base| {
                settings.access_log = match text {
                    "off" => AccessLog::Off,
                    "-" => AccessLog::Stdout,
                    "" => return None,
                    _ => AccessLog::File(base.join(text)),
                };
                Some(())
            },
        },
        default: Preset::Text("off"),
        doc: "File to log each request to; -: stdout; off: nowhere",
        on_reload: OnReload::Kept(|old, new| old.access_log != new.access_log),
        ..PLAIN
    },
    Setting {
        key: "access_log_format",
        flag: "access-log-format",
        value: "FORMAT",
        kind: Kind::Word {
            words: AccessLogFormat::WORDS,
            set: |settings, index| settings.access_log_format = AccessLogFormat::ALL[index],
        },
        default: Preset::Text("combined"),
        doc: "How requests are logged",
        long: "combined is the format of Apache and nginx; json also tells the time, CPU and \
               memory that a request took.",
        on_reload: OnReload::Kept(|old, new| old.access_log_format != new.access_log_format),
        ..PLAIN
    },
    Setting {
        key: "log_level",
        flag: "log-level",
        value: "LEVEL",
        kind: Kind::Word {
            words: LogLevel::WORDS,
            set: |settings, index| settings.log_level = LogLevel::ALL[index],
        },
        default: Preset::Text("warn"),
        doc: "How much the server says about itself on stderr",
        on_reload: OnReload::Kept(|old, new| old.log_level != new.log_level),
        ..PLAIN
    },
    Setting {
        key: "log_format",
        flag: "log-format",
        value: "FORMAT",
        kind: Kind::Word {
            words: LogFormat::WORDS,
            set: |settings, index| settings.log_format = LogFormat::ALL[index],
        },
        default: Preset::Text("text"),
        doc: "How the server's own log lines look",
        on_reload: OnReload::Kept(|old, new| old.log_format != new.log_format),
        ..PLAIN
    },
];
