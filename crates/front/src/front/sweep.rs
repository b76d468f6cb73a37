//! What runs beside all requests: deadlines, the ring's bell, wake-ups that were withheld.

use crate::client::registry::Connections;
use crate::runtime::counters::Counters;
use crate::runtime::hands::Place;
use crate::runtime::link::{FrontEvent, KillReason};
use crate::runtime::memory::Crowd;
use crate::shared::Shared;
use crate::tls::{Notice, Tls};
use samovar_ring::{Lane, Overrun, WorkerState};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// How often deadlines are checked while there is anything to check.
pub const SWEEP: Duration = Duration::from_millis(100);
/// How often is looked whether certificates have changed.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(10);
/// Sweeps between two ticks of the ring.
const SWEEPS_PER_TICK: u32 = 10;
/// How long a request may wait for a worker that is awake before another one is woken.
const WITHHELD: Duration = Duration::from_millis(1);

/// Looks at the ring whenever a worker has rung. The eventfd is edge-triggered and never read: each write wakes the
/// runtime once.
pub(super) async fn answer_bell(shared: Rc<Shared>, bell: AsyncFd<OwnedFd>) {
    while let Ok(mut guard) = bell.readable().await {
        guard.clear_ready();
        shared.exchanges.borrow_mut().take_news();
    }
}

/// While requests are short, a sleeping worker is not woken when another is awake. Should that one be held up, the
/// sleeper is woken [`WITHHELD`] later. If as many as may be are on their way then, again and again until they are up, or
/// a sweep finds the request overdue and those that do not come.
pub(super) async fn guard_withheld(shared: Rc<Shared>) {
    loop {
        let mut is_first = true;
        std::future::poll_fn(|cx| {
            let first = std::mem::take(&mut is_first);
            shared.exchanges.borrow_mut().poll_withheld(cx, first)
        })
        .await;
        loop {
            tokio::time::sleep(WITHHELD).await;
            if !shared.exchanges.borrow().ring_withheld() {
                break;
            }
        }
    }
}

/// Keeps the runtime from sleeping where it shall look for more before workers are woken.
pub(super) async fn look_again(shared: Rc<Shared>) {
    std::future::poll_fn(|cx| shared.exchanges.borrow_mut().poll_look(cx)).await;
}

/// Has certificates read again when their files have changed.
pub(super) async fn renew(shared: Rc<Shared>, tls: Arc<Tls>) {
    loop {
        for Notice { what, hint } in tls.notices() {
            tracing::warn!("{what} (hint: {hint})");
        }
        tls.wait(CERTIFICATE_LOOK).await;
        let tls = Arc::clone(&tls);
        match shared.disk.run(Place::Nowhere, move || Ok(tls.refresh())).await {
            Ok(Ok(true)) => tracing::info!("certificates have changed: new connections get them"),
            Ok(Ok(false)) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "certificates have changed and cannot be used: the old ones hold");
            }
        }
    }
}

/// Checks all deadlines, every [`SWEEP`] while there is a connection or a slot in use.
pub(super) async fn sweep(shared: Rc<Shared>, connections: Rc<Connections>) {
    let mut interval = tokio::time::interval(SWEEP);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let crowd = Crowd::default();
    let mut sweeps = 0u32;
    loop {
        interval.tick().await;
        #[cfg(test)]
        assert!(!crate::runtime::mishap::BREAKS.get(), "as a test wants it");
        sweep_once(&shared, &connections);
        sweeps = sweeps.wrapping_add(1);
        let count = connections.count();
        let requests = all(&shared).map(|pool| pool.counters.in_flight.get() as usize);
        let present = count + requests.sum::<usize>();
        crowd.count(present);
        if sweeps.is_multiple_of(SWEEPS_PER_TICK) {
            for pool in all(&shared) {
                pool.exchanges.borrow_mut().tick();
            }
            crowd.look(present, &shared.disk);
        }
        let mut keeps = false;
        for pool in all(&shared) {
            keeps |= pool.upstreams.sweep();
        }
        let in_use = || all(&shared).any(|pool| pool.exchanges.borrow().in_use() > 0);
        if count == 0 && !keeps && !in_use() {
            crowd.look(present, &shared.disk);
            shared.clock.rest(true);
            shared.sweeper.notified().await;
        }
    }
}

fn sweep_once(shared: &Shared, connections: &Connections) {
    shared.clock.refresh();
    if let Some(standstill) = shared.clock.take_standstill() {
        tracing::warn!(
            ?standstill,
            "the front stood still; nobody's time-out ran meanwhile (hint: it was stopped, or starved of CPU)"
        );
    }
    let now_ms = shared.clock.now_ms();
    let setup = shared.setup();
    all(shared).for_each(sweep_pool);
    shared.recorder.flush();
    connections.sweep(&setup.settings.timeouts, now_ms);
}

/// The pools; `shared` is the default one.
pub(super) fn all(shared: &Shared) -> impl Iterator<Item = &Shared> {
    std::iter::once(shared).chain(shared.others().iter().map(|pool| &**pool))
}

fn sweep_pool(shared: &Shared) {
    let setup = shared.setup();
    let timeouts = &setup.settings.timeouts;
    let mut events: Vec<FrontEvent> = Vec::new();
    let mut exchanges = shared.exchanges.borrow_mut();
    exchanges.heed(&setup.settings.limits);
    exchanges.sweep(timeouts, &mut events);
    shared.counters.queue_depth.set(exchanges.swept_depth() as u64);
    shared.counters.slots_in_use.set(exchanges.in_use() as u64);
    if setup.settings.fastcgi.status_path.is_some() {
        let busy = exchanges.workers().filter(|w| w.state == WorkerState::Busy).count();
        shared.peaks.note(exchanges.swept_depth() as u64, busy as u64);
    }
    if exchanges.scripts_wait() {
        events.push(FrontEvent::LaneNeeded(Lane::Script));
    }
    count(&shared.counters, &events);
    exchanges.tell(events);
}

fn count(counters: &Counters, events: &[FrontEvent]) {
    for event in events {
        match event {
            FrontEvent::Overrun { overrun: Overrun::After, .. } => counters.after_timeouts.add(1),
            FrontEvent::KillWorker { reason: KillReason::Overrun(..), .. } => {
                counters.overrun_kills.add(1);
            }
            _ => {}
        }
    }
}
