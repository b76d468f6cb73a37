//! Records the current jobs of a pool's disk threads and their start times. Used to detect whether
//! a file system hangs, and which.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The file that a job uses.
#[derive(Debug)]
pub(crate) enum JobTarget {
    /// A path, whose file may not exist yet.
    Path(PathBuf),
    /// An open file.
    File(Arc<File>),
    /// Work without a file system.
    Nowhere,
}

impl JobTarget {
    /// Name for display. The kernel knows the name of an open file without an access to its file
    /// system.
    fn name(&self) -> String {
        match self {
            JobTarget::Path(path) => path.display().to_string(),
            JobTarget::File(file) => {
                let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                std::fs::read_link(link)
                    .map_or_else(|_| String::new(), |at| at.display().to_string())
            }
            JobTarget::Nowhere => String::new(),
        }
    }
}

/// Current jobs of all threads of a pool.
#[derive(Debug, Default)]
pub(crate) struct DiskJobs {
    held: Mutex<Vec<(u64, Instant, JobTarget)>>,
}

impl DiskJobs {
    /// Records that a thread is busy with `place` until the result is dropped.
    pub(crate) fn take(self: &Arc<Self>, place: JobTarget) -> Hold {
        let mut held = self.held();
        let number = held.last().map_or(0, |(number, ..)| number + 1);
        held.push((number, Instant::now(), place));
        Hold { hands: Arc::clone(self), number }
    }

    /// Whether all threads have been busy with their current jobs for longer than `patience`.
    pub(crate) fn are_stuck(&self, threads: usize, patience: Duration) -> bool {
        let held = self.held();
        held.len() >= threads && held.iter().all(|(_, since, _)| since.elapsed() >= patience)
    }

    /// Returns the oldest job: name of its file, and its age.
    pub(crate) fn oldest(&self) -> Option<(String, Duration)> {
        let held = self.held();
        held.first().map(|(_, since, place)| (place.name(), since.elapsed()))
    }

    fn held(&self) -> MutexGuard<'_, Vec<(u64, Instant, JobTarget)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a recorded job.
#[derive(Debug)]
pub(crate) struct Hold {
    hands: Arc<DiskJobs>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.hands.held();
        let at = held.iter().position(|(number, ..)| *number == self.number);
        let place = at.map(|at| held.remove(at).2);
        drop(held);
        // This may close a file, which takes time, so the lock is released before.
        drop(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_stuck_if_all_jobs_exceed_patience() {
        let hands = Arc::new(DiskJobs::default());
        let never = Duration::from_hours(1);
        let first = hands.take(JobTarget::Path("/a/b".into()));
        assert!(!hands.are_stuck(2, Duration::ZERO), "one is free");
        let second = hands.take(JobTarget::Nowhere);
        assert!(hands.are_stuck(2, Duration::ZERO) && !hands.are_stuck(2, never));
        assert_eq!(hands.oldest().map(|(name, _)| name).as_deref(), Some("/a/b"));
        drop(first);
        assert!(!hands.are_stuck(2, Duration::ZERO));
        let third = hands.take(JobTarget::File(Arc::new(File::open("/dev/null").expect("a file"))));
        drop(second);
        assert_eq!(hands.oldest().map(|(name, _)| name).as_deref(), Some("/dev/null"));
        drop(third);
        assert!(hands.oldest().is_none());
    }
}
