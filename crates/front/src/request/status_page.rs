//! php-fpm's status and ping pages, for requests over FastCGI, at the paths that the settings
//! specify.
//!
//! Fields that have no meaning here, or that the front does not know about its workers, are left
//! out. `samovar status`, `/health` and the metrics show more.

use super::context::RequestContext;
use crate::client::fastcgi::fastcgi_params::FastcgiParams;
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::runtime::rejection::Rejection;
use http::{HeaderValue, Response, header};
use jiff::Timestamp;
use samovar_ring::{WorkerReport, WorkerState};
use std::fmt::Write;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// A date in the past, which php-fpm sends together with [`NO_CACHE`].
const EXPIRED: HeaderValue = HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
const NO_CACHE: HeaderValue =
    HeaderValue::from_static("no-cache, no-store, must-revalidate, max-age=0");
/// Name of the pool if it is the only one.
const POOL: &str = "samovar";

/// Returns the page at the path in `told`, if there is one.
pub(super) fn page(
    context: &RequestContext<'_>,
    told: &FastcgiParams,
) -> Option<Result<Response<ResponseBody>, Failure>> {
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
    Some(Ok(respond(kind, text)))
}

fn respond(kind: &'static str, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text.into()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::EXPIRES, EXPIRED);
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// The response is 503 while there are no workers.
fn ping(context: &RequestContext<'_>, text: &str) -> Result<Response<ResponseBody>, Failure> {
    if context.shared().exchanges.borrow().has_workers() {
        Ok(respond("text/plain; charset=utf-8", text.to_owned()))
    } else {
        Err(Failure::Busy(Rejection::Starting, 1))
    }
}

/// A figure of the pages: its name and value, then its name, type and help text as a metric.
type Pair = (&'static str, u64, &'static str, &'static str, &'static str);

/// Contents of the status page.
struct Status {
    /// Contains only letters, digits, `-`, `_` and dots, so no format needs escaping.
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
        let (accepted, queue_len) = (shared.common.requests(), settings.limits.queue_max as u64);
        #[rustfmt::skip]
        let pairs = vec![
            ("accepted conn", accepted, "accepted_connections", "counter", "Requests received."),
            ("listen queue", queued, "listen_queue", "gauge", "Requests that wait for a process."),
            ("max listen queue", queued_max, "max_listen_queue", "counter",
                "Maximum number of waiting requests."),
            ("listen queue len", queue_len, "listen_queue_length", "gauge",
                "Capacity of the queue, in requests."),
            ("idle processes", idle, "idle_processes", "gauge", "Idle processes."),
            ("active processes", busy, "active_processes", "gauge", "Active processes."),
            ("total processes", workers.len() as u64, "total_processes", "gauge",
                "Idle and active processes."),
            ("max active processes", busy_max, "max_active_processes", "counter",
                "Maximum number of active processes."),
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

    /// Names and values of the figures.
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

    /// Names and values of all fields that are not about processes, in readable form.
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
        let mut out = "<!DOCTYPE html>\n<html lang=\"en\">\n\
                       <head><title>PHP-FPM Status Page</title></head>\n\
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
            // A number, as in JSON.
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
        metric("start_since", since, "counter", "Seconds since the start.");
        for (_, value, name, kind, help) in &self.pairs {
            metric(name, *value, kind, help);
        }
        out + "# EOF\n"
    }
}

fn state(worker: &WorkerReport) -> &'static str {
    if worker.state == WorkerState::Busy { "Running" } else { "Idle" }
}
