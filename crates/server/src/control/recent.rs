//! Counters of the last minutes, for the health check. It needs no request accounting: a thread
//! samples the sums of the front and of the supervisors.

use crate::pools::Pools;
use anyhow::Result;
use samovar_front::FrontHandle;
use samovar_supervisor::{Handle, Report};
use samovar_wire::RecentStatus;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time between two samples.
const STEP: Duration = Duration::from_secs(2);
/// Period in which failed requests count.
const MINUTE: Duration = Duration::from_mins(1);
/// Period in which crashes count.
const NEWS: Duration = Duration::from_mins(5);
/// Maximum number of samples: those of the longest period, and the one before it.
const SAMPLES_MAX: usize = 152;
/// Number of samples that all have a queue if requests wait all the time.
const QUEUED_SAMPLES: usize = 3;

/// Sums since the start, at one time.
#[derive(Clone, Copy, Debug)]
struct Sums {
    at: Instant,
    requests: u64,
    errors: u64,
    queue_depth: u64,
    /// Workers that died, killed ones included.
    deaths: u64,
    kills: u64,
}

/// The samples of the last minutes.
#[derive(Clone)]
pub(crate) struct Recent {
    samples: Arc<Mutex<VecDeque<Sums>>>,
    sources: Sources,
}

/// Sources of the samples.
#[derive(Clone)]
struct Sources {
    front: FrontHandle,
    supervisor: Handle,
    pools: Pools,
}

impl Sources {
    fn sums(&self) -> Sums {
        let own = (self.front.counters(), self.supervisor.report());
        let others = self.pools.iter();
        let others = others.map(|pool| (pool.front.counters(), pool.supervisor.report()));
        let mut sums = Sums {
            at: Instant::now(),
            requests: 0,
            errors: 0,
            queue_depth: 0,
            deaths: 0,
            kills: 0,
        };
        for (front, report) in std::iter::once(own).chain(others) {
            let Report { restarts, kills, .. } = &report;
            sums.requests += front.pool.requests_total;
            sums.errors += front.pool.responses_5xx_total;
            sums.queue_depth += front.pool.queue_depth;
            sums.deaths += restarts;
            sums.kills += kills.values().sum::<u64>();
        }
        sums
    }
}

fn put(samples: &Mutex<VecDeque<Sums>>, sums: Sums) {
    let mut samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
    if samples.len() == SAMPLES_MAX {
        samples.pop_front();
    }
    samples.push_back(sums);
}

impl Recent {
    /// Starts the thread. It ends when the last clone is dropped.
    pub(crate) fn start(front: FrontHandle, supervisor: Handle, pools: Pools) -> Result<Recent> {
        let sources = Sources { front, supervisor, pools };
        let samples = Arc::new(Mutex::new(VecDeque::from([sources.sums()])));
        let weak = Arc::downgrade(&samples);
        let of_thread = sources.clone();
        std::thread::Builder::new().name("health".into()).spawn(move || run(&weak, &of_thread))?;
        Ok(Recent { samples, sources })
    }

    /// Returns the counters up to now. The caller adds those that it knows itself.
    pub(crate) fn status(&self) -> RecentStatus {
        let now = self.sources.sums();
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        since(&samples, &now)
    }
}

fn run(samples: &Weak<Mutex<VecDeque<Sums>>>, sources: &Sources) {
    loop {
        std::thread::sleep(STEP);
        let Some(samples) = samples.upgrade() else { return };
        put(&samples, sources.sums());
    }
}

/// Returns the differences between now and the oldest sample of each period.
fn since(samples: &VecDeque<Sums>, now: &Sums) -> RecentStatus {
    let oldest = |period: Duration| {
        let is_within = |sums: &&Sums| now.at.saturating_duration_since(sums.at) <= period;
        samples.iter().find(is_within).unwrap_or(now)
    };
    let (minute, news) = (oldest(MINUTE), oldest(NEWS));
    let kills = now.kills.saturating_sub(news.kills);
    let latest = samples.iter().rev().take(QUEUED_SAMPLES).chain([now]);
    let queue_depth_min = if samples.len() < QUEUED_SAMPLES {
        0
    } else {
        latest.map(|sums| sums.queue_depth).min().unwrap_or(0)
    };
    RecentStatus {
        requests: now.requests.saturating_sub(minute.requests),
        errors: now.errors.saturating_sub(minute.errors),
        queue_depth_min,
        crashes: now.deaths.saturating_sub(news.deaths).saturating_sub(kills),
        kills,
        ..RecentStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{SAMPLES_MAX, Sums, put, since};
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    #[test]
    fn counters_cover_their_period_only() {
        let begin = Instant::now();
        let at = |second: u64, errors, deaths, queue_depth| Sums {
            at: begin + Duration::from_secs(second),
            requests: second,
            errors,
            queue_depth,
            deaths,
            kills: 0,
        };
        let samples = VecDeque::from([at(0, 0, 0, 0), at(200, 5, 1, 3), at(250, 6, 1, 1)]);
        let found = since(&samples, &at(290, 9, 3, 22));
        assert_eq!((found.requests, found.errors, found.crashes), (40, 3, 3));
        assert_eq!(found.queue_depth_min, 0);
        let found = since(&samples, &at(420, 9, 3, 22));
        assert_eq!((found.requests, found.errors, found.crashes), (0, 0, 2));
        let queued = VecDeque::from([at(1, 0, 0, 7), at(3, 0, 0, 5), at(5, 0, 0, 9)]);
        assert_eq!(since(&queued, &at(6, 0, 0, 22)).queue_depth_min, 5);
    }

    #[test]
    fn number_of_samples_is_limited() {
        let sums = Sums {
            at: Instant::now(),
            requests: 0,
            errors: 0,
            queue_depth: 0,
            deaths: 0,
            kills: 0,
        };
        let samples = Mutex::new(VecDeque::new());
        (0..999).for_each(|_| put(&samples, sums));
        assert_eq!(samples.lock().unwrap().len(), SAMPLES_MAX);
    }
}
