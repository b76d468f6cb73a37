//! The front as a whole: its listeners, its threads, from the start to the end.
//!
//! `handle` is what other threads hold of it, `thread` one of its own, `sweep` what runs beside all requests there, `drain` its
//! end. Imports everything below it.

mod drain;
pub(crate) mod handle;
pub(crate) mod sweep;
mod thread;

use crate::client::listeners::Bound;
use crate::client::mates::Mates;
use crate::exchange::shares::Shares;
use crate::log::AccessLog;
use crate::runtime::disk::DiskThreads;
use crate::runtime::link::{Link, SupervisorLink};
use crate::runtime::packing::Packing;
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
    /// The default one first.
    pools: Vec<PoolEnd>,
}

/// A pool, before the front runs.
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
    /// A front that serves `settings.root` on `listeners` by the workers of `ring`, and tells `intake` of each request. It runs when
    /// [`Self::run`] is called: on the thread that calls it, and, if the ring is for several fronts, on one more for each of
    /// the others. Listeners that speak TLS do so by `tls`.
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
        Ok((Front { listeners, tls, intake, threads, pools }, handle))
    }

    /// Adds a pool for the requests that `settings.pools` of the default one say, in their order: it is answered by `settings`
    /// and by the workers of `ring`, which is for as many fronts. What the handle switches, probes and counts is this pool's.
    ///
    /// # Panics
    /// If it is for another number of fronts.
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

    /// Serves until the handle drains it; then returns.
    pub fn run(self) -> io::Result<()> {
        let control = Arc::clone(&self.pools[0].control);
        let result = self.serve(&control);
        control.log.finish();
        result
    }

    fn serve(self, control: &Arc<Control>) -> io::Result<()> {
        let Front { listeners, tls, intake, threads, pools } = self;
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
            for (part, of_pool) in parts.iter_mut().zip(pool.share_out()) {
                part.pools.push(of_pool);
            }
        }
        let Some(alarm) = alarm else {
            let first = parts.remove(0);
            return first.run(Entrance::Listeners(listeners, None));
        };
        let (mates, calls) = Mates::of(count);
        let mut parts = parts.into_iter();
        let first = parts.next().expect("there are as many as fronts");
        let mut others = Others { alarm: Arc::clone(&alarm), threads: Vec::new() };
        for (number, (part, calls)) in (2..).zip(parts.zip(calls)) {
            let entrance = Entrance::Calls(calls, Arc::clone(control));
            others.start(number, part, entrance)?;
        }
        let result = others.guard(|| first.run(Entrance::Listeners(listeners, Some(mates))));
        result.and(others.join())
    }
}

/// The threads beside the first.
struct Others {
    alarm: Arc<Alarm>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Others {
    /// All are made before a request is served.
    fn start(&mut self, number: usize, part: Part, entrance: Entrance) -> io::Result<()> {
        let alarm = Arc::clone(&self.alarm);
        let thread = std::thread::Builder::new().name(format!("front-{number}"));
        let serve = move || raise_if_broken(&alarm, || part.run(entrance));
        let started = thread.spawn(serve).map_err(|error| {
            // Those that run have nobody to serve.
            self.alarm.raise();
            io::Error::new(
                error.kind(),
                format!("cannot start thread {number} of the front: {error}\nhint: set fewer `front_threads`, or raise the limit of processes"),
            )
        })?;
        self.threads.push(started);
        Ok(())
    }

    fn guard(&self, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        raise_if_broken(&self.alarm, run)
    }

    /// Waits until they have drained.
    fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread of the front panicked")))
        };
        self.threads.into_iter().map(ended).fold(Ok(()), io::Result::and)
    }
}

/// What `run` comes to. Whoever ends because something broke takes all others along.
fn raise_if_broken(alarm: &Alarm, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let ended = catch_unwind(AssertUnwindSafe(run));
    let ended = ended.unwrap_or_else(|_| {
        Err(io::Error::other("a thread of the front panicked: the log says where"))
    });
    if ended.is_err() {
        alarm.raise();
    }
    ended
}

impl PoolEnd {
    /// A part for each thread.
    fn share_out(self) -> impl Iterator<Item = PoolPart> {
        let PoolEnd { name, ring, setup, link, control, disk } = self;
        let controls: Vec<_> = control.of_threads().collect();
        let counters = controls.iter().map(|control| Arc::clone(&control.counters)).collect();
        let common = Arc::new(Common::of(counters, Arc::clone(&control.upstreams)));
        let shares = Shares::of(controls.len()).into_iter().zip(Shares::of(controls.len()));
        let ends = FrontEnd::all(&ring).into_iter().zip(controls).zip(shares);
        ends.map(move |((front, control), (requests, connections))| PoolPart {
            name: name.clone(),
            front,
            setup: setup.clone(),
            link: link.clone(),
            control,
            common: (Arc::clone(&common), requests, connections),
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
