//! One front thread: its runtime and its part of each pool, from the first request to the last.
//!
//! The first thread also has the listeners and does the work common to all threads (probes, renewal
//! of certificates). The other threads serve the connections that the first one hands over
//! (`client/thread_balancer.rs`), until no more will arrive. If a task that all requests need
//! panics in one thread, all threads end: [`Alarm`].

use super::handle::Control;
use super::{drain, sweep};
use crate::client::accept::{self, Servers, Terms};
use crate::client::listeners::{Bound, BoundSocket};
use crate::client::registry::Connections;
use crate::client::thread_balancer::{self, Calls, Mates};
use crate::exchange::budget::BudgetCounts;
use crate::exchange::shares::Shares;
use crate::exchange::{Exchanges, SharedExchanges};
use crate::log::Recorder;
use crate::request;
use crate::runtime::clock::Clock;
use crate::runtime::compression_threads::Packing;
use crate::runtime::disk::DiskThreads;
use crate::runtime::link::Link;
use crate::runtime::panic_guard::Essentials;
use crate::runtime::scheduling::Precedence;
use crate::runtime::threads::Threads;
use crate::setup::ValidSettings;
use crate::shared::Shared;
use crate::shared::common::Common;
use crate::tls::Tls;
use crate::upstream::Names;
use samovar_config::{DEFAULT_POOL, Protocol};
use samovar_insight::Intake;
use samovar_ring::FrontEnd;
use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Resources that a thread serves with.
pub(super) struct Part {
    /// The default pool is first.
    pub(super) pools: Vec<PoolPart>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) intake: Option<Intake>,
    pub(super) threads: (Packing, Threads),
    /// Present if there are several threads.
    pub(super) alarm: Option<Arc<Alarm>>,
}

/// A thread's part of a pool.
pub(super) struct PoolPart {
    pub(super) name: String,
    pub(super) front: FrontEnd,
    pub(super) setup: ValidSettings,
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    /// State shared with the pool's parts in other threads, then the per-client counts of requests
    /// and of connections.
    pub(super) common: (Arc<Common>, Shares, Shares),
    pub(super) budgets: BudgetCounts,
    /// Disk threads of the pool, shared with its parts in other threads.
    pub(super) disk: DiskThreads,
}

/// The threads for compression and for name resolution.
type Helpers = (Rc<Packing>, Rc<Names>);

/// Source of a thread's connections.
pub(super) enum Entrance {
    /// The thread accepts connections, and serves some of them itself.
    Listeners(Vec<Bound>, Option<Mates>),
    /// Connections are handed over by the accepting thread, whose control this is.
    Calls(Calls, Arc<Control>),
}

/// Signals that a part that all threads need has failed.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    is_raised: AtomicBool,
    raised: Notify,
}

impl Alarm {
    pub(super) fn raise(&self) {
        self.is_raised.store(true, Ordering::SeqCst);
        self.raised.notify_waiters();
    }

    async fn wait(&self) {
        let raised = self.raised.notified();
        tokio::pin!(raised);
        // Register before the check, so that no notification is missed.
        raised.as_mut().enable();
        if !self.is_raised.load(Ordering::SeqCst) {
            raised.await;
        }
    }
}

/// Waits for the alarm, or forever if there is none.
async fn wait_for(alarm: Option<&Alarm>) {
    match alarm {
        Some(alarm) => alarm.wait().await,
        None => pending().await,
    }
}

thread_local! {
    /// State for the runtime's park hook. The hook itself cannot hold values that belong to a
    /// thread.
    static PARKED: RefCell<Parked> =
        const { RefCell::new(Parked { pools: Vec::new(), precedence: None }) };
}

/// Work to do whenever the thread has nothing left to run.
#[derive(Default)]
struct Parked {
    pools: Vec<SharedExchanges>,
    precedence: Option<Precedence>,
}

impl Parked {
    fn before_park(&mut self) {
        let (mut of_all, mut competing) = (0, None);
        for pool in &self.pools {
            let mut exchanges = pool.borrow_mut();
            exchanges.before_park();
            of_all += exchanges.in_use();
            if !exchanges.is_modest() {
                *competing.get_or_insert(0) += exchanges.in_use();
            }
        }
        if let Some(precedence) = &mut self.precedence {
            // If all pools are modest, no pool's responses take precedence: the requests of all
            // pools count.
            precedence.look(competing.unwrap_or(of_all));
        }
    }

    /// Reads the clock once for all pools.
    fn after_unpark(&self) {
        if let Some((first, others)) = self.pools.split_first() {
            first.borrow_mut().after_unpark();
            for one in others {
                one.borrow_mut().stay_awake();
            }
        }
    }
}

impl Part {
    /// Serves until the connections of `entrance` have ended.
    pub(super) fn run(self, entrance: Entrance) -> io::Result<()> {
        let Part { pools, tls, intake, threads, alarm } = self;
        let runtime = runtime()?;
        let mut pools = pools.into_iter();
        let Some(first) = pools.next() else { return Ok(()) };
        let control = Arc::clone(&first.control);
        let (packing, names) = threads;
        let threads = (Rc::new(packing), Rc::new(Names::new(names)));
        let fronts = first.front.ring().fronts();
        let counters = Arc::clone(&control.counters);
        let recorder = Recorder::new(control.log.clone(), &first.setup.settings, counters, intake);
        let mut controls = vec![Arc::clone(&control)];
        let shared = Rc::new(first.share(&Rc::new(Clock::new()), recorder, (tls.clone(), threads)));
        let mut parked = vec![Rc::clone(&shared.exchanges)];
        let mut others = Vec::new();
        for part in pools {
            controls.push(Arc::clone(&part.control));
            let name = part.name.clone();
            let pool = Rc::new(part.beside(&shared));
            pool.call(&name);
            parked.push(Rc::clone(&pool.exchanges));
            others.push(pool);
        }
        if !others.is_empty() {
            shared.call(DEFAULT_POOL);
            shared.lead(others);
        }
        PARKED.set(Parked { pools: parked, precedence: Some(Precedence::of_this_thread(fronts)) });
        let result = runtime.block_on(serve(shared, (entrance, tls), &controls, alarm.as_deref()));
        control.is_ready.store(false, Ordering::Release);
        PARKED.take();
        // Ends all remaining tasks. They unregister from the shared state, to which they hold their
        // own references.
        runtime.shutdown_timeout(Duration::ZERO);
        result
    }
}

impl PoolPart {
    fn share(
        self,
        clock: &Rc<Clock>,
        recorder: Recorder,
        (tls, (packing, names)): (Option<Arc<Tls>>, Helpers),
    ) -> Shared {
        let mut exchanges = Exchanges::by(clock, self.front, self.link);
        exchanges.heed(&self.setup.settings);
        let exchanges = Rc::new(RefCell::new(exchanges));
        let setup = (self.setup.into_setup(), tls);
        let counters = Arc::clone(&self.control.counters);
        let threads = (Rc::new(self.disk), packing, names);
        Shared::new(setup, exchanges, recorder, threads, counters, self.common, self.budgets)
    }

    /// Creates another pool's part next to the default pool's.
    fn beside(self, first: &Shared) -> Shared {
        let recorder = first.recorder.beside(Arc::clone(&self.control.counters));
        let names = first.upstreams.names();
        let threads = (Rc::clone(&first.packing), names);
        let clock = Rc::clone(&first.clock);
        self.share(&clock, recorder, (first.tls.clone(), threads)).swept_with(first)
    }
}

/// A runtime for local tasks on one thread. Tasks that the park hook wakes run before the runtime
/// sleeps, without a system call.
fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(|| PARKED.with_borrow_mut(Parked::before_park))
        .on_thread_unpark(|| PARKED.with_borrow(Parked::after_unpark))
        .build_local(LocalOptions::default())
}

async fn serve(
    shared: Rc<Shared>,
    (entrance, tls): (Entrance, Option<Arc<Tls>>),
    controls: &[Arc<Control>],
    alarm: Option<&Alarm>,
) -> io::Result<()> {
    let connections = Rc::new(Connections::default());
    let essentials = Rc::new(Essentials::default());
    let pools: Vec<_> = std::iter::once(&shared).chain(shared.others()).cloned().collect();
    for pool in pools {
        let notifier = pool.exchanges.borrow().register_notifier()?;
        essentials.spawn(sweep::handle_wakeups(Rc::clone(&pool), notifier));
        essentials.spawn(sweep::guard_withheld(Rc::clone(&pool)));
        essentials.spawn(sweep::look_again(pool));
    }
    essentials.spawn(sweep::sweep(Rc::clone(&shared), Rc::clone(&connections)));
    let broken = async {
        tokio::select! {
            () = essentials.broken() => "a required task of the front panicked: see the log",
            () = wait_for(alarm) => "another front thread ended: see the log",
        }
    };
    let living = async {
        match entrance {
            Entrance::Listeners(listeners, mates) => {
                let servers =
                    Servers { connections: Rc::clone(&connections), mates: mates.map(Rc::new) };
                accept_and_serve(&shared, (listeners, tls), servers, &essentials, controls).await
            }
            Entrance::Calls(calls, first) => {
                let serving = thread_balancer::join(
                    Rc::clone(&shared),
                    Rc::clone(&connections),
                    calls,
                    request::serve,
                );
                let serving = essentials.spawn(serving);
                if let [control, ..] = controls {
                    control.is_ready.store(true, Ordering::Release);
                }
                serve_with_others(&shared, &connections, controls, (serving, &first)).await;
                Ok(())
            }
        }
    };
    tokio::select! {
        ended = living => ended,
        why = broken => Err(io::Error::other(why)),
    }
}

/// Main task of the accepting thread, which is the only thread of most servers.
async fn accept_and_serve(
    shared: &Rc<Shared>,
    (listeners, tls): (Vec<Bound>, Option<Arc<Tls>>),
    servers: Servers,
    essentials: &Rc<Essentials>,
    controls: &[Arc<Control>],
) -> io::Result<()> {
    let [control, ..] = controls else { return Ok(()) };
    while control.is_held() && !control.drains.load(Ordering::Acquire) {
        obey(shared, controls);
        control.called.notified().await;
    }
    let mut accepting = Vec::new();
    for Bound { socket, protocol, role, has_proxy_header, .. } in listeners {
        let (shared, servers) = (Rc::clone(shared), servers.clone());
        let tls = match protocol {
            Protocol::Http | Protocol::FastCgi => None,
            Protocol::Https => Some(tls.clone().ok_or_else(no_certificate)?),
        };
        let terms =
            Terms { role, has_proxy_header, tls, is_fastcgi: protocol == Protocol::FastCgi };
        let task = match socket {
            BoundSocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let accept = accept::accept(shared, servers, listener, terms, request::serve);
                essentials.spawn(accept)
            }
            BoundSocket::Unix(listener, file) => {
                listener.set_nonblocking(true)?;
                let listener = (tokio::net::UnixListener::from_std(listener)?, file);
                let accept = accept::accept(shared, servers, listener, terms, request::serve);
                essentials.spawn(accept)
            }
        };
        accepting.push(task);
    }
    if let Some(tls) = tls {
        essentials.spawn(sweep::renew(Rc::clone(shared), tls));
    }
    control.is_ready.store(true, Ordering::Release);
    live(shared, servers, controls, accepting).await;
    Ok(())
}

/// Applies requested changes to all pools. A change for several pools is applied to all of them in
/// one call, or to none.
fn obey(shared: &Rc<Shared>, controls: &[Arc<Control>]) {
    let _whole = controls.first().map(|control| control.together());
    let pools = std::iter::once(shared).chain(shared.others());
    pools.zip(controls).for_each(|(pool, control)| control.obey(pool));
}

/// Lets the serving workers handle all requests. A front that drains applies no further changes,
/// and the supervisor ends the canaries of a server that stops.
fn end_canaries(shared: &Rc<Shared>) {
    let pools = std::iter::once(shared).chain(shared.others());
    pools.for_each(|pool| pool.set_canary(None));
}

fn no_certificate() -> io::Error {
    io::Error::other("a listener needs TLS, and there is no certificate")
}

/// Serves from the first request to the last.
async fn live(
    shared: &Rc<Shared>,
    servers: Servers,
    controls: &[Arc<Control>],
    accepting: Vec<JoinHandle<()>>,
) {
    let [control, ..] = controls else { return };
    while !control.drains.load(Ordering::Acquire) {
        obey(shared, controls);
        control.called.notified().await;
    }
    control.is_ready.store(false, Ordering::Release);
    end_canaries(shared);
    control.forget_listeners();
    for task in &accepting {
        task.abort();
    }
    for task in accepting {
        // Waits until the listener is closed. The result is always "aborted".
        let _ = task.await;
    }
    control.has_closed();
    let Servers { connections, mates } = servers;
    // The other threads learn that no more connections follow; they drain as this one does.
    drop(mates);
    let is_succeeded = control.is_succeeded.load(Ordering::Acquire);
    drain::finish(shared, &connections, is_succeeded).await;
}

/// Main task of a thread that gets its connections from the accepting thread.
async fn serve_with_others(
    shared: &Rc<Shared>,
    connections: &Connections,
    controls: &[Arc<Control>],
    (mut serving, first): (JoinHandle<()>, &Control),
) {
    let [control, ..] = controls else { return };
    loop {
        obey(shared, controls);
        tokio::select! {
            () = control.called.notified() => {}
            _ = &mut serving => break,
        }
    }
    control.is_ready.store(false, Ordering::Release);
    end_canaries(shared);
    drain::finish(shared, connections, first.is_succeeded.load(Ordering::Acquire)).await;
}
