//! Is it well? What of a server's status stands against it, for all who show one.

use crate::{ImageStatus, Status};

/// The part of a script's CPU above which a booted application is not worth its boot.
pub const SAVES_MAX: f64 = 0.8;
/// The part of a script's CPU above which that is not well. What is between may be chance.
const DEARER_MIN: f64 = 1.05;
/// Rollbacks below which the first ones, which are dear, weigh too much.
const ROLLBACKS_MIN: u64 = 100;

/// Something that is not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Where there is more about it.
    pub about: About,
    /// What it is, as the end of a sentence.
    pub text: String,
}

/// What a trouble is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether requests are answered at all.
    Readiness,
    /// Workers and the queue for them.
    Workers,
    /// The booted application.
    Image,
    /// What is written down.
    Logs,
}

/// All that is not well, the worst first; nothing if all is.
#[must_use]
pub fn troubles(status: &Status) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let mut more = |about, text: String| troubles.push(Trouble { about, text });
    if status.draining {
        more(About::Readiness, "it ends, or has not begun".to_owned());
    } else if status.in_state("idle") + status.in_state("busy") == 0 {
        more(About::Readiness, "no worker takes requests".to_owned());
    }
    let waiting = status.front.queue_depth;
    if waiting > 0 && status.in_state("idle") == 0 {
        let are = if waiting == 1 { "request waits" } else { "requests wait" };
        more(About::Workers, format!("{waiting} {are} for a worker"));
    }
    for pool in &status.pools {
        let name = &pool.name;
        if pool.failed && pool.generation == 0 {
            more(About::Readiness, format!("pool {name} does not start"));
        } else if pool.failed {
            more(About::Image, format!("the application of pool {name} does not boot"));
        }
        if pool.queue_depth > 0 && pool.workers <= pool.busy && status.in_state("idle") > 0 {
            let waiting = pool.queue_depth;
            more(About::Workers, format!("{waiting} wait for a worker of pool {name}"));
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
            let text =
                format!("a booted request{of_pool} takes {times:.2} of a whole script's CPU");
            more(About::Image, text);
        }
    }
    let lost = status.lines_lost();
    if lost > 0 {
        more(About::Logs, format!("{lost} lines of logs were lost"));
    }
    troubles
}

/// What to do where a booted application takes more than [`SAVES_MAX`] of a script's CPU; nothing if it does not, or if nobody
/// knows: but a rollback that takes longer than the boot says it by itself.
#[must_use]
pub fn dear(image: &ImageStatus) -> Option<&'static str> {
    #[allow(clippy::cast_precision_loss)] // No server rolls back 2^52 times.
    let mean_us = image.rollback_us_total / image.rollbacks_total.max(1) as f64;
    if image.rollbacks_total >= ROLLBACKS_MIN && mean_us > image.boot_ms * 1_000.0 {
        return Some(
            "a return to the checkpoint takes longer than the boot: run whole scripts \
             (whole_scripts), or let requests change less of what stands above",
        );
    }
    image.saving.filter(|saving| saving.ratio() > SAVES_MAX)?;
    Some(if image.mode == "resident" {
        "what the handler does is most of it: little can be booted ahead"
    } else if image.refork_total.saturating_mul(10) > image.rollbacks_total {
        "many requests end their worker, and a fresh one costs a fork or a boot: the reasons stand above"
    } else if image.searches_total.saturating_mul(2) > image.rollbacks_total {
        "rollbacks search memory, because requests map some: load and compile above the checkpoint \
         (warmup), so that they need not"
    } else {
        "place the checkpoint further down, warm up above it, or run whole scripts (whole_scripts)"
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
    fn what_stands_against_it_is_said() {
        assert!(troubles(&server(&["idle", "busy"])).is_empty());
        assert_eq!(troubles(&server(&["booting"])), ["no worker takes requests"]);
        let mut crowded = server(&["busy"]);
        crowded.front.queue_depth = 1;
        assert_eq!(troubles(&crowded), ["1 request waits for a worker"]);
        crowded.workers.extend(server(&["idle"]).workers);
        assert!(troubles(&crowded).is_empty(), "somebody is about to take it");
        let image = ImageStatus { mode: "worker".to_owned(), ..ImageStatus::default() };
        let alone =
            Status { image: Some(image), slow_log_lines_lost_total: 2, ..server(&["idle"]) };
        assert_eq!(troubles(&alone).len(), 2);
        assert_eq!(troubles(&Status { draining: true, ..server(&[]) }).len(), 1);
    }

    #[test]
    fn each_pools_application_is_looked_at() {
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
    fn a_checkpoint_that_saves_nothing_is_said() {
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
        assert_eq!(advice(slow.clone()), Some("a return to the chec"));
        assert_eq!(advice(ImageStatus { rollbacks_total: 99, ..slow }), None);
        assert_eq!(advice(image(81.0, 200, 900)), Some("many requests end th"));
        assert_eq!(advice(image(81.0, 0, 900)), Some("rollbacks search mem"));
        let with = |ahead_us| Status { image: Some(image(ahead_us, 0, 0)), ..server(&["idle"]) };
        assert!(troubles(&with(99.0)).is_empty());
        let text = "a booted request takes 1.30 of a whole script's CPU";
        assert_eq!(troubles(&with(130.0)), [text]);
    }
}
