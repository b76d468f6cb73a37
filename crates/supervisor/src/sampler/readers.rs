//! How the stacks of a generation's workers are read: what is found of one process holds for its siblings.

use samovar_spy::{Error, Files, Names, Reader};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// After a generation's processes could not be read, this long nobody tries.
const REFUSED: Duration = Duration::from_secs(10);

/// What is known of all generations.
#[derive(Debug, Default)]
pub(super) struct Readers {
    files: Files,
    generations: HashMap<u64, OfGeneration>,
}

/// What is known of the processes of one: forks of one template, with the same addresses.
#[derive(Debug, Default)]
pub(super) struct OfGeneration {
    first: Option<Reader>,
    pub(super) names: Names,
    refused: Option<(Instant, String)>,
}

/// Why there is no reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The process has ended.
    Gone,
    /// It may not be read, or is not understood.
    Refused(String),
}

impl Readers {
    /// What the processes of a generation have in common.
    pub(super) fn of(&mut self, generation: u64) -> &mut OfGeneration {
        self.generations.entry(generation).or_default()
    }

    /// A reader of that process.
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
                // Of the same process, or of one like it: its addresses.
                of.first = reader.sibling(pid).ok();
                Ok(reader)
            }
            Err(Error::Gone { .. }) => Err(Unreadable::Gone),
            // It may have ended while it was looked at: then what was found of it means nothing.
            Err(_) if has_ended(pid) => Err(Unreadable::Gone),
            Err(error) => {
                let why = error.to_string();
                of.refused = Some((Instant::now(), why.clone()));
                Err(Unreadable::Refused(why))
            }
        }
    }

    /// Forgets generations that have gone.
    pub(super) fn retain(&mut self, mut is_there: impl FnMut(u64) -> bool) {
        self.generations.retain(|generation, _| is_there(*generation));
    }
}

/// Whether the process is no more, or a zombie: of neither is there a program.
fn has_ended(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_refuses_nothing() {
        let mut ended =
            std::process::Command::new("true").spawn().expect("a program of each system");
        while !has_ended(ended.id()) {
            std::thread::yield_now();
        }
        // Nobody has waited for it: it has a number still, and no memory.
        let mut readers = Readers::default();
        let opened = readers.open(1, ended.id().cast_signed(), false);
        assert_eq!(opened.err(), Some(Unreadable::Gone));
        ended.wait().expect("it is ours");
    }

    #[test]
    fn a_generation_that_cannot_be_read_is_left_alone_for_a_while() {
        let mut readers = Readers::default();
        let pid = std::process::id().cast_signed();
        let Err(Unreadable::Refused(why)) = readers.open(1, pid, false) else {
            panic!("this test is no PHP")
        };
        // Nobody is asked: there is no such process.
        assert_eq!(readers.open(1, i32::MAX, false).err(), Some(Unreadable::Refused(why)));
        assert_eq!(readers.open(2, i32::MAX, false).err(), Some(Unreadable::Gone));
        readers.retain(|_| false);
        assert!(readers.generations.is_empty());
    }
}
