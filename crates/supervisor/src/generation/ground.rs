//! State shared by all generations, and the stages of a generation's start.

use crate::news::{Kills, Lines, News, NewsQueue};
use crate::os;
use crate::workers::Lives;
use samovar_log::Intake;
use samovar_published::Publishing;
use samovar_ring::{Ring, Supervision, WorkerReport, WorkerState};
use samovar_shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for the workers to exit when the server ends, before SIGKILL.
pub(crate) const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// State shared by all generations.
pub(crate) struct Ground {
    pub(crate) ring: Ring,
    pub(crate) shared: Shared,
    pub(crate) published: Publishing,
    /// Receives the output of all processes.
    pub(crate) intake: Intake,
    pub(crate) supervision: Supervision,
    pub(crate) lives: Lives,
    /// The server is ending: all workers exit.
    pub(crate) is_stopping: bool,
    /// Number of workers that were replaced by a fresh fork, by reason.
    pub(crate) refork_reasons: BTreeMap<&'static str, u64>,
    /// News for the owner.
    pub(crate) news: RefCell<NewsQueue>,
    pub(crate) kills: Kills,
    pub(crate) lines: Lines,
}

impl Ground {
    pub(crate) fn kill(&self, pid: i32) {
        self.news.borrow_mut().kills(pid);
        os::kill(pid);
    }

    pub(crate) fn tell(&self, news: News) {
        self.news.borrow_mut().put(news);
    }
}

/// Progress of a generation's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Readiness {
    Starting,
    TemplateReady,
    /// Its workers wait for requests, or the time limit for that is over.
    Ready,
}

/// Whether the worker has started and can take requests.
pub(super) fn is_waiting(report: &WorkerReport) -> bool {
    matches!(report.state, WorkerState::Idle | WorkerState::Busy)
}
