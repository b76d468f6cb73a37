//! Events of workers, for the history, the metrics and the log. `generation` and `run` produce
//! them; the owner's hooks receive them.

use samovar_log::Throttle;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

/// Maximum number of queued news. More at once are a storm, and the first ones describe it well
/// enough.
const NEWS_MAX: usize = 100;
/// Maximum number of killed processes whose end is pending.
const KILLED_MAX: usize = 1_024;
/// Maximum number of lines of one kind per period; further ones are counted. A page that kills its
/// worker can do so some hundred times a second.
const LINES_MAX: u16 = 10;

/// An event of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The server killed it, for this reason.
    Killed(String),
    /// It ended unexpectedly; the text describes how.
    Crashed(String),
    /// It exited to be replaced by a fresh fork, for this reason.
    Left(&'static str),
    /// A template ended, and its workers with it.
    TemplateEnded(String),
}

/// Reason why the server kills a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillWhy {
    /// It did not respond to the watchdog.
    Watchdog,
    /// It wrote invalid data into the ring.
    Garbage,
    /// Its script did not end after its deadline.
    Overrun,
    /// It had not exited at the end of its generation or of the server.
    Late,
}

impl KillWhy {
    const ALL: [(KillWhy, &'static str); 4] = [
        (KillWhy::Watchdog, "watchdog"),
        (KillWhy::Garbage, "garbage"),
        (KillWhy::Overrun, "overrun"),
        (KillWhy::Late, "late"),
    ];
}

/// Number of killed processes by reason.
#[derive(Debug, Default)]
pub(crate) struct Kills([Cell<u64>; KillWhy::ALL.len()]);

impl Kills {
    pub(crate) fn count(&self, why: KillWhy, more: usize) {
        let count = &self.0[why as usize];
        count.set(count.get().saturating_add(more as u64));
    }

    /// Returns the counts of all reasons, by the names in the status.
    pub(crate) fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        KillWhy::ALL.into_iter().map(|(why, name)| (name, self.0[why as usize].get())).collect()
    }
}

/// One throttle for each kind of line that a storm of deaths produces.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) killed: Throttle,
    pub(crate) quiet: Throttle,
    pub(crate) died: Throttle,
    pub(crate) orphans: Throttle,
    pub(crate) recycled: Throttle,
}

impl Default for Lines {
    fn default() -> Lines {
        let [killed, quiet, died, orphans, recycled] = [(); 5].map(|()| Throttle::of(LINES_MAX));
        Lines { killed, quiet, died, orphans, recycled }
    }
}

/// News for the owner.
#[derive(Debug, Default)]
pub(crate) struct NewsQueue {
    queued: Vec<News>,
    killed: HashSet<i32>,
}

impl NewsQueue {
    pub(crate) fn put(&mut self, news: News) {
        if self.queued.len() < NEWS_MAX {
            self.queued.push(news);
        }
    }

    /// Notes that the server kills this process, so that its end is not reported as a crash.
    pub(crate) fn kills(&mut self, pid: i32) {
        if self.killed.len() == KILLED_MAX {
            self.killed.clear();
        }
        self.killed.insert(pid);
    }

    /// Returns whether the server killed this process, which has ended.
    pub(crate) fn was_killed(&mut self, pid: i32) -> bool {
        self.killed.remove(&pid)
    }

    pub(crate) fn take(&mut self) -> Vec<News> {
        std::mem::take(&mut self.queued)
    }
}
