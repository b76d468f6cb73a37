//! The destination of a log.

use crate::record;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// An open target.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) fd: OwnedFd,
    pub(crate) kind: Kind,
}

/// Kind of an open target, which decides how it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file: a write never waits for room.
    File,
    /// A pipe, a terminal or a socket.
    Stream,
    /// A log daemon: each record is a datagram.
    Daemon,
}

/// A daemon that keeps the machine's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Path of its datagram socket.
    pub socket: PathBuf,
    /// Name of the sender in the daemon's files.
    pub tag: &'static str,
    /// Format of the datagrams.
    pub notation: Notation,
}

/// Format that a log daemon accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// The format of syslog(3).
    Syslog {
        /// Number of the syslog facility.
        facility: u8,
    },
    /// systemd-journald's native protocol.
    Journal,
}

impl Daemon {
    /// Returns the datagrams for this record.
    pub(crate) fn datagrams(&self, record: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let (severity, text) = record::dissect(record);
        // A text line may start with the server's name. It is removed because the tag already
        // contains it.
        let rest = text.strip_prefix(self.tag.as_bytes());
        let text = rest.and_then(|rest| rest.strip_prefix(b": ")).unwrap_or(text);
        let bytes_max = match self.notation {
            Notation::Syslog { .. } => record::SYSLOG_TEXT_BYTES_MAX,
            Notation::Journal => record::JOURNAL_TEXT_BYTES_MAX,
        };
        record::pieces(text, bytes_max).map(move |piece| match self.notation {
            Notation::Syslog { facility } => record::syslog(facility, self.tag, severity, piece),
            Notation::Journal => record::journal(self.tag, severity, piece),
        })
    }
}

/// Destination of log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard error, shared with the process that started the server.
    Stderr,
    /// Standard output, shared in the same way.
    Stdout,
    /// A file, which is appended to; may be a named pipe.
    File(PathBuf),
    /// The machine's own log.
    Daemon(Daemon),
}

impl Target {
    /// Opens the target. Never waits for a reader.
    pub(crate) fn open(&self) -> io::Result<Out> {
        let fd = match self {
            Target::Stderr => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?,
            Target::Stdout => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?,
            Target::File(path) => open_file(path)?,
            Target::Daemon(daemon) => {
                return Ok(Out { fd: connect(&daemon.socket)?, kind: Kind::Daemon });
            }
        };
        let is_file = rustix::fs::fstat(&fd)
            .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
        Ok(Out { fd, kind: if is_file { Kind::File } else { Kind::Stream } })
    }
}

/// Connects a new socket. It is not shared, so it can be non-blocking and report "no room" instead
/// of waiting.
fn connect(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn open_file(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags =
        OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |access| rustix::fs::open(path, flags | access, Mode::from_raw_mode(0o666));
    let is_pipe =
        rustix::fs::stat(path).is_ok_and(|s| FileType::from_raw_mode(s.st_mode).is_fifo());
    if is_pipe {
        // The log also holds a read end, so readers can come and go. Lines written meanwhile wait
        // in the pipe.
        return open(OFlags::RDWR).or_else(|_| open(OFlags::WRONLY));
    }
    open(OFlags::WRONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_without_reader_opens_immediately() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
        let pipe = Target::File(path).open().unwrap();
        assert_eq!(rustix::io::write(&pipe.fd, b"line\n"), Ok(5));
    }

    #[test]
    fn existing_file_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in [b"one\n", b"two\n"] {
            let out = Target::File(path.clone()).open().unwrap();
            assert_eq!(out.kind, Kind::File);
            rustix::io::write(&out.fd, line).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert!(Target::File(folder.path().to_owned()).open().is_err());
    }
}
