//! Formats a slow request as one line.

use crate::recent_requests::{RecentRequest, RecentStatement, RecentTimer};
use samovar_log::{is_unprintable, printable_json};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Maximum number of waits and timers in a line of text; JSON contains all of them.
const SHOWN_MAX: usize = 10;
/// Maximum number of statements in a line.
const STATEMENTS_SHOWN_MAX: usize = 5;

fn ms(ns: u64) -> f64 {
    // Whole microseconds: smaller fractions are noise, and fifteen digits are hard to read.
    (ns / 1_000) as f64 / 1_000.0
}

/// Returns the path without a query string, in case it has one.
fn path(kept: &RecentRequest) -> &str {
    kept.path.split('?').next().unwrap_or_default()
}

fn waiting_ns(kept: &RecentRequest) -> u64 {
    kept.waits.iter().fold(0, |sum, (.., ns)| sum.saturating_add(*ns))
}

fn trace_id(kept: &RecentRequest) -> Option<String> {
    let id = u128::from_be_bytes(kept.numbers.trace_id);
    (id != 0).then(|| format!("{id:032x}"))
}

fn pairs(tags: &[(Box<str>, Box<str>)]) -> Value {
    tags.iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>().into()
}

/// Returns the time that the request waited for its worker's boot, plus its script's boot.
fn boot_ns(kept: &RecentRequest) -> u64 {
    let within = kept.boots.iter().filter_map(|boot| boot.within(kept.numbers.queue_ns));
    within.map(|(_, ns)| ns).fold(0, u64::saturating_add)
}

/// Returns one line of JSON.
pub(super) fn json(kept: &RecentRequest, suppressed: u64) -> String {
    let n = &kept.numbers;
    let waits: Vec<_> = kept
        .waits
        .iter()
        .map(|(kind, peer, times, ns)| {
            json!({ "kind": kind.name(), "peer": peer, "times": times, "ms": ms(*ns) })
        })
        .collect();
    let timer = |t: &RecentTimer| {
        let (wall, cpu) = (ms(t.wall_ns), ms(t.cpu_ns));
        json!({ "tags": pairs(&t.tags), "hits": t.hits, "ms": wall, "cpu_ms": cpu })
    };
    let statement = |s: &RecentStatement| {
        let (calls, rows, ms) = (s.calls, s.rows, ms(s.ns));
        let place = format!("{}:{}", s.file, s.line);
        json!({ "kind": s.kind, "text": s.text, "calls": calls, "ms": ms, "rows": rows,
                "place": place, "place_calls": s.place_calls })
    };
    let statements: Vec<_> =
        kept.statements.iter().take(STATEMENTS_SHOWN_MAX).map(statement).collect();
    let record = json!({
        "event": "slow_request",
        "began_unix_us": n.began_unix_us,
        "route": kept.route,
        "method": kept.method,
        "path": path(kept),
        "script": kept.script,
        "request_id": kept.id,
        "trace_id": trace_id(kept),
        "status": n.status,
        "end": n.end.name(),
        "model": n.model.name(),
        "worker": n.worker,
        "cell": n.cell,
        "generation": n.generation,
        "retries": n.retries,
        "wall_ms": ms(n.wall_ns),
        "queue_ms": ms(n.queue_ns),
        "run_ms": ms(n.run_ns),
        "cpu_ms": ms(n.cpu_ns),
        "waiting_ms": ms(waiting_ns(kept)),
        "boot_ms": ms(boot_ns(kept)),
        "rollback_ms": ms(n.rollback_ns),
        "rollback_pages": n.rollback_pages,
        "faults_minor": n.faults_minor,
        "faults_major": n.faults_major,
        "switches_voluntary": n.switches_voluntary,
        "switches_involuntary": n.switches_involuntary,
        "memory_peak_bytes": n.peak_bytes,
        "bytes_in": n.bytes_in,
        "bytes_out": n.bytes_out,
        "waits": waits,
        "timers": kept.timers.iter().map(timer).collect::<Vec<_>>(),
        "tags": pairs(&kept.tags),
        "statements": statements,
        "place": kept.place,
        "blocked": kept.scene.as_ref().map(|scene| &scene.blocked),
        "stack": kept.scene.as_ref().map(|scene| &scene.calls),
        "errors": kept.errors,
        "suppressed": suppressed,
    });
    printable_json(record.to_string())
}

/// Returns one line for people: the request, and the parts of its time, longest waits first.
pub(super) fn text(kept: &RecentRequest, suppressed: u64) -> String {
    let n = &kept.numbers;
    let mut line = format!(
        "slow request: {} ms {} {} route=\"{}\" status={} id={} end={} model={} worker={} cell={} \
         generation={}",
        ms(n.wall_ns),
        plain(&kept.method),
        plain(path(kept)),
        plain(&kept.route),
        n.status,
        plain(&kept.id),
        n.end.name(),
        n.model.name(),
        n.worker,
        n.cell,
        n.generation,
    );
    for (name, ns) in [
        ("queue", n.queue_ns),
        ("run", n.run_ns),
        ("cpu", n.cpu_ns),
        ("waiting", waiting_ns(kept)),
        ("boot", boot_ns(kept)),
        ("rollback", n.rollback_ns),
    ] {
        let _ = write!(line, " {name}={}", ms(ns));
    }
    let _ = write!(line, " memory={} in={} out={}", n.peak_bytes, n.bytes_in, n.bytes_out);
    if let Some(id) = trace_id(kept) {
        let _ = write!(line, " trace={id}");
    }
    for (kind, peer, times, ns) in kept.waits.iter().take(SHOWN_MAX) {
        let _ = write!(line, "; {} ms in {times} × {} {}", ms(*ns), kind.name(), plain(peer));
    }
    for timer in kept.timers.iter().take(SHOWN_MAX) {
        let tags: Vec<_> = timer.tags.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let tags = tags.join(",");
        let _ = write!(line, "; {} ms in {} × [{}]", ms(timer.wall_ns), timer.hits, plain(&tags));
    }
    for s in kept.statements.iter().take(STATEMENTS_SHOWN_MAX) {
        let (kind, text) = (s.kind.name(), plain(&s.text));
        let _ = write!(line, "; {} ms in {} × {kind} \"{text}\"", ms(s.ns), s.calls);
        if !s.file.is_empty() {
            let _ = write!(line, " at {}:{}", plain(&s.file), s.line);
        }
    }
    if let Some(place) = &kept.place {
        let _ = write!(line, "; at {}", plain(place));
    }
    if let Some(scene) = &kept.scene {
        let _ = write!(line, "; when the request became slow: {}", plain(&scene.blocked));
        for (at, call) in scene.calls.iter().take(SHOWN_MAX).enumerate() {
            let _ = write!(line, "{}{}", if at == 0 { ", in " } else { " < " }, plain(call));
        }
    }
    for error in &kept.errors {
        let (kind, place) = (error.kind.name(), error.place());
        let (class, message) = (plain(&error.class), plain(&error.message));
        let _ = write!(line, "; {kind} error {class}: {message} at {}", plain(&place));
    }
    if suppressed > 0 {
        let _ = write!(line, "; {suppressed} more slow requests not logged");
    }
    line
}

/// Escapes a text from outside so that it can neither end the line nor move a terminal's cursor.
fn plain(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => clean.extend(['\\', c]),
            c if is_unprintable(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    clean
}
