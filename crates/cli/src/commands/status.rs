//! `samovar status`: state of the running server.

mod php;
mod phrases;
mod queues;
mod upstreams;

use crate::arguments::{control, control_arguments, json_argument};
use crate::commands::{canary, schedule};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::Result;
use clap::{ArgMatches, Command};
use phrases::{age, whose};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{
    Application, CapacityStatus, CertificateStatus, ConsoleStatus, EngineStatus, Health,
    ImageStatus, PoolStatus, Request, SavingStatus, ScalingStatus, SharedBreaker, SharedStatus,
    Status, WorkerStatus, dear, judged,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

/// Exit status if the server runs and is unhealthy.
const UNHEALTHY: u8 = 3;

#[derive(Debug)]
struct ShowStatus {
    json: bool,
    control: Option<PathBuf>,
}

fn define() -> Command {
    Command::new("status")
        .about("Shows the state of the running server")
        .after_help(
            "Exit codes: 0 healthy, 1 no server responds, 2 wrong flags, 3 unhealthy server.",
        )
        .args(control_arguments())
        .arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let json = matches.get_flag("json");
    Ok(Box::new(ShowStatus { json, control: control(matches, sources)? }))
}

impl Run for ShowStatus {
    /// Prints the status for people, or the server's JSON unchanged.
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let line = control_client::ask(&path, &Request::Status, control_client::RESPONSE_LIMIT)?;
        let status: Status = control_client::understand(&line)?;
        if self.json {
            terminal::print(&line)?;
        } else {
            terminal::print(&printable(&render(&status)))?;
        }
        let is_healthy = judged(&status).healthy;
        Ok(if is_healthy { ExitCode::SUCCESS } else { ExitCode::from(UNHEALTHY) })
    }
}

/// Returns `generation 2, release 1.2`, or without a label `generation 2`.
fn generation(of: &Status) -> String {
    let label = match &*of.release {
        "" => String::new(),
        label => format!(", release {label}"),
    };
    format!("generation {}{label}", of.generation)
}

fn render(status: &Status) -> String {
    let mut out = String::new();
    let s = status;
    let state = match (s.draining, s.reloading) {
        (true, _) => "draining",
        (false, true) => "serving (and reloading)",
        (false, false) => "serving",
    };
    let before = match s.predecessor_pid {
        0 => String::new(),
        pid => format!("process {pid}, the previous server, is still finishing requests\n"),
    };
    let health = judged(s);
    let texts: Vec<_> = health.findings.iter().map(|found| &*found.text).collect();
    let verdict = match &texts[..] {
        [] => "healthy".to_owned(),
        all if health.healthy => format!("healthy, to be looked at: {}", all.join("; ")),
        all => format!("unhealthy: {}", all.join("; ")),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "samovar {} {state} on {}: {verdict}  (pid {}, up {}, {})",
        s.version,
        s.listen.join(", "),
        s.pid,
        age(s.uptime_seconds),
        generation(s)
    );
    out.push_str(&(before + &s.canary.as_ref().map(canary::headline).unwrap_or_default()));
    render_findings(&health, &mut out);
    let _ = writeln!(
        out,
        "requests {}  in flight {}  queued {}  connections {}",
        s.front.pools.requests_total,
        s.front.pools.in_flight,
        s.front.pools.queue_depth,
        s.front.server.connections
    );
    let _ = writeln!(
        out,
        "5xx {}  rejected {}  timed out {}  retried {}  worker restarts {}",
        s.front.pools.responses_5xx_total,
        s.front.pools.rejected_total,
        s.front.pools.timeouts_total,
        s.front.pools.retries_total,
        s.worker_restarts_total
    );
    render_capacity(&s.capacity, &mut out);
    if !s.admin.is_empty() {
        let _ = writeln!(out, "admin listener on {}", s.admin.join(", "));
    }
    if s.lines_lost() > 0 {
        let (log, access) = (s.log_lines_dropped_total, s.access_log_lines_dropped_total);
        let slow = s.slow_log_lines_dropped_total;
        let _ = writeln!(out, "dropped log lines: log {log}  access log {access}  slow log {slow}");
    }
    let applications = s.applications();
    for of in &applications {
        let prefix = whose(of.pool);
        if let Some(engine) = of.engine {
            let _ = writeln!(out, "{prefix}{}", engine_line(of.php, engine));
        }
        // If linking is as configured, no line is printed.
        if let Some(linking) = of.linking.filter(|linking| linking.state == "refused") {
            let _ = writeln!(out, "{prefix}PHP is not linked directly: {}", linking.why);
        }
        php::render(of, &prefix, &mut out);
    }
    if let Some(profile) = s.profile.as_ref().filter(|profile| !profile.trouble.is_empty()) {
        let why = profile.trouble.replace('\n', "; ");
        let _ = writeln!(out, "no profiles, cannot read the stacks of workers: {why}");
    }
    for of in &applications {
        render_application(of, &s.workers, &mut out);
    }
    render_pools(&s.pools, &mut out);
    for of in &applications {
        for scaling in of.scaling {
            let _ = writeln!(out, "{}{}", whose(of.pool), scaling_line(scaling));
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    for certificate in &s.certificates {
        let _ = writeln!(out, "{}", certificate_line(certificate, now));
    }
    for upstream in &s.upstreams {
        upstreams::render(upstream, now, &mut out);
    }
    render_workers(s, &mut out);
    if !s.consoles.is_empty() {
        render_consoles(&s.consoles, &mut out);
    }
    if !s.schedules.is_empty() {
        let _ = write!(out, "\n{}", schedule::list(&s.schedules));
    }
    queues::render(&s.queues, &mut out);
    for of in &applications {
        if !of.shared.objects.is_empty() || of.shared.published_rejected_total > 0 {
            render_shared(of, &mut out);
        }
    }
    out
}

/// Writes a line for each finding: subject, value, limit and an action.
fn render_findings(health: &Health, out: &mut String) {
    for found in &health.findings {
        let _ = write!(out, "  {} {}: {}", found.severity.name(), found.about.name(), found.text);
        if !found.limit.is_empty() {
            let _ = write!(out, " (now {}, limit {})", found.value, found.limit);
        }
        let _ = writeln!(out, "\n    hint: {}", found.hint);
    }
}

/// Writes the use of the cores and the estimate.
fn render_capacity(of: &CapacityStatus, out: &mut String) {
    if of.seconds <= 0.0 {
        return;
    }
    let _ = writeln!(out, "{}", of.cores_in_words());
    let _ = writeln!(out, "{}", of.in_words());
    if of.worker_bytes > 0 {
        let (each, free) = (megabytes(of.worker_bytes), megabytes(of.memory_free_bytes));
        let _ = writeln!(out, "memory: {each} MB for a further worker, {free} MB free");
    }
}

/// Writes a pool's image and its saving.
fn render_application(of: &Application<'_>, workers: &[WorkerStatus], out: &mut String) {
    let prefix = whose(of.pool);
    if let Some(image) = of.image {
        render_image(&prefix, image, out);
    }
    let saving = of.image.and_then(|image| image.saving);
    let own = workers.iter().filter(|worker| worker.pool == of.pool);
    if let Some(line) = saving.map(saving_line).or_else(|| cpu_per_request(own)) {
        let _ = writeln!(out, "{prefix}{line}");
    }
    if let Some(advice) = of.image.and_then(dear) {
        let _ = writeln!(out, "  the booted application saves little: {advice}");
    }
}

/// Writes a line for each pool, if there are several.
fn render_pools(pools: &[PoolStatus], out: &mut String) {
    for pool in pools {
        let state = match (pool.generation, pool.failed, pool.reloading) {
            (0, true, _) => "failed to start".to_owned(),
            (0, false, _) => "starting".to_owned(),
            (number, _, true) => format!("generation {number}, reloading"),
            (number, true, _) => format!("generation {number}, boot failed"),
            (number, ..) => format!("generation {number}"),
        };
        let _ = writeln!(
            out,
            "pool {}: {state}  workers {} ({} busy)  requests {}  queued {}  5xx {}  rejected \
             {}  restarts {}",
            pool.name,
            pool.workers,
            pool.busy,
            pool.counts.requests_total,
            pool.counts.queue_depth,
            pool.counts.responses_5xx_total,
            pool.counts.rejected_total,
            pool.worker_restarts_total
        );
    }
}

/// Returns a line such as `workers 12 of 2 to 256: requests wait, and the workers wait for I/O
/// (queued 3, 0.4 of 2 cores wanted)`.
fn scaling_line(scaling: &ScalingStatus) -> String {
    let ScalingStatus { min, max, workers, queued, text, cores_wanted, cores, .. } = scaling;
    let name = if scaling.kind == "scripts" { "workers for scripts" } else { "workers" };
    let seen = if *queued == 0 {
        String::new()
    } else {
        format!(" (queued {queued}, {cores_wanted:.1} of {cores} cores wanted)")
    };
    format!("{name} {workers} of {min} to {max}: {text}{seen}")
}

/// Returns a line such as `certificate of a.example: expires in 80 d, renewal in 50 d; 2 attempts
/// failed, the last 5 min ago: …`, or `certificate of a.example and 2 more (`/etc/ssl/a.pem`):
/// expires in 80 d`.
fn certificate_line(of: &CertificateStatus, now: u64) -> String {
    let CertificateStatus { valid_until, renewal, failures, trouble, failed_at, .. } = of;
    let until = |at: u64| age(Duration::from_secs(at.saturating_sub(now)).as_secs_f64());
    let domain = certificate_name(of);
    let mut line = match (valid_until, renewal) {
        (Some(end), _) if *end <= now => format!("certificate of {domain}: expired"),
        (Some(end), Some(renewal)) => {
            let (end, renewal) = (until(*end), until(*renewal));
            format!("certificate of {domain}: expires in {end}, renewal in {renewal}")
        }
        (Some(end), None) => format!("certificate of {domain}: expires in {}", until(*end)),
        _ => format!("certificate of {domain}: none yet, handshakes are rejected"),
    };
    if let Some(trouble) = trouble {
        let since = |at: u64| age(Duration::from_secs(now.saturating_sub(at)).as_secs_f64());
        let last = failed_at.map(|at| format!(", the last {} ago", since(at)));
        let (last, trouble) = (last.unwrap_or_default(), trouble.replace('\n', "; "));
        let _ = write!(line, "; {failures} attempts failed{last}: {trouble}");
    }
    line
}

fn certificate_name(of: &CertificateStatus) -> String {
    let CertificateStatus { domain, file, names, .. } = of;
    let Some(file) = file else { return domain.clone() };
    let name = if domain.is_empty() { "no name" } else { domain };
    match names.len() {
        0 | 1 => format!("{name} (`{file}`)"),
        count => format!("{name} and {} more (`{file}`)", count - 1),
    }
}

/// Returns a text such as `PHP 8.2.36 in /opt/engine/libphp8.2.so, built from 8.2.36-1~deb12u1`.
fn engine_line(php: &str, EngineStatus { file, source }: &EngineStatus) -> String {
    let made = if source.is_empty() { String::new() } else { format!(", built from {source}") };
    format!("PHP {php} in {file}{made}")
}

/// Minimum number of requests of a model. With fewer, the CPU time is dominated by the workers'
/// boot.
const REQUESTS_MIN: u64 = 20;

/// Returns the CPU time of living workers by model, such as `CPU per request: checkpoint 802 µs,
/// script 3946 µs`. The scripts are requests that ran as scripts anyway. A production server runs
/// no extra ones for this figure; that is the task of `samovar compare`.
fn cpu_per_request<'a>(workers: impl Iterator<Item = &'a WorkerStatus>) -> Option<String> {
    let mut models: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    for worker in workers {
        let (seconds, requests) = models.entry(&worker.model).or_default();
        *seconds += worker.cpu_seconds;
        *requests += worker.requests;
    }
    models.retain(|_, (seconds, requests)| *seconds > 0.0 && *requests >= REQUESTS_MIN);
    #[allow(clippy::cast_precision_loss)] // Far below 2^52 requests.
    let each: Vec<_> = models
        .iter()
        .map(|(model, (seconds, requests))| {
            format!("{model} {:.0} µs", seconds * 1e6 / *requests as f64)
        })
        .collect();
    let has_script = models.contains_key("script");
    let hint = if has_script {
        ""
    } else {
        "  (for the figure of scripts: samovar compare, or insight.script_share)"
    };
    (!each.is_empty()).then(|| format!("CPU per request: {}{hint}", each.join(", ")))
}

/// Returns a line such as `CPU per request: booted 802 µs, script 3946 µs (ratio 0.20; 37
/// scripts)`.
fn saving_line(saving: SavingStatus) -> String {
    let SavingStatus { ahead_us, script_us, scripts } = saving;
    let ratio = saving.ratio();
    format!(
        "CPU per request: booted {ahead_us:.0} µs, script {script_us:.0} µs (ratio {ratio:.2}; \
         {scripts} scripts)"
    )
}

/// Writes the workers, with a column for the generation if there are several.
fn render_workers(status: &Status, out: &mut String) {
    let are_several = status.workers.iter().any(|w| w.generation != status.generation);
    let generation =
        |text: String| if are_several { format!("  {text:>10}") } else { String::new() };
    let pool =
        |name: &str| if status.pools.is_empty() { String::new() } else { format!("  {name}") };
    let model = |w: &WorkerStatus| {
        if w.tracing { format!("{}, tracing", w.model) } else { w.model.clone() }
    };
    let width = status.workers.iter().map(|w| model(w).len()).max().unwrap_or(0).max(10);
    let _ = writeln!(
        out,
        "\n{:>8}  {:<9} {:<width$} {:>10} {:>9} {:>8}{}{}",
        "PID",
        "STATE",
        "MODEL",
        "REQUESTS",
        "RSS",
        "AGE",
        generation("GENERATION".to_owned()),
        pool("POOL")
    );
    for w in &status.workers {
        let _ = writeln!(
            out,
            "{:>8}  {:<9} {:<width$} {:>10} {:>6} MB {:>8}{}{}",
            w.pid,
            w.state,
            model(w),
            w.requests,
            w.rss_bytes / 1_000_000,
            age(w.age_seconds),
            generation(w.generation.to_string()),
            pool(&w.pool)
        );
    }
}

fn render_consoles(consoles: &[ConsoleStatus], out: &mut String) {
    let are_several = consoles.iter().any(|console| !console.pool.is_empty());
    let pool = |name: &str| if are_several { format!("  {name}") } else { String::new() };
    let width = consoles.iter().map(|c| c.name.len()).max().unwrap_or(0).max(9);
    let _ = writeln!(
        out,
        "\n{:>8}  {:<9} {:<width$} {:>8} {:>9} {:>8}{}",
        "PID",
        "STATE",
        "CONSOLE",
        "RESTARTS",
        "RSS",
        "AGE",
        pool("POOL")
    );
    for c in consoles {
        let pid = if c.pid == 0 { "-".to_owned() } else { c.pid.to_string() };
        let _ = writeln!(
            out,
            "{pid:>8}  {:<9} {:<width$} {:>8} {:>6} MB {:>8}{}",
            c.state,
            c.name,
            c.restarts,
            c.rss_bytes / 1_000_000,
            age(c.age_seconds),
            pool(&c.pool)
        );
    }
}

/// Maximum number of listed objects in shared memory; `--json` has all.
const OBJECTS_LISTED_MAX: usize = 50;

fn render_shared(of: &Application<'_>, out: &mut String) {
    let shared = of.shared;
    let (used, room) = (megabytes(shared.bytes), megabytes(shared.bytes_max));
    let refused = match shared.refused_total {
        0 => String::new(),
        times => format!("  ({times} objects rejected: raise shared.bytes_max)"),
    };
    let _ = writeln!(out, "\nshared memory{} {used} of {room} MB{refused}", of.of_pool());
    if shared.published_changes_total > 0 || shared.published_rejected_total > 0 {
        let _ = writeln!(out, "{}", published_line(shared));
    }
    for object in shared.objects.iter().take(OBJECTS_LISTED_MAX) {
        let _ = write!(out, "  {:<9} {}", object.kind, object.name);
        if let Some(value) = object.value {
            let _ = write!(out, "  {value}");
        }
        if let (Some(used), Some(room)) = (object.used, object.room) {
            let _ = write!(out, "  {used} of {room} rows");
        }
        if let Some(cache) = &object.cache {
            let (hits, values) = (cache.hits_total, cache.values);
            let asked = hits.saturating_add(cache.misses_total).max(1);
            let share = hits.saturating_mul(100) / asked;
            let _ = write!(out, "  {values} values  hits {share} %");
        }
        if object.held == Some(true) {
            let _ = write!(out, "  held");
        }
        if let (Some(allowed), Some(denied)) = (object.allowed_total, object.denied_total) {
            let _ = write!(out, "  allowed {allowed}  denied {denied}");
        }
        if let Some(SharedBreaker { state, calls, failed, slow, refused_total, .. }) =
            &object.breaker
        {
            let _ = write!(out, "  {state}  {calls} calls  {failed} failed  {slow} slow");
            let _ = write!(out, "  rejected {refused_total}");
        }
        if let Some(reads) = object.reads_total {
            let _ = write!(out, "  {reads} reads");
        }
        if object.bytes > 0 {
            let _ = write!(out, "  {} MB", megabytes(object.bytes));
        }
        let _ = writeln!(out);
    }
    if let Some(more) = shared.objects.len().checked_sub(OBJECTS_LISTED_MAX).filter(|n| *n > 0) {
        let _ = writeln!(out, "  and {more} more (--json lists them)");
    }
}

/// Returns a line such as `published 1.2 of 64.0 MB  3 changes  stale values still in use 0.4 MB`.
fn published_line(shared: &SharedStatus) -> String {
    let (used, room) = (megabytes(shared.published_bytes), megabytes(shared.published_bytes_max));
    let mut line =
        format!("published {used} of {room} MB  {} changes", shared.published_changes_total);
    if shared.published_stale_bytes > 0 {
        let held = megabytes(shared.published_stale_bytes);
        let _ = write!(line, "  stale values still in use {held} MB");
    }
    if shared.published_rejected_total > 0 {
        let _ = write!(line, "  ({} rejected)", shared.published_rejected_total);
    }
    line
}

#[allow(clippy::cast_precision_loss)] // The figure has one decimal.
fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn render_image(prefix: &str, image: &ImageStatus, out: &mut String) {
    let mode = match image.mode.as_str() {
        "shared" => "one image, shared by all workers",
        "resident" => "one boot, shared by all workers, never rolled back",
        "worker" => "each worker boots separately",
        _ => "no image: each request runs the whole script",
    };
    let _ = writeln!(
        out,
        "{prefix}image: {mode}  ({} MB, booted in {} ms)",
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

/// Returns a text such as ` (child 3, thread 1)`.
fn reasons(image: &ImageStatus) -> String {
    let each: Vec<_> = image.refork_reasons.iter().map(|(why, n)| format!("{why} {n}")).collect();
    if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::{WorkerStatus, cpu_per_request};

    #[test]
    fn cpu_per_request_lists_each_active_model() {
        let worker = |model: &str, requests, cpu_seconds| WorkerStatus {
            tracing: false,
            pool: String::new(),
            cell: 0,
            pid: 1,
            state: "idle".to_owned(),
            model: model.to_owned(),
            requests,
            rollbacks: 0,
            hot_pages: 0,
            rss_bytes: 0,
            cpu_seconds,
            age_seconds: 1.0,
            generation: 1,
        };
        let check = |workers: &[WorkerStatus], expected: Option<&str>| {
            assert_eq!(cpu_per_request(workers.iter()).as_deref(), expected);
        };
        check(&[], None);
        check(&[worker("checkpoint", 3, 0.2)], None);
        check(
            &[worker("checkpoint", 30, 0.03), worker("checkpoint", 70, 0.05)],
            Some(
                "CPU per request: checkpoint 800 µs  (for the figure of scripts: samovar compare, \
                 or insight.script_share)",
            ),
        );
        check(
            &[worker("script", 20, 0.08), worker("checkpoint", 100, 0.08)],
            Some("CPU per request: checkpoint 800 µs, script 4000 µs"),
        );
    }
}
