//! Health check: finds the problems in a server's status, for all programs that show one.

use crate::status::{ImageStatus, Status};

/// Fraction of a script's CPU time above which booting ahead is not worth its cost.
pub const SAVES_MAX: f64 = 0.8;
/// Fraction of a script's CPU time above which this is reported as a problem. A value between the
/// two limits may be chance.
const DEARER_MIN: f64 = 1.05;
/// Minimum number of rollbacks for a judgment. With fewer, the first rollbacks, which are
/// expensive, distort the mean.
const ROLLBACKS_MIN: u64 = 100;

/// A health problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthProblem {
    /// Part of the status that has details.
    pub about: About,
    /// Description, written as the end of a sentence.
    pub text: String,
}

/// Subject of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether the server accepts requests.
    Readiness,
    /// Workers and their queue.
    Workers,
    /// The booted application.
    Image,
    /// The logs.
    Logs,
    /// The figures of routes.
    Routes,
}

/// Returns all problems, worst first.
#[must_use]
pub fn troubles(status: &Status) -> Vec<HealthProblem> {
    let mut troubles = Vec::new();
    let mut more = |about, text: String| troubles.push(HealthProblem { about, text });
    if status.draining {
        more(About::Readiness, "it is stopping, or has not started".to_owned());
    } else if status.in_state("idle") + status.in_state("busy") == 0 {
        more(About::Readiness, "no worker takes requests".to_owned());
    }
    let waiting = status.front.pools.queue_depth;
    if waiting > 0 && status.in_state("idle") == 0 {
        let are = if waiting == 1 { "request waits" } else { "requests wait" };
        more(About::Workers, format!("{waiting} {are} for a worker"));
    }
    for pool in &status.pools {
        let name = &pool.name;
        if pool.failed && pool.generation == 0 {
            more(About::Readiness, format!("pool {name} failed to start"));
        } else if pool.failed {
            more(About::Image, format!("the application of pool {name} fails to boot"));
        }
        if pool.counts.queue_depth > 0 && pool.workers <= pool.busy && status.in_state("idle") > 0 {
            let waiting = pool.counts.queue_depth;
            more(About::Workers, format!("{waiting} requests wait for a worker of pool {name}"));
        }
    }
    for application in status.applications() {
        let (of_pool, image) = (application.of_pool(), application.image);
        if image.is_some_and(|image| matches!(&*image.mode, "worker" | "script")) {
            let text = format!("the booted application{of_pool} is not shared by the workers");
            more(About::Image, text);
        }
        let saving = image.and_then(|image| image.saving);
        if let Some(saving) = saving.filter(|saving| saving.ratio() > DEARER_MIN) {
            let times = saving.ratio();
            let text = format!(
                "a booted request{of_pool} takes {times:.2} of the CPU time of a whole script"
            );
            more(About::Image, text);
        }
    }
    let lost = status.lines_lost();
    if lost > 0 {
        more(About::Logs, format!("{lost} log lines were dropped"));
    }
    if status.routes_full {
        let text = "the table of routes is full: further ones are counted as (other)";
        more(About::Routes, text.to_owned());
    }
    troubles
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
    use crate::{ImageStatus, PoolStatus, SavingStatus, Status, WorkerStatus};

    fn server(states: &[&str]) -> Status {
        let worker =
            |state: &&str| WorkerStatus { state: (*state).to_owned(), ..Default::default() };
        Status { workers: states.iter().map(worker).collect(), ..Status::default() }
    }

    fn troubles(status: &Status) -> Vec<String> {
        super::troubles(status).into_iter().map(|trouble| trouble.text).collect()
    }

    #[test]
    fn troubles_reports_readiness_queue_image_and_log_problems() {
        assert!(troubles(&server(&["idle", "busy"])).is_empty());
        assert_eq!(troubles(&server(&["booting"])), ["no worker takes requests"]);
        let mut crowded = server(&["busy"]);
        crowded.front.pools.queue_depth = 1;
        assert_eq!(troubles(&crowded), ["1 request waits for a worker"]);
        crowded.workers.extend(server(&["idle"]).workers);
        assert!(troubles(&crowded).is_empty(), "an idle worker takes it");
        let image = ImageStatus { mode: "worker".to_owned(), ..ImageStatus::default() };
        let alone =
            Status { image: Some(image), slow_log_lines_dropped_total: 2, ..server(&["idle"]) };
        assert_eq!(troubles(&alone).len(), 2);
        let full = Status { routes_full: true, ..server(&["idle"]) };
        assert_eq!(troubles(&full).len(), 1, "{:?}", troubles(&full));
        assert_eq!(troubles(&Status { draining: true, ..server(&[]) }).len(), 1);
    }

    #[test]
    fn troubles_reports_unshared_image_of_each_pool() {
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
    fn checkpoint_without_saving_gives_advice_and_trouble() {
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
