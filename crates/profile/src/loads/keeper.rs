//! The thread that takes reports in; who asks looks over its shoulder. All in memory: the next boot tells anew.

use super::boot::Boot;
use super::functions::BootFunction;
use super::growth::{Growth, Growths};
use super::lazy::{Lazy, Looks};
use super::report::{Of, Report};
use crate::sealed;
use rustix::event::{PollFd, PollFlags, poll};
use samovar_channel::{Heard, LoadsEnd};
use samovar_wire::GrowthStatus;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest report, bytes: what a boot writes at most.
const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Templates that are known: the one that serves, those before it that end, one that comes.
const BOOTS_MAX: usize = 4;
/// After a socket on which nothing can be heard: it is looked at again, and not all the time.
const PAUSE: Duration = Duration::from_secs(1);

/// A boot, and what requests below its checkpoint load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// The boot.
    pub boot: Boot,
    /// Its requests.
    pub lazy: Lazy,
    /// Its functions, the dearest first, where workers are looked at.
    pub functions: Vec<BootFunction>,
}

/// One template's.
#[derive(Debug, Default)]
struct Known {
    template: u64,
    rehearsal: Option<Report>,
    boot: Option<Boot>,
    looks: Looks,
}

#[derive(Debug, Default)]
struct State {
    /// The latest last.
    known: VecDeque<Known>,
    growths: Growths,
    refused: u64,
}

impl State {
    fn of(&mut self, template: u64) -> &mut Known {
        let found = self.known.iter().position(|known| known.template == template);
        let at = found.unwrap_or_else(|| {
            if self.known.len() == BOOTS_MAX {
                self.known.pop_front();
            }
            self.known.push_back(Known { template, ..Known::default() });
            self.known.len() - 1
        });
        &mut self.known[at]
    }

    fn add(&mut self, report: Report, now: u64) {
        let template = report.boot;
        match report.of {
            Of::Rehearsal => self.of(template).rehearsal = Some(report),
            Of::Boot => {
                let known = self.of(template);
                // One that serves is not gone when a worker of it boots by itself.
                known.boot = Some(Boot::of(&report, known.rehearsal.as_ref(), now));
            }
            Of::Request => {
                let found = self.known.iter_mut().find(|known| known.template == template);
                if let Some(known) = found {
                    known.looks.add(&report);
                }
            }
        }
    }

    fn latest(&self) -> Option<Explained> {
        let known = self.known.iter().rev().find(|known| known.boot.is_some())?;
        let boot = known.boot.clone()?;
        let lazy = known.looks.told(&boot.warmup);
        Some(Explained { boot, lazy, functions: Vec::new() })
    }
}

/// What boots and requests have loaded. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Loads(Arc<Mutex<State>>);

impl Loads {
    /// Starts the thread, which listens there until the process ends.
    pub fn start(listener: LoadsEnd) -> std::io::Result<Loads> {
        let loads = Loads::default();
        let own = loads.clone();
        let run = move || own.run(&listener);
        std::thread::Builder::new().name("boots".to_owned()).spawn(run)?;
        Ok(loads)
    }

    /// The latest boot that was told; `None`: there was none.
    #[must_use]
    pub fn latest(&self) -> Option<Explained> {
        self.lock().latest()
    }

    /// What came and was no report.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of whoever held it has left sums behind, not something broken.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What makes workers grow, the latest first.
    #[must_use]
    pub fn growth(&self) -> Vec<GrowthStatus> {
        self.lock().growths.told()
    }

    fn take(&self, text: &[u8], now: u64) {
        if let Some(report) = Report::read(text) {
            self.lock().add(report, now);
        } else if let Some(growth) = Growth::read(text, now) {
            self.lock().growths.add(growth);
        } else {
            self.lock().refused += 1;
        }
    }

    fn run(&self, listener: &LoadsEnd) {
        loop {
            let mut fds = [PollFd::new(listener, PollFlags::IN)];
            let is_odd = poll(&mut fds, None).is_err() || !fds[0].revents().contains(PollFlags::IN);
            match listener.hear_now() {
                Ok(Some(Heard::Message(note, file))) => {
                    let text =
                        file.and_then(|file| sealed::read(file, note.bytes, REPORT_BYTES_MAX));
                    self.take(text.as_deref().unwrap_or_default(), crate::now());
                }
                Ok(Some(Heard::Garbled(_))) => self.lock().refused += 1,
                Ok(Some(Heard::End)) | Err(_) => std::thread::sleep(PAUSE),
                Ok(None) if is_odd => std::thread::sleep(PAUSE),
                Ok(None) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(of: &str, template: u64, wall: i64) -> Report {
        let text = format!(
            "samovar-loads 1\nk\t{of}\t{template}\t1\t0\t0\nq\tGET\t/a\t\nl\tb\t-1\t0\t{wall}\t0\t0\t0\t0\t0\t0\t\t\nend\n"
        );
        Report::read(text.as_bytes()).expect("a report")
    }

    #[test]
    fn the_latest_boot_is_told_with_its_own_requests() {
        let mut state = State::default();
        assert_eq!(state.latest(), None);
        state.add(report("request", 1, 5), 0);
        assert_eq!(state.latest(), None, "nobody's request");
        state.add(report("rehearsal", 1, 900), 0);
        state.add(report("boot", 1, 100), 7);
        state.add(report("request", 1, 5), 0);
        let first = state.latest().expect("a boot");
        assert_eq!((first.boot.all.wall_ns, first.boot.at_s, first.lazy.requests), (100, 7, 1));
        assert_eq!(first.boot.rehearsal.map(|r| r.all.wall_ns), Some(900));
        state.add(report("rehearsal", 2, 800), 8);
        assert_eq!(
            state.latest().expect("it").boot.all.wall_ns,
            100,
            "the next has not booted yet"
        );
        state.add(report("boot", 2, 200), 9);
        state.add(report("request", 1, 5), 0);
        let second = state.latest().expect("a boot");
        assert_eq!((second.boot.all.wall_ns, second.lazy.requests), (200, 0));
        for template in 3..20 {
            state.add(report("boot", template, 1), 9);
        }
        assert_eq!(state.known.len(), BOOTS_MAX);
    }
}
