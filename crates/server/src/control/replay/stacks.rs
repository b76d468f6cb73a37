//! Samples the stacks of a replay's process from outside, in a thread of its own.

use samovar_spy::Watch;
use samovar_spy::profile::packed::pack;
use samovar_spy::profile::{Profile, STACKS_MAX, Weight};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two samples: a request is short.
const EVERY: Duration = Duration::from_millis(1);

/// The thread.
pub(super) struct Stacks {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Profile>>,
}

impl Stacks {
    /// Starts to sample. Returns an error if the process cannot be read.
    pub(super) fn start(pid: i32) -> Result<Stacks, String> {
        let mut watch = Watch::of(&[pid.unsigned_abs()])
            .map_err(|error| format!("cannot sample the replay: {error}"))?;
        // Reads the files of PHP's symbols before the request begins.
        watch.look();
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("replay stacks".into()).spawn(move || {
            let mut profile = Profile::new();
            let mut since = Instant::now();
            while !until.load(Ordering::Relaxed) && !watch.is_over() {
                std::thread::sleep(EVERY);
                let wall_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
                since = Instant::now();
                for sample in watch.look() {
                    if !sample.stack.is_between_requests() {
                        let weight = Weight { samples: 1, wall_ns, cpu_ns: sample.cpu_ns };
                        profile.add(&sample.stack.frames, &sample.activity, weight);
                    }
                }
            }
            profile
        });
        let thread = thread.map_err(|error| format!("cannot sample the replay: {error}"))?;
        Ok(Stacks { ends, thread: Some(thread) })
    }

    /// Ends the thread. Returns the packed profile.
    pub(super) fn finish(mut self) -> Value {
        self.ends.store(true, Ordering::Relaxed);
        let profile = self.thread.take().and_then(|thread| thread.join().ok());
        let packed = pack(&profile.unwrap_or_default(), STACKS_MAX);
        serde_json::to_value(packed).unwrap_or_default()
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}
