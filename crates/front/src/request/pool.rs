//! php-fpm's pages about itself, for whoever asks them by FastCGI: its status and its ping, by the paths that the settings name.
//!
//! What means nothing here is left out. `samovar status`, `/health` and the metrics tell more.

use super::context::RequestContext;
use crate::answer::body::AnswerBody;
use crate::answer::error_page::Failure;
use crate::client::fastcgi::told::Told;
use crate::runtime::shed::Shed;
use http::{HeaderValue, Response, header};
use jiff::Timestamp;
use samovar_ring::{WorkerReport, WorkerState};
use std::fmt::Write;

const NO_CACHE: HeaderValue =
    HeaderValue::from_static("no-cache, no-store, must-revalidate, max-age=0");
/// What a booted or whole script's worker is called where php-fpm has its pool's name.
const POOL: &str = "samovar";

/// The page of `told`'s path, if it has one.
pub(super) fn page(
    context: &RequestContext<'_>,
    told: &Told,
) -> Option<Result<Response<AnswerBody>, Failure>> {
    let settings = &context.setup.settings.fastcgi;
    let is_asked =
        |path: &Option<String>| path.as_ref().is_some_and(|path| told.script.name == path);
    if is_asked(&settings.ping_path) {
        return Some(ping(context, &settings.ping_response));
    }
    if !is_asked(&settings.status_path) {
        return None;
    }
    let query = told.get("QUERY_STRING").unwrap_or_default();
    let has = |word: &str| {
        let mut names = query.split(|b| *b == b'&').map(|pair| pair.split(|b| *b == b'=').next());
        names.any(|name| name == Some(word.as_bytes()))
    };
    let status = Status::of(context);
    let (kind, text) = if has("json") {
        ("application/json", status.json(has("full")))
    } else {
        ("text/plain; charset=utf-8", status.text(has("full")))
    };
    Some(Ok(answer(kind, text)))
}

fn answer(kind: &'static str, text: String) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::whole(text.into()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// As long as nobody could answer a request, the answer is 503.
fn ping(context: &RequestContext<'_>, text: &str) -> Result<Response<AnswerBody>, Failure> {
    if context.shared().exchanges.borrow().has_workers() {
        Ok(answer("text/plain; charset=utf-8", text.to_owned()))
    } else {
        Err(Failure::Busy(Shed::Starting, 1))
    }
}

/// What the pages tell.
struct Status {
    started: Timestamp,
    now: Timestamp,
    pairs: Vec<(&'static str, u64)>,
    is_static: bool,
    workers: Vec<WorkerReport>,
}

impl Status {
    fn of(context: &RequestContext<'_>) -> Status {
        let shared = context.shared();
        let exchanges = shared.exchanges.borrow();
        let workers: Vec<_> = exchanges.workers().collect();
        let count = |state| workers.iter().filter(|w| w.state == state).count() as u64;
        let (idle, busy) = (count(WorkerState::Idle), count(WorkerState::Busy));
        let settings = &context.setup.settings;
        let pairs = vec![
            ("accepted conn", shared.common.requests()),
            ("listen queue", exchanges.queue_depth() as u64),
            ("listen queue len", settings.limits.queue_max as u64),
            ("idle processes", idle),
            ("active processes", busy),
            ("total processes", workers.len() as u64),
        ];
        let range = &settings.workers;
        let is_static = range.min == range.max;
        Status { started: shared.started, now: Timestamp::now(), pairs, is_static, workers }
    }

    fn manager(&self) -> &'static str {
        if self.is_static { "static" } else { "dynamic" }
    }

    fn since_s(&self) -> i64 {
        self.now.duration_since(self.started).as_secs().max(0)
    }

    fn text(&self, is_full: bool) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(out, "{:<21} {value}", format!("{name}:"));
        };
        line("pool", &POOL);
        line("process manager", &self.manager());
        line("start time", &self.started.strftime("%d/%b/%Y:%H:%M:%S %z"));
        line("start since", &self.since_s());
        for (name, value) in &self.pairs {
            line(name, value);
        }
        for worker in self.workers.iter().filter(|_| is_full) {
            let _ = write!(
                out,
                "\n************************\nstate:                {}\nrequests:             {}\n",
                state(worker),
                worker.requests
            );
        }
        out
    }

    fn json(&self, is_full: bool) -> String {
        let mut out = format!(
            "{{\"pool\":\"{POOL}\",\"process manager\":\"{}\",\"start time\":{},\"start since\":{}",
            self.manager(),
            self.started.as_second(),
            self.since_s()
        );
        for (name, value) in &self.pairs {
            let _ = write!(out, ",\"{name}\":{value}");
        }
        if is_full {
            let of = |worker: &WorkerReport| {
                format!("{{\"state\":\"{}\",\"requests\":{}}}", state(worker), worker.requests)
            };
            let all: Vec<_> = self.workers.iter().map(of).collect();
            let _ = write!(out, ",\"processes\":[{}]", all.join(","));
        }
        out + "}"
    }
}

fn state(worker: &WorkerReport) -> &'static str {
    if worker.state == WorkerState::Busy { "Running" } else { "Idle" }
}
