//! Spans of sampled requests, and the body of a request with them.

use super::attributes::{number, text};
use super::identity::Identity;
use super::message::{
    Event, ExportTraceServiceRequest, KeyValue, ResourceSpans, ScopeSpans, Span, Status,
};
use crate::finished::{Finished, Numbers};
use crate::recorded_error::RecordedError;
use crate::report::{
    BOOTS_MAX, Boot, Entry, ErrorKind, SpanKind, Statement, StatementKind, TimedSpan, Wait,
    WaitKind,
};
use prost::Message as _;
use std::sync::Arc;

/// Maximum number of spans for waits and timers of one request.
pub(super) const CHILDREN_MAX: usize = 100;
/// Values of `SpanKind`.
const INTERNAL: i32 = 1;
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
/// Methods that the conventions define. Other methods may be arbitrary text of a client.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
/// Value of `StatusCode`.
pub(super) const ERROR: i32 = 2;

/// Spans that wait for export.
#[derive(Debug, Default)]
pub struct Spans(pub(super) Vec<Span>);

impl Spans {
    /// Adds the spans of a request; none if it does not belong to a sampled trace.
    pub fn add(&mut self, finished: &Finished, route: &str, entries: &[Entry]) {
        let numbers = &finished.numbers;
        if !numbers.is_sampled {
            return;
        }
        let mut family = Family { numbers, born: 0 };
        self.0.push(server(finished, route, &RecordedError::of_entries(entries)));
        let begin = numbers.began_unix_us.saturating_mul(1_000);
        if numbers.worker == 0 {
            return;
        }
        let taken = begin.saturating_add(numbers.queue_ns);
        self.0.push(family.child("queue", INTERNAL, numbers.span_id, begin, numbers.queue_ns));
        self.0.extend(family.rollback(taken));
        let of_worker = entries.iter().filter_map(|entry| match entry {
            Entry::Boot(boot) if !boot.is_of_run() => family.boot(*boot, numbers.span_id),
            _ => None,
        });
        self.0.extend(of_worker.take(BOOTS_MAX));
        let mut php = family.child("php", INTERNAL, numbers.span_id, taken, numbers.run_ns);
        php.attributes = vec![
            text("samovar.model", numbers.model.name()),
            number("samovar.worker", numbers.worker.into()),
            number("samovar.cell", numbers.cell.into()),
            number("samovar.generation", numbers.generation.into()),
            number("samovar.cpu_ns", numbers.cpu_ns),
            number("samovar.rollback_ns", numbers.rollback_ns),
            number("samovar.memory_peak_bytes", numbers.peak_bytes),
        ];
        let delay = entries.iter().find_map(|entry| match entry {
            Entry::CpuDelay(ns) => Some((*ns).min(numbers.run_ns)),
            _ => None,
        });
        php.attributes.extend(delay.map(|ns| number("samovar.cpu_delay_ns", ns)));
        let parent: [u8; 8] = php.span_id.clone().try_into().unwrap_or_default();
        self.0.push(php);
        let timeline = Timeline::of(entries);
        self.0.extend(timeline.spans.iter().filter_map(|span| {
            let (entry, span) = (timeline.entry(span)?, *span);
            family.timed(entry, span, parent, taken)
        }));
        let sums = entries.iter().filter(|entry| !timeline.contains(entry));
        let below = sums.filter_map(|entry| family.below_php(entry, parent, taken));
        self.0.extend(below.take(CHILDREN_MAX - timeline.spans.len()));
    }

    /// Returns the number of spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no spans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all spans as the body of a request to the collector. They belong to the serving
    /// release.
    #[must_use]
    pub fn encode(self, identity: &Identity) -> Vec<u8> {
        encode(vec![(identity.releases.of_server(), self.0)], identity)
    }
}

/// Returns spans by release as the body of a request to the collector.
pub(super) fn encode(spans: Vec<(Arc<str>, Vec<Span>)>, identity: &Identity) -> Vec<u8> {
    let of_release = |(release, spans): (Arc<str>, Vec<Span>)| ResourceSpans {
        resource: Some(identity.resource(&release)),
        scope_spans: vec![ScopeSpans { scope: Some(identity.scope()), spans }],
    };
    let resource_spans = spans.into_iter().map(of_release).collect();
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn server(finished: &Finished, route: &str, errors: &[RecordedError]) -> Span {
    let n = &finished.numbers;
    let begin = n.began_unix_us.saturating_mul(1_000);
    let has_parent = n.parent_span_id != [0; 8];
    let is_known = METHODS.contains(&finished.method);
    let method = if is_known { finished.method } else { "HTTP" };
    Span {
        trace_id: n.trace_id.to_vec(),
        span_id: n.span_id.to_vec(),
        parent_span_id: if has_parent { n.parent_span_id.to_vec() } else { Vec::new() },
        name: format!("{method} {route}"),
        kind: SERVER,
        start_time_unix_nano: begin,
        end_time_unix_nano: begin.saturating_add(n.wall_ns),
        attributes: of_request(finished, route, is_known, errors),
        events: errors
            .iter()
            .map(|error| exception(error, begin.saturating_add(n.wall_ns)))
            .collect(),
        links: Vec::new(),
        status: (n.status >= 500).then_some(Status { code: ERROR }),
    }
}

/// Returns the event that the conventions define for exceptions. The worker does not measure the
/// time of a throw, so the event is at the end of the span.
fn exception(error: &RecordedError, at: u64) -> Event {
    let is_handled = matches!(error.kind, ErrorKind::Rendered | ErrorKind::Reported);
    Event {
        time_unix_nano: at,
        name: "exception".to_owned(),
        attributes: vec![
            text("exception.type", &error.class),
            text("exception.message", &error.message),
            text("exception.stacktrace", &error.trace()),
            text("exception.escaped", if is_handled { "false" } else { "true" }),
            text("code.filepath", &error.file),
            number("code.lineno", error.line.into()),
            text("samovar.error.kind", error.kind.name()),
        ],
    }
}

/// Returns the attributes that the conventions define for HTTP servers, and ours.
fn of_request(
    finished: &Finished,
    route: &str,
    is_known: bool,
    errors: &[RecordedError],
) -> Vec<KeyValue> {
    let n = &finished.numbers;
    let mut all = vec![
        text("http.request.method", if is_known { finished.method } else { "_OTHER" }),
        text("http.route", route),
        text("url.scheme", if n.is_https { "https" } else { "http" }),
        text("url.path", finished.path),
        number("http.response.status_code", n.status.into()),
        number("http.request.body.size", n.bytes_in),
        number("http.response.body.size", n.bytes_out),
        number("http.request.resend_count", n.retries.into()),
        text("samovar.request_id", finished.id),
        text("samovar.end", n.end.name()),
    ];
    if !is_known {
        all.push(text("http.request.method_original", finished.method));
    }
    if n.status >= 500 {
        let class = errors.first().map(|error| error.class.to_string());
        all.push(text("error.type", &class.unwrap_or_else(|| n.status.to_string())));
    }
    all
}

/// Returns the attributes of a wait. In the conventions, only sockets have a server.
fn of_wait(kind: WaitKind, peer: &str, times: u32) -> Vec<KeyValue> {
    let mut all = vec![
        text("samovar.wait.kind", kind.name()),
        text("samovar.wait.peer", peer),
        number("samovar.times", times.into()),
    ];
    let (address, port) = match kind {
        WaitKind::Tcp | WaitKind::Udp => peer.rsplit_once(':').unwrap_or((peer, "")),
        WaitKind::Unix => (peer, ""),
        _ => return all,
    };
    all.push(text("network.transport", kind.name()));
    all.push(text("server.address", address.trim_start_matches('[').trim_end_matches(']')));
    if let Ok(port) = port.parse::<u16>() {
        all.push(number("server.port", port.into()));
    }
    all
}

/// Executions of statements and waits whose times are known, with their entries.
struct Timeline<'a> {
    statements: Vec<&'a Entry<'a>>,
    waits: Vec<&'a Entry<'a>>,
    spans: Vec<TimedSpan>,
}

impl<'a> Timeline<'a> {
    /// Returns the longest spans of a request, up to the limit, in the order of their start.
    fn of(entries: &'a [Entry<'a>]) -> Timeline<'a> {
        let is_statement = |entry: &&Entry| matches!(entry, Entry::Statement(_));
        let mut timeline = Timeline {
            statements: entries.iter().filter(is_statement).collect(),
            waits: entries.iter().filter(|entry| matches!(entry, Entry::Wait(_))).collect(),
            spans: Vec::new(),
        };
        let all = entries.iter().filter_map(|entry| match entry {
            Entry::Spans(spans) => Some(spans.iter()),
            _ => None,
        });
        let mut spans: Vec<_> = all.flatten().collect();
        spans.retain(|span| timeline.entry(span).is_some());
        spans.sort_by_key(|span| std::cmp::Reverse(span.us));
        spans.truncate(CHILDREN_MAX);
        spans.sort_by_key(|span| (span.from_us, std::cmp::Reverse(span.us)));
        timeline.spans = spans;
        timeline
    }

    fn entry(&self, span: &TimedSpan) -> Option<&'a Entry<'a>> {
        let all = if span.kind == SpanKind::Wait { &self.waits } else { &self.statements };
        all.get(usize::from(span.index)).copied()
    }

    /// Returns whether all parts of a wait are spans of their own.
    fn contains(&self, entry: &Entry) -> bool {
        let Entry::Wait(wait) = entry else { return false };
        let is_it = |span: &&TimedSpan| {
            span.kind == SpanKind::Wait
                && self.entry(span).is_some_and(|of| std::ptr::eq(of, entry))
        };
        self.spans.iter().filter(is_it).count() >= wait.times as usize
    }
}

/// Returns the attributes that the conventions define for a statement, and ours.
fn of_statement(s: &Statement) -> Vec<KeyValue> {
    let mut all = match s.kind {
        StatementKind::Sql => {
            vec![text("db.system.name", "other_sql"), text("db.query.text", s.text)]
        }
        StatementKind::Redis => {
            vec![text("db.system.name", "redis"), text("db.query.text", s.text)]
        }
        StatementKind::Http => {
            let (method, url) = s.text.split_once(' ').unwrap_or(("", s.text));
            vec![text("http.request.method", method), text("url.template", url)]
        }
    };
    if !s.file.is_empty() {
        all.push(text("code.filepath", s.file));
        all.push(number("code.lineno", s.line.into()));
    }
    all
}

/// Creates the child spans of a request.
struct Family<'a> {
    numbers: &'a Numbers,
    born: u64,
}

impl Family<'_> {
    fn child(&mut self, name: &str, kind: i32, parent: [u8; 8], begin: u64, ns: u64) -> Span {
        self.born += 1;
        Span {
            trace_id: self.numbers.trace_id.to_vec(),
            span_id: derived(self.numbers.span_id, self.born).to_vec(),
            parent_span_id: parent.to_vec(),
            name: name.to_owned(),
            kind,
            start_time_unix_nano: begin,
            end_time_unix_nano: begin.saturating_add(ns),
            ..Span::default()
        }
    }

    /// Creates the span of the rollback that prepared the worker. It ends where PHP begins, because
    /// a worker takes a waiting request at once after its rollback. It begins no earlier than the
    /// request.
    fn rollback(&mut self, taken: u64) -> Option<Span> {
        let n = self.numbers;
        let seen_ns = n.rollback_ns.min(n.queue_ns);
        if seen_ns == 0 {
            return None;
        }
        let mut span =
            self.child("rollback", INTERNAL, n.span_id, taken.saturating_sub(seen_ns), seen_ns);
        span.attributes = vec![
            number("samovar.rollback_ns", n.rollback_ns),
            number("samovar.rollback_pages", n.rollback_pages.into()),
        ];
        Some(span)
    }

    /// Creates the span of the part of a boot that is within the request. The attribute has the
    /// whole duration.
    fn boot(&mut self, boot: Boot, parent: [u8; 8]) -> Option<Span> {
        let n = self.numbers;
        let (from_ns, ns) = boot.within(n.queue_ns)?;
        let begin = n.began_unix_us.saturating_mul(1_000).saturating_add(from_ns);
        let mut span = self.child(
            "boot",
            INTERNAL,
            parent,
            begin,
            ns.min(n.queue_ns.saturating_add(n.run_ns)),
        );
        span.attributes = vec![number("samovar.boot_ns", boot.ns)];
        Some(span)
    }

    /// Creates the span of one execution or one wait.
    fn timed(
        &mut self,
        entry: &Entry,
        span: TimedSpan,
        parent: [u8; 8],
        taken: u64,
    ) -> Option<Span> {
        let begin = taken.saturating_add(u64::from(span.from_us) * 1_000);
        let ns = u64::from(span.us) * 1_000;
        match entry {
            Entry::Statement(s) => {
                let mut child = self.child(s.text, CLIENT, parent, begin, ns);
                child.attributes = of_statement(s);
                Some(child)
            }
            Entry::Wait(wait) => {
                let one = Entry::Wait(Wait { times: 1, ns, ..*wait });
                self.below_php(&one, parent, begin)
            }
            _ => None,
        }
    }

    fn below_php(&mut self, entry: &Entry, parent: [u8; 8], begin: u64) -> Option<Span> {
        match entry {
            Entry::Wait(Wait { kind, peer, times, ns }) => {
                let name = format!("wait {} {peer}", kind.name());
                let is_call = matches!(kind, WaitKind::Tcp | WaitKind::Udp | WaitKind::Unix);
                let side = if is_call { CLIENT } else { INTERNAL };
                let mut span = self.child(name.trim_end(), side, parent, begin, *ns);
                span.attributes = of_wait(*kind, peer, *times);
                Some(span)
            }
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                let name = tags.first().map_or("timer", |(_, value)| value);
                let mut span = self.child(name, INTERNAL, parent, begin, *wall_ns);
                span.attributes = tags.iter().map(|(name, value)| text(name, value)).collect();
                span.attributes.push(number("samovar.times", u64::from(*hits)));
                span.attributes.push(number("samovar.cpu_ns", user_ns.saturating_add(*system_ns)));
                Some(span)
            }
            Entry::Boot(boot) if boot.is_of_run() => self.boot(*boot, parent),
            Entry::Route(_)
            | Entry::Tag(..)
            | Entry::Place(_)
            | Entry::Dropped(_)
            | Entry::Boot(_)
            | Entry::Error(_)
            | Entry::Spans(_)
            | Entry::CpuDelay(_)
            | Entry::Statement(_) => None,
        }
    }
}

/// Returns the span id of a request's nth child. It is as random as the request's own id
/// (`SplitMix64`, Steele et al. 2014), and not zero.
pub(super) fn derived(id: [u8; 8], n: u64) -> [u8; 8] {
    let mut z = u64::from_be_bytes(id).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).max(1).to_be_bytes()
}
