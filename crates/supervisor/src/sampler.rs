//! What busy workers do, looked at many times a second, on a thread of its own.
//!
//! It reads: the ring's words, PHP's stacks by crates/spy, and `/proc`. Nothing is asked of a worker, and nobody waits for
//! this thread, which may hang with a process that hangs in the kernel. What is seen goes to an [`Observer`].

mod beat;
mod boots;
mod peers;
mod readers;
mod worker;

use crate::handle::{Handle, Process};
use beat::Beat;
use boots::Boots;
use readers::Readers;
use samovar_ring::{Model, RequestLine, Run};
use samovar_spy::{Account, Activity, Stack};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::{Eyes, Watched};

/// Between two looks at how long requests have taken, where no stacks are sampled.
const SLOW_LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How long the server's end waits for the thread.
const FINISH_LIMIT: Duration = Duration::from_secs(1);
const FINISH_LOOK: Duration = Duration::from_millis(2);
/// Most workers whose files below `/proc` stay open; of the others they are opened for each look.
const KEPT_MAX: usize = 64;
/// Descriptors that are open for as long as files of that many workers are kept, at most: one is the process itself.
#[must_use]
pub fn sampled_descriptors(workers: usize) -> usize {
    workers.min(KEPT_MAX) * (Account::FILES + 1)
}

/// Between two cleanings of what is known of processes.
const SWEEP: Duration = Duration::from_secs(1);

/// What is looked for, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Looks at each busy worker, per second; 0: none.
    pub hertz: u32,
    /// When a request counts as slow, from its queueing on; `None`: no matter.
    pub slow: Option<Duration>,
    /// Whether files of workers may stay open from look to look: there are descriptors for them.
    pub keeps_files: bool,
}

/// What a busy worker was seen at.
#[derive(Clone, Copy, Debug)]
pub enum Scene<'a> {
    /// PHP code, and whether the worker runs or waits.
    Php(&'a Stack, &'a Activity),
    /// It has a request, and no PHP code runs.
    NoCode,
    /// It returns to its image.
    Rollback,
    /// It tidies up behind a request.
    Reset,
}

/// One look at a busy worker.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Which of the pools it is of: its place among those that the sampler was started with.
    pub pool: usize,
    /// Whose fork it is.
    pub generation: u64,
    /// The model that its application chose.
    pub model: Model,
    /// It boots the application.
    pub is_boot: bool,
    /// The request that it runs.
    pub request: Option<(Run, &'a RequestLine)>,
    /// What it was seen at.
    pub scene: Scene<'a>,
    /// The time that the look stands for.
    pub wall_ns: u64,
    /// CPU time that it has used since it was last seen to run.
    pub cpu_ns: u64,
}

/// A request that has become slow, while it still ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowScene {
    /// `it is in flock of descriptor 7: /srv/lock`.
    pub blocked: String,
    /// PHP's calls, the innermost first; or a line that says why they are not known.
    pub calls: Vec<String>,
}

/// Whoever is told. Called on the sampler's thread; must not wait for a disk.
pub trait Observer: Send {
    /// A worker of that pool, in that life, is of that generation.
    fn knows(&mut self, pool: usize, life: u32, generation: u64);
    /// A busy worker was looked at.
    fn saw(&mut self, look: &Look<'_>);
    /// A request of that pool has become slow.
    fn is_slow(&mut self, pool: usize, request: &RequestLine, scene: SlowScene);
    /// All workers were looked at.
    fn turned(&mut self);
}

/// How the sampler fares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplerReport {
    /// Looks per second.
    pub hertz: u32,
    /// Looks at busy workers so far.
    pub samples: u64,
    /// Of them, those whose stack changed too fast to be read.
    pub torn: u64,
    /// CPU time that the thread has used.
    pub cpu: Duration,
    /// Why stacks cannot be read now; empty if they can.
    pub trouble: String,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    samples: AtomicU64,
    torn: AtomicU64,
    cpu_ns: AtomicU64,
    trouble: Mutex<String>,
    ends: AtomicBool,
}

impl Counters {
    fn add(&self, torn: bool) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.torn.fetch_add(u64::from(torn), Ordering::Relaxed);
    }

    /// Notes why stacks cannot be read, or that they can; true: that is news.
    fn note(&self, trouble: &str) -> bool {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *known != trouble;
        if is_news {
            trouble.clone_into(&mut known);
        }
        is_news
    }
}

/// The thread's other end.
#[derive(Debug)]
pub struct Sampler {
    hertz: u32,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sampler {
    /// Starts the thread, which looks at the workers of all of these pools; `None`: there is nothing to look for.
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

    /// How it fares.
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

    /// Ends the thread, unless it hangs with a process that does.
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
            // A panic of the thread has been told by the panic hook.
            let _ = thread.join();
        }
    }
}

/// What the thread knows from one look to the next.
struct Round {
    pools: Vec<Pool>,
    sampling: Sampling,
    observer: Box<dyn Observer>,
    counters: Arc<Counters>,
    swept: Instant,
}

/// The same of one pool, whose generations and lives are its own.
struct Pool {
    handle: Handle,
    readers: Readers,
    /// By process: a number may become another's, who has begun at another time.
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
            self.turn(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX));
            self.observer.turned();
        }
    }

    /// What applications do that boot at the moment, until then: many looks, because a boot is short, and rare.
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

    fn turn(&mut self, wall_ns: u64) {
        let mut known: usize = self.pools.iter().map(|pool| pool.workers.len()).sum();
        for at in 0..self.pools.len() {
            let pool = &mut self.pools[at];
            pool.processes.clear();
            // Not held while processes are read: that may take its time.
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

    /// `known`: so many workers were seen before, of all pools.
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

    /// What that pool's workers are looked at with, and the rest of it.
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

    /// Forgets who has gone, and says what the thread has cost.
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

/// What of a pool is not lent to [`Eyes`].
struct PoolParts<'a> {
    workers: &'a mut HashMap<(i32, Instant), Watched>,
    boots: &'a mut Boots,
}
