//! Whose turn it is: what only one server may do at a time, such as writing a file of history, waits here for the server before.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Has come, or will. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turn(Arc<(Mutex<bool>, Condvar)>);

impl Default for Turn {
    fn default() -> Turn {
        Turn::now()
    }
}

impl Turn {
    /// Nobody is waited for.
    #[must_use]
    pub fn now() -> Turn {
        Turn(Arc::new((Mutex::new(true), Condvar::new())))
    }

    /// It comes when [`Self::come`] is called.
    #[must_use]
    pub fn later() -> Turn {
        Turn(Arc::new((Mutex::new(false), Condvar::new())))
    }

    /// The other one has let go.
    pub fn come(&self) {
        *self.flag() = true;
        self.0.1.notify_all();
    }

    /// Whether it has come.
    #[must_use]
    pub fn has_come(&self) -> bool {
        *self.flag()
    }

    /// Waits for it; false: it has not come within `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.flag(), limit, |has_come| !*has_come);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn flag(&self) -> MutexGuard<'_, bool> {
        // A flag is whole whoever has panicked.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_once_and_for_all_who_wait() {
        assert!(Turn::default().has_come());
        let turn = Turn::later();
        assert!(!turn.has_come() && !turn.wait(Duration::from_millis(1)));
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let turn = turn.clone();
                std::thread::spawn(move || turn.wait(Duration::from_mins(1)))
            })
            .collect();
        turn.come();
        assert!(waiting.into_iter().all(|thread| thread.join().expect("no panic")));
        assert!(turn.has_come());
    }
}
