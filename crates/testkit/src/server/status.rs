//! The status that a server reports, as the tests read it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Timeout for the response, as for `samovar status`.
const RESPONSE_LIMIT: Duration = Duration::from_secs(5);

/// Asks the server at that socket for its status, in the JSON that `samovar status --json` prints.
/// Asks directly: tests wait for states of servers, and each process of the command would take
/// 20 ms of CPU time.
pub(super) fn ask_status(control: &Path) -> io::Result<serde_json::Value> {
    let mut server = UnixStream::connect(control)?;
    server.set_read_timeout(Some(RESPONSE_LIMIT))?;
    server.write_all(b"status\n")?;
    let mut line = String::new();
    BufReader::new(server).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::from)
}

/// Part of a server's `resources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Descriptors, except those for other processes.
    pub descriptors: u64,
    /// Descriptors that are pipes.
    pub pipes: u64,
    /// Threads.
    pub threads: u64,
    /// Child processes.
    pub children: u64,
}

impl Held {
    /// Reads the values from a status.
    pub fn of(status: &serde_json::Value) -> Held {
        let resources = &status["resources"];
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        let kinds = ["sockets", "pipes", "events", "memory", "files", "others"];
        let descriptors = kinds.map(|kind| number(&resources["descriptors"][kind])).iter().sum();
        Held {
            descriptors,
            pipes: number(&resources["descriptors"]["pipes"]),
            threads: number(&resources["threads"]),
            children: number(&resources["children"]),
        }
    }
}
