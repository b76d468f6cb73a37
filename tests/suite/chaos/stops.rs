//! SIGSTOP: processes that are stopped, for a while or for good.

use crate::chaos::stage::Stage;
use samovar_testkit::order::Order;
use samovar_testkit::{family, kill};
use std::time::Duration;

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

/// Good responses while a process is stopped.
const MEANWHILE: u64 = 40;

/// Maximum time in which the server's watchdog must find a stopped process. Generous: it bounds the
/// test's wait for a server that never finds it.
const NOTICED: Duration = Duration::from_secs(40);

/// Stops one or two workers in the middle of their work; never all.
pub(crate) fn stop_workers(stage: &Stage, order: &mut Order) {
    let pids = stage.workers();
    let (first, count) = (order.next(64), 1 + order.next(2));
    let chosen = pids.iter().cycle().skip(first).take(count.min(pids.len()));
    let stopped: Vec<_> = chosen.filter_map(|pid| stage.stops(*pid)).collect();
    for halt in &stopped {
        stage.did(&format!("SIGSTOP to worker {}", halt.pid()));
        kill(halt.pid(), SIGSTOP);
    }
    // The time for which they are stopped.
    std::thread::sleep(Duration::from_millis(200 + order.next(1200) as u64));
    for halt in &stopped {
        kill(halt.pid(), SIGCONT);
    }
    drop(stopped);
    stage.progress(MEANWHILE, "after workers stood still for a second");
}

/// Stops the template or the image process while a worker dies. The successor is late; other
/// workers serve requests.
pub(crate) fn stop_template(stage: &Stage, order: &mut Order) {
    let pids = [stage.templates(), stage.images()].concat();
    let Some(pid) = pids.get(order.next(64) % pids.len().max(1)).copied() else { return };
    let Some(_halt) = stage.stops(pid) else { return };
    stage.did(&format!("SIGSTOP to template or image process {pid}"));
    kill(pid, SIGSTOP);
    if let Some(worker) = stage.workers().first() {
        kill(*worker, 9);
    }
    stage.progress(MEANWHILE, "while the template stands still");
    kill(pid, SIGCONT);
    stage.settled();
}

pub(crate) fn worker_for_good(stage: &Stage, order: &mut Order) {
    for_good(stage, order, "worker", &stage.workers());
}

pub(crate) fn template_for_good(stage: &Stage, order: &mut Order) {
    for_good(stage, order, "template", &stage.templates());
}

pub(crate) fn image_for_good(stage: &Stage, order: &mut Order) {
    for_good(stage, order, "image process", &stage.images());
}

/// A process that is stopped and never continued is detected and replaced.
fn for_good(stage: &Stage, order: &mut Order, kind: &str, pids: &[i32]) {
    let Some(pid) = pids.get(order.next(64) % pids.len().max(1)).copied() else { return };
    let Some(_halt) = stage.stops(pid) else { return };
    stage.did(&format!("SIGSTOP to {kind} {pid}, for good"));
    kill(pid, SIGSTOP);
    stage.progress(MEANWHILE, &format!("while a {kind} is stopped"));
    let what = format!("a stopped {kind} is noticed and replaced");
    if !stage.wait_within(NOTICED, &what, || !family::is_alive(pid)) {
        kill(pid, SIGCONT);
    }
    stage.settled();
}
