//! The end of a unit's process, and the result of one that left no results.

use crate::case::{Case, Verdict};
use crate::unit::Unit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// Kind of the fault of a test without a result.
pub(crate) const CRASH: &str = "Samovar\\Crash";

/// The result of a unit whose process left none.
pub(crate) fn crashed(unit: &Unit, why: &str, output: &str, time: Duration) -> Case {
    let class = unit.class.as_deref().unwrap_or(&unit.name);
    let name = unit.method.as_deref().unwrap_or_default();
    let output = if output.is_empty() { String::new() } else { format!("\nIts output:\n{output}") };
    Case {
        file: unit.files.first().map(|file| file.display().to_string()).unwrap_or_default(),
        kind: CRASH.to_owned(),
        text: format!("The test has no result: {why}.{output}"),
        seconds: time.as_secs_f64(),
        ..Case::new(class, name, Verdict::Errored)
    }
}

/// End of a process.
pub(crate) enum Ending {
    Exit(i32),
    Signal(i32),
    NoFork(String),
}

impl Ending {
    pub(crate) fn of(status: i32) -> Ending {
        let status = ExitStatus::from_raw(status);
        match (status.signal(), status.code()) {
            (Some(signal), _) => Ending::Signal(signal),
            (None, status) => Ending::Exit(status.unwrap_or(0)),
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Exit(status) => write!(to, "ended with status {status}"),
            Ending::Signal(signal) => write!(to, "was ended by signal {signal}{}", name(*signal)),
            Ending::NoFork(why) => write!(to, "could not be forked: {why}"),
        }
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        9 => " (killed; perhaps the memory is used up)",
        11 => " (segmentation fault)",
        15 => " (terminated)",
        _ => "",
    }
}
