//! A batch as the handler gets it, and its results. Both are JSON documents: the body of the
//! request, and the body of its response.

use crate::job::{JobState, short};
use serde::Deserialize;

/// Maximum length of a batch: it must fit into the request body of a slot.
pub const BATCH_BYTES_MAX: usize = 60 << 10;
/// Encloses the results in the response, which may also have output of the boot and of shutdown
/// functions. JSON never contains it. `RESULTS_MARK` of the worker's `csrc/functions/job_object.c`.
const RESULTS_MARK: u8 = 0x1e;

/// Returns the document for these jobs with their payloads, which are JSON.
pub(crate) fn encode(queue: &str, jobs: &[(JobState, String)]) -> Vec<u8> {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let of = |(job, payload): &(JobState, String)| {
        let key = job.key.as_deref().map_or_else(|| "null".to_owned(), text);
        let attempt = job.attempts.saturating_add(1);
        format!("{{\"id\":{},\"attempt\":{attempt},\"key\":{key},\"payload\":{payload}}}", job.id)
    };
    let jobs: Vec<String> = jobs.iter().map(of).collect();
    format!("{{\"queue\":{},\"jobs\":[{}]}}", text(queue), jobs.join(",")).into_bytes()
}

/// Why a batch has no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// No worker has begun it. It does not count as an attempt.
    NotStarted(String),
    /// The server ends.
    Stopping,
    /// It failed as a whole.
    Failed(String),
}

/// Result of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// It goes back without an attempt, ready again after this time in milliseconds.
    Released(u64),
    /// It failed; `None` is the queue's own delay, in milliseconds.
    Retry(Option<u64>, String),
    /// It failed for the last time.
    Dead(String),
}

#[derive(Deserialize)]
struct Results {
    results: Vec<JobResult>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct JobResult {
    outcome: String,
    delay_ms: Option<u64>,
    error: Option<String>,
}

/// Returns the document between the last two marks.
fn results(body: &[u8]) -> Option<Results> {
    let mut parts = body.rsplit(|byte| *byte == RESULTS_MARK);
    parts.next()?;
    let document = parts.next()?;
    parts.next()?;
    serde_json::from_slice(document).ok()
}

/// Returns the results of `count` jobs.
pub(crate) fn outcomes(count: usize, ran: &Result<Vec<u8>, RunError>) -> Vec<Outcome> {
    let all = |outcome: Outcome| vec![outcome; count];
    let body = match ran {
        Ok(body) => body,
        Err(RunError::NotStarted(_) | RunError::Stopping) => return all(Outcome::Released(0)),
        Err(RunError::Failed(why)) => return all(Outcome::Retry(None, why.clone())),
    };
    let Some(Results { results, error }) = results(body) else {
        let why = "the handler ended without results: it has called exit() or failed, or the \
                   script does not call Samovar\\consume()";
        return all(Outcome::Retry(None, why.to_owned()));
    };
    let failure = short(error.unwrap_or_else(|| "the handler failed".to_owned()));
    let outcome = |result: Option<&JobResult>| {
        let Some(JobResult { outcome, delay_ms, error }) = result else {
            return Outcome::Retry(None, "the handler returned no result for this job".to_owned());
        };
        let error = || error.clone().map_or_else(|| failure.clone(), short);
        match &**outcome {
            "done" => Outcome::Done,
            "release" => Outcome::Released(delay_ms.unwrap_or(0)),
            "fail" => Outcome::Dead(error()),
            _ => Outcome::Retry(*delay_ms, error()),
        }
    };
    (0..count).map(|at| outcome(results.get(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_follow_results() {
        let ran = |text: &str| outcomes(2, &Ok(format!("a\n\x1e{text}\x1eb").into_bytes()));
        assert_eq!(
            ran(r#"{"results": [{"outcome": "done"}, {"outcome": "retry", "delay_ms": 5}],
                    "error": "no"}"#),
            [Outcome::Done, Outcome::Retry(Some(5), "no".into())]
        );
        assert_eq!(
            ran(r#"{"results": [{"outcome": "release"}, {"outcome": "fail", "error": "bad"}]}"#),
            [Outcome::Released(0), Outcome::Dead("bad".into())]
        );
        for text in ["", "output", r#"{"results": []}"#, r#"{"results": [{}]}"#] {
            let got = ran(text);
            assert!(got.iter().all(|one| matches!(one, Outcome::Retry(None, _))), "{got:?}");
        }
        let unmarked = outcomes(1, &Ok(b"{\"results\": [{\"outcome\": \"done\"}]}".to_vec()));
        assert!(matches!(unmarked[0], Outcome::Retry(None, _)), "{unmarked:?}");
        let stopped = outcomes(1, &Err(RunError::Stopping));
        assert_eq!(stopped, [Outcome::Released(0)]);
    }
}
