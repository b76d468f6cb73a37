//! The current stacks, each with its thread's wait and its request.

use super::messages::{EXIT_INCOMPLETE, refusals, tell};
use super::options::{SpyOptions, SpyTarget};
use super::variables::values;
use anyhow::Result;
use samovar_server::terminal;
use samovar_spy::{Sample, Watch, resident_bytes, title};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn run(watch: &mut Watch, asked: &SpyOptions) -> Result<ExitCode> {
    let mut samples = watch.look();
    let idle: Vec<u32> = watch
        .processes()
        .map(|(pid, _)| pid)
        .filter(|pid| !samples.iter().any(|sample| sample.pid == *pid))
        .collect();
    samples.retain(|sample| asked.wants(sample));
    let idle = if asked.function.is_some() { Vec::new() } else { idle };
    let text = if asked.json {
        as_json(watch, asked, &samples, &idle)
    } else {
        as_text(watch, asked, &samples, &idle)
    };
    terminal::print(&text)?;
    let refused = refusals(watch);
    tell(&refused);
    let is_search = matches!(asked.whom, SpyTarget::All | SpyTarget::Matching(_));
    let is_nobody =
        is_search && watch.processes().next().is_none() && samples.is_empty() && idle.is_empty();
    if is_nobody && refused.is_empty() {
        terminal::complain(match asked.whom {
            SpyTarget::Matching(_) => "samovar: no PHP process has that text in its command line",
            _ => "samovar: no PHP process runs on this machine",
        });
    }
    let is_whole = refused.is_empty() && watch.counts().torn == 0 && !is_nobody;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_INCOMPLETE) })
}

fn as_text(watch: &Watch, asked: &SpyOptions, samples: &[Sample], idle: &[u32]) -> String {
    let mut out = String::new();
    for sample in samples {
        let thread = if sample.stack.thread == sample.pid {
            String::new()
        } else {
            format!(" thread {}", sample.stack.thread)
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}{thread}: {}", sample.pid, title(sample.pid));
        let request = sample.request.as_ref().map(|request| format!("  request: {request}"));
        let memory = resident_bytes(sample.pid)
            .map(|bytes| format!("  memory: {} MB", bytes / 1_000_000))
            .unwrap_or_default();
        let request = request.unwrap_or_default();
        let heap = sample.heap.map(|heap| {
            let (now, peak) = (megabytes(heap.bytes), megabytes(heap.peak_bytes));
            format!("  heap: {now} MB, peak {peak} MB")
        });
        let heap = heap.unwrap_or_default();
        let _ = writeln!(out, "state: {}{request}{memory}{heap}", sample.activity);
        for (name, value) in values(asked, sample) {
            let _ = writeln!(out, "{name} = {}", value.as_deref().unwrap_or("(none)"));
        }
        let _ = writeln!(out, "{}", sample.stack);
    }
    for pid in idle {
        let what = if watch.counts().torn > 0 { "no consistent stack" } else { "runs no PHP code" };
        let state = samovar_spy::activity(*pid, *pid);
        let _ = writeln!(out, "{pid}: {}\nstate: {state}  ({what})\n", title(*pid));
    }
    out
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10)
}

fn as_json(watch: &Watch, asked: &SpyOptions, samples: &[Sample], idle: &[u32]) -> String {
    let version =
        |pid| watch.processes().find(|(known, _)| *known == pid).map(|(_, version)| version);
    let frames = |sample: &Sample| -> Vec<Value> {
        let frame = |frame: &samovar_spy::Frame| {
            json!({
                "class": frame.function.class,
                "function": frame.function.name,
                "file": frame.function.file,
                "line": frame.line,
            })
        };
        sample.stack.frames.iter().map(frame).collect()
    };
    let variables = |sample: &Sample| -> Value {
        values(asked, sample).into_iter().map(|(name, value)| (name, json!(value))).collect()
    };
    let mut all: Vec<Value> = samples
        .iter()
        .map(|sample| {
            json!({
                "pid": sample.pid,
                "thread": sample.stack.thread,
                "command": title(sample.pid),
                "php": version(sample.pid),
                "state": sample.activity.to_string(),
                "request": sample.request,
                "resident_bytes": resident_bytes(sample.pid),
                "heap_bytes": sample.heap.map(|heap| heap.bytes),
                "heap_peak_bytes": sample.heap.map(|heap| heap.peak_bytes),
                "variables": variables(sample),
                "is_cut": sample.stack.is_cut,
                "frames": frames(sample),
            })
        })
        .collect();
    all.extend(idle.iter().map(|pid| {
        json!({
            "pid": pid,
            "thread": pid,
            "command": title(*pid),
            "php": version(*pid),
            "state": samovar_spy::activity(*pid, *pid).to_string(),
            "request": null,
            "resident_bytes": resident_bytes(*pid),
            "heap_bytes": null,
            "heap_peak_bytes": null,
            "variables": {},
            "is_cut": false,
            "frames": [],
        })
    }));
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    format!("{}\n", json!({"at": at, "stacks": all, "torn": watch.counts().torn}))
}
