//! A server that is reloaded again and again while something else is done with it.

use samovar_testkit::Server;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Between two reloads: some requests are answered by one generation alone.
const PAUSE: Duration = Duration::from_millis(400);

/// What `work` gives; there were at least two reloads meanwhile, and none failed.
pub(crate) fn while_reloading<T: Send>(server: &Server, work: impl FnOnce() -> T + Send) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reloads = scope.spawn(|| {
            let mut count = 0;
            while !is_done.load(Ordering::Relaxed) {
                match server.reload() {
                    Ok(_) => count += 1,
                    // On a slow machine requests outlive several reloads.
                    Err(why) if why.contains("still busy with their requests") => {}
                    Err(why) => panic!("{why}\n{}", server.log()),
                }
                thread::sleep(PAUSE);
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
