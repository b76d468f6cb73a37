//! The front as a whole: its listeners and threads, from start to shutdown.
//!
//! `handle` is the interface for other threads, `thread` is one front thread, `sweep` has the
//! periodic tasks of a thread, and `drain` the shutdown. Imports all other folders.

mod drain;
pub(crate) mod handle;
pub(crate) mod sweep;
mod thread;

use crate::client::listeners::Bound;
use crate::client::thread_balancer::Mates;
use crate::exchange::budget::BudgetCounts;
use crate::exchange::shares::Shares;
use crate::log::AccessLog;
use crate::runtime::compression_threads::Packing;
use crate::runtime::development::Development;
use crate::runtime::disk::DiskThreads;
use crate::runtime::job_intake::IntakeCell;
use crate::runtime::link::{Link, SupervisorLink};
use crate::runtime::threads::Threads;
use crate::setup::{StartError, ValidSettings};
use crate::shared::common::Common;
use crate::tls::Tls;
use crate::upstream::Names;
use handle::{Control, FrontHandle};
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_insight::Intake;
use samovar_ring::{FrontEnd, Ring};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use thread::{Alarm, Entrance, Part, PoolPart};

/// A front that is ready to run.
pub struct Front {
    listeners: Vec<Bound>,
    tls: Option<Arc<Tls>>,
    intake: Option<Intake>,
    threads: (Packing, Threads),
    /// The default pool is first.
    pools: Vec<PoolEnd>,
    development: Option<Arc<Development>>,
    /// Receiver of the requests of an `[[intake]]`.
    job_intake: IntakeCell,
}

/// A pool before the front runs.
struct PoolEnd {
    name: String,
    ring: Ring,
    setup: ValidSettings,
    link: Link,
    control: Arc<Control>,
    disk: DiskThreads,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = self.pools.first().map(|pool| &pool.setup.settings);
        f.debug_struct("Front").field("settings", &settings).finish_non_exhaustive()
    }
}

impl Front {
    /// Creates a front that serves `settings.root` on `listeners` with the workers of `ring`, and
    /// reports each request to `intake`.
    ///
    /// The front starts when [`Self::run`] is called. It runs on the calling thread. If the ring is
    /// made for several fronts, it starts one more thread for each of the others. TLS listeners use
    /// `tls`.
    pub fn new(
        listeners: Vec<Bound>,
        tls: Option<Arc<Tls>>,
        ring: Ring,
        settings: Settings,
        link: SupervisorLink,
        intake: Option<Intake>,
    ) -> Result<(Front, FrontHandle), StartError> {
        let setup = ValidSettings::new(settings)?;
        let log = open_log(&setup.settings)?;
        let kept = listeners.iter().map(Bound::keep).collect::<io::Result<Vec<_>>>()?;
        let control = Arc::new(Control::new(&log, kept, ring.fronts()));
        let handle = FrontHandle(Arc::clone(&control));
        let threads = (Packing::start()?, Names::start()?);
        let name = DEFAULT_POOL.to_owned();
        let disk = DiskThreads::start()?;
        let pools = vec![PoolEnd { name, ring, setup, link: link.into(), control, disk }];
        let (development, job_intake) = (None, IntakeCell::default());
        Ok((Front { listeners, tls, intake, threads, pools, development, job_intake }, handle))
    }

    /// Adds a pool for the requests that `settings.pools` of the default pool assigns to it. Pools
    /// must be added in that order.
    ///
    /// The pool has its own `settings`, and its own workers in `ring`. The returned handle
    /// switches, probes and counts this pool only.
    ///
    /// # Panics
    /// If `ring` is made for a different number of fronts than the default pool's ring.
    pub fn add_pool(
        &mut self,
        name: &str,
        ring: Ring,
        settings: Settings,
        link: SupervisorLink,
    ) -> Result<FrontHandle, StartError> {
        let setup = ValidSettings::new(settings)?;
        let first = &self.pools[0];
        assert_eq!(ring.fronts(), first.ring.fronts(), "each thread has a part of each pool");
        let control = Arc::new(first.control.of_pool());
        let handle = FrontHandle(Arc::clone(&control));
        let (name, link) = (name.to_owned(), link.into());
        let disk = DiskThreads::start()?;
        self.pools.push(PoolEnd { name, ring, setup, link, control, disk });
        Ok(handle)
    }

    /// Returns the place of the receiver of `[[intake]]`, to be set before the first request.
    pub fn job_intake(&self) -> IntakeCell {
        self.job_intake.clone()
    }

    /// Serves in development mode.
    pub fn develop(&mut self, development: Arc<Development>) {
        self.development = Some(development);
    }

    /// Serves until the handle drains the front, then returns.
    pub fn run(self) -> io::Result<()> {
        let control = Arc::clone(&self.pools[0].control);
        let result = self.serve(&control);
        control.log.finish();
        result
    }

    fn serve(self, control: &Arc<Control>) -> io::Result<()> {
        let Front { listeners, tls, intake, threads, pools, development, job_intake } = self;
        let count = pools[0].ring.fronts();
        let alarm = (count > 1).then(Arc::<Alarm>::default);
        let mut intakes = vec![intake];
        for _ in 1..count {
            intakes.push(intakes[0].as_ref().map(Intake::beside));
        }
        let mut parts = Vec::with_capacity(count);
        for intake in intakes {
            let (packing, names) = &threads;
            let threads = (packing.clone(), names.clone());
            let (pools, tls, alarm) = (Vec::new(), tls.clone(), alarm.clone());
            parts.push(Part { pools, tls, intake, threads, alarm });
        }
        drop((threads, tls));
        for pool in pools {
            for (part, of_pool) in
                parts.iter_mut().zip(pool.share_out(development.as_ref(), &job_intake))
            {
                part.pools.push(of_pool);
            }
        }
        let Some(alarm) = alarm else {
            let first = parts.remove(0);
            return first.run(Entrance::Listeners(listeners, None));
        };
        let (mates, calls) = Mates::of(count);
        let mut parts = parts.into_iter();
        let first = parts.next().expect("one part per front thread");
        let mut others = Others { alarm: Arc::clone(&alarm), threads: Vec::new() };
        for (number, (part, calls)) in (2..).zip(parts.zip(calls)) {
            let entrance = Entrance::Calls(calls, Arc::clone(control));
            others.start(number, part, entrance)?;
        }
        let result = others.guard(|| first.run(Entrance::Listeners(listeners, Some(mates))));
        result.and(others.join())
    }
}

/// The front's threads other than the first.
struct Others {
    alarm: Arc<Alarm>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Others {
    /// Starts one thread. All threads are started before a request is served.
    fn start(&mut self, number: usize, part: Part, entrance: Entrance) -> io::Result<()> {
        let alarm = Arc::clone(&self.alarm);
        let thread = std::thread::Builder::new().name(format!("front-{number}"));
        let serve = move || raise_if_broken(&alarm, || part.run(entrance));
        let started = thread.spawn(serve).map_err(|error| {
            // The threads that already run have no connections to serve.
            self.alarm.raise();
            io::Error::new(
                error.kind(),
                format!(
                    "cannot start front thread {number}: {error}\n\
                     hint: lower `front_threads`, or raise the process limit"
                ),
            )
        })?;
        self.threads.push(started);
        Ok(())
    }

    fn guard(&self, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        raise_if_broken(&self.alarm, run)
    }

    /// Waits until all threads have drained.
    fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("front thread panicked")))
        };
        self.threads.into_iter().map(ended).fold(Ok(()), io::Result::and)
    }
}

/// Runs `run` and returns its result. A thread that ends with an error or a panic ends all others.
fn raise_if_broken(alarm: &Alarm, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let ended = catch_unwind(AssertUnwindSafe(run));
    let ended =
        ended.unwrap_or_else(|_| Err(io::Error::other("front thread panicked: see the log")));
    if ended.is_err() {
        alarm.raise();
    }
    ended
}

impl PoolEnd {
    /// Splits the pool into one part per thread.
    fn share_out(
        self,
        development: Option<&Arc<Development>>,
        intake: &IntakeCell,
    ) -> impl Iterator<Item = PoolPart> + use<> {
        let PoolEnd { name, ring, setup, link, control, disk } = self;
        let controls: Vec<_> = control.of_threads().collect();
        let counters = controls.iter().map(|control| Arc::clone(&control.counters)).collect();
        let upstreams = Arc::clone(&control.upstreams);
        let of_server = (development.cloned(), intake.clone());
        let recordings = Arc::clone(&control.recordings);
        let common = Arc::new(Common::of(counters, upstreams, of_server, recordings));
        let shares = Shares::of(controls.len()).into_iter().zip(Shares::of(controls.len()));
        let budgets = BudgetCounts::of(controls.len());
        let ends = FrontEnd::all(&ring).into_iter().zip(controls).zip(shares);
        ends.map(move |((front, control), (requests, connections))| PoolPart {
            name: name.clone(),
            front,
            setup: setup.clone(),
            link: link.clone(),
            control,
            common: (Arc::clone(&common), requests, connections),
            budgets: budgets.clone(),
            disk: disk.beside(),
        })
    }
}

fn open_log(settings: &Settings) -> Result<AccessLog, StartError> {
    let to = &settings.access_log;
    AccessLog::start(to).map_err(|cause| match to.file().or(to.socket()) {
        Some(path) => StartError::Log { path: path.to_owned(), cause },
        None => StartError::Io(cause),
    })
}
