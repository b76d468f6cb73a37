//! What became of workers, for whoever keeps a history. Known to `generation` and `run`, told by the owner's hooks.

use std::collections::HashSet;

/// News that wait for the owner; more at once are a storm, of which the first tell enough.
const NEWS_MAX: usize = 100;
/// Processes that were killed and are not gone yet.
const KILLED_MAX: usize = 1_024;

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
