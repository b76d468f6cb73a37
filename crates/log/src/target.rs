//! Where a log goes.

use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A target that is open.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) fd: OwnedFd,
    /// One that never waits for room.
    pub(crate) is_file: bool,
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
}

impl Target {
    /// Never waits for somebody to read.
    pub(crate) fn open(&self) -> io::Result<Out> {
        let fd = match self {
            Target::Stderr => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?,
            Target::Stdout => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?,
            Target::File(path) => open_file(path)?,
        };
        let is_file = rustix::fs::fstat(&fd)
            .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
        Ok(Out { fd, is_file })
    }
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
            assert!(out.is_file);
            rustix::io::write(&out.fd, line).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert!(Target::File(folder.path().to_owned()).open().is_err());
    }
}
