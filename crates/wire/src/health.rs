//! Health check: finds the problems in a server's status, for all programs that show one.

use crate::finding::{About, Health, HealthProblem, Severity};
use crate::queues::QueueStatus;
use crate::status::{ImageStatus, ScalingStatus, Status, StorageStatus};
use std::time::{SystemTime, UNIX_EPOCH};

/// Fraction of a script's CPU time above which booting ahead is not worth its cost.
pub const SAVES_MAX: f64 = 0.8;
/// Fraction of a script's CPU time above which this is reported as a problem. A value between the
/// two limits may be chance.
const DEARER_MIN: f64 = 1.05;
/// Minimum number of rollbacks for a judgment. With fewer, the first rollbacks, which are
/// expensive, distort the mean.
const ROLLBACKS_MIN: u64 = 100;

/// Share of failed requests in the last minute above which it is a problem.
const ERRORS_SHARE_MAX: f64 = 0.01;
/// Number of failed requests in the last minute below which it is only a warning: on a quiet site,
/// one of them is a large share.
const ERRORS_MIN: u64 = 3;
/// Longest time in the queue in the last minute above which it is a problem.
const QUEUE_NS_MAX: u64 = 500_000_000;
/// Free share of a disk below which it is a problem, unless [`FREE_BYTES_MAX`] are free.
const FREE_SHARE_MIN: f64 = 0.01;
/// Free share of a disk below which it is a warning, unless [`FREE_BYTES_MAX`] are free.
const FREE_SHARE_LOW: f64 = 0.05;
/// Free bytes of a disk from which on it never is nearly full.
const FREE_BYTES_MAX: u64 = 10 << 30;
/// Remaining validity of a certificate below which it is reported.
const VALID_S_MIN: u64 = 7 * 86_400;

/// Judges the status at this time, in seconds since 1970.
#[must_use]
pub fn judge(status: &Status, now: u64) -> Health {
    let mut findings = Vec::new();
    readiness(status, &mut findings);
    recent(status, &mut findings);
    queue(status, &mut findings);
    jobs(status, &mut findings);
    memory(status, &mut findings);
    application(status, &mut findings);
    certificates(status, now, &mut findings);
    storage(status, &mut findings);
    schedules(status, &mut findings);
    findings.sort_by_key(|finding| finding.severity == Severity::Warning);
    let healthy = findings.iter().all(|finding| finding.severity == Severity::Warning);
    Health { healthy, findings }
}

/// Returns the server's judgment of its status, or that of this program if the server is older.
#[must_use]
pub fn judged(status: &Status) -> Health {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    status.health.clone().unwrap_or_else(|| judge(status, now()))
}

fn readiness(status: &Status, findings: &mut Vec<HealthProblem>) {
    if status.draining {
        findings.push(HealthProblem::problem(
            About::Readiness,
            "it is stopping, or has not started",
            "wait, or start it again",
        ));
    } else if status.in_state("idle") + status.in_state("busy") == 0 {
        findings.push(HealthProblem::problem(
            About::Readiness,
            "no worker takes requests",
            "read the log: PHP or the boot of the application fails",
        ));
    }
}

#[allow(clippy::cast_precision_loss)] // Counters of a minute stay far below 2^52.
fn recent(status: &Status, findings: &mut Vec<HealthProblem>) {
    let recent = &status.recent;
    let (errors, requests) = (recent.errors as f64, recent.requests as f64);
    if errors > requests * ERRORS_SHARE_MAX {
        let share = format!("{:.0} %", (100.0 * errors / requests.max(1.0)).clamp(1.0, 100.0));
        let text = format!("{share} of the last minute's requests failed");
        let hint = "see the page Errors of the dashboard, or the log";
        let found = if recent.errors < ERRORS_MIN {
            HealthProblem::warning(About::Errors, text, hint)
        } else {
            HealthProblem::problem(About::Errors, text, hint)
        };
        findings.push(found.measured(&share, &"1 %"));
    }
    for (count, singular, plural) in [
        (recent.crashes, "worker crashed", "workers crashed"),
        (recent.kills, "worker was killed", "workers were killed"),
    ] {
        if count > 0 {
            let event = if count == 1 { singular } else { plural };
            findings.push(
                HealthProblem::problem(
                    About::Crashes,
                    format!("{count} {event} in the last five minutes"),
                    "the log has the signal or the reason, and the script",
                )
                .measured(&count, &0),
            );
        }
    }
    if recent.boot_failed && status.pools.is_empty() {
        findings.push(HealthProblem::problem(
            About::Boot,
            "the application fails to boot; the former generation keeps serving",
            "read the log, correct the application, and run `samovar reload`",
        ));
    }
    if recent.reloads_failed > 0 && !recent.boot_failed {
        let count = recent.reloads_failed;
        let reloads = if count == 1 { "reload" } else { "reloads" };
        findings.push(
            HealthProblem::problem(
                About::Boot,
                format!("{count} {reloads} failed in the last five minutes"),
                "the log has the reason; the former generation keeps serving",
            )
            .measured(&count, &0),
        );
    }
    for pool in status.pools.iter().filter(|pool| pool.failed) {
        let name = &pool.name;
        let hint = "read the log, correct the application, and run `samovar reload`";
        findings.push(if pool.generation == 0 {
            HealthProblem::problem(About::Readiness, format!("pool {name} failed to start"), hint)
        } else {
            let text = format!("the application of pool {name} fails to boot");
            HealthProblem::problem(About::Boot, text, hint)
        });
    }
}

fn requests_wait(count: u64) -> String {
    let wait = if count == 1 { "request waits" } else { "requests wait" };
    format!("{count} {wait} for a worker")
}

/// A queue of a moment is a warning. It is a problem if requests wait long, or all the time.
#[allow(clippy::cast_precision_loss)] // Shown with few digits.
fn queue(status: &Status, findings: &mut Vec<HealthProblem>) {
    const HINT: &str = "raise `workers`, or make requests faster; `samovar top` shows the routes";
    let (recent, depth) = (&status.recent, status.front.pools.queue_depth);
    if recent.queue_ns_max > QUEUE_NS_MAX {
        let ms = recent.queue_ns_max as f64 / 1e6;
        let text = format!("requests of the last minute waited up to {ms:.0} ms for a worker");
        let found = HealthProblem::problem(About::Queue, text, HINT);
        findings.push(found.measured(&format!("{ms:.0} ms"), &"500 ms"));
    } else if recent.queue_depth_min > 0 {
        let found = HealthProblem::problem(About::Queue, requests_wait(depth.max(1)), HINT);
        findings.push(found.measured(&depth.max(1), &0));
    } else if depth > 0 && status.in_state("idle") == 0 {
        let found = HealthProblem::warning(About::Queue, requests_wait(depth), HINT);
        findings.push(found.measured(&depth, &0));
    }
    for pool in &status.pools {
        let depth = pool.counts.queue_depth;
        if depth > 0 && pool.workers <= pool.busy && status.in_state("idle") > 0 {
            let text = format!("{} of pool {}", requests_wait(depth), pool.name);
            findings.push(HealthProblem::warning(About::Queue, text, HINT).measured(&depth, &0));
        }
    }
}

/// Queues of jobs whose oldest ready job waits for too long.
fn jobs(status: &Status, findings: &mut Vec<HealthProblem>) {
    const HINT: &str = "raise `workers` or `batch` of the queue, or make its jobs faster";
    const PAUSED: &str = "`samovar queue resume` starts jobs again";
    let is_late =
        |queue: &&QueueStatus| queue.oldest_max_ms > 0 && queue.oldest_ms > queue.oldest_max_ms;
    for queue in status.queues.iter().filter(is_late) {
        let name = &queue.name;
        let (text, hint) = if queue.paused {
            (format!("the queue {name} is paused, and its jobs wait"), PAUSED)
        } else {
            (format!("the jobs of the queue {name} wait too long"), HINT)
        };
        let seconds = |ms: u64| format!("{} s", ms / 1_000);
        let (value, limit) = (seconds(queue.oldest_ms), seconds(queue.oldest_max_ms));
        findings.push(HealthProblem::warning(About::Jobs, text, hint).measured(&value, &limit));
    }
}

fn memory(status: &Status, findings: &mut Vec<HealthProblem>) {
    for application in status.applications() {
        let lacks = |one: &&ScalingStatus| {
            one.queued > 0 && matches!(&*one.reason, "memory" | "machine_memory")
        };
        if let Some(scaling) = application.scaling.iter().find(lacks) {
            let text = format!("no memory for more workers{}", application.of_pool());
            findings.push(
                HealthProblem::problem(
                    About::Memory,
                    text,
                    "add memory, or reduce the memory of the application",
                )
                .measured(&scaling.workers, &scaling.max),
            );
        }
    }
    if let Some(first) = status.growth.first() {
        let more = match status.growth.len() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        findings.push(
            HealthProblem::warning(
                About::Memory,
                format!("{} grows in resident workers{more}", first.name),
                "run `samovar leaks`; the page Workers has the line of code",
            )
            .measured(&format!("{} {}", first.grown, first.unit), &0),
        );
    }
}

fn application(status: &Status, findings: &mut Vec<HealthProblem>) {
    for application in status.applications() {
        let (of_pool, image) = (application.of_pool(), application.image);
        if image.is_some_and(|image| matches!(&*image.mode, "worker" | "script")) {
            findings.push(HealthProblem::warning(
                About::Image,
                format!("the booted application{of_pool} is not shared by the workers"),
                "the findings of the image name the object and the line of code",
            ));
        }
        let saving = image.and_then(|image| image.saving);
        if let Some(saving) = saving.filter(|saving| saving.ratio() > DEARER_MIN) {
            let times = saving.ratio();
            findings.push(
                HealthProblem::warning(
                    About::Image,
                    format!(
                        "a booted request{of_pool} takes {times:.2} of the CPU time of a whole \
                         script"
                    ),
                    "place the checkpoint later, or run whole scripts (disable_checkpoint)",
                )
                .measured(&format!("{times:.2}"), &DEARER_MIN),
            );
        }
    }
}

fn certificates(status: &Status, now: u64, findings: &mut Vec<HealthProblem>) {
    const HINT: &str = "`samovar status` has the error of the last attempt; renew the file and \
                        reload if it comes from a file";
    for of in &status.certificates {
        let name = match (&of.file, of.domain.is_empty()) {
            (Some(file), true) => file,
            _ => &of.domain,
        };
        let left = of.valid_until.map(|end| end.saturating_sub(now));
        let limit = format!("{} d", VALID_S_MIN / 86_400);
        let found = match left {
            Some(0) => {
                let text = format!("the certificate of {name} has expired");
                HealthProblem::problem(About::Certificates, text, HINT).measured(&"0 d", &limit)
            }
            Some(left) if left < VALID_S_MIN => {
                let days = left / 86_400;
                let text = format!("the certificate of {name} expires in {days} d");
                let value = format!("{days} d");
                HealthProblem::warning(About::Certificates, text, HINT).measured(&value, &limit)
            }
            None if of.failures > 0 => {
                let text = format!("there is no certificate for {name}");
                let found = HealthProblem::problem(About::Certificates, text, HINT);
                found.measured(&format!("{} failed attempts", of.failures), &0)
            }
            _ => continue,
        };
        findings.push(found);
    }
}

fn storage(status: &Status, findings: &mut Vec<HealthProblem>) {
    let trouble = &status.recent.history_trouble;
    if !trouble.is_empty() {
        findings.push(HealthProblem::problem(
            About::Disk,
            format!("no history: {}", trouble.replace('\n', "; ")),
            "check the disk and the rights of the folder of `insight.store`",
        ));
    }
    status.storage.iter().for_each(|one| findings.extend(space(one)));
    let lost = status.lines_lost();
    if lost > 0 {
        findings.push(
            HealthProblem::warning(
                About::Logs,
                format!("{lost} log lines were dropped"),
                "check the disk and the reader of the log",
            )
            .measured(&lost, &0),
        );
    }
    if status.routes_full {
        findings.push(HealthProblem::warning(
            About::Routes,
            "the table of routes is full: further ones are counted as (other)",
            "raise `insight.routes_max`, or name routes with Samovar\\route()",
        ));
    }
}

/// A failing schedule does not affect requests, so it is a warning.
fn schedules(status: &Status, findings: &mut Vec<HealthProblem>) {
    let is_bad = |result: &str| !matches!(result, "" | "succeeded" | "stopped");
    let failed: Vec<_> = status.schedules.iter().filter(|one| is_bad(&one.result)).collect();
    let Some(first) = failed.first() else { return };
    let more = match failed.len() {
        1 => String::new(),
        n => format!(", and those of {} more", n - 1),
    };
    let result = first.result.replace('_', " ");
    let detail =
        if first.detail.is_empty() { String::new() } else { format!(" ({})", first.detail) };
    let name = &first.name;
    let hint = format!("`samovar schedule show {name}` has its output");
    findings.push(
        HealthProblem::warning(
            About::Schedules,
            format!("the last run of schedule {name}: {result}{detail}{more}"),
            &hint,
        )
        .measured(&failed.len(), &0),
    );
}

/// Returns a finding if a disk has few bytes or few files left.
#[allow(clippy::cast_precision_loss)] // Shown with one digit.
fn space(of: &StorageStatus) -> Option<HealthProblem> {
    const HINT: &str = "delete files, enlarge the file system, or move the folder";
    let share = |free: u64, all: u64| if all == 0 { 1.0 } else { free as f64 / all as f64 };
    let bytes = share(of.bytes_free, of.bytes);
    let bytes = if of.bytes_free >= FREE_BYTES_MAX { 1.0 } else { bytes };
    let files = share(of.files_free, of.files);
    let (free, resource) = if files < bytes { (files, "files") } else { (bytes, "space") };
    let limit = if free < FREE_SHARE_MIN { FREE_SHARE_MIN } else { FREE_SHARE_LOW };
    if free >= limit {
        return None;
    }
    let text = format!("the disk of `{}` ({}) has few {resource} left", of.setting, of.folder);
    let text = text.replace("few space", "little space");
    let found = if free < FREE_SHARE_MIN {
        HealthProblem::problem(About::Disk, text, HINT)
    } else {
        HealthProblem::warning(About::Disk, text, HINT)
    };
    Some(found.measured(&format!("{:.1} %", 100.0 * free), &format!("{:.0} %", 100.0 * limit)))
}

/// Returns advice if a booted application takes more than [`SAVES_MAX`] of a script's CPU time.
/// Returns `None` if it takes less or the figures are unknown. An exception needs no such figures:
/// a mean rollback that takes longer than the boot always gives advice.
#[must_use]
pub fn dear(image: &ImageStatus) -> Option<&'static str> {
    #[allow(clippy::cast_precision_loss)] // No server rolls back 2^52 times.
    let mean_us = image.rollback_us_total / image.rollbacks_total.max(1) as f64;
    if image.rollbacks_total >= ROLLBACKS_MIN && mean_us > image.boot_ms * 1_000.0 {
        return Some(
            "a rollback to the checkpoint takes longer than the boot: run whole scripts \
             (disable_checkpoint), or let requests change less of the state before it",
        );
    }
    image.saving.filter(|saving| saving.ratio() > SAVES_MAX)?;
    Some(if image.mode == "resident" {
        "the handler takes most of the time: little can be booted before requests"
    } else if image.refork_total.saturating_mul(10) > image.rollbacks_total {
        "many requests end their worker, and a fresh one costs a fork or a boot: see the reasons \
         above"
    } else if image.searches_total.saturating_mul(2) > image.rollbacks_total {
        "rollbacks search memory, because requests map some: load and compile before the \
         checkpoint (warmup)"
    } else {
        "place the checkpoint later, warm up before it, or run whole scripts (disable_checkpoint)"
    })
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::{
        About, CertificateStatus, GrowthStatus, ImageStatus, PoolStatus, QueueStatus, RecentStatus,
        SavingStatus, ScalingStatus, Severity, Status, StorageStatus, WorkerStatus,
    };

    fn server(states: &[&str]) -> Status {
        let worker =
            |state: &&str| WorkerStatus { state: (*state).to_owned(), ..Default::default() };
        Status { workers: states.iter().map(worker).collect(), ..Status::default() }
    }

    fn troubles(status: &Status) -> Vec<String> {
        judge(status, 1_000).findings.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn each_planted_problem_makes_the_server_unhealthy() {
        let recent = |recent| Status { recent, ..server(&["idle"]) };
        let counts = RecentStatus::default;
        let certificate = |valid_until, failures| {
            let of = CertificateStatus {
                domain: "a.example".into(),
                valid_until,
                failures,
                ..Default::default()
            };
            Status { certificates: vec![of], ..server(&["idle"]) }
        };
        let scaling = |queued| {
            let one =
                ScalingStatus { reason: "machine_memory".into(), queued, ..Default::default() };
            Status { scaling: vec![one], ..server(&["idle"]) }
        };
        let disk = |bytes_free, files_free| {
            let (bytes, files) = (100 << 20, 1_000);
            let of = StorageStatus { bytes, bytes_free, files, files_free, ..Default::default() };
            Status { storage: vec![of], ..server(&["idle"]) }
        };
        let queue = |oldest_ms, paused| {
            let of =
                QueueStatus { oldest_ms, oldest_max_ms: 900_000, paused, ..Default::default() };
            Status { queues: vec![of], ..server(&["idle"]) }
        };
        let growth = GrowthStatus { name: "App\\Registry::$items".into(), ..Default::default() };
        let (problem, warning) = (Some(Severity::Problem), Some(Severity::Warning));
        for (status, about, severity) in vec![
            (recent(counts()), About::Errors, None),
            (recent(RecentStatus { requests: 100, errors: 1, ..counts() }), About::Errors, None),
            (recent(RecentStatus { requests: 100, errors: 2, ..counts() }), About::Errors, warning),
            (recent(RecentStatus { requests: 100, errors: 3, ..counts() }), About::Errors, problem),
            (recent(RecentStatus { requests: 70, errors: 70, ..counts() }), About::Errors, problem),
            (recent(RecentStatus { crashes: 3, ..counts() }), About::Crashes, problem),
            (recent(RecentStatus { kills: 1, ..counts() }), About::Crashes, problem),
            (recent(RecentStatus { queue_depth_min: 22, ..counts() }), About::Queue, problem),
            (recent(RecentStatus { queue_ns_max: 500_000_000, ..counts() }), About::Queue, None),
            (recent(RecentStatus { queue_ns_max: 890_000_000, ..counts() }), About::Queue, problem),
            (recent(RecentStatus { boot_failed: true, ..counts() }), About::Boot, problem),
            (
                recent(RecentStatus { history_trouble: "x".into(), ..counts() }),
                About::Disk,
                problem,
            ),
            (certificate(Some(999), 0), About::Certificates, problem),
            (certificate(Some(1_000 + 6 * 86_400), 0), About::Certificates, warning),
            (certificate(Some(1_000 + 8 * 86_400), 0), About::Certificates, None),
            (certificate(None, 2), About::Certificates, problem),
            (scaling(1), About::Memory, problem),
            (scaling(0), About::Memory, None),
            (Status { growth: vec![growth], ..server(&["idle"]) }, About::Memory, warning),
            (disk(10 << 20, 100), About::Disk, None),
            (disk(4 << 20, 100), About::Disk, warning),
            (disk(1 << 19, 100), About::Disk, problem),
            (disk(10 << 20, 9), About::Disk, problem),
            (queue(900_000, false), About::Jobs, None),
            (queue(900_001, false), About::Jobs, warning),
            (queue(900_001, true), About::Jobs, warning),
            (server(&["booting"]), About::Readiness, problem),
        ] {
            let health = judge(&status, 1_000);
            let found = health.findings.first().map(|found| (found.about, found.severity));
            assert_eq!(found, severity.map(|severity| (about, severity)), "{health:?}");
            assert_eq!(health.healthy, severity != problem, "{health:?}");
            assert!(health.findings.iter().all(|found| !found.hint.is_empty()), "{health:?}");
        }
    }

    #[test]
    fn findings_report_readiness_queue_image_and_log_problems() {
        assert!(troubles(&server(&["idle", "busy"])).is_empty());
        assert_eq!(troubles(&server(&["booting"])), ["no worker takes requests"]);
        let mut crowded = server(&["busy"]);
        crowded.front.pools.queue_depth = 1;
        assert_eq!(troubles(&crowded), ["1 request waits for a worker"]);
        crowded.workers.extend(server(&["idle"]).workers);
        assert!(troubles(&crowded).is_empty(), "an idle worker takes it");
        crowded.workers[1].tracing = true;
        assert_eq!(troubles(&crowded), ["1 request waits for a worker"], "it only traces");
        let image = ImageStatus { mode: "worker".to_owned(), ..ImageStatus::default() };
        let alone =
            Status { image: Some(image), slow_log_lines_dropped_total: 2, ..server(&["idle"]) };
        assert_eq!(troubles(&alone).len(), 2);
        let full = Status { routes_full: true, ..server(&["idle"]) };
        assert_eq!(troubles(&full).len(), 1, "{:?}", troubles(&full));
        assert_eq!(troubles(&Status { draining: true, ..server(&[]) }).len(), 1);
    }

    #[test]
    fn findings_report_unshared_image_of_each_pool() {
        let image = |mode: &str| ImageStatus { mode: mode.to_owned(), ..ImageStatus::default() };
        let pool = |name: &str, mode| PoolStatus {
            name: name.to_owned(),
            booted: Some(image(mode)),
            ..PoolStatus::default()
        };
        let of = |first, second| Status {
            image: Some(image(first)),
            pools: vec![pool("default", first), pool("api", second)],
            ..server(&["idle"])
        };
        assert!(troubles(&of("shared", "shared")).is_empty());
        let not =
            |pool| format!("the booted application of pool {pool} is not shared by the workers");
        assert_eq!(troubles(&of("shared", "worker")), [not("api")]);
        assert_eq!(troubles(&of("script", "worker")), [not("default"), not("api")]);
    }

    #[test]
    fn checkpoint_without_saving_gives_advice_and_warning() {
        let image = |ahead_us, reforks, searches| {
            let saving = SavingStatus { ahead_us, script_us: 100.0, scripts: 20 };
            ImageStatus {
                mode: "shared".to_owned(),
                rollbacks_total: 1_000,
                rollback_us_total: 20_000.0,
                boot_ms: 5.0,
                refork_total: reforks,
                searches_total: searches,
                saving: Some(saving),
                ..ImageStatus::default()
            }
        };
        let advice = |image: ImageStatus| super::dear(&image).map(|text| &text[..20]);
        assert_eq!(advice(image(79.0, 900, 900)), None);
        assert_eq!(advice(ImageStatus::default()), None);
        assert_eq!(advice(image(81.0, 0, 0)), Some("place the checkpoint"));
        let slow = ImageStatus { rollback_us_total: 5_100_000.0, ..image(79.0, 0, 0) };
        assert_eq!(advice(slow.clone()), Some("a rollback to the ch"));
        assert_eq!(advice(ImageStatus { rollbacks_total: 99, ..slow }), None);
        assert_eq!(advice(image(81.0, 200, 900)), Some("many requests end th"));
        assert_eq!(advice(image(81.0, 0, 900)), Some("rollbacks search mem"));
        let with = |ahead_us| Status { image: Some(image(ahead_us, 0, 0)), ..server(&["idle"]) };
        assert!(troubles(&with(99.0)).is_empty());
        let text = "a booted request takes 1.30 of the CPU time of a whole script";
        assert_eq!(troubles(&with(130.0)), [text]);
    }
}
