//! File of the control socket.

use anyhow::{Context, Result, bail};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for which a process that a killed server was starting may still hold its socket.
const RELEASE_LIMIT: Duration = Duration::from_millis(500);
const RELEASE_LOOK: Duration = Duration::from_millis(10);

/// A bound socket. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) listener: UnixListener,
    pub(crate) path: PathBuf,
    is_ours: AtomicBool,
}

/// Returns whether a server listens there. The child of a killed server has its descriptors between
/// its fork and its exec.
fn is_served(path: &Path) -> bool {
    let until = Instant::now() + RELEASE_LIMIT;
    while UnixStream::connect(path).is_ok() {
        if Instant::now() > until {
            return true;
        }
        std::thread::sleep(RELEASE_LOOK);
    }
    false
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Socket {
    /// Binds `path`. A socket of an ended server is replaced, a running server's is not.
    pub(crate) fn bind(path: &Path) -> Result<Socket> {
        let what = || format!("cannot open the control socket `{}`", path.display());
        if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            if is_served(path) {
                bail!(
                    "{}: another server listens there\nhint: `samovar stop --control {}`, or \
                     choose another --control",
                    what(),
                    path.display()
                );
            }
            std::fs::remove_file(path).with_context(what)?;
        }
        let hint =
            "hint: --control SOCKET must be a file in an existing folder that belongs to this user";
        let listener =
            UnixListener::bind(path).map_err(|e| anyhow::anyhow!("{}: {e}\n{hint}", what()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .with_context(what)?;
        Ok(Socket { listener, path: path.to_owned(), is_ours: AtomicBool::new(true) })
    }

    /// Uses a socket that another server has bound. The file belongs to that server until
    /// [`Self::own`].
    pub(crate) fn take((path, listener): (PathBuf, UnixListener)) -> Socket {
        Socket { listener, path, is_ours: AtomicBool::new(false) }
    }

    /// Sets whether the file belongs to this server and is removed with it.
    pub(crate) fn own(&self, is_ours: bool) {
        self.is_ours.store(is_ours, Ordering::Release);
    }

    /// Removes the file if it belongs to this server.
    pub(crate) fn remove(&self) {
        if self.is_ours.swap(false, Ordering::AcqRel) {
            // The file may be missing already; the error is ignored.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Returns a duplicate, for a server that takes over.
    pub(crate) fn copy(&self) -> std::io::Result<OwnedFd> {
        Ok(self.listener.try_clone()?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_that_a_child_of_a_killed_server_releases_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let held = UnixListener::bind(&path).expect("a socket");
        let refused = Socket::bind(&path).expect_err("it is served");
        assert!(refused.to_string().contains("another server listens there"), "{refused}");
        held.set_nonblocking(true).expect("a socket");
        while held.accept().is_ok() {}
        held.set_nonblocking(false).expect("a socket");
        // The first attempt to connect happens before the listener is closed.
        let release = std::thread::spawn(move || drop(held.accept().expect("the attempt")));
        let socket = Socket::bind(&path).expect("it is free");
        release.join().expect("no panic");
        drop(socket);
        assert!(!path.exists());
    }
}
