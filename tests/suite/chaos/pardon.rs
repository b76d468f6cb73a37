//! Disturbances that excuse a lost request, and the periods in which they hold.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for which the effects of a disturbance may continue: a death must be reported, and a slot
/// is not reused for two seconds.
const AFTER: Duration = Duration::from_millis(2500);

/// Reason why a good request may be lost. Only garbage in the ring excuses a wrong byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pardon {
    /// Workers die. Requests that must not be run twice (POST) are lost, and so are responses sent
    /// in part (larger than their window).
    LostWork,
    /// A worker is stopped for good, perhaps in the middle of a request. As with a hanging worker,
    /// the response is 504 after the timeout.
    StoppedWork,
    /// The folder for uploads is full: uploads get an error response.
    NoSpool,
    /// No thread and no process can be created: files and uploads may be refused.
    NoThread,
    /// The ring contains garbage, or no worker could serve requests.
    Everything,
}

/// Excuses, each with its beginning and end.
#[derive(Default)]
pub(crate) struct Pardons(Mutex<Vec<Granted>>);

struct Granted {
    pardon: Pardon,
    from: Instant,
    to: Option<Instant>,
}

impl Pardons {
    /// Starts an excuse. It holds until the returned number is passed to [`Self::end`].
    pub(crate) fn begin(&self, pardon: Pardon) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Granted { pardon, from: Instant::now(), to: None });
        all.len() - 1
    }

    pub(crate) fn end(&self, number: usize) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all[number].to = Some(Instant::now());
    }

    /// Whether one of these excuses held at some time between `asked` and now.
    pub(crate) fn excuse(&self, pardonable: &[Pardon], asked: Instant) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|granted| {
            pardonable.contains(&granted.pardon)
                && granted.from <= Instant::now()
                && granted.to.is_none_or(|to| to + AFTER >= asked)
        })
    }
}
