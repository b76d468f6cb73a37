//! State shared by all tasks of one front thread. Needs no lock, because there is one thread. State
//! shared between the threads is in `common`.
//!
//! Does not know connections; they import this module. Imports `setup`, `exchange`, `log` and
//! `runtime`.

use crate::exchange::SharedExchanges;
use crate::exchange::budget::{BudgetCounts, Budgets};
use crate::exchange::shares::Shares;
use crate::log::Recorder;
use crate::log::request_id::RequestIds;
use crate::log::trace::Traces;
use crate::route::file_cache::KnownFiles;
use crate::runtime::clock::Clock;
use crate::runtime::compression_threads::Packing;
use crate::runtime::counters::Counters;
use crate::runtime::disk::DiskThreads;
use crate::runtime::peaks::Peaks;
use crate::runtime::random_sampling::Lots;
use crate::setup::Setup;
use crate::tls::Tls;
use crate::upstream::{Names, Upstreams};
use canary::Canary;
use common::Common;
use http::HeaderValue;
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

pub(crate) mod canary;
pub(crate) mod common;

/// Maximum number of header names for which a dropped header was logged.
const DROPPED_NAMES_MAX: usize = 64;

pub(crate) struct Shared {
    /// The other pools, if this is the default pool and there are several.
    others: OnceCell<Box<[Rc<Shared>]>>,
    /// Name of the pool, if there are several.
    pub(crate) pool: OnceCell<Rc<str>>,
    setup: RefCell<Rc<Setup>>,
    /// The canary, while there is one.
    canary: RefCell<Option<Rc<Canary>>>,
    /// TLS state; also holds the tokens that certificate authorities request.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) exchanges: SharedExchanges,
    pub(crate) counters: Arc<Counters>,
    /// State shared with the same pool's part of the other threads.
    pub(crate) common: Arc<Common>,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) disk: Rc<DiskThreads>,
    /// Files that web servers have named in FastCGI requests.
    pub(crate) known: KnownFiles,
    pub(crate) packing: Rc<Packing>,
    /// Connections to the php-fpm servers that run scripts of some locations.
    pub(crate) upstreams: Upstreams,
    pub(crate) ids: RequestIds,
    pub(crate) traces: Traces,
    /// Random selection of the requests whose call graph is recorded.
    pub(crate) lots: Lots,
    /// Scratch buffer for encoded request heads.
    pub(crate) encoded: RefCell<Vec<u8>>,
    /// Set once: no new connections are accepted, and none is kept alive.
    pub(crate) draining: Cell<bool>,
    /// Number of batches of jobs that run.
    pub(crate) batches: Cell<usize>,
    /// Notified when there is something to sweep again.
    pub(crate) sweeper: Rc<Notify>,
    pub(crate) clock: Rc<Clock>,
    /// Maximum numbers of waiting requests and busy workers, updated when they are queried.
    pub(crate) peaks: Peaks,
    /// Start time of this front.
    pub(crate) started: Timestamp,
    /// Numbers of requests and of connections per client.
    pub(crate) request_shares: Rc<Shares>,
    pub(crate) connection_shares: Rc<Shares>,
    /// Budgets for the bytes that are held for clients. All pools use the budgets of the default
    /// pool.
    pub(crate) budgets: Budgets,
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
        budgets: BudgetCounts,
    ) -> Shared {
        let clock = Rc::clone(exchanges.borrow().clock());
        common.upstreams.limit(&setup.settings.fastcgi);
        let budgets = Budgets::new(budgets, &setup.settings.limits);
        Shared {
            others: OnceCell::new(),
            pool: OnceCell::new(),
            setup: RefCell::new(Rc::new(setup)),
            canary: RefCell::default(),
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
            batches: Cell::new(0),
            sweeper: Rc::default(),
            clock,
            peaks: Peaks::default(),
            started: Timestamp::now(),
            request_shares: Rc::new(request_shares),
            connection_shares: Rc::new(connection_shares),
            budgets,
            dropped_names: RefCell::default(),
        }
    }

    /// Records that a page or file was served successfully.
    pub(crate) fn has_served(&self) {
        self.common.note_served();
    }

    /// Returns the setup for a request that arrives now.
    pub(crate) fn setup(&self) -> Rc<Setup> {
        Rc::clone(&self.setup.borrow())
    }

    /// Replaces the setup; requests that arrive later use the new one.
    pub(crate) fn switch(&self, setup: Setup) {
        self.common.upstreams.limit(&setup.settings.fastcgi);
        self.budgets.limit(&setup.settings.limits);
        self.setup.replace(Rc::new(setup));
    }

    /// Returns the canary that may serve a request that arrives now.
    pub(crate) fn canary(&self) -> Option<Rc<Canary>> {
        self.canary.borrow().clone()
    }

    /// Whether workers of this canary still take requests of their own.
    pub(crate) fn is_current(&self, canary: &Canary) -> bool {
        let current = self.canary.borrow();
        current.as_ref().is_some_and(|current| current.generation == canary.generation)
    }

    /// Begins, changes or ends the canary. At its end, requests that wait for it move to the
    /// workers in service.
    pub(crate) fn set_canary(&self, canary: Option<Canary>) {
        let has_ended = canary.is_none();
        let before = self.canary.replace(canary.map(Rc::new));
        if has_ended && before.is_some() {
            self.exchanges.borrow_mut().end_canary();
        }
    }

    /// Makes this the default pool of `others`. Must be called before the first request.
    pub(crate) fn lead(&self, others: Vec<Rc<Shared>>) {
        let _ = self.others.set(others.into_boxed_slice());
    }

    /// Shares the sweeper of `other`, so that both are swept together.
    pub(crate) fn swept_with(self, other: &Shared) -> Shared {
        Shared { sweeper: Rc::clone(&other.sweeper), ..self }
    }

    /// Sets the name of the pool.
    pub(crate) fn call(&self, name: &str) {
        let _ = self.pool.set(name.into());
        self.recorder.call(name);
    }

    /// Returns the pools other than the default one; `self` is the default pool.
    pub(crate) fn others(&self) -> &[Rc<Shared>] {
        self.others.get().map_or(&[], |others| others)
    }

    /// Returns the pool of a request, by its host (without port), its path and the script that a
    /// web server has named. `self` is the default pool, and `setup` is its setup.
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

    /// Returns the disk threads that look up the script with this file name: those of the pool
    /// whose root contains it. `self` is the default pool.
    pub(crate) fn disk_of(&self, filename: &[u8]) -> &DiskThreads {
        let file = Path::new(OsStr::from_bytes(filename));
        let is_its = |pool: &&Rc<Shared>| file.starts_with(&pool.setup.borrow().site.root);
        self.others().iter().find(is_its).map_or(&self.disk, |pool| &pool.disk)
    }

    /// Polls the rings now and then, for a runtime that never becomes idle.
    pub(crate) fn turn_if_due(&self) {
        self.exchanges.borrow_mut().turn_if_due();
        for other in self.others() {
            other.exchanges.borrow_mut().turn_if_due();
        }
    }

    /// Name of the pool for log lines; empty if there is only one pool.
    pub(crate) fn pool_name(&self) -> &str {
        self.pool.get().map_or("", |name| name)
    }

    /// Resumes sweeping after a quiet period.
    pub(crate) fn resume_sweeping(&self) {
        self.clock.rest(false);
        self.sweeper.notify_one();
    }

    /// Logs a response header that cannot be sent.
    pub(crate) fn report_dropped(&self, name: &[u8], id: &HeaderValue) {
        let mut names = self.dropped_names.borrow_mut();
        if names.len() < DROPPED_NAMES_MAX && names.insert(name[..name.len().min(128)].to_vec()) {
            let name = String::from_utf8_lossy(name);
            tracing::warn!(
                name = %name.escape_debug(),
                request_id = id.to_str().unwrap_or_default(),
                "dropped an invalid response header\nhint: names consist of ASCII letters, digits \
                 and hyphens, and values have no control characters"
            );
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("counters", &self.counters).finish_non_exhaustive()
    }
}
