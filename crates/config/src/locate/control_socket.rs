//! Path of the control socket: the server creates it there, and `status` and `stop` look for it
//! there.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// Folder for control sockets of users without `$XDG_RUNTIME_DIR`.
const TEMPORARY: &str = "/tmp";
/// Parent of the folders of services: `samovar`, and `samovar-NAME` of a unit `samovar@NAME`.
const SERVICES: &str = "/run";
/// Name of the control socket in the folder of a service.
const SERVICE_SOCKET: &str = "control.sock";
/// Length of the random end of a folder's name.
const SUFFIX_CHARS: usize = 8;

/// Returns `$XDG_RUNTIME_DIR` if this user owns it: a server that has switched from root to another
/// user still has root's variables.
fn runtime_dir(uid: u32) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let is_anothers = folder.metadata().is_ok_and(|found| found.uid() != uid);
    (folder.is_absolute() && !is_anothers).then_some(folder)
}

/// Returns the folders of this user's control sockets: `$XDG_RUNTIME_DIR`, else `/tmp/samovar-UID`
/// and its substitutes.
fn control_dirs() -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    match runtime_dir(uid) {
        Some(folder) => vec![folder],
        None => private_folders(Path::new(TEMPORARY), Some(uid)),
    }
}

/// Returns the socket of the server whose first listener has this port (the actual one, not 0), in
/// a folder of [`make_control_dir`].
pub fn control_path(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!("samovar-{port}.sock"))
}

/// Returns the folder for control sockets. Creates it with mode 0700 if it does not exist.
pub fn make_control_dir() -> io::Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    match runtime_dir(uid) {
        Some(folder) => make_private(&folder, uid).map(|()| folder),
        None => make_in(Path::new(TEMPORARY), uid),
    }
}

/// Returns this user's folder in `parent`, in which every user can create files. If another user
/// has created one of that name, a substitute with a random name is used.
fn make_in(parent: &Path, uid: u32) -> io::Result<PathBuf> {
    let usual = parent.join(format!("samovar-{uid}"));
    if make_private(&usual, uid).is_ok() {
        return Ok(usual);
    }
    if let Some(substitute) = private_folders(parent, Some(uid)).pop() {
        return Ok(substitute);
    }
    let suffix: String = (0..SUFFIX_CHARS).map(|_| fastrand::alphanumeric()).collect();
    let substitute = parent.join(format!("samovar-{uid}-{suffix}"));
    make_private(&substitute, uid)?;
    Ok(substitute)
}

/// Creates the folder, or checks that it belongs to this user alone: every user can create a folder
/// in `/tmp` and wait for sockets.
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
    discover_in(&folders_to_search())
}

/// Returns the socket of the running server whose first address has this port.
pub fn discover_control_of(port: u16) -> Result<PathBuf, Problem> {
    discover_port_in(&folders_to_search(), port)
}

/// Returns the control sockets of all servers that this user may ask.
pub fn discover_all_controls() -> Vec<PathBuf> {
    let mut folders = control_dirs();
    let own = rustix::process::getuid();
    let user = (!own.is_root()).then(|| own.as_raw());
    let others = private_folders(Path::new(TEMPORARY), user);
    folders
        .extend(others.into_iter().filter(|folder| !folders.contains(folder)).collect::<Vec<_>>());
    folders.extend(service_folders(Path::new(SERVICES)));
    answering_in(&folders)
}

fn folders_to_search() -> Vec<PathBuf> {
    let own = control_dirs();
    let services = service_folders(Path::new(SERVICES));
    let has_own = own.iter().any(|folder| !sockets_in(folder).is_empty());
    if !rustix::process::getuid().is_root() || has_own {
        return [own, services].concat();
    }
    let mut all = private_folders(Path::new(TEMPORARY), None);
    all.retain(|folder| !own.contains(folder));
    [own, all, services].concat()
}

/// Returns the folders of services that have a socket. Only root can create a folder in `/run`.
/// Folders that this user may not enter are left out.
fn service_folders(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries
        .filter(|entry| {
            let name = entry.file_name();
            name == "samovar" || name.to_str().is_some_and(|name| name.starts_with("samovar-"))
        })
        .map(|entry| entry.path())
        .filter(|folder| folder.join(SERVICE_SOCKET).exists())
        .collect();
    folders.sort();
    folders
}

/// Returns the folders in `parent` that [`make_in`] creates for one user or all users, if no other
/// user can have put a socket into them.
fn private_folders(parent: &Path, user: Option<u32>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|folder| is_private(folder, user)).collect();
    folders.sort();
    folders
}

/// Whether the folder is named `samovar-UID` or `samovar-UID-…`, belongs to that user, and is not
/// writable for others.
fn is_private(folder: &Path, user: Option<u32>) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let uid = name.strip_prefix("samovar-").and_then(|rest| rest.split('-').next());
    let uid = uid.and_then(|uid| uid.parse::<u32>().ok());
    uid.is_some()
        && user.is_none_or(|user| uid == Some(user))
        && folder.symlink_metadata().is_ok_and(|found| {
            found.is_dir() && Some(found.uid()) == uid && found.permissions().mode() & 0o022 == 0
        })
}

fn discover_in(folders: &[PathBuf]) -> Result<PathBuf, Problem> {
    match running_in(folders).as_slice() {
        [socket] => Ok(socket.clone()),
        [] => Err(none_in(folders)),
        several => Err(Problem::new(
            format!("{} servers are running: {}", several.len(), listed(several)),
            "name the port of one with --listen PORT, or its socket with --control SOCKET",
        )),
    }
}

fn discover_port_in(folders: &[PathBuf], port: u16) -> Result<PathBuf, Problem> {
    let mut found = running_in(folders);
    let others = listed(&found);
    found.retain(|socket| port_of(socket) == Some(port));
    match found.as_slice() {
        [socket] => Ok(socket.clone()),
        [] if others.is_empty() => Err(none_in(folders)),
        [] => Err(Problem::new(
            format!("no server with the port {port} is running; running: {others}"),
            "name the port of the first address in `listen`, or the socket with --control SOCKET",
        )),
        several => Err(Problem::new(
            format!("{} servers have the port {port}: {}", several.len(), listed(several)),
            "name the socket of one with --control SOCKET",
        )),
    }
}

/// Returns the sockets. If there are several, only those of running servers: a killed server leaves
/// its socket file, and connecting to it fails.
fn running_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut sockets: Vec<_> = folders.iter().flat_map(|folder| sockets_in(folder)).collect();
    if sockets.len() > 1 {
        sockets.retain(|socket| UnixStream::connect(socket).is_ok());
    }
    sockets
}

/// Returns the sockets of running servers: a killed server leaves its socket file.
fn answering_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let sockets = folders.iter().flat_map(|folder| sockets_in(folder));
    sockets.filter(|socket| UnixStream::connect(socket).is_ok()).collect()
}

fn none_in(folders: &[PathBuf]) -> Problem {
    let folders = if folders.is_empty() { format!("`{TEMPORARY}`") } else { quoted(folders) };
    Problem::new(
        format!("no server is running: no control socket in {folders}"),
        "name the socket of a server that runs elsewhere with --control SOCKET",
    )
}

/// Returns the port in the name of a socket; 0: the server has no port.
fn port_of(socket: &Path) -> Option<u16> {
    socket.file_stem()?.to_str()?.strip_prefix("samovar-")?.parse().ok()
}

/// Lists servers by port and socket.
fn listed(sockets: &[PathBuf]) -> String {
    let one = |socket: &PathBuf| {
        let port = port_of(socket).filter(|port| *port != 0);
        let port = port.map_or(String::new(), |port| format!("port {port}, "));
        format!("{port}socket `{}`", socket.display())
    };
    sockets.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<_> = entries.map(|e| e.path()).filter(|path| is_socket(path)).collect();
    sockets.sort();
    sockets
}

fn is_socket(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == SERVICE_SOCKET) {
        return true;
    }
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
        let both = format!(
            "port 8080, socket `{}`; port 8081, socket `{}`",
            first.display(),
            second.display()
        );
        assert_eq!(error.message, format!("2 servers are running: {both}"));
        assert_eq!(
            error.hint,
            "name the port of one with --listen PORT, or its socket with --control SOCKET"
        );
        let folders = [folder.path().to_owned()];
        assert_eq!(discover_port_in(&folders, 8081), Ok(second.clone()));
        let error = discover_port_in(&folders, 80).unwrap_err();
        let expected = format!("no server with the port 80 is running; running: {both}");
        assert_eq!(error.message, expected);

        assert_eq!(answering_in(&folders), [first.clone(), second]);

        drop(listener);
        assert_eq!(answering_in(&folders), std::slice::from_ref(&first));
        assert_eq!(discover_in(&[folder.path().to_owned()]), Ok(first));
    }

    #[test]
    fn discover_finds_servers_of_services() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| parent.path().join(name);
        for name in ["samovar", "samovar-shop", "samovar-stopped", "other"] {
            std::fs::create_dir(folder(name)).unwrap();
        }
        let bind = |name: &str| UnixListener::bind(folder(name).join("control.sock")).unwrap();
        let _sockets = ["samovar", "samovar-shop", "other"].map(bind);
        let found = service_folders(parent.path());
        assert_eq!(found, [folder("samovar"), folder("samovar-shop")]);
        let shop = folder("samovar-shop");
        assert_eq!(discover_in(std::slice::from_ref(&shop)), Ok(shop.join("control.sock")));
        let error = discover_in(&found).unwrap_err();
        let expected = format!("socket `{}`", shop.join("control.sock").display());
        assert!(error.message.ends_with(&expected), "{error}");
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
        for user in [None, Some(uid)] {
            assert_eq!(private_folders(parent.path(), user), std::slice::from_ref(&own));
        }
        assert_eq!(private_folders(parent.path(), Some(uid + 1)), Vec::<PathBuf>::new());
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(private_folders(parent.path(), None), Vec::<PathBuf>::new());
    }

    #[test]
    fn folder_of_another_user_is_replaced_by_a_private_one() {
        let parent = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        let usual = parent.path().join(format!("samovar-{uid}"));
        // Another user can make the name unusable in any of these ways; a file is one of them.
        std::fs::write(&usual, "").unwrap();
        let substitute = make_in(parent.path(), uid).unwrap();
        assert_ne!(substitute, usual);
        assert_eq!(substitute.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(make_in(parent.path(), uid).unwrap(), substitute);
        assert_eq!(private_folders(parent.path(), Some(uid)), [substitute]);
        std::fs::remove_file(&usual).unwrap();
        assert_eq!(make_in(parent.path(), uid).unwrap(), usual);
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
