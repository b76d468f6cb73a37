//! Processes: parents and children, their resources, and test processes that are still alive.

use crate::wait::WATCHDOG;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// Variable with the name of the test run that started a server. It is in the environment of the
/// server and so in that of all its processes. Samovar shows no `SAMOVAR_…` variable to PHP.
pub const RUN: &str = "SAMOVAR_TEST_RUN";

/// Variable with the name of the server that a process belongs to.
pub const SERVER: &str = "SAMOVAR_TEST_SERVER";

/// The value of [`RUN`]: from our own environment, or one with this process's id.
pub fn run() -> String {
    std::env::var(RUN).unwrap_or_else(|_| format!("test-{}", std::process::id()))
}

/// A test process that should have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its process id.
    pub pid: i32,
    command: String,
    state: String,
    waits_in: String,
    parent: i32,
    parent_name: String,
}

impl fmt::Display for Left {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Left { pid, command, state, waits_in, parent, parent_name } = self;
        write!(
            out,
            "process {pid}, state {state}, waits in {waits_in}, \
             parent {parent} ({parent_name}): {command}"
        )
    }
}

/// Processes of our binaries whose environment has `NAME=VALUE`.
pub fn with(name: &str, value: &str) -> Vec<Left> {
    let marker = format!("{name}={value}");
    all().into_iter().filter(|pid| is_ours(*pid, &marker)).filter_map(look).collect()
}

/// Waits until none of these processes is left. The error lists those that are.
pub fn gone(name: &str, value: &str) -> Result<(), Vec<Left>> {
    let start = Instant::now();
    loop {
        let left = with(name, value);
        if left.is_empty() {
            return Ok(());
        }
        if start.elapsed() > WATCHDOG / 2 {
            return Err(left);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("Linux has it");
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.collect()
}

fn is_ours(pid: i32, marker: &str) -> bool {
    // The link of a binary that was rebuilt ends with " (deleted)".
    let is_our_binary = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| {
        path.file_name().is_some_and(|name| {
            let name = name.as_bytes().strip_suffix(b" (deleted)").unwrap_or(name.as_bytes());
            name == b"samovar" || name.starts_with(b"samovar-php")
        })
    });
    is_our_binary
        && std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|one| one == marker.as_bytes()))
}

/// Details of a process; `None` if it has ended in the meantime.
fn look(pid: i32) -> Option<Left> {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let parent = parent_of(pid)?;
    let name = |pid: i32| read(pid, "comm").unwrap_or_else(|| "gone".to_owned());
    Some(Left {
        pid,
        command,
        state: state_of(pid)?,
        waits_in: read(pid, "wchan").unwrap_or_default(),
        parent,
        parent_name: name(parent),
    })
}

fn read(pid: i32, file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok().map(|text| text.trim().to_owned())
}

/// A line of `/proc/PID/status`; `None` if there is no such process.
fn line_of(pid: i32, key: &str) -> Option<String> {
    let text = read(pid, "status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Letter of its state: `S`, `R`, `T`, `Z`, …
pub fn state_of(pid: i32) -> Option<String> {
    Some(line_of(pid, "State")?.chars().take(1).collect())
}

/// Whether it runs; a zombie does not.
pub fn is_alive(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| state != "Z" && state != "X")
}

/// Its parent; `None` if there is no such process.
pub fn parent_of(pid: i32) -> Option<i32> {
    line_of(pid, "PPid")?.parse().ok()
}

/// Its children, without zombies.
pub fn children_of(parent: i32) -> Vec<i32> {
    let is_child = |pid: &i32| parent_of(*pid) == Some(parent) && is_alive(*pid);
    all().into_iter().filter(is_child).collect()
}

/// Resident memory in KB.
pub fn memory_kb(pid: i32) -> Option<u64> {
    line_of(pid, "VmRSS")?.split(' ').next()?.parse().ok()
}

/// Its resident memory as text: in total, anonymous, shared, and of files.
pub fn memory_told(pid: i32) -> String {
    let part = |key| format!("{key} {}", line_of(pid, key).unwrap_or_default());
    ["VmRSS", "RssAnon", "RssShmem", "RssFile"].map(part).join(", ")
}

/// Anonymous resident memory in bytes: not of a file and not shared.
pub fn own_memory_bytes(pid: i32) -> Option<u64> {
    let kilobytes: u64 = line_of(pid, "RssAnon")?.split(' ').next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Number of its threads.
pub fn threads(pid: i32) -> Option<u64> {
    line_of(pid, "Threads")?.parse().ok()
}
