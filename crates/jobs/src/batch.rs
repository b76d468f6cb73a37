//! A batch as the handler gets it, and its results. Both are JSON documents: the body of the
//! request, and the body of its response.

use crate::job::{Content, JobState, short, shortened};
use serde::Deserialize;
use std::fmt::Write as _;

/// Maximum length of a batch: it must fit into the request body of a slot.
pub const BATCH_BYTES_MAX: usize = 60 << 10;
/// Encloses the results in the response, which may also have output of the boot and of shutdown
/// functions. JSON never contains it. `RESULTS_MARK` of the worker's `csrc/functions/job_object.c`.
const RESULTS_MARK: u8 = 0x1e;
/// Maximum length of the class of an exception.
const CLASS_BYTES_MAX: usize = 200;
/// Maximum length of the place of an exception.
const PLACE_BYTES_MAX: usize = 1_000;
/// Class of a failure without a result of the handler.
const NO_RESULT: &str = "(no result)";

/// Returns the document for these jobs with their contents.
pub(crate) fn encode(queue: &str, jobs: &[(JobState, Content)]) -> Vec<u8> {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let of = |(job, Content { payload, trace }): &(JobState, Content)| {
        let key = job.key.as_deref().map_or_else(|| "null".to_owned(), text);
        let attempt = job.attempts.saturating_add(1);
        let mut about = format!("\"id\":{},\"attempt\":{attempt},\"key\":{key}", job.id);
        for (name, value) in
            [("traceparent", &trace.traceparent), ("tracestate", &trace.tracestate)]
        {
            if !value.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(about, ",\"{name}\":{}", text(value));
            }
        }
        format!("{{{about},\"payload\":{payload}}}")
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
    Failed {
        /// Kind of the failure, as in [`Failure::class`].
        class: &'static str,
        /// Reason.
        why: String,
    },
}

/// Why a run failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Class of the exception, or another reason in parentheses.
    pub class: String,
    /// File and line where the exception was created; empty if unknown.
    pub place: String,
    /// Message, for an exception with its stack.
    pub text: String,
}

impl Failure {
    /// Bytes that it takes in the store.
    pub(crate) fn bytes(&self) -> u64 {
        (self.class.len() + self.place.len() + self.text.len()) as u64
    }

    fn new(class: &str, text: impl Into<String>) -> Failure {
        Failure { class: class.to_owned(), place: String::new(), text: short(text.into()) }
    }
}

/// Result of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// It goes back without an attempt, ready again after this time in milliseconds.
    Released(u64),
    /// It failed; `None` is the queue's own delay, in milliseconds.
    Retry(Option<u64>, Failure),
    /// It failed for the last time.
    Dead(Failure),
}

#[derive(Deserialize)]
struct Results {
    #[serde(rename = "results")]
    all: Vec<JobResult>,
    error: Option<String>,
    class: Option<String>,
    place: Option<String>,
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

/// Returns the class without the path that PHP adds to the name of an anonymous one.
fn class_of(class: &str) -> String {
    let name = class.split('\0').next().unwrap_or_default();
    if name.is_empty() {
        return "(unknown)".to_owned();
    }
    shortened(name.to_owned(), CLASS_BYTES_MAX)
}

/// Returns the results of `count` jobs.
pub(crate) fn outcomes(count: usize, ran: &Result<Vec<u8>, RunError>) -> Vec<Outcome> {
    let all = |outcome: Outcome| vec![outcome; count];
    let body = match ran {
        Ok(body) => body,
        Err(RunError::NotStarted(_) | RunError::Stopping) => return all(Outcome::Released(0)),
        Err(RunError::Failed { class, why }) => {
            return all(Outcome::Retry(None, Failure::new(class, why)));
        }
    };
    let Some(Results { all: results, error, class, place }) = results(body) else {
        let why = "the handler ended without results: it has called exit() or failed, or the \
                   script does not call Samovar\\consume()";
        return all(Outcome::Retry(None, Failure::new(NO_RESULT, why)));
    };
    let thrown = Failure {
        class: class_of(&class.unwrap_or_default()),
        place: shortened(place.unwrap_or_default(), PLACE_BYTES_MAX),
        text: short(error.unwrap_or_else(|| "the handler failed".to_owned())),
    };
    let outcome = |result: Option<&JobResult>| {
        let Some(JobResult { outcome, delay_ms, error }) = result else {
            let why = "the handler returned no result for this job";
            return Outcome::Retry(None, Failure::new(NO_RESULT, why));
        };
        let failure = |class: &str| match error {
            Some(error) => Failure::new(class, &**error),
            None => thrown.clone(),
        };
        match &**outcome {
            "done" => Outcome::Done,
            "release" => Outcome::Released(delay_ms.unwrap_or(0)),
            "fail" => Outcome::Dead(failure("(fail)")),
            _ => Outcome::Retry(*delay_ms, failure("(retry)")),
        }
    };
    (0..count).map(|at| outcome(results.get(at))).collect()
}

/// Returns the class of the first failure of a batch of `count` jobs.
#[must_use]
pub fn first_failure(count: usize, ran: &Result<Vec<u8>, RunError>) -> Option<String> {
    outcomes(count, ran).into_iter().find_map(|outcome| match outcome {
        Outcome::Retry(_, failure) | Outcome::Dead(failure) => Some(failure.class),
        Outcome::Done | Outcome::Released(_) => None,
    })
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
            [Outcome::Done, Outcome::Retry(Some(5), Failure::new("(unknown)", "no"))]
        );
        assert_eq!(
            ran(r#"{"results": [{"outcome": "release"}, {"outcome": "fail", "error": "bad"}]}"#),
            [Outcome::Released(0), Outcome::Dead(Failure::new("(fail)", "bad"))]
        );
        let thrown = ran(
            r#"{"results": [{"outcome": "retry"}, {"outcome": "done"}], "error": "A\\B: no in …",
                "class": "A\\B@anonymous\u0000/jobs/a.php:3$0", "place": "/jobs/a.php:3"}"#,
        );
        let Outcome::Retry(None, failure) = &thrown[0] else { panic!("{thrown:?}") };
        assert_eq!((&*failure.class, &*failure.place), ("A\\B@anonymous", "/jobs/a.php:3"));
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
