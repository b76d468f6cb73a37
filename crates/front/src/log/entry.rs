//! One request's entry in the log, from its head to its last byte.

use super::access::{Over, Recorder};
use super::line::{Client, LogLine};
use crate::exchange::{Cost, Later};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use samovar_config::Upstream;
use samovar_insight::End;
use std::fmt::Debug;
use std::rc::Rc;

/// What the log says of a client that left before its answer; nginx's number.
const CLIENT_GONE: u16 = 499;

/// What is remembered of a request while it is on its way through the front. Dropping it is the end of the request:
/// it is counted, and its line is written.
#[derive(Debug)]
pub(crate) struct RequestLogEntry {
    recorder: Rc<Recorder>,
    status: u16,
    is_complete: bool,
    /// How it ended, if that is not as it should.
    failed: Option<End>,
    line: Option<Box<LogLine>>,
    /// What it has cost, if its worker goes on.
    later: Option<Later>,
}

impl RequestLogEntry {
    /// Opens the entry of a request whose head was parsed.
    pub(crate) fn begin(
        recorder: &Rc<Recorder>,
        parts: &Parts,
        id: &HeaderValue,
        client: Client<'_>,
    ) -> RequestLogEntry {
        recorder.counters.requests.add(1);
        recorder.counters.in_flight.add(1);
        let line = recorder.is_on().then(|| recorder.open(parts, id, client));
        RequestLogEntry {
            recorder: Rc::clone(recorder),
            status: CLIENT_GONE,
            is_complete: false,
            failed: None,
            line,
            later: None,
        }
    }

    /// Counts another run: a worker died.
    pub(crate) fn retried(&mut self) {
        if let Some(line) = &mut self.line {
            line.attempts += 1;
        }
    }

    /// Notes what the request has cost its worker.
    pub(crate) fn costs(&mut self, cost: Cost) {
        match (cost, &mut self.line) {
            (Cost::Known(account), Some(line)) => line.account = Some(account),
            (Cost::Later(later), Some(_)) => self.later = Some(later),
            (Cost::Unknown, _) | (_, None) => {}
        }
    }

    /// Notes the status that the client is told.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// Notes that the front itself answers, because of this.
    pub(crate) fn failed(&mut self, end: Option<End>) {
        self.failed = end;
    }

    /// Leaves it out of the access log. Figures have it all the same.
    pub(crate) fn keep_out_of_log(&mut self) {
        if let Some(line) = &mut self.line {
            line.keep_out_of_log();
        }
    }

    /// Notes which script answers.
    pub(crate) fn runs(&mut self, script: &[u8]) {
        if let Some(line) = &mut self.line {
            line.runs(script);
        }
    }

    /// Notes who runs it in a worker's place.
    pub(crate) fn passes(&mut self, upstream: &Upstream) {
        if let Some(line) = &mut self.line {
            line.upstream = upstream.to_string();
        }
    }

    /// Counts bytes of the body that hyper was given.
    pub(crate) fn sent(&mut self, bytes: u64) {
        if let Some(line) = &mut self.line {
            line.bytes += bytes;
        }
    }

    /// Notes that the client was given all it was promised.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Says that the answer broke off, and why.
    pub(crate) fn cut(&mut self, lost: impl Debug) {
        self.failed = Some(End::Cut);
        if let Some(suppressed) = self.recorder.cut.pass() {
            tracing::warn!(
                ?lost,
                suppressed,
                "an answer broke off in the middle; the client's connection is cut (hint: the \
                 worker's log says why)"
            );
        }
    }
}

impl Drop for RequestLogEntry {
    fn drop(&mut self) {
        let recorder = &self.recorder;
        recorder.counters.in_flight.sub(1);
        if self.status >= 500 {
            recorder.counters.responses_5xx.add(1);
        }
        if let Some(line) = self.line.take() {
            let end = if self.is_complete { End::Answered } else { End::Aborted };
            let status = self.status;
            let over =
                Over { status, is_complete: self.is_complete, end: self.failed.unwrap_or(end) };
            recorder.put(line, over, self.later.take());
        }
    }
}
