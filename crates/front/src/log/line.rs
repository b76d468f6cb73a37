//! One finished request, for its line of the access log (`text.rs`) and for the statistics.

use super::trace::Trace;
use crate::route::target::AsItCame;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Version, header};
use samovar_insight::{End, Finished, Intake, Marks, Model, Numbers, id_mark, mark};
use samovar_ring::{Account, Ending, Usage};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// The client and its request, as described by the request head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client<'a> {
    /// The peer's address.
    pub(crate) peer: &'a str,
    /// The client's address as a trusted proxy reports it.
    pub(crate) claimed: Option<IpAddr>,
    /// Length of the body as declared in the head.
    pub(crate) body_bytes: u64,
    /// The trace of the request.
    pub(crate) trace: Option<Trace>,
    /// The request used HTTPS, to this server or to a trusted proxy.
    pub(crate) is_https: bool,
}

/// Data of a finished request. Lines are reused, so that their buffers serve the next request.
#[derive(Debug)]
pub(super) struct LogLine {
    pub(super) started: Instant,
    pub(super) at: SystemTime,
    /// Time from the head to the last byte.
    pub(super) wall: Duration,
    /// `None`: there is no request, and the target is a whole request line.
    pub(super) method: Option<Method>,
    /// Target as received. Copied, like the id: sharing the head's buffer would make it unavailable
    /// for reading the next head.
    pub(super) target: Vec<u8>,
    pub(super) id: Vec<u8>,
    /// Hashes for the statistics. `head_mark` covers method, path and pool; `marks` covers these
    /// and the script, and the id.
    pub(super) head_mark: Option<u64>,
    pub(super) marks: Marks,
    pub(super) trace: Option<Trace>,
    pub(super) is_https: bool,
    pub(super) bytes: u64,
    pub(super) attempts: u32,
    /// Generation of the canary that serves the request; 0: none does.
    pub(super) canary: u32,
    pub(super) account: Option<Account>,
    /// `SCRIPT_NAME` of the script that runs; empty if there is none.
    pub(super) script: Vec<u8>,
    /// php-fpm server that runs it instead of a worker; empty if there is none.
    pub(super) upstream: String,
    /// Name of the pool, if there are several.
    pub(super) pool: Option<Rc<str>>,
    pub(super) body_bytes: u64,
    pub(super) logged: Option<Box<Logged>>,
}

/// Data that only the access log needs. Kept apart, so that requests that are only counted do not
/// carry it.
#[derive(Debug, Default)]
pub(super) struct Logged {
    pub(super) version: Version,
    pub(super) host: Option<HeaderValue>,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) referer: Option<HeaderValue>,
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) remote: String,
}

impl Default for LogLine {
    fn default() -> LogLine {
        LogLine {
            started: Instant::now(),
            at: SystemTime::UNIX_EPOCH,
            wall: Duration::ZERO,
            method: Some(Method::GET),
            target: Vec::new(),
            id: Vec::new(),
            head_mark: None,
            marks: Marks::default(),
            trace: None,
            is_https: false,
            bytes: 0,
            attempts: 1,
            canary: 0,
            account: None,
            script: Vec::new(),
            upstream: String::new(),
            pool: None,
            body_bytes: 0,
            logged: None,
        }
    }
}

/// Names of scripts and targets may be long; buffers larger than this are not kept.
const TEXT_ROOM_MAX: usize = 1024;

impl LogLine {
    pub(super) fn begin(
        &mut self,
        started: Instant,
        at: SystemTime,
        parts: &Parts,
        id: &HeaderValue,
        client: Client<'_>,
    ) {
        (self.started, self.at) = (started, at);
        self.method = Some(parts.method.clone());
        let path_and_query = || parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        put(
            &mut self.target,
            match parts.extensions.get() {
                Some(AsItCame(target)) => target,
                None => path_and_query().as_bytes(),
            },
        );
        put(&mut self.id, id.as_bytes());
        (self.trace, self.body_bytes) = (client.trace, client.body_bytes);
        self.is_https = client.is_https;
        (self.bytes, self.attempts, self.account, self.canary) = (0, 1, None, 0);
        self.script.clear();
        self.upstream.clear();
    }

    /// The line of a head that was refused: the request line as it came, instead of a method and a
    /// target.
    pub(super) fn refused(
        started: Instant,
        at: SystemTime,
        (remote, line, id): (&str, &[u8], &HeaderValue),
        bytes: u64,
    ) -> LogLine {
        let logged = Logged { remote: remote.to_owned(), ..Logged::default() };
        LogLine {
            started,
            at,
            method: None,
            target: if line.is_empty() { b"-".to_vec() } else { line.to_vec() },
            id: id.as_bytes().to_vec(),
            bytes,
            logged: Some(Box::new(logged)),
            ..LogLine::default()
        }
    }

    /// Records the script that runs.
    pub(super) fn runs(&mut self, script: &[u8]) {
        put(&mut self.script, script);
        if let Some(head) = self.head_mark {
            self.marks.texts = mark(head, &[script]);
        }
    }

    /// Computes the hashes that identify the request in the statistics, while its texts are
    /// available.
    pub(super) fn note_for_figures(&mut self) {
        let pool = self.pool.as_deref().unwrap_or_default();
        let texts = [self.method().as_bytes(), path_of(&self.target), pool.as_bytes()];
        let head = mark(0, &texts);
        self.head_mark = Some(head);
        self.marks = Marks { texts: head, id: id_mark(&self.id) };
    }

    /// Records the additional data of the access log.
    pub(super) fn note_for_log(&mut self, parts: &Parts, client: Client<'_>) {
        self.logged = Some(Box::new(Logged {
            version: parts.version,
            host: parts.headers.get(header::HOST).cloned(),
            authorization: parts.headers.get(header::AUTHORIZATION).cloned(),
            referer: parts.headers.get(header::REFERER).cloned(),
            user_agent: parts.headers.get(header::USER_AGENT).cloned(),
            remote: client.claimed.map_or_else(|| client.peer.to_owned(), |a| a.to_string()),
        }));
    }

    pub(super) fn method(&self) -> &str {
        self.method.as_ref().map_or("", Method::as_str)
    }

    pub(super) fn keep_out_of_log(&mut self) {
        self.logged = None;
    }

    /// Whether the request is written to the access log.
    pub(super) fn is_for_log(&self) -> bool {
        self.logged.is_some()
    }

    /// Records the end: the client has its last byte, or has disconnected.
    pub(super) fn end(&mut self) {
        self.wall = self.started.elapsed();
    }

    /// Releases the data of a finished request that it shared with its head, and large buffers.
    pub(super) fn let_go(&mut self) {
        (self.method, self.account, self.logged) = (Some(Method::GET), None, None);
        for text in [&mut self.script, &mut self.target, &mut self.id] {
            text.shrink_to(TEXT_ROOM_MAX);
        }
    }

    /// Passes the request on to crates/insight.
    pub(super) fn hand_over(&self, status: u16, end: End, intake: &mut Intake) {
        let usage = self.account.as_ref().map(|account| account.usage).unwrap_or_default();
        let trace = self.trace.unwrap_or_default();
        let end = match (end, usage.ending) {
            (End::Completed, Ending::Fatal) => End::Fatal,
            (End::Completed, Ending::Overtime) => End::Overtime,
            (End::Completed, Ending::Exit) => End::Exit,
            (end, _) => end,
        };
        let numbers = Numbers {
            began_unix_us: since_1970_us(self.at),
            status,
            model: model_of(&usage),
            end,
            // A worker that died has not reported its generation.
            generation: self
                .account
                .as_ref()
                .map_or(self.canary, |_| usage.worker.generation.into()),
            worker: usage.worker.pid,
            cell: usage.worker.cell,
            retries: self.attempts - 1,
            wall_ns: ns(self.wall),
            queue_ns: usage.queue_ns,
            run_ns: usage.run_ns,
            cpu_ns: usage.cpu_ns,
            rollback_ns: usage.details.rollback_ns,
            rollback_pages: usage.details.rollback_pages,
            faults_minor: usage.details.faults_minor,
            faults_major: usage.details.faults_major,
            switches_voluntary: usage.details.switches_voluntary,
            switches_involuntary: usage.details.switches_involuntary,
            peak_bytes: usage.peak_bytes,
            grown_bytes: usage.details.grown_bytes,
            is_https: self.is_https,
            bytes_in: self.body_bytes,
            bytes_out: self.bytes,
            trace_id: trace.id,
            span_id: trace.span,
            parent_span_id: trace.parent,
            is_sampled: trace.is_sampled(),
        };
        let report: &[u8] = self.account.as_ref().map_or(&[], |account| &account.report);
        if report.is_empty() && intake.pack(&numbers, self.marks) {
            return;
        }
        self.with_texts(numbers, |finished| intake.put_marked(finished, self.marks));
    }

    /// Passes the request with its texts to a function.
    pub(super) fn with_texts<T>(&self, numbers: Numbers, then: impl FnOnce(&Finished) -> T) -> T {
        then(&Finished {
            numbers,
            method: self.method(),
            path: &String::from_utf8_lossy(path_of(&self.target)),
            script: &String::from_utf8_lossy(&self.script),
            id: std::str::from_utf8(&self.id).unwrap_or_default(),
            pool: self.pool.as_deref().unwrap_or_default(),
            report: self.account.as_ref().map_or(&[], |account| &account.report),
        })
    }
}

/// Returns a target without its query.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|b| *b == b'?').next().unwrap_or_default()
}

/// Returns the execution model of a request with this usage.
pub(super) fn model_of(usage: &Usage) -> Model {
    match usage.model {
        _ if usage.worker.pid == 0 => Model::None,
        samovar_ring::Model::Script => Model::Script,
        samovar_ring::Model::Resident => Model::Resident,
        samovar_ring::Model::Checkpoint => Model::Checkpoint,
    }
}

/// Replaces a text and reuses its buffer.
fn put(to: &mut Vec<u8>, text: &[u8]) {
    to.clear();
    to.extend_from_slice(text);
}

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn since_1970_us(at: SystemTime) -> u64 {
    let span = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
