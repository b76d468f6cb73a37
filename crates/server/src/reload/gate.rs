//! Gate where new generations wait for each other, if settings of the whole server change with
//! them: all pools take over, or none.

use samovar_supervisor::GateDone;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Called once, when no pool is waited for, with the indexes of the failed pools. Returns whether
/// the others may take over. After `Ok`, their new settings are already in effect.
type Decide = Box<dyn FnOnce(&[usize]) -> Result<(), String> + Send>;

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Gate(Arc<Mutex<Inner>>);

struct Inner {
    /// State of each pool, by index.
    pools: Vec<State>,
    decide: Option<Decide>,
    is_open: bool,
}

enum State {
    /// It boots, or is being probed.
    OnItsWay,
    Waits(GateDone),
    Failed,
}

impl Gate {
    /// Creates a gate for all pools of the server.
    pub(super) fn new(pools: usize, decide: Decide) -> Gate {
        let pools = (0..pools).map(|_| State::OnItsWay).collect();
        Gate(Arc::new(Mutex::new(Inner { pools, decide: Some(decide), is_open: false })))
    }

    /// The pool is ready to take over.
    pub(super) fn arrives(&self, pool: usize, done: GateDone) {
        self.becomes(pool, State::Waits(done));
    }

    /// The pool will not take over. Returns true if the others had already passed: then the pool's
    /// new settings are in effect.
    pub(super) fn fails(&self, pool: usize) -> bool {
        if self.inner().is_open {
            return true;
        }
        self.becomes(pool, State::Failed);
        false
    }

    fn becomes(&self, pool: usize, state: State) {
        let mut inner = self.inner();
        inner.pools[pool] = state;
        if inner.pools.iter().any(|state| matches!(state, State::OnItsWay)) {
            return;
        }
        // Pools that the gate rejects call `fails` afterwards; the decision is made only once.
        let Some(decide) = inner.decide.take() else { return };
        let is_failed = |(at, state): (usize, &State)| matches!(state, State::Failed).then_some(at);
        let failed: Vec<usize> = inner.pools.iter().enumerate().filter_map(is_failed).collect();
        let verdict = decide(&failed);
        inner.is_open = verdict.is_ok();
        let all = mem::take(&mut inner.pools);
        inner.pools = all.iter().map(|_| State::Failed).collect();
        drop(inner);
        for state in all {
            if let State::Waits(done) = state {
                done(verdict.clone());
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    fn gate(pools: usize, verdict: Result<(), String>) -> (Gate, Receiver<Vec<usize>>) {
        let (tell, told) = channel();
        let decide = move |failed: &[usize]| {
            tell.send(failed.to_vec()).expect("somebody asks");
            verdict
        };
        (Gate::new(pools, Box::new(decide)), told)
    }

    fn arrive(gate: &Gate, pool: usize) -> Receiver<Result<(), String>> {
        let (tell, told) = channel();
        gate.arrives(pool, Box::new(move |verdict| tell.send(verdict).expect("somebody asks")));
        told
    }

    #[test]
    fn gate_opens_when_last_pool_arrives() {
        let (gate, decided) = gate(2, Ok(()));
        let first = arrive(&gate, 1);
        assert!(first.try_recv().is_err() && decided.try_recv().is_err());
        let second = arrive(&gate, 0);
        assert_eq!(decided.try_recv(), Ok(vec![]));
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(Ok(())), Ok(Ok(()))));
        assert!(gate.fails(1), "too late");
        assert!(decided.try_recv().is_err(), "it is decided once");
    }

    #[test]
    fn gate_rejects_all_if_one_pool_failed() {
        let (gate, decided) = gate(3, Err("no".to_owned()));
        let first = arrive(&gate, 0);
        assert!(!gate.fails(2));
        let other = arrive(&gate, 1);
        assert_eq!(decided.try_recv(), Ok(vec![2]));
        let refused = Ok(Err("no".to_owned()));
        assert_eq!((first.try_recv(), other.try_recv()), (refused.clone(), refused));
        assert!(!gate.fails(0) && !gate.fails(1), "the decision stays");
    }

    #[test]
    fn waiting_pool_may_fail_before_last_arrives() {
        let (gate, decided) = gate(2, Err("no".to_owned()));
        let _first = arrive(&gate, 0);
        assert!(!gate.fails(0));
        let last = arrive(&gate, 1);
        assert_eq!(decided.try_recv(), Ok(vec![0]));
        assert_eq!(last.try_recv(), Ok(Err("no".to_owned())));
    }
}
