//! What a pool's disk threads have in hand, and since when: whether a file system hangs, and which.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a thread is busy with.
#[derive(Debug)]
pub(crate) enum Place {
    /// What lies there, or is to.
    Path(PathBuf),
    /// A file that is open.
    File(Arc<File>),
    /// Work that no file system takes part in.
    Nowhere,
}

impl Place {
    /// For people. The kernel knows the name of an open file without asking anybody.
    fn name(&self) -> String {
        match self {
            Place::Path(path) => path.display().to_string(),
            Place::File(file) => {
                let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                std::fs::read_link(link)
                    .map_or_else(|_| String::new(), |at| at.display().to_string())
            }
            Place::Nowhere => String::new(),
        }
    }
}

/// What all threads of a pool have in hand.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    held: Mutex<Vec<(u64, Instant, Place)>>,
}

impl Hands {
    /// From now on, until the result is dropped, a thread is busy with this.
    pub(crate) fn take(self: &Arc<Self>, place: Place) -> Hold {
        let mut held = self.held();
        let number = held.last().map_or(0, |(number, ..)| number + 1);
        held.push((number, Instant::now(), place));
        Hold { hands: Arc::clone(self), number }
    }

    /// Whether as many threads as there are have been busy with the same thing for longer than `patience`.
    pub(crate) fn are_stuck(&self, threads: usize, patience: Duration) -> bool {
        let held = self.held();
        held.len() >= threads && held.iter().all(|(_, since, _)| since.elapsed() >= patience)
    }

    /// What has been in hand for the longest time.
    pub(crate) fn oldest(&self) -> Option<(String, Duration)> {
        let held = self.held();
        held.first().map(|(_, since, place)| (place.name(), since.elapsed()))
    }

    fn held(&self) -> MutexGuard<'_, Vec<(u64, Instant, Place)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something in a thread's hand.
#[derive(Debug)]
pub(crate) struct Hold {
    hands: Arc<Hands>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.hands.held();
        let at = held.iter().position(|(number, ..)| *number == self.number);
        let place = at.map(|at| held.remove(at).2);
        drop(held);
        // It may be the last that holds a file, and closing takes its time.
        drop(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_stuck_when_all_are_busy_for_long() {
        let hands = Arc::new(Hands::default());
        let never = Duration::from_hours(1);
        let first = hands.take(Place::Path("/a/b".into()));
        assert!(!hands.are_stuck(2, Duration::ZERO), "one is free");
        let second = hands.take(Place::Nowhere);
        assert!(hands.are_stuck(2, Duration::ZERO) && !hands.are_stuck(2, never));
        assert_eq!(hands.oldest().map(|(name, _)| name).as_deref(), Some("/a/b"));
        drop(first);
        assert!(!hands.are_stuck(2, Duration::ZERO));
        let third = hands.take(Place::File(Arc::new(File::open("/dev/null").expect("a file"))));
        drop(second);
        assert_eq!(hands.oldest().map(|(name, _)| name).as_deref(), Some("/dev/null"));
        drop(third);
        assert!(hands.oldest().is_none());
    }
}
