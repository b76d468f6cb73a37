//! The section Logs: what is written down, and how.

use crate::schema::log_target::LogTarget;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::{AccessLogFormat, LogFormat, LogLevel};

use super::row;

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Logs, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "log",
        flag: "log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`-` (stderr), the path of a file, `syslog`, `syslog:FACILITY` or `journald`",
            set: |settings, text, base| {
                settings.log = match text {
                    "-" => LogTarget::Stderr,
                    _ => LogTarget::parse(text, base)?,
                };
                Some(())
            },
        },
        default: Preset::Text("-"),
        doc: "File that the server's own log, and what its processes print, are appended to; -: stderr; \
              syslog or journald: the machine's own",
        long: "What is wrong at the start, before the addresses are bound, is on stderr in any case. \
               SIGUSR1 opens the file again, after it was moved away. A FACILITY is user, daemon (so it is \
               without one) or local0 to local7. Another socket than the usual one stands behind an @, as in \
               syslog:local3@/run/log; a file of that name is ./syslog.",
        on_reload: OnReload::Kept(|old, new| old.log != new.log),
        ..PLAIN
    },
    Setting {
        key: "access_log",
        flag: "access-log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`off`, `-` (stdout), the path of a file, `syslog`, `syslog:FACILITY` or `journald`",
            set: |settings, text, base| {
                settings.access_log = match text {
                    "off" => LogTarget::Off,
                    "-" => LogTarget::Stdout,
                    _ => LogTarget::parse(text, base)?,
                };
                Some(())
            },
        },
        default: Preset::Text("off"),
        doc: "File to log each request to; -: stdout; off: nowhere; syslog or journald: as for `log`",
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
