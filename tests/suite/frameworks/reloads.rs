//! A server that is reloaded repeatedly while other work runs.

use samovar_testkit::Server;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Minimum pause between two reloads. It is at least twice as long as a reload takes, so that some
/// requests are served entirely by one generation, and most of the CPU time is theirs.
const PAUSE_MIN: Duration = Duration::from_millis(400);

/// Returns the result of `work`. At least two reloads must happen meanwhile, and none may fail.
pub(crate) fn while_reloading<T: Send>(server: &Server, work: impl FnOnce() -> T + Send) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reloads = scope.spawn(|| {
            let mut count = 0;
            while !is_done.load(Ordering::Relaxed) {
                let start = Instant::now();
                match server.reload() {
                    Ok(_) => count += 1,
                    // On a slow machine, requests outlive several reloads.
                    Err(why) if why.contains("still busy with requests") => {}
                    Err(why) => panic!("{why}\n{}", server.log()),
                }
                thread::sleep(PAUSE_MIN.max(2 * start.elapsed()));
            }
            count
        });
        let done = scope.spawn(work).join();
        is_done.store(true, Ordering::Relaxed);
        let count = reloads.join().expect("reloads");
        assert!(count >= 2, "{count} reloads");
        println!("{count} reloads");
        done.expect("the work's message is above")
    })
}
