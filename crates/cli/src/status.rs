//! `samovar status`: what the running server is doing.

use crate::control::{self, Console, Image, Status};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Prints the status for people, or the server's JSON as it is.
pub(crate) fn run(control: Option<PathBuf>, json: bool) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    let line = control::ask(&path, "status", control::ANSWER_LIMIT)?;
    if json {
        print!("{line}");
        return Ok(());
    }
    let status: Status =
        serde_json::from_str(&line).context("the server's answer is not understood")?;
    print!("{}", render(&status));
    Ok(())
}

fn render(status: &Status) -> String {
    let mut out = String::new();
    let s = status;
    let state = match (s.draining, s.reloading) {
        (true, _) => "draining",
        (false, true) => "serving (and reloading)",
        (false, false) => "serving",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "samovar {} {state} on {}  (pid {}, up {}, generation {})",
        s.version,
        s.listen.join(", "),
        s.pid,
        age(s.uptime_seconds),
        s.generation
    );
    let _ = writeln!(
        out,
        "requests {}  in flight {}  queued {}  connections {}",
        s.requests_total, s.in_flight, s.queue_depth, s.connections
    );
    let _ = writeln!(
        out,
        "5xx {}  rejected {}  timed out {}  retried {}  worker restarts {}",
        s.responses_5xx_total,
        s.rejected_total,
        s.timeouts_total,
        s.retries_total,
        s.worker_restarts_total
    );
    if let Some(image) = &s.image {
        render_image(image, &mut out);
    }
    render_workers(s, &mut out);
    if !s.consoles.is_empty() {
        render_consoles(&s.consoles, &mut out);
    }
    out
}

/// With a column for the generation while there are several.
fn render_workers(status: &Status, out: &mut String) {
    let are_several = status.workers.iter().any(|w| w.generation != status.generation);
    let generation =
        |text: String| if are_several { format!("  {text:>10}") } else { String::new() };
    let _ = writeln!(
        out,
        "\n{:>8}  {:<9} {:<10} {:>10} {:>9} {:>8}{}",
        "PID",
        "STATE",
        "MODEL",
        "REQUESTS",
        "RSS",
        "AGE",
        generation("GENERATION".to_owned())
    );
    for w in &status.workers {
        let _ = writeln!(
            out,
            "{:>8}  {:<9} {:<10} {:>10} {:>6} MB {:>8}{}",
            w.pid,
            w.state,
            w.model,
            w.requests,
            w.rss_bytes / 1_000_000,
            age(w.age_seconds),
            generation(w.generation.to_string())
        );
    }
}

fn render_consoles(consoles: &[Console], out: &mut String) {
    let width = consoles.iter().map(|c| c.name.len()).max().unwrap_or(0).max(9);
    let _ = writeln!(
        out,
        "\n{:>8}  {:<9} {:<width$} {:>8} {:>9} {:>8}",
        "PID", "STATE", "CONSOLE", "RESTARTS", "RSS", "AGE"
    );
    for c in consoles {
        let pid = if c.pid == 0 { "-".to_owned() } else { c.pid.to_string() };
        let _ = writeln!(
            out,
            "{pid:>8}  {:<9} {:<width$} {:>8} {:>6} MB {:>8}",
            c.state,
            c.name,
            c.restarts,
            c.rss_bytes / 1_000_000,
            age(c.age_seconds)
        );
    }
}

fn render_image(image: &Image, out: &mut String) {
    let mode = match image.mode.as_str() {
        "shared" => "one image, shared by all workers",
        "resident" => "one boot, shared by all workers, never rolled back",
        "worker" => "each worker boots by itself",
        _ => "no image: each request runs the whole script",
    };
    let _ = writeln!(
        out,
        "image: {mode}  ({} MB, booted in {} ms)",
        image.bytes / 1_000_000,
        image.boot_ms
    );
    if image.rollbacks_total > 0 || image.refork_total > 0 {
        let _ = writeln!(
            out,
            "rollbacks {}  p50 {} µs  p99 {} µs  hot pages {}  fresh forks {}{}",
            image.rollbacks_total,
            image.rollback_us_p50,
            image.rollback_us_p99,
            image.hot_pages,
            image.refork_total,
            reasons(image)
        );
    }
    for f in &image.findings {
        let place = if f.place.is_empty() { String::new() } else { format!(" ({})", f.place) };
        let _ = writeln!(out, "  {}: {}{place}: {}", f.kind, f.what, f.advice);
    }
}

/// ` (child 3, thread 1)`
fn reasons(image: &Image) -> String {
    let each: Vec<_> = image.refork_reasons.iter().map(|(why, n)| format!("{why} {n}")).collect();
    if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) }
}

/// `12s`, `3m20s`, `2h05m`, `4d03h`.
fn age(seconds: f64) -> String {
    let s = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86400 => format!("{}h{:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d{:02}h", s / 86400, s % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_are_short_and_plain() {
        for (seconds, expected) in
            [(0.4, "0s"), (59.9, "59s"), (200.0, "3m20s"), (7500.0, "2h05m"), (356_400.0, "4d03h")]
        {
            assert_eq!(age(seconds), expected);
        }
    }
}
