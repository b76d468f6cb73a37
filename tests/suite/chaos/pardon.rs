//! What excuses a lost request, and when.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long what a disturbance has done goes on after it: a death is told, a slot is left alone for two seconds.
const AFTER: Duration = Duration::from_millis(2500);

/// Why a good request may be lost. Nothing excuses a wrong byte but garbage in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pardon {
    /// Workers die: what must not be run twice (POST) or is half sent (an answer larger than its window) is lost.
    LostWork,
    /// A worker stands still for good, perhaps in the middle of a request: like one that hangs, that request is answered
    /// with 504 when its time is over.
    StoppedWork,
    /// The folder for uploads is full: so they say.
    NoSpool,
    /// No thread and no process can be made: files and uploads may be refused.
    NoThread,
    /// The ring holds garbage, or nobody could answer.
    Everything,
}

/// Who was excused from when to when.
#[derive(Default)]
pub(crate) struct Pardons(Mutex<Vec<Granted>>);

struct Granted {
    pardon: Pardon,
    from: Instant,
    to: Option<Instant>,
}

impl Pardons {
    /// Until the number that this returns is handed to [`Self::end`].
    pub(crate) fn begin(&self, pardon: Pardon) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Granted { pardon, from: Instant::now(), to: None });
        all.len() - 1
    }

    pub(crate) fn end(&self, number: usize) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all[number].to = Some(Instant::now());
    }

    /// Whether one of these held at some time between `asked` and now.
    pub(crate) fn excuse(&self, pardonable: &[Pardon], asked: Instant) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|granted| {
            pardonable.contains(&granted.pardon)
                && granted.from <= Instant::now()
                && granted.to.is_none_or(|to| to + AFTER >= asked)
        })
    }
}
