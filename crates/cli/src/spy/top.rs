//! Table of the functions in which processes spend their time: redrawn each second in a terminal,
//! printed once elsewhere.

use super::messages::{EXIT_INCOMPLETE, counted, refusals, tell, without_heap};
use super::options::{SpyOptions, SpyTarget};
use super::record::{add, split};
use super::ticker::Beat;
use anyhow::Result;
use samovar_server::terminal;
use samovar_spy::profile::{Profile, Share};
use samovar_spy::{Function, Watch, resident_bytes};
use serde_json::json;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Interval between two drawings of the table.
const DRAWN_EVERY: Duration = Duration::from_secs(1);

/// Number of rows if the terminal's size is unknown.
const ROWS: usize = 30;

/// Number of lines on the screen that are not rows of the table.
const HEAD_LINES: usize = 6;

/// Moves to the start of the screen, and clears everything below.
const CLEAR: &str = "\x1b[H\x1b[J";

pub(super) fn run(watch: &mut Watch, asked: &SpyOptions) -> Result<ExitCode> {
    // A program that this command runs prints to the same terminal.
    let is_child = matches!(asked.whom, SpyTarget::Child(_));
    let is_live = std::io::stdout().is_terminal() && !asked.json && !is_child;
    let since = Instant::now();
    let mut beat = Beat::new(asked.hertz);
    let mut profile = Profile::new();
    let mut drawn = since;
    let mut looks = 0;
    while is_wanted(asked, is_live, since) && !watch.is_over() {
        let beats = beat.wait();
        add(watch, asked, &mut profile, beat.every.saturating_mul(beats));
        looks += 1;
        if is_live && drawn.elapsed() >= DRAWN_EVERY {
            let table = table_of(watch, asked, &split(asked, &profile), looks, rows());
            terminal::print(&format!("{CLEAR}{table}"))?;
            // The table covers only the last second, so that a live one shows the current state.
            (profile, looks, drawn) = (Profile::new(), 0, Instant::now());
        }
    }
    let profile = split(asked, &profile);
    if asked.json {
        terminal::print(&as_json(watch, asked, &profile, looks))?;
    } else if !is_live {
        terminal::print(&table_of(watch, asked, &profile, looks, ROWS))?;
    }
    let refused = refusals(watch);
    tell(&refused);
    let heapless = without_heap(watch);
    if !heapless.is_empty() {
        terminal::complain(&format!("samovar: {heapless}"));
    }
    let is_whole = refused.is_empty()
        && heapless.is_empty()
        && watch.counts().stacks + watch.counts().idle > 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_INCOMPLETE) })
}

fn is_wanted(asked: &SpyOptions, is_live: bool, since: Instant) -> bool {
    let end = if is_live { asked.duration } else { Some(asked.duration_or_default()) };
    end.is_none_or(|end| since.elapsed() < end)
}

fn rows() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(ROWS, |size| usize::from(size.ws_row).saturating_sub(HEAD_LINES).max(1))
}

fn table_of(
    watch: &Watch,
    asked: &SpyOptions,
    profile: &Profile,
    looks: u32,
    rows: usize,
) -> String {
    if asked.memory {
        memory_table(watch, profile, rows)
    } else {
        table(watch, profile, looks, rows)
    }
}

fn place(function: &Function) -> String {
    if function.is_internal() || function.name.starts_with('{') {
        return String::new();
    }
    format!("  {}:{}", function.file, function.line)
}

/// Table of the growth of the heap.
fn memory_table(watch: &Watch, profile: &Profile, rows: usize) -> String {
    let mut out = String::new();
    // The bytes are in the place of the wall time.
    let total = profile.total().wall_ns;
    let _ = writeln!(
        out,
        "{} processes, growth of heaps: {} KiB; {}",
        watch.processes().count(),
        total / 1024,
        counted(watch.counts())
    );
    let _ = writeln!(out, "\n{:>7} {:>7} {:>12}  FUNCTION", "SELF", "TOTAL", "BYTES");
    if let Some(reason) = without_heap(watch).lines().next() {
        let _ = writeln!(out, "{reason}");
    }
    for Share { function, own, total: all } in profile.shares_by_bytes().iter().take(rows) {
        let _ = writeln!(
            out,
            "{:>6.1}% {:>6.1}% {:>12}  {}{}",
            ratio(own.wall_ns, total) * 100.0,
            ratio(all.wall_ns, total) * 100.0,
            own.wall_ns,
            function.label(),
            place(function),
        );
    }
    out
}

fn table(watch: &Watch, profile: &Profile, looks: u32, rows: usize) -> String {
    let mut out = String::new();
    let total = profile.total();
    let processes = watch.processes().count();
    let resident: u64 = watch.processes().filter_map(|(pid, _)| resident_bytes(pid)).sum();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{processes} processes, {} MB, {:.1} busy, {:.0} % on CPU; {}",
        resident / 1_000_000,
        ratio(total.samples, u64::from(looks)),
        ratio(total.cpu_ns, total.wall_ns) * 100.0,
        counted(watch.counts())
    );
    let _ = writeln!(out, "\n{:>7} {:>7} {:>7}  FUNCTION", "SELF", "TOTAL", "CPU");
    for share in profile.shares().iter().take(rows) {
        let Share { function, own, total: all } = share;
        let place = place(function);
        let _ = writeln!(
            out,
            "{:>6.1}% {:>6.1}% {:>6.1}%  {}{place}",
            ratio(own.samples, total.samples) * 100.0,
            ratio(all.samples, total.samples) * 100.0,
            ratio(own.cpu_ns, total.cpu_ns) * 100.0,
            function.label()
        );
    }
    out
}

fn as_json(watch: &Watch, asked: &SpyOptions, profile: &Profile, looks: u32) -> String {
    if asked.memory {
        return memory_json(watch, profile, looks);
    }
    let counts = watch.counts();
    let functions: Vec<_> = profile
        .shares()
        .iter()
        .map(|share| {
            json!({
                "function": share.function.full_name(),
                "file": share.function.file,
                "line": share.function.line,
                "self_samples": share.own.samples,
                "total_samples": share.total.samples,
                "self_cpu_ns": share.own.cpu_ns,
                "total_cpu_ns": share.total.cpu_ns,
            })
        })
        .collect();
    let document = json!({
        "processes": watch.processes().count(),
        "looks": looks,
        "samples": profile.total().samples,
        "wall_ns": profile.total().wall_ns,
        "cpu_ns": profile.total().cpu_ns,
        "torn": counts.torn,
        "idle": counts.idle,
        "functions": functions,
    });
    format!("{document}\n")
}

fn memory_json(watch: &Watch, profile: &Profile, looks: u32) -> String {
    let counts = watch.counts();
    let function = |share: &Share| {
        json!({
            "function": share.function.full_name(),
            "file": share.function.file,
            "line": share.function.line,
            "self_samples": share.own.samples,
            "total_samples": share.total.samples,
            "self_bytes": share.own.wall_ns,
            "total_bytes": share.total.wall_ns,
        })
    };
    let document = json!({
        "processes": watch.processes().count(),
        "looks": looks,
        "samples": profile.total().samples,
        "grown_bytes": profile.total().wall_ns,
        "torn": counts.torn,
        "idle": counts.idle,
        "without_heap": counts.without_heap,
        "functions": profile.shares_by_bytes().iter().map(function).collect::<Vec<_>>(),
    });
    format!("{document}\n")
}

fn ratio(part: u64, whole: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)] // A share for display.
    let ratio = part as f64 / whole.max(1) as f64;
    ratio
}
