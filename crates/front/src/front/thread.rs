//! A thread of the front: its runtime, its part of each pool, from the first request to the last.
//!
//! The first one has the listeners besides, and carries out what is asked of all (probes, certificates that are renewed). The
//! others serve what it hands over (`client/mates.rs`) until nothing more will come. A part that all requests need and that
//! breaks in one thread ends them all: [`Alarm`].

use super::handle::Control;
use super::{drain, sweep};
use crate::client::accept::{self, Servers, Terms};
use crate::client::listeners::{Bound, BoundSocket};
use crate::client::mates::{self, Calls, Mates};
use crate::client::registry::Connections;
use crate::exchange::shares::Shares;
use crate::exchange::{Exchanges, SharedExchanges};
use crate::log::Recorder;
use crate::request;
use crate::runtime::clock::Clock;
use crate::runtime::disk::DiskThreads;
use crate::runtime::link::Link;
use crate::runtime::mishap::Essentials;
use crate::runtime::packing::Packing;
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

/// What a thread serves with.
pub(super) struct Part {
    /// The default one first.
    pub(super) pools: Vec<PoolPart>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) intake: Option<Intake>,
    pub(super) threads: (Packing, Threads),
    /// Where there are several threads.
    pub(super) alarm: Option<Arc<Alarm>>,
}

/// A thread's part of a pool.
pub(super) struct PoolPart {
    pub(super) name: String,
    pub(super) front: FrontEnd,
    pub(super) setup: ValidSettings,
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    /// In common with its parts in other threads; the places of clients' requests, and of their connections.
    pub(super) common: (Arc<Common>, Shares, Shares),
    /// Those of the pool, in common with its parts in other threads.
    pub(super) disk: DiskThreads,
}

/// The threads for packing, and for names.
type Helpers = (Rc<Packing>, Rc<Names>);

/// Where the connections of a thread come from.
pub(super) enum Entrance {
    /// It accepts them, and serves some itself.
    Listeners(Vec<Bound>, Option<Mates>),
    /// They are handed over. The control is that of the thread which accepts.
    Calls(Calls, Arc<Control>),
}

/// That something has broken which all threads need.
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
        // Who is in the list before it looks misses nothing.
        raised.as_mut().enable();
        if !self.is_raised.load(Ordering::SeqCst) {
            raised.await;
        }
    }
}

/// Waits for it, where there is one.
async fn wait_for(alarm: Option<&Alarm>) {
    match alarm {
        Some(alarm) => alarm.wait().await,
        None => pending().await,
    }
}

thread_local! {
    /// For the runtime's park hook, which can hold nothing that belongs to a thread.
    static PARKED: RefCell<Parked> = const { RefCell::new(Parked { pools: Vec::new(), precedence: None }) };
}

/// What is done whenever the thread has nothing left to do.
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
            // Where all pools are modest, nobody's answers are waited for more than others'.
            precedence.look(competing.unwrap_or(of_all));
        }
    }

    /// One look at the clock is enough.
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
        let format = first.setup.settings.access_log_format;
        let counters = Arc::clone(&control.counters);
        let recorder = Recorder::new(control.log.clone(), format, counters, intake);
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
        // Ends all tasks that are left; they unregister from what they share, which they hold themselves.
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
        exchanges.heed(&self.setup.settings.limits);
        let exchanges = Rc::new(RefCell::new(exchanges));
        let setup = (self.setup.into_setup(), tls);
        let counters = Arc::clone(&self.control.counters);
        let threads = (Rc::new(self.disk), packing, names);
        Shared::new(setup, exchanges, recorder, threads, counters, self.common)
    }

    /// Another pool's part, beside that of the default one.
    fn beside(self, first: &Shared) -> Shared {
        let recorder = first.recorder.beside(Arc::clone(&self.control.counters));
        let names = first.upstreams.names();
        let threads = (Rc::clone(&first.packing), names);
        let clock = Rc::clone(&first.clock);
        self.share(&clock, recorder, (first.tls.clone(), threads)).swept_with(first)
    }
}

/// Local tasks on one thread. What a park hook wakes runs before the runtime sleeps, without a system call.
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
        let bell = pool.exchanges.borrow().register_bell()?;
        essentials.spawn(sweep::answer_bell(Rc::clone(&pool), bell));
        essentials.spawn(sweep::guard_withheld(Rc::clone(&pool)));
        essentials.spawn(sweep::look_again(pool));
    }
    essentials.spawn(sweep::sweep(Rc::clone(&shared), Rc::clone(&connections)));
    let broken = async {
        tokio::select! {
            () = essentials.broken() => "a part of the front that all requests need has panicked: its message is in the log",
            () = wait_for(alarm) => "another thread of the front has ended: its message is in the log",
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
                let serving =
                    mates::join(Rc::clone(&shared), Rc::clone(&connections), calls, request::serve);
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

/// The life of the thread that accepts, the only one in most servers.
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

/// Does what was asked for of any pool. What is to change in several of them changes in all, or in none yet.
fn obey(shared: &Rc<Shared>, controls: &[Arc<Control>]) {
    let _whole = controls.first().map(|control| control.together());
    let pools = std::iter::once(shared).chain(shared.others());
    pools.zip(controls).for_each(|(pool, control)| control.obey(pool));
}

fn no_certificate() -> io::Error {
    io::Error::other("a listener is to speak TLS, and there is no certificate")
}

/// From the first request to the last.
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
    control.forget_listeners();
    for task in &accepting {
        task.abort();
    }
    for task in accepting {
        // Waits until the listener is closed; "aborted" is what it says.
        let _ = task.await;
    }
    control.has_closed();
    let Servers { connections, mates } = servers;
    // The others have heard of their last connection, and drain as this one does.
    drop(mates);
    let is_succeeded = control.is_succeeded.load(Ordering::Acquire);
    drain::finish(shared, &connections, is_succeeded).await;
}

/// The same of a thread that others hand connections to.
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
    drain::finish(shared, connections, first.is_succeeded.load(Ordering::Acquire)).await;
}
