//! Describes where a process waits: its system call, the descriptor in it, and the peer of that
//! descriptor.
//!
//! All information is read from outside, from `/proc` and by crates/spy. Parts that are gone or
//! forbidden are left out. Files are described by their class: the path of a session file is a
//! secret.

use crate::os;
use samovar_log::FileClass;
use samovar_spy::{Doing, Subject, doing};
use std::fs::{read_link, read_to_string};
use std::os::fd::OwnedFd;

/// Maximum number of described descriptors per call.
const DESCRIPTORS_MAX: usize = 4;
/// Maximum length of the text about one descriptor, in characters.
const NAME_CHARS_MAX: usize = 200;

/// Describes the current activity of the process.
pub(crate) fn scene(pid: i32, process: &OwnedFd) -> String {
    let of = |name: &str| read_to_string(format!("/proc/{pid}/{name}"));
    // The state follows the name, which is in brackets and may contain any character.
    let stat = of("stat").unwrap_or_default();
    match stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
        Some('T' | 't') => return "stopped by a signal or a debugger".to_owned(),
        Some('Z' | 'X') | None => return "exited".to_owned(),
        _ => {}
    }
    let place = of("wchan").unwrap_or_default();
    let place = Some(place.trim()).filter(|place| !matches!(*place, "" | "0"));
    let in_kernel = place.map_or(String::new(), |place| format!(" (in the kernel: {place})"));
    match doing(pid.unsigned_abs(), pid.unsigned_abs()) {
        None => format!("unknown: its /proc/PID/syscall cannot be read{in_kernel}"),
        Some(Doing::Running) => "computing, in no system call".to_owned(),
        Some(Doing::Elsewhere) => format!("waiting in no system call{in_kernel}"),
        Some(Doing::Call { number, name: None, .. }) => {
            format!("in system call {number}{in_kernel}")
        }
        Some(Doing::Call { name: Some(name), subject, .. }) => {
            format!("in {name}{}{in_kernel}", about(&subject, pid, process))
        }
    }
}

/// Describes the subject of the call: ` of …`, or an empty text.
fn about(subject: &Subject, pid: i32, process: &OwnedFd) -> String {
    let found = match subject {
        Subject::Nothing => return String::new(),
        Subject::Process(child) => return format!(" (process {child})"),
        Subject::Path(path) => return format!(" of {}", short(&class(path))),
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

/// Formats as `descriptor 7: a connection to 127.0.0.1:3306`.
fn name_of(pid: i32, process: &OwnedFd, fd: i32) -> String {
    let link = read_link(format!("/proc/{pid}/fd/{fd}"));
    let target = link.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
    let what = match target.as_str() {
        "" => "unknown".to_owned(),
        socket if socket.starts_with("socket:") => match os::peer_of(process, fd) {
            Some(peer) => format!("a connection to {}", class(&peer)),
            None => socket.to_owned(),
        },
        other => class(other),
    };
    format!("descriptor {fd}: {}", short(&what))
}

/// Returns the class of a path, or the text if it is no path.
fn class(text: &str) -> String {
    if !text.starts_with(['/', '@']) {
        return text.to_owned();
    }
    String::from_utf8_lossy(FileClass::of(text.as_bytes()).bytes()).into_owned()
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

    /// Waits until the description of a child is the expected one.
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
        assert_eq!(scene(pid, &process), "exited");
    }

    fn shell(command: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::null());
        shell.spawn().expect("a shell")
    }

    #[test]
    fn scene_describes_where_process_waits() {
        check(&mut shell("exec cat"), "in read of descriptor 0: pipe:[");
        check(&mut shell("exec sleep 600"), "in sleep");
        check(&mut shell("kill -STOP $$"), "stopped by");
        check(&mut shell("while :; do :; done"), "computing");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        check(&mut shell(&format!("exec cat < {}", path.display())), "in open of /");
        let session = folder.path().join("sess_4f1b2c3d4e5f60718293a4b5c6");
        std::fs::rename(&path, &session).expect("a new name");
        let opened = format!("exec cat < {}", session.display());
        check(&mut shell(&opened), "in open of session file");
    }

    #[test]
    fn scene_names_peer_of_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("itself");
        let (mut served, _) = listener.accept().expect("the client");
        let ours = OwnedFd::from(client.try_clone().expect("a copy"));
        let mut child = Command::new("cat").stdin(Stdio::from(ours)).spawn().expect("cat");
        check(&mut child, &format!("read of descriptor 0: a connection to {address}"));
        // The inspection has consumed no data.
        served.write_all(b"x").expect("it is open");
        assert_eq!(client.read(&mut [0; 2]).expect("it is open"), 1);
    }
}
