//! What all tasks of one of the front's threads share. No lock: one thread. What its threads have in common is in `common`.
//!
//! Knows no connection: these know it. Imports `setup`, `exchange`, `log` and `runtime`.

use crate::exchange::SharedExchanges;
use crate::exchange::shares::Shares;
use crate::log::Recorder;
use crate::log::request_id::RequestIds;
use crate::log::trace::Traces;
use crate::route::known::KnownFiles;
use crate::runtime::clock::Clock;
use crate::runtime::counters::Counters;
use crate::runtime::disk::DiskThreads;
use crate::runtime::lots::Lots;
use crate::runtime::packing::Packing;
use crate::runtime::peaks::Peaks;
use crate::setup::Setup;
use crate::tls::Tls;
use crate::upstream::{Names, Upstreams};
use common::Common;
use jiff::Timestamp;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

pub(crate) mod common;

/// Header names of which it was said that they were dropped.
const DROPPED_NAMES_MAX: usize = 64;

pub(crate) struct Shared {
    /// The other pools, if this is the default one and there are any.
    others: OnceCell<Box<[Rc<Shared>]>>,
    /// What the pool is called, where there are several.
    pub(crate) pool: OnceCell<Rc<str>>,
    setup: RefCell<Rc<Setup>>,
    /// Knows what authorities look for.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) exchanges: SharedExchanges,
    pub(crate) counters: Arc<Counters>,
    /// With the pool's part of the other threads.
    pub(crate) common: Arc<Common>,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) disk: Rc<DiskThreads>,
    /// What web servers name.
    pub(crate) known: KnownFiles,
    pub(crate) packing: Rc<Packing>,
    /// Connections to those who run scripts of some locations.
    pub(crate) upstreams: Upstreams,
    pub(crate) ids: RequestIds,
    pub(crate) traces: Traces,
    /// Whose call graph is taken down.
    pub(crate) lots: Lots,
    /// Encoded request heads are made here.
    pub(crate) encoded: RefCell<Vec<u8>>,
    /// Set once: no new connections, none kept alive.
    pub(crate) draining: Cell<bool>,
    /// There is something to sweep again.
    pub(crate) sweeper: Rc<Notify>,
    pub(crate) clock: Rc<Clock>,
    /// The most that waited and ran, where somebody asks for it.
    pub(crate) peaks: Peaks,
    /// When this front began.
    pub(crate) started: Timestamp,
    /// Places that clients have, and their connections.
    pub(crate) request_shares: Rc<Shares>,
    pub(crate) connection_shares: Rc<Shares>,
    dropped_names: RefCell<HashSet<Vec<u8>>>,
}

impl Shared {
    pub(crate) fn new(
        (setup, tls): (Setup, Option<Arc<Tls>>),
        exchanges: SharedExchanges,
        recorder: Recorder,
        (disk, packing, names): (Rc<DiskThreads>, Rc<Packing>, Rc<Names>),
        counters: Arc<Counters>,
        (common, request_shares, connection_shares): (Arc<Common>, Shares, Shares),
    ) -> Shared {
        let clock = Rc::clone(exchanges.borrow().clock());
        common.upstreams.limit(&setup.settings.fastcgi);
        Shared {
            others: OnceCell::new(),
            pool: OnceCell::new(),
            setup: RefCell::new(Rc::new(setup)),
            tls,
            exchanges,
            upstreams: Upstreams::new(Arc::clone(&counters), Arc::clone(&common.upstreams), names),
            counters,
            common,
            recorder: Rc::new(recorder),
            disk,
            known: KnownFiles::default(),
            packing,
            ids: RequestIds::new(),
            traces: Traces::default(),
            lots: Lots::default(),
            encoded: RefCell::new(Vec::with_capacity(8 * 1024)),
            draining: Cell::new(false),
            sweeper: Rc::default(),
            clock,
            peaks: Peaks::default(),
            started: Timestamp::now(),
            request_shares: Rc::new(request_shares),
            connection_shares: Rc::new(connection_shares),
            dropped_names: RefCell::default(),
        }
    }

    /// A page or file was answered successfully.
    pub(crate) fn has_served(&self) {
        self.common.note_served();
    }

    /// The setup by which a request that comes now is answered.
    pub(crate) fn setup(&self) -> Rc<Setup> {
        Rc::clone(&self.setup.borrow())
    }

    /// Answers the requests that come after this by another setup.
    pub(crate) fn switch(&self, setup: Setup) {
        self.common.upstreams.limit(&setup.settings.fastcgi);
        self.setup.replace(Rc::new(setup));
    }

    /// This is the default pool, and these are the others; before anything is served.
    pub(crate) fn lead(&self, others: Vec<Rc<Shared>>) {
        let _ = self.others.set(others.into_boxed_slice());
    }

    /// One that is swept when that one is.
    pub(crate) fn swept_with(self, other: &Shared) -> Shared {
        Shared { sweeper: Rc::clone(&other.sweeper), ..self }
    }

    /// It is called so among others.
    pub(crate) fn call(&self, name: &str) {
        let _ = self.pool.set(name.into());
        self.recorder.call(name);
    }

    /// The pools beside the default one, which this is.
    pub(crate) fn others(&self) -> &[Rc<Shared>] {
        self.others.get().map_or(&[], |others| others)
    }

    /// The pool of a request by its host (without port), its path and the script that a web server has named. `self` is the default
    /// one, and `setup` its own.
    pub(crate) fn pool_of<'a>(
        self: &'a Rc<Self>,
        setup: &Setup,
        host: &[u8],
        (path, script): (&[u8], Option<&[u8]>),
    ) -> &'a Rc<Shared> {
        let at = match script {
            None => setup.pools.pick(host, path),
            Some(script) => setup.pools.pick_told(host, path, script),
        };
        at.checked_sub(1).and_then(|at| self.others().get(at)).unwrap_or(self)
    }

    /// The threads that look for the script of this file name: those of the pool whose root it lies below. `self` is the default pool.
    pub(crate) fn disk_of(&self, filename: &[u8]) -> &DiskThreads {
        let file = Path::new(OsStr::from_bytes(filename));
        let is_its = |pool: &&Rc<Shared>| file.starts_with(&pool.setup.borrow().site.root);
        self.others().iter().find(is_its).map_or(&self.disk, |pool| &pool.disk)
    }

    /// Looks at the rings now and then, where the runtime never comes to rest.
    pub(crate) fn turn_if_due(&self) {
        self.exchanges.borrow_mut().turn_if_due();
        for other in self.others() {
            other.exchanges.borrow_mut().turn_if_due();
        }
    }

    /// What the pool is called, for a log; empty where there is one.
    pub(crate) fn pool_name(&self) -> &str {
        self.pool.get().map_or("", |name| name)
    }

    /// There is something to sweep again after a quiet time.
    pub(crate) fn resume_sweeping(&self) {
        self.clock.rest(false);
        self.sweeper.notify_one();
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
