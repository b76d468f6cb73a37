//! Where the control socket lies: the server makes it there, `status` and `stop` look for it there.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// The folder of control sockets: `$XDG_RUNTIME_DIR`, else `/tmp/samovar-UID`.
pub fn control_dir() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    control_dir_in(runtime, rustix::process::getuid().as_raw())
}

fn control_dir_in(runtime: Option<PathBuf>, uid: u32) -> PathBuf {
    match runtime {
        Some(folder) if folder.is_absolute() => folder,
        _ => PathBuf::from(format!("/tmp/samovar-{uid}")),
    }
}

/// The socket of the server whose first listener has this port (the real one, not 0).
pub fn default_control_path(port: u16) -> PathBuf {
    control_dir().join(format!("samovar-{port}.sock"))
}

/// Makes [`control_dir`], with mode 0700, where it is missing.
///
/// # Errors
/// Where it belongs to somebody else: anybody can make a folder in `/tmp` and wait for sockets.
pub fn make_control_dir() -> io::Result<PathBuf> {
    let folder = control_dir();
    make_private(&folder, rustix::process::getuid().as_raw())?;
    Ok(folder)
}

fn make_private(folder: &Path, uid: u32) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Not `metadata`: a symbolic link would lead into a folder of another's choice.
    let found = folder.symlink_metadata()?;
    let open_to_others = found.permissions().mode() & 0o022 != 0;
    if !found.is_dir() || found.uid() != uid || open_to_others {
        let message = format!("`{}` is not a private folder of this user", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

/// The socket of the only server that runs, for `status` and `stop` without `--control`.
pub fn discover_control() -> Result<PathBuf, Problem> {
    discover_in(&control_dir())
}

fn discover_in(folder: &Path) -> Result<PathBuf, Problem> {
    let mut sockets = sockets_in(folder);
    if sockets.len() > 1 {
        // A server that was killed leaves its socket behind; nobody answers there.
        sockets.retain(|socket| UnixStream::connect(socket).is_ok());
    }
    match sockets.as_slice() {
        [socket] => Ok(socket.clone()),
        [] => Err(Problem::new(
            format!("no server is running: no control socket in `{}`", folder.display()),
            "name the socket of a server that runs elsewhere with --control SOCKET",
        )),
        several => Err(Problem::new(
            format!("{} servers are running: {}", several.len(), quoted(several)),
            "name the socket of one with --control SOCKET",
        )),
    }
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<_> = entries.map(|e| e.path()).filter(|path| is_socket(path)).collect();
    sockets.sort();
    sockets
}

fn is_socket(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.starts_with("samovar-") && path.extension().is_some_and(|end| end == "sock")
}

fn quoted(paths: &[PathBuf]) -> String {
    let quoted: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn folder_of_the_sockets() {
        let check = |runtime: Option<&str>, expected: &str| {
            assert_eq!(control_dir_in(runtime.map(PathBuf::from), 1000), Path::new(expected));
        };
        check(Some("/run/user/1000"), "/run/user/1000");
        check(Some("relative"), "/tmp/samovar-1000");
        check(Some(""), "/tmp/samovar-1000");
        check(None, "/tmp/samovar-1000");
    }

    #[test]
    fn the_only_socket_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("other.sock"), "").unwrap();
        let error = discover_in(folder.path()).unwrap_err();
        assert!(error.message.starts_with("no server is running"), "{error}");

        let first = folder.path().join("samovar-8080.sock");
        let _first = UnixListener::bind(&first).unwrap();
        assert_eq!(discover_in(folder.path()), Ok(first.clone()));

        let second = folder.path().join("samovar-8081.sock");
        let listener = UnixListener::bind(&second).unwrap();
        let error = discover_in(folder.path()).unwrap_err();
        let both = format!("`{}`, `{}`", first.display(), second.display());
        assert_eq!(error.message, format!("2 servers are running: {both}"));
        assert_eq!(error.hint, "name the socket of one with --control SOCKET");

        drop(listener);
        assert_eq!(discover_in(folder.path()), Ok(first));
    }

    #[test]
    fn a_folder_of_another_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("samovar-1");
        let uid = rustix::process::getuid().as_raw();
        make_private(&folder, uid).unwrap();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        make_private(&folder, uid).unwrap();
        assert!(make_private(&folder, uid + 1).is_err());

        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(make_private(&link, uid).is_err());

        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(make_private(&folder, uid).is_err());
    }
}
