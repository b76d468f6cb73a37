//! A slow request as one line.

use crate::kept::{Kept, KeptTimer};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Waits and timers of one line of text; JSON has all of them.
const SHOWN_MAX: usize = 10;

fn ms(ns: u64) -> f64 {
    // Whole microseconds: what is below them is noise, and fifteen digits are no help.
    (ns / 1_000) as f64 / 1_000.0
}

/// The path without what stands behind a question mark, should one ever be there.
fn path(kept: &Kept) -> &str {
    kept.path.split('?').next().unwrap_or_default()
}

fn waiting_ns(kept: &Kept) -> u64 {
    kept.waits.iter().fold(0, |sum, (.., ns)| sum.saturating_add(*ns))
}

fn trace_id(kept: &Kept) -> Option<String> {
    let id = u128::from_be_bytes(kept.numbers.trace_id);
    (id != 0).then(|| format!("{id:032x}"))
}

fn pairs(tags: &[(Box<str>, Box<str>)]) -> Value {
    tags.iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>().into()
}

/// What of its worker's boot it has waited for, and its script's.
fn boot_ns(kept: &Kept) -> u64 {
    let within = kept.boots.iter().filter_map(|boot| boot.within(kept.numbers.queue_ns));
    within.map(|(_, ns)| ns).fold(0, u64::saturating_add)
}

/// One line of JSON.
pub(super) fn json(kept: &Kept, suppressed: u64) -> String {
    let n = &kept.numbers;
    let waits: Vec<_> = kept
        .waits
        .iter()
        .map(|(kind, peer, times, ns)| {
            json!({ "kind": kind.name(), "peer": peer, "times": times, "ms": ms(*ns) })
        })
        .collect();
    let timer = |t: &KeptTimer| {
        let (wall, cpu) = (ms(t.wall_ns), ms(t.cpu_ns));
        json!({ "tags": pairs(&t.tags), "hits": t.hits, "ms": wall, "cpu_ms": cpu })
    };
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
        "place": kept.place,
        "blocked": kept.scene.as_ref().map(|scene| &scene.blocked),
        "stack": kept.scene.as_ref().map(|scene| &scene.calls),
        "suppressed": suppressed,
    });
    record.to_string()
}

/// One line for people: what it was, where its time went, the longest waits first.
pub(super) fn text(kept: &Kept, suppressed: u64) -> String {
    let n = &kept.numbers;
    let mut line = format!(
        "slow request: {} ms {} {} route=\"{}\" status={} id={} end={} model={} worker={} cell={} generation={}",
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
    if let Some(place) = &kept.place {
        let _ = write!(line, "; at {}", plain(place));
    }
    if let Some(scene) = &kept.scene {
        let _ = write!(line, "; when it became slow {}", plain(&scene.blocked));
        for (at, call) in scene.calls.iter().take(SHOWN_MAX).enumerate() {
            let _ = write!(line, "{}{}", if at == 0 { ", in " } else { " < " }, plain(call));
        }
    }
    if suppressed > 0 {
        let _ = write!(line, "; {suppressed} more were slow and not logged");
    }
    line
}

/// A text from outside that can neither end a line nor move a terminal's cursor.
fn plain(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => clean.extend(['\\', c]),
            // Line and paragraph separators end lines for some readers.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                clean.extend(c.escape_unicode());
            }
            c => clean.push(c),
        }
    }
    clean
}
