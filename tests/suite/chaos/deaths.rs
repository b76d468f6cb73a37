//! SIGKILL to workers, templates and image processes.

use crate::chaos::stage::Stage;
use samovar_testkit::kill;
use samovar_testkit::order::Order;
use std::time::Duration;

const SIGKILL: i32 = 9;

/// Good responses between two deaths of the same kind, so that booted processes serve requests.
const BETWEEN: u64 = 15;

fn pick(pids: &[i32], order: &mut Order) -> Option<i32> {
    let number = order.next(64);
    pids.get(number % pids.len().max(1)).copied()
}

pub(crate) fn kill_worker(stage: &Stage, order: &mut Order) {
    if let Some(pid) = pick(&stage.workers(), order) {
        stage.did(&format!("SIGKILL to worker {pid}"));
        kill(pid, SIGKILL);
    }
    // Sets the rate of worker deaths; not a wait for a condition.
    std::thread::sleep(Duration::from_millis(50 + order.next(150) as u64));
}

pub(crate) fn kill_template(stage: &Stage, order: &mut Order) {
    if let Some(pid) = pick(&stage.templates(), order) {
        stage.did(&format!("SIGKILL to template {pid}"));
        kill(pid, SIGKILL);
    }
    stage.progress(BETWEEN, "after the template's death");
    stage.settled();
}

pub(crate) fn kill_image(stage: &Stage, order: &mut Order) {
    if let Some(pid) = pick(&stage.images(), order) {
        stage.did(&format!("SIGKILL to image process {pid}"));
        kill(pid, SIGKILL);
    }
    stage.progress(BETWEEN, "after the image process's death");
    stage.settled();
}
