//! Scripts that crash, fail, exit, or continue after the response.

use crate::chaos::stage::Stage;
use samovar_testkit::http::Request;
use samovar_testkit::order::Order;
use std::time::Duration;

/// Faults that end the worker process, and faults that only fail the request.
const CRASHES: &[&str] = &["segv", "abort", "kill", "stack"];
const ERRORS: &[&str] = &["exit", "fatal", "exception", "memory"];

/// Number of crashes, and the pause between them: ten a second. The clients do not wait for each
/// other.
const STORM: usize = 20;
const STORM_PAUSE: Duration = Duration::from_millis(100);

/// Good responses required during the storm.
const MEANWHILE: u64 = 40;

/// Returns a GET, which the server may run again, or a POST, which it may not.
fn crash(order: &mut Order, all: &[&str]) -> Request {
    let target = format!("/crash?how={}", all[order.next(all.len())]);
    if order.next(4) == 0 { Request::form(&target, "a=b") } else { Request::get(&target) }
}

pub(crate) fn storm(stage: &Stage, order: &mut Order) {
    stage.did(&format!("{STORM} crashes, ten a second"));
    std::thread::scope(|scope| {
        for _ in 0..STORM {
            let request = crash(order, CRASHES);
            scope.spawn(move || stage.provoke(&request));
            std::thread::sleep(STORM_PAUSE);
        }
        stage.progress(MEANWHILE, "in a storm of crashes");
    });
    stage.settled();
}

pub(crate) fn errors(stage: &Stage, order: &mut Order) {
    stage.provoke(&crash(order, ERRORS));
    stage.provoke(&Request::get("/complain"));
}

/// Work after the response on every worker. It ends without help, and other requests are served.
pub(crate) fn afterwork(stage: &Stage, order: &mut Order) {
    for _ in 0..crate::chaos::stage::WORKERS {
        stage.provoke(&Request::get(&format!("/finish?ms={}", 100 + order.next(400))));
    }
    stage.progress(MEANWHILE, "after work that follows the answer");
}
