//! The status that a server reports, as the tests read it.

use crate::binary;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `samovar status --json`. Returns its output as an error if it is not JSON.
pub(super) fn ask_status(control: &Path) -> Result<serde_json::Value, Output> {
    let mut command = Command::new(binary());
    let output = command.args(["status", "--json", "--control"]).arg(control).output();
    let output = output.expect("the binary runs");
    serde_json::from_slice(&output.stdout).map_err(|_| output)
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
