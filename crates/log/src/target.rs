//! Where a log goes.

use crate::record;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A target that is open.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) fd: OwnedFd,
    pub(crate) kind: Kind,
}

/// How it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It never waits for room.
    File,
    /// A pipe, a terminal, a socket.
    Stream,
    /// A record is a datagram.
    Daemon,
}

/// A daemon that keeps the machine's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its socket for datagrams.
    pub socket: PathBuf,
    /// Who speaks, in its files.
    pub tag: &'static str,
    /// How it is spoken to.
    pub notation: Notation,
}

/// What a daemon for logs understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// As syslog(3) speaks.
    Syslog {
        /// The facility's number there.
        facility: u8,
    },
    /// systemd-journald's native protocol.
    Journal,
}

impl Daemon {
    /// The datagrams that tell it this record.
    pub(crate) fn datagrams(&self, record: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let (severity, text) = record::dissect(record);
        // A line for people begins with the server's name, which the tag is.
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

/// Where lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard error, shared with whoever started the server.
    Stderr,
    /// Standard output, likewise.
    Stdout,
    /// The end of a file; a named pipe may be one.
    File(PathBuf),
    /// The machine's own log.
    Daemon(Daemon),
}

impl Target {
    /// Never waits for somebody to read.
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

/// The socket's own, so that it may say "no room" instead of waiting.
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
        // With a reading end of our own, readers may come and go: what they miss meanwhile waits in the pipe.
        return open(OFlags::RDWR).or_else(|_| open(OFlags::WRONLY));
    }
    open(OFlags::WRONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_reader_opens_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
        let pipe = Target::File(path).open().unwrap();
        assert_eq!(rustix::io::write(&pipe.fd, b"line\n"), Ok(5));
    }

    #[test]
    fn a_file_is_continued() {
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
