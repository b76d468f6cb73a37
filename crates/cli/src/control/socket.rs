//! The file that clients of the control socket connect to.

use anyhow::{Context, Result, bail};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A bound socket, whose file is removed in the end.
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
    /// Binds `path`; a socket that a dead server left there is replaced, a living server's is not.
    pub(crate) fn bind(path: &Path) -> Result<Socket> {
        let what = || format!("cannot open the control socket `{}`", path.display());
        if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                bail!(
                    "{}: another server answers there\nhint: `samovar stop --control {}`, or choose another --control",
                    what(),
                    path.display()
                );
            }
            std::fs::remove_file(path).with_context(what)?;
        }
        let hint = "hint: --control SOCKET must name a file in a folder that exists and is yours";
        let listener =
            UnixListener::bind(path).map_err(|e| anyhow::anyhow!("{}: {e}\n{hint}", what()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .with_context(what)?;
        Ok(Socket { listener, path: path.to_owned(), is_ours: AtomicBool::new(true) })
    }

    /// One that another server has bound, and which stays its own until [`Self::own`].
    pub(crate) fn take((path, listener): (PathBuf, UnixListener)) -> Socket {
        Socket { listener, path, is_ours: AtomicBool::new(false) }
    }

    /// Whether the file goes with this.
    pub(crate) fn own(&self, is_ours: bool) {
        self.is_ours.store(is_ours, Ordering::Release);
    }

    /// The end: its file goes, if it is this server's.
    pub(crate) fn remove(&self) {
        if self.is_ours.swap(false, Ordering::AcqRel) {
            // Gone already is as good.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// A copy, for a server that is to take over.
    pub(crate) fn copy(&self) -> std::io::Result<OwnedFd> {
        Ok(self.listener.try_clone()?.into())
    }
}
