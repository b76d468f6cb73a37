//! What became of workers, for whoever keeps a history, for figures and for the log. Known to `generation` and `run`, told by the
//! owner's hooks.

use samovar_log::Throttle;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

/// News that wait for the owner; more at once are a storm, of which the first tell enough.
const NEWS_MAX: usize = 100;
/// Processes that were killed and are not gone yet.
const KILLED_MAX: usize = 1_024;
/// Lines of a kind at a time; beyond, they are counted. A page that kills its worker can do so some hundred times a second.
const LINES_MAX: u16 = 10;

/// What happened to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The server has killed it, for this reason.
    Killed(String),
    /// It has ended by itself, and was not to: how.
    Crashed(String),
    /// It has left for a fresh one, for this reason.
    Left(&'static str),
    /// A template has ended, and its workers with it.
    TemplateEnded(String),
}

/// Why the server kills a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillWhy {
    /// It gave no sign of life.
    Watchdog,
    /// It wrote garbage into the ring.
    Garbage,
    /// Its script did not end when its time was over.
    Overrun,
    /// It had not left when a generation, or the server, came to its end.
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

/// How many were killed, and why.
#[derive(Debug, Default)]
pub(crate) struct Kills([Cell<u64>; KillWhy::ALL.len()]);

impl Kills {
    pub(crate) fn count(&self, why: KillWhy, more: usize) {
        let count = &self.0[why as usize];
        count.set(count.get().saturating_add(more as u64));
    }

    /// All reasons, as the status names them.
    pub(crate) fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        KillWhy::ALL.into_iter().map(|(why, name)| (name, self.0[why as usize].get())).collect()
    }
}

/// One throttle for each kind of line that a storm of deaths has.
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

/// News on their way to the owner.
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

    /// The server kills this process: its end will be no crash.
    pub(crate) fn kills(&mut self, pid: i32) {
        if self.killed.len() == KILLED_MAX {
            self.killed.clear();
        }
        self.killed.insert(pid);
    }

    /// It has ended; whether the server had killed it.
    pub(crate) fn was_killed(&mut self, pid: i32) -> bool {
        self.killed.remove(&pid)
    }

    pub(crate) fn take(&mut self) -> Vec<News> {
        std::mem::take(&mut self.queued)
    }
}
