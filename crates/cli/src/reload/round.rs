//! One reload of several pools: each ends for itself, and whoever has asked is told when all have.

use samovar_wire::{PoolReloaded, ReloadAnswer};
use std::sync::{Arc, Mutex, PoisonError};

/// Told once, when all have ended.
type Finish = Box<dyn FnOnce(ReloadAnswer) + Send>;

/// What has come of them so far. Cheap to clone.
#[derive(Clone)]
pub(super) struct Round(Arc<Mutex<Inner>>);

struct Inner {
    ended: Vec<PoolReloaded>,
    /// Those that have not.
    left: usize,
    /// The server has one pool: nobody wants to know its name.
    is_one: bool,
    finish: Option<Finish>,
}

impl Round {
    pub(super) fn new(pools: usize, is_one: bool, finish: Finish) -> Round {
        let inner = Inner { ended: Vec::new(), left: pools, is_one, finish: Some(finish) };
        Round(Arc::new(Mutex::new(inner)))
    }

    /// One has ended: its generation that serves now, or why there is no new one.
    pub(super) fn ended(&self, name: &str, outcome: Result<u64, String>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = outcome.as_ref().copied().unwrap_or_default();
        let (name, error) = (name.to_owned(), outcome.err());
        inner.ended.push(PoolReloaded { name, generation, error });
        inner.left = inner.left.saturating_sub(1);
        if inner.left > 0 {
            return;
        }
        let (ended, is_one) = (std::mem::take(&mut inner.ended), inner.is_one);
        let finish = inner.finish.take();
        drop(inner);
        if let Some(finish) = finish {
            finish(answer(ended, is_one));
        }
    }
}

fn answer(ended: Vec<PoolReloaded>, is_one: bool) -> ReloadAnswer {
    let generation = ended.iter().map(|pool| pool.generation).max().unwrap_or_default();
    let why = |pool: &PoolReloaded| {
        let why = pool.error.as_ref()?;
        Some(if is_one { why.clone() } else { format!("pool `{}`: {why}", pool.name) })
    };
    let errors: Vec<String> = ended.iter().filter_map(why).collect();
    let error = (!errors.is_empty()).then(|| errors.join("\n"));
    let pools = if is_one { Vec::new() } else { ended };
    ReloadAnswer { generation, error, pools, ..ReloadAnswer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn it_is_told_once_when_all_have_ended() {
        let (tell, told) = channel();
        let finish = move |answer: ReloadAnswer| tell.send(answer).expect("somebody waits");
        let round = Round::new(2, false, Box::new(finish));
        round.ended("default", Ok(3));
        assert!(told.try_recv().is_err());
        round.ended("api", Err("no".to_owned()));
        let answer = told.try_recv().expect("all have ended");
        assert_eq!((answer.generation, answer.error.as_deref()), (3, Some("pool `api`: no")));
        assert_eq!(answer.pools.len(), 2);
    }
}
