//! The log entry of one request, from its head to its last byte.

use super::access::{Over, Recorder};
use super::line::{Client, LogLine};
use crate::exchange::{Cost, Later};
use crate::runtime::recordings::{RecordingDraft, ResponseTap};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use samovar_config::Upstream;
use samovar_insight::End;
use std::fmt::Debug;
use std::rc::Rc;

/// Status in the log if the client disconnected before its response; the number is nginx's.
const CLIENT_GONE: u16 = 499;

/// Log state of a request while the front processes it. Dropping it ends the request: it is
/// counted, and its line is written.
#[derive(Debug)]
pub(crate) struct RequestLogEntry {
    recorder: Rc<Recorder>,
    status: u16,
    is_complete: bool,
    /// How the request ended, if not normally.
    failed: Option<End>,
    line: Option<Box<LogLine>>,
    /// Method with target, and id: for a message, if there is no line.
    named: Option<Box<[String; 2]>>,
    /// Receiver of the request's usage, if its worker is still running.
    later: Option<Later>,
    /// The request's input, if a recording wants it.
    draft: Option<Box<RecordingDraft>>,
}

impl RequestLogEntry {
    /// Opens the entry of a request whose head was parsed.
    pub(crate) fn begin(
        recorder: &Rc<Recorder>,
        parts: &Parts,
        id: &HeaderValue,
        client: Client<'_>,
    ) -> RequestLogEntry {
        recorder.counters.pool.requests_total.add(1);
        recorder.counters.pool.in_flight.add(1);
        let line = recorder.is_on().then(|| recorder.open(parts, id, client));
        RequestLogEntry {
            recorder: Rc::clone(recorder),
            status: CLIENT_GONE,
            is_complete: false,
            failed: None,
            line,
            named: None,
            later: None,
            draft: None,
        }
    }

    /// Records the request at its end.
    pub(crate) fn records(&mut self, draft: Box<RecordingDraft>) {
        self.draft = Some(draft);
    }

    /// Returns the reader of the response, if the request may be recorded.
    pub(crate) fn tap(&self) -> Option<&ResponseTap> {
        self.draft.as_ref().map(|draft| &draft.tap)
    }

    /// Keeps the request's names, because its response may break off later.
    pub(crate) fn names(&mut self, parts: &Parts, id: &HeaderValue) {
        if self.line.is_none() {
            let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
            let request = format!("{} {}", parts.method, target.escape_debug());
            self.named = Some(Box::new([request, id.to_str().unwrap_or_default().to_owned()]));
        }
    }

    /// Records that the canary with this generation serves the request.
    pub(crate) fn belongs_to(&mut self, generation: u32) {
        if let Some(line) = &mut self.line {
            line.canary = generation;
        }
    }

    /// Counts another run: a worker died.
    pub(crate) fn retried(&mut self) {
        if let Some(line) = &mut self.line {
            line.attempts += 1;
        }
    }

    /// Records the request's usage in its worker.
    pub(crate) fn costs(&mut self, cost: Cost) {
        match (cost, &mut self.line) {
            (Cost::Known(account), Some(line)) => line.account = Some(account),
            (Cost::Later(later), Some(_)) => self.later = Some(later),
            (Cost::Unknown, _) | (_, None) => {}
        }
    }

    /// Records the status of the response.
    pub(crate) fn responded(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// Records that the front itself responds, and the reason.
    pub(crate) fn failed(&mut self, end: Option<End>) {
        self.failed = end;
    }

    /// Excludes the request from the access log. It still counts in the statistics.
    pub(crate) fn keep_out_of_log(&mut self) {
        if let Some(line) = &mut self.line {
            line.keep_out_of_log();
        }
    }

    /// Records the script that runs.
    pub(crate) fn runs(&mut self, script: &[u8]) {
        if let Some(line) = &mut self.line {
            line.runs(script);
        }
    }

    /// Records the php-fpm server that runs the script instead of a worker.
    pub(crate) fn passes(&mut self, upstream: &Upstream) {
        if let Some(line) = &mut self.line {
            line.upstream = upstream.to_string();
        }
    }

    /// Counts body bytes that were passed to hyper.
    pub(crate) fn sent(&mut self, bytes: u64) {
        if let Some(line) = &mut self.line {
            line.bytes += bytes;
        }
    }

    /// Records that the client has received the whole promised response.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Records and logs that the response is incomplete, with the reason and a hint.
    pub(crate) fn cut(&mut self, lost: impl Debug, hint: &str) {
        self.failed = Some(End::Cut);
        if let Some(suppressed) = self.recorder.cut.pass() {
            let [request, request_id] = match (&self.line, &self.named) {
                (Some(line), _) => line.request_and_id(),
                (None, Some(named)) => (**named).clone(),
                (None, None) => Default::default(),
            };
            tracing::warn!(
                ?lost,
                request,
                request_id,
                suppressed,
                "incomplete response; the client's connection is closed\nhint: {hint}"
            );
        }
    }
}

impl Drop for RequestLogEntry {
    fn drop(&mut self) {
        let recorder = &self.recorder;
        recorder.counters.pool.in_flight.sub(1);
        if self.status >= 500 {
            recorder.counters.pool.responses_5xx_total.add(1);
        }
        let end = if self.is_complete { End::Completed } else { End::Aborted };
        let end = self.failed.unwrap_or(end);
        if let Some(draft) = self.draft.take() {
            draft.finish(self.status, end);
        }
        if let Some(line) = self.line.take() {
            let over = Over { status: self.status, is_complete: self.is_complete, end };
            recorder.put(line, over, self.later.take());
        }
    }
}
