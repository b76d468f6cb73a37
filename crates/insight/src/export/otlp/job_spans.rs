//! Spans of batches of jobs, which are no requests of a client.

use super::attributes::{number, text};
use super::message::{Link, Span, Status};
use super::outbox::{Waiting, queue};
use super::spans::ERROR;
use crate::releases::Releases;
use crate::sink::{Fate, Tally};
use samovar_outbound::Desk;
use std::fmt;
use std::sync::{Arc, Weak};

/// Value of `SpanKind`.
const CONSUMER: i32 = 5;

/// A batch of jobs that has ended, of a sampled trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobBatch {
    /// Name of the queue.
    pub queue: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Id of the first job.
    pub first: i64,
    /// Id of the trace.
    pub trace_id: [u8; 16],
    /// Id of the span.
    pub span_id: [u8; 8],
    /// Id of the span that pushed its only job; zero if there is none.
    pub parent_id: [u8; 8],
    /// Traces and spans that pushed its jobs.
    pub links: Vec<([u8; 16], [u8; 8])>,
    /// Start, ns since 1970.
    pub began_unix_ns: u64,
    /// Duration.
    pub wall_ns: u64,
    /// Class of the first failure.
    pub error: Option<String>,
}

/// Takes the spans of batches for the exporter. Cheap to clone.
#[derive(Clone)]
pub struct JobSpans {
    pub(super) desk: Weak<Desk<Waiting>>,
    pub(super) tally: Arc<Tally>,
    pub(super) releases: Releases,
}

impl fmt::Debug for JobSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSpans").finish_non_exhaustive()
    }
}

impl JobSpans {
    /// Queues the span of a batch. Never waits for the collector.
    pub fn add(&self, batch: &JobBatch) {
        // The server ends if there is no exporter any more.
        if let Some(desk) = self.desk.upgrade() {
            let release = self.releases.of_server();
            self.tally.add(Fate::Lost, queue(&desk, release, vec![span(batch)]));
        }
    }
}

/// Returns the span, as the conventions for messaging define it.
fn span(of: &JobBatch) -> Span {
    let mut attributes = vec![
        text("messaging.system", "samovar"),
        text("messaging.operation.type", "process"),
        text("messaging.operation.name", "process"),
        text("messaging.destination.name", &of.queue),
        number("messaging.batch.message_count", of.jobs as u64),
    ];
    if of.jobs == 1 {
        attributes.push(text("messaging.message.id", &of.first.to_string()));
    }
    if let Some(class) = &of.error {
        attributes.push(text("error.type", class));
    }
    let has_parent = of.parent_id != [0; 8];
    Span {
        trace_id: of.trace_id.to_vec(),
        span_id: of.span_id.to_vec(),
        parent_span_id: if has_parent { of.parent_id.to_vec() } else { Vec::new() },
        name: format!("process {}", of.queue),
        kind: CONSUMER,
        start_time_unix_nano: of.began_unix_ns,
        end_time_unix_nano: of.began_unix_ns.saturating_add(of.wall_ns),
        attributes,
        events: Vec::new(),
        links: of
            .links
            .iter()
            .map(|(trace, span)| Link { trace_id: trace.to_vec(), span_id: span.to_vec() })
            .collect(),
        status: of.error.is_some().then_some(Status { code: ERROR }),
    }
}
