//! One reload of several pools: each ends separately, and the client gets one response when all
//! have ended.

use samovar_wire::{PoolReloaded, ReloadResponse};
use std::sync::{Arc, Mutex, PoisonError};

/// Called once, when all pools have ended.
type Finish = Box<dyn FnOnce(ReloadResponse) + Send>;

/// Results so far. Cheap to clone.
#[derive(Clone)]
pub(super) struct Round(Arc<Mutex<Inner>>);

struct Inner {
    ended: Vec<PoolReloaded>,
    /// Number of pools that have not ended.
    left: usize,
    /// Whether the server has one pool; then the response does not name it.
    is_one: bool,
    finish: Option<Finish>,
}

impl Round {
    pub(super) fn new(pools: usize, is_one: bool, finish: Finish) -> Round {
        let inner = Inner { ended: Vec::new(), left: pools, is_one, finish: Some(finish) };
        Round(Arc::new(Mutex::new(inner)))
    }

    /// Records a pool's result: its new serving generation, or the reason why there is none.
    pub(super) fn ended(&self, name: &str, outcome: Result<u64, String>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = outcome.as_ref().copied().unwrap_or_default();
        let (name, error) = (name.to_owned(), outcome.err());
        inner.ended.push(PoolReloaded { name, generation, error, ..PoolReloaded::default() });
        inner.left = inner.left.saturating_sub(1);
        if inner.left > 0 {
            return;
        }
        let (ended, is_one) = (std::mem::take(&mut inner.ended), inner.is_one);
        let finish = inner.finish.take();
        drop(inner);
        if let Some(finish) = finish {
            finish(respond(ended, is_one));
        }
    }
}

fn respond(ended: Vec<PoolReloaded>, is_one: bool) -> ReloadResponse {
    let generation = ended.iter().map(|pool| pool.generation).max().unwrap_or_default();
    let why = |pool: &PoolReloaded| {
        let why = pool.error.as_ref()?;
        Some(if is_one { why.clone() } else { format!("pool `{}`: {why}", pool.name) })
    };
    let errors: Vec<String> = ended.iter().filter_map(why).collect();
    let error = (!errors.is_empty()).then(|| errors.join("\n"));
    let pools = if is_one { Vec::new() } else { ended };
    ReloadResponse { generation, error, pools, ..ReloadResponse::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn round_finishes_once_when_all_pools_ended() {
        let (tell, told) = channel();
        let finish = move |response: ReloadResponse| tell.send(response).expect("somebody waits");
        let round = Round::new(2, false, Box::new(finish));
        round.ended("default", Ok(3));
        assert!(told.try_recv().is_err());
        round.ended("api", Err("no".to_owned()));
        let response = told.try_recv().expect("all have ended");
        assert_eq!((response.generation, response.error.as_deref()), (3, Some("pool `api`: no")));
        assert_eq!(response.pools.len(), 2);
    }
}
