//! Samples the activity of busy workers many times a second, on a separate thread.
//!
//! It reads the ring, PHP's stacks through crates/spy, and `/proc`. Workers do nothing for it. No
//! thread waits for this one, which can hang on a process that hangs in the kernel. The samples go
//! to an [`Observer`].

mod beat;
mod boots;
mod counters;
mod observer;
mod peers;
mod readers;
mod worker;

pub use counters::SamplerReport;
pub use observer::{Look, Observer, Sampling, Scene, SlowScene};

use crate::handle::{Handle, Process};
use beat::Beat;
use boots::Boots;
use counters::Counters;
use readers::Readers;
use samovar_spy::Account;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::{Eyes, Watched};

/// Minimum and maximum interval between two checks for slow requests, if no stacks are sampled.
const SLOW_LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Time for which the end of the server waits for the thread.
const FINISH_LIMIT: Duration = Duration::from_secs(1);
const FINISH_LOOK: Duration = Duration::from_millis(2);
/// Maximum number of workers whose files below `/proc` stay open. The files of other workers are
/// opened for each sample.
const KEPT_MAX: usize = 64;
/// Returns the maximum number of descriptors that stay open for that many workers. One per worker
/// is its pidfd.
#[must_use]
pub fn sampled_descriptors(workers: usize) -> usize {
    workers.min(KEPT_MAX) * (Account::FILES + 1)
}

/// Interval at which data of ended processes is removed.
const SWEEP: Duration = Duration::from_secs(1);

/// Controls the sampler's thread.
#[derive(Debug)]
pub struct Sampler {
    hertz: u32,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sampler {
    /// Starts the thread, which samples the workers of all these pools. Returns `None` if nothing
    /// has to be sampled.
    pub fn start(
        pools: &[Handle],
        sampling: Sampling,
        observer: Box<dyn Observer>,
    ) -> io::Result<Option<Sampler>> {
        if sampling == Sampling::default() {
            return Ok(None);
        }
        let counters = Arc::<Counters>::default();
        let mut round = Round {
            pools: pools.iter().cloned().map(Pool::new).collect(),
            sampling,
            observer,
            counters: Arc::clone(&counters),
            swept: Instant::now(),
        };
        let run = move || round.run();
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(run)?;
        Ok(Some(Sampler { hertz: sampling.hertz, counters, thread: Mutex::new(Some(thread)) }))
    }

    /// Returns the state of the sampler.
    pub fn report(&self) -> SamplerReport {
        let of = &self.counters;
        SamplerReport {
            hertz: self.hertz,
            samples: of.samples.load(Ordering::Relaxed),
            torn: of.torn.load(Ordering::Relaxed),
            cpu: Duration::from_nanos(of.cpu_ns.load(Ordering::Relaxed)),
            trouble: of.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Ends the thread, unless it hangs on a hanging process.
    pub fn finish(&self) {
        self.counters.ends.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        thread.thread().unpark();
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < FINISH_LIMIT {
            std::thread::sleep(FINISH_LOOK);
        }
        if thread.is_finished() {
            // The panic hook has already logged a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct Round {
    pools: Vec<Pool>,
    sampling: Sampling,
    observer: Box<dyn Observer>,
    counters: Arc<Counters>,
    swept: Instant,
}

/// State per pool; each pool has its own generations and incarnations.
struct Pool {
    handle: Handle,
    readers: Readers,
    /// By process id and start time, because an id can be reused.
    workers: HashMap<(i32, Instant), Watched>,
    boots: Boots,
    processes: Vec<Process>,
}

impl Pool {
    fn new(handle: Handle) -> Pool {
        Pool {
            handle,
            readers: Readers::default(),
            workers: HashMap::new(),
            boots: Boots::default(),
            processes: Vec::new(),
        }
    }
}

impl Round {
    fn run(&mut self) {
        let Sampling { hertz, slow, .. } = self.sampling;
        let (least, most) = SLOW_LOOKS;
        let mut beat = Beat::new(match hertz {
            0 => (slow.unwrap_or_default() / 4).clamp(least, most),
            hertz => Duration::from_secs(1) / hertz,
        });
        while !self.counters.ends.load(Ordering::Relaxed) {
            let at = beat.next();
            self.look_at_boots(at);
            let wall = beat.wait(at);
            self.step(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX));
            self.observer.turned();
        }
    }

    /// Samples applications that are booting, until that time. The sampling rate is high, because
    /// boots are short and rare.
    fn look_at_boots(&mut self, until: Instant) {
        if self.sampling.hertz == 0 {
            return;
        }
        while !self.counters.ends.load(Ordering::Relaxed) {
            for pool in &mut self.pools {
                pool.boots.know(&pool.handle.snapshot().booting);
            }
            let are_over = self.pools.iter().all(|pool| pool.boots.are_over());
            if are_over || Instant::now() + boots::EVERY >= until {
                return;
            }
            std::thread::park_timeout(boots::EVERY);
            for at in 0..self.pools.len() {
                let (pool, mut eyes) = self.eyes(at);
                pool.boots.look(&mut eyes);
            }
        }
    }

    fn step(&mut self, wall_ns: u64) {
        let mut known: usize = self.pools.iter().map(|pool| pool.workers.len()).sum();
        for at in 0..self.pools.len() {
            let pool = &mut self.pools[at];
            pool.processes.clear();
            // The lock is not held while processes are read, which can take long.
            pool.processes.extend_from_slice(&pool.handle.snapshot().processes);
            for of in 0..self.pools[at].processes.len() {
                let process = self.pools[at].processes[of];
                self.look(at, &process, wall_ns, &mut known);
            }
        }
        if self.swept.elapsed() >= SWEEP {
            self.sweep();
        }
    }

    /// Samples one worker. `known`: number of workers seen so far, in all pools.
    fn look(&mut self, at: usize, process: &Process, wall_ns: u64, known: &mut usize) {
        let key = (process.pid, process.since);
        let (pool, mut eyes) = self.eyes(at);
        let watched = pool.workers.entry(key).or_insert_with(|| {
            *known += 1;
            Watched::new(process.pid, eyes.sampling.keeps_files && *known <= KEPT_MAX)
        });
        if watched.is_other_generation(process) {
            eyes.observer.knows(at, process.life.get(), process.generation);
        }
        watched.look(process, wall_ns, &mut eyes);
    }

    /// Splits the state of a pool into the tools for sampling and the rest.
    fn eyes(&mut self, at: usize) -> (PoolParts<'_>, Eyes<'_>) {
        let Pool { handle, readers, workers, boots, .. } = &mut self.pools[at];
        let eyes = Eyes {
            pool: at,
            supervision: handle.supervision(),
            readers,
            counters: &self.counters,
            observer: &mut *self.observer,
            sampling: self.sampling,
        };
        (PoolParts { workers, boots }, eyes)
    }

    /// Removes the data of processes that have ended, and publishes the thread's CPU time.
    fn sweep(&mut self) {
        self.swept = Instant::now();
        for Pool { readers, workers, boots, processes, .. } in &mut self.pools {
            workers.retain(|key, _| processes.iter().any(|p| (p.pid, p.since) == *key));
            let is_there = |generation| processes.iter().any(|p| p.generation == generation);
            readers.retain(|generation| is_there(generation) || boots.are_of(generation));
        }
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let ns = used.tv_sec.saturating_mul(1_000_000_000).saturating_add(used.tv_nsec);
        self.counters.cpu_ns.store(u64::try_from(ns).unwrap_or(0), Ordering::Relaxed);
    }
}

/// Parts of a pool that are not borrowed by [`Eyes`].
struct PoolParts<'a> {
    workers: &'a mut HashMap<(i32, Instant), Watched>,
    boots: &'a mut Boots,
}
