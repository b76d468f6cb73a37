//! The inspections that have not ended, and the kill that waits for each of them.
//!
//! On a busy machine an inspection may take longer than `timeouts.grace`. A worker that is killed
//! meanwhile cannot be inspected: the log would not name the place where it waited.

use samovar_ring::Run;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run of a pool: two pools may have equal runs.
type Key = (String, Run);

/// An inspection, and the action that waits for its end.
type Row = (Key, Option<Action>);

/// An action that waits for the end of an inspection.
pub(super) type Action = Box<dyn FnOnce() + Send>;

/// Table of the inspections that are queued or in progress. Clones share it. It has at most one
/// entry per queued case.
#[derive(Clone, Default)]
pub(super) struct Pending(Arc<Mutex<Vec<Row>>>);

impl Pending {
    /// Adds an inspection.
    pub(super) fn begin(&self, pool: &str, run: Run) {
        self.rows().push(((pool.to_owned(), run), None));
    }

    /// Removes the inspection. Returns the action that waits for its end.
    #[must_use]
    pub(super) fn end(&self, pool: &str, run: Run) -> Option<Action> {
        let mut rows = self.rows();
        let at = rows.iter().position(|row| is_of(row, pool, run));
        at.and_then(|at| rows.swap_remove(at).1)
    }

    /// Keeps the action for the end of the run's inspection. Returns whether there is one; without
    /// one the action is dropped.
    pub(super) fn after(&self, pool: &str, run: Run, action: Action) -> bool {
        let mut rows = self.rows();
        let row = rows.iter_mut().find(|row| is_of(row, pool, run));
        row.map(|row| row.1 = Some(action)).is_some()
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_of(row: &Row, pool: &str, run: Run) -> bool {
    row.0.0 == pool && row.0.1 == run
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Pending({})", self.rows().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_ring::{Incarnation, SlotIndex};
    use std::sync::mpsc::channel;

    #[test]
    fn action_waits_for_the_inspection_of_its_run_and_pool() {
        let run = |generation| Run {
            slot: SlotIndex::new(0, 1).expect("in range"),
            generation,
            worker: Incarnation::FIRST,
        };
        let (pending, (done, seen)) = (Pending::default(), channel());
        let action = |name: &'static str| -> Action {
            let done = done.clone();
            Box::new(move || done.send(name).expect("a receiver"))
        };
        assert!(!pending.after("a", run(1), action("no inspection")));
        pending.begin("a", run(1));
        pending.begin("b", run(1));
        assert!(!pending.after("a", run(2), action("another run")));
        assert!(pending.after("a", run(1), action("first")));
        assert!(pending.end("b", run(1)).is_none());
        assert_eq!(seen.try_recv().ok(), None, "another pool's inspection");
        pending.end("a", run(1)).expect("the action")();
        assert_eq!(seen.try_recv().ok(), Some("first"));
        assert!(!pending.after("a", run(1), action("ended")));
    }
}
