//! Running servers of this machine: each could serve visitors, so none gets load by mistake.

use crate::control_client::{self, understand};
use samovar_wire::{Request, Status};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of each server for its status.
const STATUS_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of servers that are asked.
const SERVERS_MAX: usize = 64;

/// A running server.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    /// Its control socket.
    pub(super) control: PathBuf,
    /// Its addresses, those of the admin listener included.
    pub(super) listen: Vec<String>,
    /// File of its history; empty: none.
    pub(super) history: PathBuf,
}

impl Running {
    pub(super) fn new(control: PathBuf, status: &Status) -> Running {
        let listen = status.listen.iter().chain(&status.admin).cloned().collect();
        Running { control, listen, history: status.history_file.clone().into() }
    }
}

/// Returns the servers that can be found. A server that does not respond counts with the port in
/// the name of its socket.
pub(super) fn find() -> Vec<Running> {
    let sockets = samovar_config::discover_all_controls();
    sockets.into_iter().take(SERVERS_MAX).map(asked).collect()
}

/// Returns the only server other than the one that gets the load.
pub(super) fn only_other(found: &[Running], second: &Path) -> Option<PathBuf> {
    let mut others = found.iter().filter(|one| !is_same_file(&one.control, second));
    let only = others.next()?;
    others.next().is_none().then(|| only.control.clone())
}

fn asked(control: PathBuf) -> Running {
    let line = control_client::ask(&control, &Request::Status, STATUS_LIMIT);
    match line.and_then(|line| understand::<Status>(&line)) {
        Ok(status) => Running::new(control, &status),
        Err(_) => Running { listen: port_in_name(&control), control, ..Running::default() },
    }
}

/// All addresses with the port in the name of a socket such as `samovar-8080.sock`.
fn port_in_name(control: &Path) -> Vec<String> {
    let stem = control.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let port = stem.strip_prefix("samovar-").and_then(|port| port.parse::<u16>().ok());
    port.map(|port| format!("[::]:{port}")).into_iter().collect()
}

/// Whether both paths lead to the same file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    one == other || id(one).is_some_and(|found| id(other) == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_server_has_the_port_of_its_name() {
        for (path, expected) in [
            ("/run/user/1/samovar-8080.sock", &["[::]:8080"][..]),
            ("/run/samovar/control.sock", &[]),
            ("/tmp/samovar-x.sock", &[]),
        ] {
            assert_eq!(port_in_name(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn measured_server_is_not_the_planned_one() {
        let running = |path: &str| Running { control: path.into(), ..Running::default() };
        let (first, second, third) = (running("/a"), running("/b"), running("/c"));
        let of_b = |found: &[Running]| only_other(found, Path::new("/b"));
        assert_eq!(of_b(&[first.clone(), second.clone()]), Some("/a".into()));
        assert_eq!(of_b(std::slice::from_ref(&second)), None);
        assert_eq!(of_b(&[first, second, third]), None);
    }

    #[test]
    fn links_lead_to_the_same_file() {
        let own = std::env::current_exe().expect("a test has a file");
        assert!(is_same_file(&own, Path::new("/proc/self/exe")));
        assert!(!is_same_file(&own, Path::new("/proc/self/status")));
        assert!(!is_same_file(Path::new("/none/a"), Path::new("/none/b")));
    }
}
