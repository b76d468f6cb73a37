//! Thread that receives load reports, over one socket per pool. Queries read its state under a
//! lock. All data is in memory only: the next boot reports again.

use super::boot::Boot;
use super::boot_details::Explained;
use super::growth::{Growth, Growths};
use super::includes::{Includes, Inclusions};
use super::lazy::Looks;
use super::report::{Report, ReportKind};
use crate::memory_file;
use rustix::event::{PollFd, PollFlags, poll};
use samovar_channel::{Heard, LoadsEnd};
use samovar_wire::GrowthStatus;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum size of a report: the most that a boot writes.
const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of known templates: the one that serves, older ones that end, and one that
/// starts.
const BOOTS_MAX: usize = 4;
/// Pause after an error of a socket, to avoid a busy loop.
const PAUSE: Duration = Duration::from_secs(1);

/// Data of one template.
#[derive(Debug, Default)]
struct Known {
    template: u64,
    rehearsal: Option<Report>,
    boot: Option<Boot>,
    looks: Looks,
    inclusions: Inclusions,
}

#[derive(Debug, Default)]
struct State {
    /// Known templates, latest last.
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
            ReportKind::Rehearsal => self.of(template).rehearsal = Some(report),
            ReportKind::Boot => {
                let known = self.of(template);
                // A worker that boots on its own reports its template again. Only `boot` is
                // replaced then.
                known.boot = Some(Boot::of(&report, known.rehearsal.as_ref(), now));
                known.inclusions.add(&report);
            }
            ReportKind::Request => {
                let found = self.known.iter_mut().find(|known| known.template == template);
                if let Some(known) = found {
                    known.looks.add(&report);
                    known.inclusions.add(&report);
                }
            }
            ReportKind::Script => self.of(template).inclusions.add(&report),
        }
    }

    fn latest(&self) -> Option<Explained> {
        let known = self.known.iter().rev().find(|known| known.boot.is_some())?;
        let boot = known.boot.clone()?;
        let lazy = known.looks.told(&boot.warmup);
        Some(Explained { boot, lazy, functions: Vec::new() })
    }

    fn includes(&self, route: Option<&str>) -> Option<Includes> {
        let known = self.known.iter().rev().find(|known| !known.inclusions.is_empty())?;
        Some(known.inclusions.told(route))
    }
}

/// Loads of boots and requests, by pool. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Loads(Arc<Vec<OfPool>>);

#[derive(Debug)]
struct OfPool {
    name: String,
    state: Mutex<State>,
}

impl OfPool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while holding the lock leaves sums that are still usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Receives one message only, so that no pool delays the others. Returns whether the socket is
    /// still usable.
    fn hear(&self, listener: &LoadsEnd) -> bool {
        match listener.hear_now() {
            Ok(Some(Heard::Message(note, file))) => {
                let text =
                    file.and_then(|file| memory_file::read(file, note.bytes, REPORT_BYTES_MAX));
                self.take(text.as_deref().unwrap_or_default(), samovar_insight::now());
            }
            Ok(Some(Heard::Garbled(_))) => self.lock().refused += 1,
            Ok(Some(Heard::End)) | Err(_) => return false,
            Ok(None) => {}
        }
        true
    }
}

impl Loads {
    /// Starts the thread, which receives from one socket per pool, by pool name, until the process
    /// ends.
    pub fn start(pools: Vec<(String, LoadsEnd)>) -> std::io::Result<Loads> {
        let (names, listeners): (Vec<String>, Vec<LoadsEnd>) = pools.into_iter().unzip();
        let of = |name| OfPool { name, state: Mutex::default() };
        let loads = Loads(Arc::new(names.into_iter().map(of).collect()));
        let own = loads.clone();
        let run = move || own.run(&listeners);
        std::thread::Builder::new().name("boots".to_owned()).spawn(run)?;
        Ok(loads)
    }

    /// Returns the pool's latest reported boot; `None`: there was none.
    #[must_use]
    pub fn latest(&self, pool: &str) -> Option<Explained> {
        self.0.iter().find(|of| of.name == pool)?.lock().latest()
    }

    /// Returns the files that requests of the pool include: those of one route, or of all. `None`:
    /// no request was recorded yet.
    #[must_use]
    pub fn includes(&self, pool: &str, route: Option<&str>) -> Option<Includes> {
        self.0.iter().find(|of| of.name == pool)?.lock().includes(route)
    }

    /// Returns the number of messages that were not valid reports.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.iter().map(|of| of.lock().refused).sum()
    }

    /// Returns the growing values of all pools, each pool's latest first. The pool's name is set
    /// only if there are several pools.
    #[must_use]
    pub fn growth(&self) -> Vec<GrowthStatus> {
        let is_one = self.0.len() == 1;
        let told = |of: &OfPool| {
            let name = if is_one { "" } else { &*of.name };
            let named = |seen| GrowthStatus { pool: name.to_owned(), ..seen };
            of.lock().growths.told().into_iter().map(named).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(told).collect()
    }

    fn run(&self, listeners: &[LoadsEnd]) {
        loop {
            let of = |listener| PollFd::new(listener, PollFlags::IN);
            let mut fds: Vec<PollFd<'_>> = listeners.iter().map(of).collect();
            let mut is_odd = poll(&mut fds, None).is_err();
            for ((fd, listener), pool) in fds.iter().zip(listeners).zip(self.0.iter()) {
                let has_some = fd.revents().contains(PollFlags::IN);
                is_odd |= !has_some && !fd.revents().is_empty();
                is_odd |= has_some && !pool.hear(listener);
            }
            if is_odd {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, SealFlags};
    use samovar_channel::LoadsNote;
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    fn report(of: &str, template: u64, wall: i64) -> Report {
        let text = format!(
            "samovar-loads 1\nk\t{of}\t{template}\t1\t0\t0\nq\tGET\t/a\t\n\
             l\tb\t-1\t0\t{wall}\t0\t0\t0\t0\t0\t0\t\t\nend\n"
        );
        Report::read(text.as_bytes()).expect("a report")
    }

    #[test]
    fn latest_boot_is_returned_with_its_own_requests() {
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

    fn send(to: &LoadsEnd, text: &[u8]) {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(rustix::fs::memfd_create("loads", flags).expect("memory"));
        file.write_all(text).expect("memory");
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::WRITE).expect("memory");
        let note = LoadsNote { bytes: text.len() as u64 };
        to.send_now(&note, Some(file.as_fd())).expect("there is room for some");
    }

    #[test]
    fn reports_are_received_per_pool_socket() {
        let mut ends = Vec::new();
        let mut pair = |name: &str| {
            let (theirs, ours) = samovar_channel::pair().expect("sockets");
            ends.push((name.to_owned(), ours));
            theirs
        };
        let (first, second): (LoadsEnd, LoadsEnd) = (pair("default"), pair("api"));
        let loads = Loads::start(ends).expect("a thread");
        let growth = b"samovar-growth 1\ng\t7\t1\t40\t20\t9\telements\t/a.php:8\tA::$b\nend\n";
        for (to, wall) in [(&first, 100), (&second, 200)] {
            let text = format!(
                "samovar-loads 1\nk\tboot\t1\t1\t0\t0\n\
                 l\tb\t-1\t0\t{wall}\t0\t0\t0\t0\t0\t0\t\t\nend\n"
            );
            send(to, text.as_bytes());
        }
        send(&second, growth);
        samovar_testkit::eventually("all was heard", || (!loads.growth().is_empty()).then_some(()));
        let wall = |pool| loads.latest(pool).map(|explained| explained.boot.all.wall_ns);
        assert_eq!((wall("default"), wall("api"), wall("other")), (Some(100), Some(200), None));
        assert_eq!((&*loads.growth()[0].pool, loads.growth().len()), ("api", 1));
        assert_eq!(loads.refused(), 0);
    }
}
