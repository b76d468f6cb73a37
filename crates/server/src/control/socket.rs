//! File of the control socket.

use anyhow::{Context, Result, bail};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A bound socket. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) listener: UnixListener,
    pub(crate) path: PathBuf,
    is_ours: AtomicBool,
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
            if UnixStream::connect(path).is_ok() {
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
