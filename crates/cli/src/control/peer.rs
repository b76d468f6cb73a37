//! Who asks: whether a client of the control socket is one of the server's own processes, such as a request's.

use rustix::net::sockopt::socket_peercred;
use std::os::unix::net::UnixStream;

/// Generations of parents that are looked at.
const ANCESTORS_MAX: usize = 64;

/// The process that has connected.
pub(super) fn process(stream: &UnixStream) -> Option<i32> {
    socket_peercred(stream).ok().map(|peer| peer.pid.as_raw_nonzero().get())
}

/// Whether it descends from one of `servers`. Orphans do, too: a server adopts those of its workers. Who is not known does.
pub(super) fn descends(process: Option<i32>, servers: &[i32]) -> bool {
    let Some(mut pid) = process else { return true };
    for _ in 0..ANCESTORS_MAX {
        if servers.contains(&pid) {
            return true;
        }
        match parent(pid) {
            None => return true,
            Some(0 | 1) => return false,
            Some(next) => pid = next,
        }
    }
    true
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind its name, which may have anything in it, and its state.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_processes_are_known() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let (stream, _other) = UnixStream::pair().expect("sockets");
        assert_eq!(process(&stream), Some(own));
        assert!(descends(Some(own), &[own]));
        assert!(!descends(Some(own), &[i32::MAX]));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("a child");
        let pid = i32::try_from(child.id()).expect("a process id");
        assert!(descends(Some(pid), &[own]) && !descends(Some(own), &[pid]));
        child.kill().and_then(|()| child.wait()).expect("our own child");
        // Nobody knows any more whose it was.
        assert!(descends(Some(pid), &[i32::MAX]) && descends(None, &[i32::MAX]));
    }
}
