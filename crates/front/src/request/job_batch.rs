//! Batches of jobs: requests of the server itself to the workers of a queue's pool.
//!
//! A batch is the body of a POST request to the pool's front controller, with a flag that no
//! client's request has. The response has the results. So deadlines, limits, deaths and reloads
//! work as for clients.

use super::internal::{self, InternalRequest, TraceHeaders};
use crate::exchange::Lost;
use crate::route::site::Route;
use crate::shared::Shared;
use samovar_ring::request::FLAG_JOBS;
use std::rc::Rc;

/// Request ID of batches in PHP's messages.
const REQUEST_ID: &[u8] = b"jobs";
const CONTENT_TYPE: &[u8] = b"application/json";
/// Maximum length of the results of a batch.
const RESULTS_BYTES_MAX: usize = 1 << 20;
/// Lowest status that indicates a failure.
const WRONG_FROM: u16 = 400;

/// Why a batch has no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// No worker has begun it.
    NotStarted(String),
    /// The server ends.
    Stopping,
    /// It failed.
    Failed {
        /// Kind of the failure, in parentheses: other failures have the class of an exception.
        class: &'static str,
        /// Reason.
        why: String,
    },
}

impl BatchError {
    fn failed(class: &'static str, why: impl Into<String>) -> BatchError {
        BatchError::Failed { class, why: why.into() }
    }
}

/// Called once, on the front's thread. Must not block.
pub type BatchDone = Box<dyn FnOnce(Result<Vec<u8>, BatchError>) + Send>;

/// A batch to run.
pub(crate) struct BatchOrder {
    pub(crate) body: Vec<u8>,
    pub(crate) trace: TraceHeaders,
    pub(crate) done: BatchDone,
}

impl std::fmt::Debug for BatchOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchOrder").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Reports the end of the server to a batch whose task is dropped.
struct Running {
    shared: Rc<Shared>,
    done: Option<BatchDone>,
}

impl Running {
    fn end(mut self, result: Result<Vec<u8>, BatchError>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.batches.set(self.shared.batches.get() - 1);
        if let Some(done) = self.done.take() {
            done(Err(BatchError::Stopping));
        }
    }
}

/// Runs the batch, and reports its results.
pub(crate) async fn carry_out(shared: Rc<Shared>, order: BatchOrder) {
    let BatchOrder { body, trace, done } = order;
    shared.batches.set(shared.batches.get() + 1);
    let running = Running { shared: Rc::clone(&shared), done: Some(done) };
    let result = run(&shared, &body, &trace).await;
    running.end(result);
}

async fn run(
    shared: &Rc<Shared>,
    body: &[u8],
    trace: &TraceHeaders,
) -> Result<Vec<u8>, BatchError> {
    let setup = shared.setup();
    let target = setup.site.controller.clone();
    let now_ms = samovar_ring::monotonic_ns() / 1_000_000;
    let host = || internal::host(&setup);
    let routed = setup.routes.route(&shared.disk, host, &target, now_ms).await;
    let not_routed = || {
        let path = String::from_utf8_lossy(&target).into_owned();
        let why = "is not run as a script: check the locations and the files of the handler";
        BatchError::NotStarted(format!("`{path}` {why}"))
    };
    let Ok(routed) = routed else {
        return Err(BatchError::NotStarted("the disk did not respond".to_owned()));
    };
    let Route::Script(script) = &routed.route else { return Err(not_routed()) };
    let target = String::from_utf8_lossy(&target);
    let request = InternalRequest {
        method: b"POST",
        target: &target,
        id: REQUEST_ID,
        body,
        content_type: Some(CONTENT_TYPE),
        trace,
        lane: script.lane,
        flags: FLAG_JOBS,
        response_bytes_max: RESULTS_BYTES_MAX,
    };
    match internal::run(shared, &setup, script, &request).await {
        Ok((status, results)) if status < WRONG_FROM => Ok(results),
        Ok((status, _)) => Err(BatchError::failed(
            "(status)",
            format!(
                "the handler failed with the status {status}: see the worker's messages in the log"
            ),
        )),
        Err(Lost::QueueTimeout) => {
            Err(BatchError::NotStarted("no worker took the batch in time".to_owned()))
        }
        Err(Lost::Overrun(_)) => {
            Err(BatchError::failed("(timeout)", "the batch did not end within the queue's timeout"))
        }
        Err(Lost::Orphaned(_)) => {
            Err(BatchError::failed("(worker died)", "the worker died while it ran the batch"))
        }
        Err(_) => Err(BatchError::failed("(no result)", "the worker's response is incomplete")),
    }
}
