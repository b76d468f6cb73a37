//! Stack readers, per generation: data found for one process is valid for all processes of the
//! generation.

use samovar_spy::{Error, Files, Names, Reader};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Wait before the next attempt, after a process of a generation could not be read.
const REFUSED: Duration = Duration::from_secs(10);

/// Readers of all generations.
#[derive(Debug, Default)]
pub(super) struct Readers {
    files: Files,
    generations: HashMap<u64, OfGeneration>,
}

/// Data of one generation's processes: they are forks of one template and have the same addresses.
#[derive(Debug, Default)]
pub(super) struct OfGeneration {
    first: Option<Reader>,
    pub(super) names: Names,
    refused: Option<(Instant, String)>,
}

/// Reason why a process cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The process has ended.
    Gone,
    /// Reading it is forbidden, or its data is not understood.
    Refused(String),
}

impl Readers {
    /// Returns the common data of a generation's processes.
    pub(super) fn of(&mut self, generation: u64) -> &mut OfGeneration {
        self.generations.entry(generation).or_default()
    }

    /// Opens a reader for that process.
    pub(super) fn open(
        &mut self,
        generation: u64,
        pid: i32,
        anew: bool,
    ) -> Result<Reader, Unreadable> {
        let of = self.generations.entry(generation).or_default();
        if let Some((since, why)) = &of.refused
            && since.elapsed() < REFUSED
        {
            return Err(Unreadable::Refused(why.clone()));
        }
        let pid = pid.unsigned_abs();
        let opened = match of.first.as_ref().filter(|_| !anew) {
            Some(first) => first.sibling(pid),
            None => Reader::open(pid, &mut self.files),
        };
        match opened {
            Ok(reader) => {
                of.refused = None;
                // Keeps the addresses for the same process and its siblings.
                of.first = reader.sibling(pid).ok();
                Ok(reader)
            }
            Err(Error::Gone { .. }) => Err(Unreadable::Gone),
            // The process may have ended while it was read; the error then means nothing.
            Err(_) if has_ended(pid) => Err(Unreadable::Gone),
            Err(error) => {
                let why = error.to_string();
                of.refused = Some((Instant::now(), why.clone()));
                Err(Unreadable::Refused(why))
            }
        }
    }

    /// Removes generations that have ended.
    pub(super) fn retain(&mut self, mut is_there: impl FnMut(u64) -> bool) {
        self.generations.retain(|generation, _| is_there(*generation));
    }
}

/// Whether the process is gone or a zombie; neither has a program.
fn has_ended(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_process_is_gone_not_refused() {
        let mut ended =
            std::process::Command::new("true").spawn().expect("a program of each system");
        while !has_ended(ended.id()) {
            std::thread::yield_now();
        }
        // The process is not reaped yet: it still has an id, but no memory.
        let mut readers = Readers::default();
        let opened = readers.open(1, ended.id().cast_signed(), false);
        assert_eq!(opened.err(), Some(Unreadable::Gone));
        ended.wait().expect("it is ours");
    }

    #[test]
    fn refused_generation_is_not_retried_immediately() {
        let mut readers = Readers::default();
        let pid = std::process::id().cast_signed();
        let Err(Unreadable::Refused(why)) = readers.open(1, pid, false) else {
            panic!("this test is no PHP")
        };
        // The cached refusal is returned without an attempt: there is no such process.
        assert_eq!(readers.open(1, i32::MAX, false).err(), Some(Unreadable::Refused(why)));
        assert_eq!(readers.open(2, i32::MAX, false).err(), Some(Unreadable::Gone));
        readers.retain(|_| false);
        assert!(readers.generations.is_empty());
    }
}
