//! The consequence of a run's outcome for a job.

use crate::batch::{Failure, Outcome};
use crate::death_log::log_death;
use crate::job::QueueSettings;
use crate::push_check::DELAY_MS_MAX;
use samovar_log::Throttle;

/// A run of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The job.
    pub(crate) id: i64,
    /// Failed runs before this one.
    pub(crate) attempts: u32,
    /// Number of runs after which it is dead; 0: that of the queue.
    pub(crate) attempts_max: u32,
}

/// The consequence of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is removed. With a class, it has failed and is not kept.
    Remove(Option<String>),
    /// It runs again after this time in milliseconds, and the run does not count. `None`: at once.
    Release(Option<u64>),
    /// It has failed, and runs again.
    Retry { attempts: u32, delay_ms: u64, failure: Failure },
    /// It is dead.
    Bury { attempts: u32, failure: Failure },
}

/// Judges a run. Logs a death.
pub(crate) fn judge(
    queue: &QueueSettings,
    run: Run,
    outcome: Outcome,
    death_lines: &Throttle,
) -> Verdict {
    let attempts = run.attempts.saturating_add(1);
    let attempts_max = if run.attempts_max == 0 { queue.attempts } else { run.attempts_max };
    match outcome {
        Outcome::Done => Verdict::Remove(None),
        Outcome::Released(0) => Verdict::Release(None),
        Outcome::Released(delay_ms) => Verdict::Release(Some(delay_ms.min(DELAY_MS_MAX))),
        Outcome::Retry(delay_ms, failure) if attempts < attempts_max => {
            let delay_ms = delay_ms.map_or_else(
                || queue.backoff_ms(attempts, |to| fastrand::u64(..to)),
                |delay_ms| delay_ms.min(DELAY_MS_MAX),
            );
            Verdict::Retry { attempts, delay_ms, failure }
        }
        Outcome::Retry(_, failure) | Outcome::Dead(failure) => {
            log_death(death_lines, queue, (run.id, attempts), &failure.text);
            if queue.dead_letter {
                Verdict::Bury { attempts, failure }
            } else {
                Verdict::Remove(Some(failure.class))
            }
        }
    }
}
