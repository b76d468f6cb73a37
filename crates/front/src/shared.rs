//! What all tasks of the front's thread share. No lock: one thread.

use crate::connection::ConnectionState;
use crate::counters::Counters;
use crate::exchange::Exchanges;
use crate::link::{FrontEvent, SupervisorLink};
use crate::options::FrontOptions;
use crate::record::Recorder;
use crate::request_id::RequestIds;
use crate::route::{Disk, Site};
use crate::route_cache::RouteCache;
use crate::throttle::Throttle;
use samovar_ring::Lane;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// Header names of which it was said that they were dropped.
const DROPPED_NAMES_MAX: usize = 64;

/// What a reload changes as a whole: a request is answered by the setup that it met.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) options: FrontOptions,
    pub(crate) site: Site,
    pub(crate) routes: RouteCache,
}

impl Setup {
    pub(crate) fn new(options: FrontOptions, site: Site) -> Setup {
        let routes = RouteCache::new(Disk::new(site.root.clone(), &options.link_targets));
        Setup { options, site, routes }
    }
}

pub(crate) struct Shared {
    setup: RefCell<Rc<Setup>>,
    pub(crate) exchanges: RefCell<Exchanges>,
    pub(crate) connections: RefCell<Vec<Rc<ConnectionState>>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) recorder: Recorder,
    pub(crate) ids: RequestIds,
    /// Encoded request heads are made here.
    pub(crate) encoded: RefCell<Vec<u8>>,
    /// Set once: no new connections, none kept alive.
    pub(crate) draining: Cell<bool>,
    /// There is something to sweep again.
    pub(crate) sweeper: Notify,
    /// A connection has ended.
    pub(crate) room: Notify,
    /// Milliseconds of the last sweep, for connections' deadlines.
    pub(crate) now_ms: Cell<u64>,
    pub(crate) warnings: Warnings,
    link: SupervisorLink,
    script_lane_said_ms: Cell<u64>,
    dropped_names: RefCell<HashSet<Vec<u8>>>,
}

/// One throttle per kind of warning.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    pub(crate) accept: Throttle,
    pub(crate) connections: Throttle,
    pub(crate) queue: Throttle,
    pub(crate) answer: Throttle,
    pub(crate) died: Throttle,
    pub(crate) broken: Throttle,
    pub(crate) disk: Throttle,
    pub(crate) cut: Throttle,
}

impl Shared {
    pub(crate) fn new(
        setup: Setup,
        exchanges: Exchanges,
        recorder: Recorder,
        counters: Arc<Counters>,
        link: SupervisorLink,
    ) -> Shared {
        Shared {
            setup: RefCell::new(Rc::new(setup)),
            exchanges: RefCell::new(exchanges),
            connections: RefCell::default(),
            counters,
            recorder,
            ids: RequestIds::new(),
            encoded: RefCell::new(Vec::with_capacity(8 * 1024)),
            draining: Cell::new(false),
            sweeper: Notify::new(),
            room: Notify::new(),
            now_ms: Cell::new(samovar_ring::monotonic_ns() / 1_000_000),
            warnings: Warnings::default(),
            link,
            script_lane_said_ms: Cell::new(0),
            dropped_names: RefCell::default(),
        }
    }

    /// What holds now.
    pub(crate) fn setup(&self) -> Rc<Setup> {
        Rc::clone(&self.setup.borrow())
    }

    /// From now on.
    pub(crate) fn switch(&self, setup: Setup) {
        self.setup.replace(Rc::new(setup));
    }

    /// There is something to sweep again after a quiet time.
    pub(crate) fn resume_sweeping(&self) {
        self.now_ms.set(samovar_ring::monotonic_ns() / 1_000_000);
        self.sweeper.notify_one();
    }

    /// Tells the supervisor that script requests come, at most once per sweep.
    pub(crate) fn announce_lane(&self, lane: Lane) {
        if lane == Lane::Script
            && self.script_lane_said_ms.replace(self.now_ms.get()) != self.now_ms.get()
        {
            (self.link)(FrontEvent::LaneNeeded(lane));
        }
    }

    /// Has workers killed.
    pub(crate) fn send(&self, events: Vec<FrontEvent>) {
        for event in events {
            (self.link)(event);
        }
    }

    /// A worker wrote what no worker writes.
    pub(crate) fn report_broken(&self, what: &str, kills: Vec<FrontEvent>) {
        if let Some(suppressed) = self.warnings.broken.pass() {
            tracing::warn!(
                what,
                suppressed,
                "a worker wrote an impossible answer into the ring; it is replaced \
                 (hint: an extension that corrupts memory does this; see the worker's log)"
            );
        }
        self.send(kills);
    }

    /// A response header that cannot be sent.
    pub(crate) fn report_dropped(&self, name: &[u8]) {
        let mut names = self.dropped_names.borrow_mut();
        if names.len() < DROPPED_NAMES_MAX && names.insert(name[..name.len().min(128)].to_vec()) {
            let name = String::from_utf8_lossy(name);
            tracing::warn!(name = %name.escape_debug(), "dropped a response header that is no valid HTTP");
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("counters", &self.counters).finish_non_exhaustive()
    }
}
