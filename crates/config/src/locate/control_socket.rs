//! Path of the control socket: the server creates it there, and `status` and `stop` look for it
//! there.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// Returns the folder of control sockets: `$XDG_RUNTIME_DIR` if this user owns it, else
/// `/tmp/samovar-UID`.
fn control_dir() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    // A server that has switched from root to another user still has root's variables.
    let is_anothers = |folder: &PathBuf| folder.metadata().is_ok_and(|found| found.uid() != uid);
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    control_dir_in(runtime.filter(|folder| !is_anothers(folder)), uid)
}

fn control_dir_in(runtime: Option<PathBuf>, uid: u32) -> PathBuf {
    match runtime {
        Some(folder) if folder.is_absolute() => folder,
        _ => PathBuf::from(format!("/tmp/samovar-{uid}")),
    }
}

/// Returns the socket of the server whose first listener has this port (the actual one, not 0).
pub fn default_control_path(port: u16) -> PathBuf {
    control_dir().join(format!("samovar-{port}.sock"))
}

/// Creates [`control_dir`] with mode 0700 if it does not exist.
///
/// # Errors
/// The folder belongs to another user: every user can create a folder in `/tmp` and wait for
/// sockets.
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
    // Not `metadata`: a symbolic link could lead to a folder that another user chose.
    let found = folder.symlink_metadata()?;
    let open_to_others = found.permissions().mode() & 0o022 != 0;
    if !found.is_dir() || found.uid() != uid || open_to_others {
        let message = format!("`{}` is not a private folder of this user", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

/// Returns the socket of the only running server, for `status` and `stop` without `--control`.
///
/// If root has no socket of its own, the folders of all users are searched. A server that has
/// switched to another user has its socket in that user's folder.
pub fn discover_control() -> Result<PathBuf, Problem> {
    let own = control_dir();
    if !rustix::process::getuid().is_root() || !sockets_in(&own).is_empty() {
        return discover_in(&[own]);
    }
    let others = folders_of_others(Path::new("/tmp"));
    discover_in(&[vec![own], others].concat())
}

/// Returns the folders that [`make_control_dir`] creates for users, if no other user can have put a
/// socket into them.
fn folders_of_others(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).filter(|f| is_private(f)).collect();
    folders.retain(|folder| *folder != control_dir());
    folders.sort();
    folders
}

/// Whether the folder is named `samovar-UID`, belongs to that user, and is not writable for others.
fn is_private(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let uid = name.strip_prefix("samovar-").and_then(|uid| uid.parse::<u32>().ok());
    folder.symlink_metadata().is_ok_and(|found| {
        found.is_dir() && Some(found.uid()) == uid && found.permissions().mode() & 0o022 == 0
    })
}

fn discover_in(folders: &[PathBuf]) -> Result<PathBuf, Problem> {
    let mut sockets: Vec<_> = folders.iter().flat_map(|folder| sockets_in(folder)).collect();
    if sockets.len() > 1 {
        // A killed server leaves its socket file; connecting to it fails.
        sockets.retain(|socket| UnixStream::connect(socket).is_ok());
    }
    match sockets.as_slice() {
        [socket] => Ok(socket.clone()),
        [] => Err(Problem::new(
            format!("no server is running: no control socket in {}", quoted(folders)),
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
    fn control_dir_is_runtime_dir_or_tmp() {
        let check = |runtime: Option<&str>, expected: &str| {
            assert_eq!(control_dir_in(runtime.map(PathBuf::from), 1000), Path::new(expected));
        };
        check(Some("/run/user/1000"), "/run/user/1000");
        check(Some("relative"), "/tmp/samovar-1000");
        check(Some(""), "/tmp/samovar-1000");
        check(None, "/tmp/samovar-1000");
    }

    #[test]
    fn discover_finds_the_only_running_server() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("other.sock"), "").unwrap();
        let error = discover_in(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.message.starts_with("no server is running"), "{error}");

        let first = folder.path().join("samovar-8080.sock");
        let _first = UnixListener::bind(&first).unwrap();
        assert_eq!(discover_in(&[folder.path().to_owned()]), Ok(first.clone()));

        let second = folder.path().join("samovar-8081.sock");
        let listener = UnixListener::bind(&second).unwrap();
        let error = discover_in(&[folder.path().to_owned()]).unwrap_err();
        let both = format!("`{}`, `{}`", first.display(), second.display());
        assert_eq!(error.message, format!("2 servers are running: {both}"));
        assert_eq!(error.hint, "name the socket of one with --control SOCKET");

        drop(listener);
        assert_eq!(discover_in(&[folder.path().to_owned()]), Ok(first));
    }

    #[test]
    fn discover_ignores_folders_writable_for_others() {
        let parent = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        let own = parent.path().join(format!("samovar-{uid}"));
        for folder in [&own, &parent.path().join(format!("samovar-{}", uid + 1))] {
            std::fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
        }
        std::fs::create_dir(parent.path().join("samovar-x")).unwrap();
        assert_eq!(folders_of_others(parent.path()), std::slice::from_ref(&own));
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(folders_of_others(parent.path()), Vec::<PathBuf>::new());
    }

    #[test]
    fn control_dir_of_another_user_is_refused() {
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
