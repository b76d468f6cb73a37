//! php-fpm's pages about itself, for whoever asks them by FastCGI: its status and its ping, by the paths that the settings name.
//!
//! What means nothing here, and what the front does not know of its workers, is left out. `samovar status`, `/health` and the metrics tell more.

use super::context::RequestContext;
use crate::answer::body::AnswerBody;
use crate::answer::error_page::Failure;
use crate::client::fastcgi::told::Told;
use crate::runtime::shed::Shed;
use http::{HeaderValue, Response, header};
use jiff::Timestamp;
use samovar_ring::{WorkerReport, WorkerState};
use std::fmt::Write;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Long ago, as php-fpm says it beside [`NO_CACHE`].
const EXPIRED: HeaderValue = HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
const NO_CACHE: HeaderValue =
    HeaderValue::from_static("no-cache, no-store, must-revalidate, max-age=0");
/// What is told for the name of the one pool, where there are no others.
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
    let is_full = has("full");
    // In php-fpm's order.
    let (kind, text) = if has("html") {
        ("text/html; charset=utf-8", status.html(is_full))
    } else if has("xml") {
        ("text/xml; charset=utf-8", status.xml(is_full))
    } else if has("json") {
        ("application/json", status.json(is_full))
    } else if has("openmetrics") {
        (OPENMETRICS, status.openmetrics())
    } else {
        ("text/plain; charset=utf-8", status.text(is_full))
    };
    Some(Ok(answer(kind, text)))
}

fn answer(kind: &'static str, text: String) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::whole(text.into()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::EXPIRES, EXPIRED);
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

/// A figure of the pages: name, value, name among metrics, kind and help there.
type Pair = (&'static str, u64, &'static str, &'static str, &'static str);

/// What the pages tell.
struct Status {
    /// Letters, digits, `-`, `_` and dots: no format needs to escape it.
    pool: String,
    started: Timestamp,
    now: Timestamp,
    pairs: Vec<Pair>,
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
        let queued = exchanges.queue_depth() as u64;
        shared.peaks.note(queued, busy);
        let (queued_max, busy_max) = (shared.peaks.queued.get(), shared.peaks.busy.get());
        #[rustfmt::skip]
        let pairs = vec![
            ("accepted conn", shared.common.requests(), "accepted_connections", "counter", "The number of requests that came."),
            ("listen queue", queued, "listen_queue", "gauge", "The number of requests that wait for a process."),
            ("max listen queue", queued_max, "max_listen_queue", "counter", "The most that were seen to wait."),
            ("listen queue len", settings.limits.queue_max as u64, "listen_queue_length", "gauge", "The number of requests that may wait."),
            ("idle processes", idle, "idle_processes", "gauge", "The number of idle processes."),
            ("active processes", busy, "active_processes", "gauge", "The number of active processes."),
            ("total processes", workers.len() as u64, "total_processes", "gauge", "The number of idle and active processes."),
            ("max active processes", busy_max, "max_active_processes", "counter", "The most that were seen to be active."),
        ];
        let range = &settings.workers;
        let is_static = range.min == range.max;
        let pool = match shared.pool_name() {
            "" => POOL,
            name => name,
        };
        let (pool, started, now) = (pool.to_owned(), shared.started, Timestamp::now());
        Status { pool, started, now, pairs, is_static, workers }
    }

    /// The figures by their names.
    fn figures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.pairs.iter().map(|(name, value, ..)| (*name, *value))
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
        line("pool", &self.pool);
        line("process manager", &self.manager());
        line("start time", &self.started.strftime("%d/%b/%Y:%H:%M:%S %z"));
        line("start since", &self.since_s());
        for (name, value) in self.figures() {
            line(name, &value);
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
            "{{\"pool\":\"{}\",\"process manager\":\"{}\",\"start time\":{},\"start since\":{}",
            self.pool,
            self.manager(),
            self.started.as_second(),
            self.since_s()
        );
        for (name, value) in self.figures() {
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

    /// Name and value of all that is no process's, for people.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("pool", self.pool.clone()),
            ("process manager", self.manager().to_owned()),
            ("start time", self.started.strftime("%d/%b/%Y:%H:%M:%S %z").to_string()),
            ("start since", self.since_s().to_string()),
        ];
        rows.extend(self.figures().map(|(name, value)| (name, value.to_string())));
        rows
    }

    fn html(&self, is_full: bool) -> String {
        let mut out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>PHP-FPM Status Page</title></head>\n\
                       <body>\n<table>\n"
            .to_owned();
        for (name, value) in self.rows() {
            let _ = writeln!(out, "<tr><th>{name}</th><td>{value}</td></tr>");
        }
        out += "</table>\n";
        if is_full {
            out += "<table border=\"1\">\n<tr><th>state</th><th>requests</th></tr>\n";
            for worker in &self.workers {
                let (state, requests) = (state(worker), worker.requests);
                let _ = writeln!(out, "<tr><td>{state}</td><td>{requests}</td></tr>");
            }
            out += "</table>\n";
        }
        out + "</body>\n</html>\n"
    }

    fn xml(&self, is_full: bool) -> String {
        let mut out = "<?xml version=\"1.0\" ?>\n<status>\n".to_owned();
        for (name, value) in self.rows() {
            let name = name.replace(' ', "-");
            // As in JSON a number here.
            let value =
                if name == "start-time" { self.started.as_second().to_string() } else { value };
            let _ = writeln!(out, "<{name}>{value}</{name}>");
        }
        if is_full {
            out += "<processes>\n";
            for worker in &self.workers {
                let (state, requests) = (state(worker), worker.requests);
                let _ = writeln!(
                    out,
                    "<process><state>{state}</state><requests>{requests}</requests></process>"
                );
            }
            out += "</processes>\n";
        }
        out + "</status>\n"
    }

    fn openmetrics(&self) -> String {
        let (pool, manager) = (&self.pool, self.manager());
        let up = format!("Could pool {pool} using a {manager} PM on PHP-FPM be reached?");
        let mut out = String::new();
        let mut metric = |name: &str, value: u64, kind: &str, help: &str| {
            let _ = write!(
                out,
                "# HELP phpfpm_{name} {help}\n# TYPE phpfpm_{name} {kind}\nphpfpm_{name} {value}\n"
            );
        };
        metric("up", 1, "gauge", &up);
        let since = u64::try_from(self.since_s()).unwrap_or_default();
        metric("start_since", since, "counter", "The number of seconds since the start.");
        for (_, value, name, kind, help) in &self.pairs {
            metric(name, *value, kind, help);
        }
        out + "# EOF\n"
    }
}

fn state(worker: &WorkerReport) -> &'static str {
    if worker.state == WorkerState::Busy { "Running" } else { "Idle" }
}
