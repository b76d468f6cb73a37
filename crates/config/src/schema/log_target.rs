//! Destination of a log, as typed: none, a standard stream, a file, or one of the machine's log
//! daemons.

use std::path::{Path, PathBuf};

/// Socket of the syslog daemon on every Linux: rsyslog, syslog-ng, systemd-journald.
const SYSLOG_SOCKET: &str = "/dev/log";
/// Socket of systemd-journald's own protocol.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";
/// The kernel's limit for the path of a socket, without the final NUL byte.
const SOCKET_BYTES_MAX: usize = 107;
/// Facilities of syslog(3) in the order of their numbers. The missing ones are reserved for the
/// system.
const FACILITIES: [(&str, u8); 10] = [
    ("user", 1),
    ("daemon", 3),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];
const FACILITY: u8 = 3;

/// Destination of a log's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogTarget {
    /// No log is written.
    #[default]
    Off,
    /// The server's standard output.
    Stdout,
    /// The server's standard error.
    Stderr,
    /// A file with an absolute path, which is appended to.
    File(PathBuf),
    /// A syslog daemon.
    Syslog {
        /// Number of the facility, as in syslog(3).
        facility: u8,
        /// Absolute path of the socket.
        socket: PathBuf,
    },
    /// systemd-journald, with its own protocol.
    Journal {
        /// Absolute path of the socket.
        socket: PathBuf,
    },
}

impl LogTarget {
    /// Returns the file, if the target is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            LogTarget::File(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the socket of the log daemon, if the target is one.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            LogTarget::Syslog { socket, .. } | LogTarget::Journal { socket } => Some(socket),
            _ => None,
        }
    }

    /// Reads `syslog`, `syslog:FACILITY` or `journald`, each with an optional `@SOCKET`; else the
    /// path of a file, relative to `base`. Returns `None` if it is not valid.
    pub(crate) fn parse(text: &str, base: &Path) -> Option<LogTarget> {
        let (word, socket) = match text.split_once('@') {
            Some((word, socket)) => (word, Some(socket)),
            None => (text, None),
        };
        let (daemon, facility) = match word.split_once(':') {
            Some((daemon, facility)) => (daemon, Some(facility)),
            None => (word, None),
        };
        match (daemon, facility) {
            ("syslog", facility) => {
                let facility = facility.map_or(Some(FACILITY), facility_of)?;
                let socket = socket_of(socket, SYSLOG_SOCKET)?;
                Some(LogTarget::Syslog { facility, socket })
            }
            ("journald", None) => {
                Some(LogTarget::Journal { socket: socket_of(socket, JOURNAL_SOCKET)? })
            }
            _ if text.is_empty() || text.contains('\0') => None,
            _ => Some(LogTarget::File(base.join(text))),
        }
    }
}

fn facility_of(word: &str) -> Option<u8> {
    FACILITIES.iter().find(|(name, _)| *name == word).map(|(_, number)| *number)
}

fn socket_of(typed: Option<&str>, usual: &str) -> Option<PathBuf> {
    let path = typed.unwrap_or(usual);
    let can_be = path.starts_with('/') && !path.contains('\0') && path.len() <= SOCKET_BYTES_MAX;
    can_be.then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<LogTarget> {
        LogTarget::parse(text, Path::new("/etc/samovar"))
    }

    #[test]
    fn parse_distinguishes_daemons_and_files() {
        let syslog =
            |facility, socket: &str| Some(LogTarget::Syslog { facility, socket: socket.into() });
        assert_eq!(parse("syslog"), syslog(3, "/dev/log"));
        assert_eq!(parse("syslog:local7"), syslog(23, "/dev/log"));
        assert_eq!(parse("syslog@/run/log@1"), syslog(3, "/run/log@1"));
        assert_eq!(parse("syslog:user@/s"), syslog(1, "/s"));
        let journal = |socket: &str| Some(LogTarget::Journal { socket: socket.into() });
        assert_eq!(parse("journald"), journal("/run/systemd/journal/socket"));
        assert_eq!(parse("journald@/j"), journal("/j"));
        let file = |path: &str| Some(LogTarget::File(path.into()));
        assert_eq!(parse("log"), file("/etc/samovar/log"));
        assert_eq!(parse("./syslog"), file("/etc/samovar/./syslog"));
        assert_eq!(parse("syslog.txt"), file("/etc/samovar/syslog.txt"));
        assert_eq!(parse("/var/log/a@b:c"), file("/var/log/a@b:c"));
    }

    #[test]
    fn parse_of_invalid_target_is_none() {
        let long = format!("syslog@/{}", "s".repeat(SOCKET_BYTES_MAX));
        for text in [
            "",
            "syslog:",
            "syslog:kern",
            "syslog:LOCAL0",
            "syslog@",
            "syslog@run/log",
            &long,
            "a\0b",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
