//! The section Logs: destinations and formats of logs.

use crate::schema::log_target::LogTarget;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::{AccessLogFormat, LogFormat, LogLevel};

use super::row;

/// Common values of this section's rows.
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
        doc: "Destination of the server's log and its processes' output; -: stderr",
        long: "Lines are appended to a file. syslog or journald: the machine's log daemon. Errors \
               at the start, before the addresses are bound, are always on stderr. SIGUSR1 opens \
               the file again, for log rotation. A FACILITY is user, daemon (the default) or \
               local0 to local7. Another socket follows an @, as in syslog:local3@/run/log. A file \
               named syslog is ./syslog.",
        on_reload: OnReload::Kept(|old, new| old.log != new.log),
        ..PLAIN
    },
    Setting {
        key: "access_log",
        flag: "access-log",
        value: "FILE",
        kind: Kind::Text {
            allowed: "`off`, `-` (stdout), the path of a file, `syslog`, `syslog:FACILITY` or \
                      `journald`",
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
        doc: "Destination of the access log; -: stdout; off: none; syslog, journald: as for `log`",
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
        doc: "Format of the access log",
        long: "combined is the format of Apache and nginx. json also has the time, CPU and memory \
               that a request took.",
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
        doc: "Minimum level of messages in the server's log",
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
        doc: "Format of the server's log",
        on_reload: OnReload::Kept(|old, new| old.log_format != new.log_format),
        ..PLAIN
    },
];
