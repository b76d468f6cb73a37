//! Is it well? What of a server's status stands against it, for all who show one.

use crate::Status;

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
    let sharing = status.image.as_ref().map_or("", |image| image.mode.as_str());
    if matches!(sharing, "worker" | "script") {
        more(About::Image, "the booted application is not shared by the workers".to_owned());
    }
    let lost = status.lines_lost();
    if lost > 0 {
        more(About::Logs, format!("{lost} lines of logs were lost"));
    }
    troubles
}

#[cfg(test)]
mod tests {
    use crate::{ImageStatus, Status, WorkerStatus};

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
}
