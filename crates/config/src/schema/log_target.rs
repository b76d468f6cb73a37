//! Where a log goes, as it is typed: nowhere, a standard stream, a file, or one of the machine's daemons for logs.

use std::path::{Path, PathBuf};

/// What is behind `/dev/log` on each Linux: rsyslog, syslog-ng, systemd-journald.
const SYSLOG_SOCKET: &str = "/dev/log";
/// systemd-journald's own protocol.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";
/// The kernel's limit on the path of a socket, without the byte that ends it.
const SOCKET_BYTES_MAX: usize = 107;
/// Of syslog(3), in the order of their numbers; those between are the system's own.
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

/// Where the lines of a log are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogTarget {
    /// Nothing is written.
    #[default]
    Off,
    /// On the standard output of the server.
    Stdout,
    /// On its standard error.
    Stderr,
    /// Appended to this file; absolute.
    File(PathBuf),
    /// Told to a syslog daemon.
    Syslog {
        /// The facility's number, as in syslog(3).
        facility: u8,
        /// Absolute.
        socket: PathBuf,
    },
    /// Told to systemd-journald, with its own protocol.
    Journal {
        /// Absolute.
        socket: PathBuf,
    },
}

impl LogTarget {
    /// The file that it is, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            LogTarget::File(path) => Some(path),
            _ => None,
        }
    }

    /// The socket of the daemon that is told, if one is.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            LogTarget::Syslog { socket, .. } | LogTarget::Journal { socket } => Some(socket),
            _ => None,
        }
    }

    /// `syslog`, `syslog:FACILITY`, `journald`, each with `@SOCKET` behind it; else the path of a file, below `base`.
    /// `None`: it is none of these.
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
    fn daemons_and_files_are_told_apart() {
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
    fn what_cannot_be_meant_is_nothing() {
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
