//! Turn: a server waits here for the previous server to release a resource that only one of them
//! may use, such as the history's file.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A turn that comes once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HandoverGate(Arc<(Mutex<bool>, Condvar)>);

impl Default for HandoverGate {
    fn default() -> HandoverGate {
        HandoverGate::now()
    }
}

impl HandoverGate {
    /// Creates a turn that is already there: there is no previous server.
    #[must_use]
    pub fn now() -> HandoverGate {
        HandoverGate(Arc::new((Mutex::new(true), Condvar::new())))
    }

    /// Creates a turn that comes when [`Self::come`] is called.
    #[must_use]
    pub fn later() -> HandoverGate {
        HandoverGate(Arc::new((Mutex::new(false), Condvar::new())))
    }

    /// The previous server has released the resource.
    pub fn come(&self) {
        *self.flag() = true;
        self.0.1.notify_all();
    }

    /// Returns whether the turn is there.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self.flag()
    }

    /// Waits for the turn. Returns false if it does not come within `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.flag(), limit, |is_open| !*is_open);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn flag(&self) -> MutexGuard<'_, bool> {
        // A flag is valid even after a panic of the thread that held the lock.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_comes_for_all_waiting_threads() {
        assert!(HandoverGate::default().is_open());
        let handover_gate = HandoverGate::later();
        assert!(!handover_gate.is_open() && !handover_gate.wait(Duration::from_millis(1)));
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let handover_gate = handover_gate.clone();
                std::thread::spawn(move || handover_gate.wait(Duration::from_mins(1)))
            })
            .collect();
        handover_gate.come();
        assert!(waiting.into_iter().all(|thread| thread.join().expect("no panic")));
        assert!(handover_gate.is_open());
    }
}
