//! Checks pushes.

use crate::trace::checked;
use samovar_channel::{KEY_BYTES_MAX, PAYLOAD_BYTES_MAX, PUSHED_JOBS_MAX, Push};
use serde::de::IgnoredAny;

/// Maximum delay of a job: a year, in milliseconds.
pub(crate) const DELAY_MS_MAX: u64 = 366 * 24 * 3_600 * 1_000;
/// Maximum number of attempts that a push can ask for.
const ATTEMPTS_MAX: u32 = 1_000;

/// Checks a push, which a worker may have made up. Removes traces that are not valid.
pub(crate) fn check(push: &mut Push) -> Result<(), String> {
    if push.jobs.is_empty() || push.jobs.len() > PUSHED_JOBS_MAX {
        return Err(format!("a push has 1 to {PUSHED_JOBS_MAX} jobs, not {}", push.jobs.len()));
    }
    for job in &mut push.jobs {
        job.trace = checked(&job.trace);
        if job.payload.len() > PAYLOAD_BYTES_MAX {
            return Err(format!(
                "a payload has at most {PAYLOAD_BYTES_MAX} bytes as JSON, not {}\nhint: store the \
                 data elsewhere, and push its name",
                job.payload.len()
            ));
        }
        if let Some(key) = job.key.as_ref().filter(|key| !(1..=KEY_BYTES_MAX).contains(&key.len()))
        {
            return Err(format!("a key has 1 to {KEY_BYTES_MAX} bytes, not {}", key.len()));
        }
        if job.key.is_none() && job.unique_ms > 0 {
            return Err("a unique job needs a key".to_owned());
        }
        if job.delay_ms.max(job.unique_ms) > DELAY_MS_MAX {
            return Err("a job is delayed or unique for at most 366 days".to_owned());
        }
        if job.attempts > ATTEMPTS_MAX {
            return Err(format!("a job has at most {ATTEMPTS_MAX} attempts, not {}", job.attempts));
        }
        if serde_json::from_str::<IgnoredAny>(&job.payload).is_err() {
            return Err("the payload is not JSON, or is nested too deeply".to_owned());
        }
    }
    Ok(())
}
