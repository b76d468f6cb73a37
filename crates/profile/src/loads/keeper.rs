//! The thread that takes reports in, of each pool by a socket of its own; who asks looks over its shoulder. All in memory: the next
//! boot tells anew.

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

/// What boots and requests of each pool have loaded. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Loads(Arc<Vec<OfPool>>);

#[derive(Debug)]
struct OfPool {
    name: String,
    state: Mutex<State>,
}

impl OfPool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of whoever held it has left sums behind, not something broken.
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

    /// Takes one message in, so that no pool keeps the others waiting; whether the socket is of use.
    fn hear(&self, listener: &LoadsEnd) -> bool {
        match listener.hear_now() {
            Ok(Some(Heard::Message(note, file))) => {
                let text = file.and_then(|file| sealed::read(file, note.bytes, REPORT_BYTES_MAX));
                self.take(text.as_deref().unwrap_or_default(), crate::now());
            }
            Ok(Some(Heard::Garbled(_))) => self.lock().refused += 1,
            Ok(Some(Heard::End)) | Err(_) => return false,
            Ok(None) => {}
        }
        true
    }
}

impl Loads {
    /// Starts the thread, which listens there until the process ends: one socket for each pool, by its name.
    pub fn start(pools: Vec<(String, LoadsEnd)>) -> std::io::Result<Loads> {
        let (names, listeners): (Vec<String>, Vec<LoadsEnd>) = pools.into_iter().unzip();
        let of = |name| OfPool { name, state: Mutex::default() };
        let loads = Loads(Arc::new(names.into_iter().map(of).collect()));
        let own = loads.clone();
        let run = move || own.run(&listeners);
        std::thread::Builder::new().name("boots".to_owned()).spawn(run)?;
        Ok(loads)
    }

    /// The pool's latest boot that was told; `None`: there was none.
    #[must_use]
    pub fn latest(&self, pool: &str) -> Option<Explained> {
        self.0.iter().find(|of| of.name == pool)?.lock().latest()
    }

    /// What came and was no report.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.iter().map(|of| of.lock().refused).sum()
    }

    /// What makes workers grow, of each pool the latest first; they are named where there are several.
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

    fn send(to: &LoadsEnd, text: &[u8]) {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(rustix::fs::memfd_create("loads", flags).expect("memory"));
        file.write_all(text).expect("memory");
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::WRITE).expect("memory");
        let note = LoadsNote { bytes: text.len() as u64 };
        to.send_now(&note, Some(file.as_fd())).expect("there is room for some");
    }

    #[test]
    fn each_pool_is_heard_by_a_socket_of_its_own() {
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
                "samovar-loads 1\nk\tboot\t1\t1\t0\t0\nl\tb\t-1\t0\t{wall}\t0\t0\t0\t0\t0\t0\t\t\nend\n"
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
