//! What a process waits for, in words: its system call, the descriptor in it, and who is at that one's other end.
//!
//! All of it is read from outside, from `/proc` and by crates/spy, and may be gone or forbidden; then less is said.

use crate::os;
use samovar_spy::{Doing, Subject, doing};
use std::fs::{read_link, read_to_string};
use std::os::fd::OwnedFd;

/// Descriptors of one call that are named.
const DESCRIPTORS_MAX: usize = 4;
/// Longest text about one descriptor, characters.
const NAME_CHARS_MAX: usize = 200;

/// What the process does.
pub(crate) fn scene(pid: i32, process: &OwnedFd) -> String {
    let of = |name: &str| read_to_string(format!("/proc/{pid}/{name}"));
    // The state stands behind the name, which may hold anything but is in brackets.
    let stat = of("stat").unwrap_or_default();
    match stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
        Some('T' | 't') => return "it is stopped, by a signal or a debugger".to_owned(),
        Some('Z' | 'X') | None => return "it has just ended".to_owned(),
        _ => {}
    }
    let place = of("wchan").unwrap_or_default();
    let place = Some(place.trim()).filter(|place| !matches!(*place, "" | "0"));
    let behind = place.map_or(String::new(), |place| format!(" (in the kernel: {place})"));
    match doing(pid.unsigned_abs(), pid.unsigned_abs()) {
        None => format!("unknown: its /proc/PID/syscall cannot be read{behind}"),
        Some(Doing::Running) => "it computes, in no system call".to_owned(),
        Some(Doing::Elsewhere) => format!("it waits in no system call{behind}"),
        Some(Doing::Call { number, name: None, .. }) => {
            format!("it is in system call {number}{behind}")
        }
        Some(Doing::Call { name: Some(name), subject, .. }) => {
            format!("it is in {name}{}{behind}", about(&subject, pid, process))
        }
    }
}

/// What the call is about: ` of …`, or nothing.
fn about(subject: &Subject, pid: i32, process: &OwnedFd) -> String {
    let found = match subject {
        Subject::Nothing => return String::new(),
        Subject::Process(child) => return format!(" (process {child})"),
        Subject::Path(path) => return format!(" of {}", short(path)),
        Subject::Descriptors(found) => found,
    };
    let named = found.iter().take(DESCRIPTORS_MAX).map(|fd| name_of(pid, process, *fd));
    let named: Vec<String> = named.collect();
    match found.len().saturating_sub(DESCRIPTORS_MAX) {
        0 if named.is_empty() => String::new(),
        0 => format!(" of {}", named.join(", ")),
        more => format!(" of {} and {more} others", named.join(", ")),
    }
}

/// `descriptor 7: a connection to 127.0.0.1:3306`.
fn name_of(pid: i32, process: &OwnedFd, fd: i32) -> String {
    let link = read_link(format!("/proc/{pid}/fd/{fd}"));
    let target = link.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
    let what = match target.as_str() {
        "" => "unknown".to_owned(),
        socket if socket.starts_with("socket:") => match os::peer_of(process, fd) {
            Some(peer) => format!("a connection to {peer}"),
            None => socket.to_owned(),
        },
        other => other.to_owned(),
    };
    format!("descriptor {fd}: {}", short(&what))
}

fn short(text: &str) -> String {
    text.escape_debug().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command, Stdio};

    /// The scene of a child, once it is what is expected.
    fn check(child: &mut Child, expected: &str) {
        let pid = child.id().cast_signed();
        let process = os::open_process(pid).expect("our child");
        let mut last = String::new();
        for _ in 0..2_000_000 {
            last = scene(pid, &process);
            if last.contains(expected) {
                break;
            }
            std::thread::yield_now();
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(last.contains(expected), "{last:?}, not {expected:?}");
        assert_eq!(scene(pid, &process), "it has just ended");
    }

    fn shell(command: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::null());
        shell.spawn().expect("a shell")
    }

    #[test]
    fn what_processes_wait_for() {
        check(&mut shell("exec cat"), "it is in read of descriptor 0: pipe:[");
        check(&mut shell("exec sleep 600"), "it is in sleep");
        check(&mut shell("kill -STOP $$"), "it is stopped");
        check(&mut shell("while :; do :; done"), "it computes");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        let path = path.display();
        check(&mut shell(&format!("exec cat < {path}")), &format!("it is in open of {path}"));
    }

    #[test]
    fn who_is_at_the_other_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("itself");
        let (mut served, _) = listener.accept().expect("the client");
        let ours = OwnedFd::from(client.try_clone().expect("a copy"));
        let mut child = Command::new("cat").stdin(Stdio::from(ours)).spawn().expect("cat");
        check(&mut child, &format!("read of descriptor 0: a connection to {address}"));
        // Looking has changed nothing.
        served.write_all(b"x").expect("it is open");
        assert_eq!(client.read(&mut [0; 2]).expect("it is open"), 1);
    }
}
