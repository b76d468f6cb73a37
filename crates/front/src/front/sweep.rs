//! Background tasks of a front thread: deadlines, the ring's notifier, withheld wake-ups,
//! certificates.

use crate::client::registry::Connections;
use crate::runtime::counters::Counters;
use crate::runtime::disk_jobs::JobTarget;
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

/// Interval at which deadlines are checked while there is anything to check.
pub const SWEEP: Duration = Duration::from_millis(100);
/// Interval at which certificate files are checked for changes.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(10);
/// Number of sweeps between two ticks of the ring.
const SWEEPS_PER_TICK: u32 = 10;
/// Maximum time for which a request waits for an awake worker before another one is woken.
const WITHHELD: Duration = Duration::from_millis(1);

/// Reads the ring whenever a worker has notified the front. The eventfd is edge-triggered and never
/// read: each write wakes the runtime once.
pub(super) async fn handle_wakeups(shared: Rc<Shared>, notifier: AsyncFd<OwnedFd>) {
    while let Ok(mut guard) = notifier.readable().await {
        guard.clear_ready();
        shared.exchanges.borrow_mut().take_news();
    }
}

/// Makes up for withheld wake-ups.
///
/// While requests are short, no sleeping worker is woken if another worker is awake. If the awake
/// worker is delayed, a sleeping one is woken [`WITHHELD`] later. The number of woken workers that
/// are not up yet is limited. At that limit this repeats until they are up, or until a sweep finds
/// the request overdue and wakes other workers.
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

/// Keeps the runtime from parking when it must check for more requests before workers are woken.
pub(super) async fn look_again(shared: Rc<Shared>) {
    std::future::poll_fn(|cx| shared.exchanges.borrow_mut().poll_look(cx)).await;
}

/// Reloads certificates when their files have changed.
pub(super) async fn renew(shared: Rc<Shared>, tls: Arc<Tls>) {
    loop {
        for Notice { what: text, hint } in tls.notices() {
            tracing::warn!("{text} (hint: {hint})");
        }
        tls.wait(CERTIFICATE_LOOK).await;
        let tls = Arc::clone(&tls);
        match shared.disk.run(JobTarget::Nowhere, move || Ok(tls.refresh())).await {
            Ok(Ok(true)) => tracing::info!("certificates reloaded; new connections use them"),
            Ok(Ok(false)) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!(
                    %error,
                    "cannot use the changed certificates; the old ones stay in use"
                );
            }
        }
    }
}

/// Checks all deadlines every [`SWEEP`], while there is a connection or a slot in use.
pub(super) async fn sweep(shared: Rc<Shared>, connections: Rc<Connections>) {
    let mut interval = tokio::time::interval(SWEEP);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let crowd = Crowd::default();
    let mut sweeps = 0u32;
    loop {
        interval.tick().await;
        #[cfg(test)]
        assert!(!crate::runtime::panic_guard::BREAKS.get(), "panic requested by a test");
        sweep_once(&shared, &connections);
        sweeps = sweeps.wrapping_add(1);
        let count = connections.count();
        let requests = all(&shared).map(|pool| pool.counters.pool.in_flight.get() as usize);
        let present = count + requests.sum::<usize>();
        crowd.count(present);
        if sweeps.is_multiple_of(SWEEPS_PER_TICK) {
            for pool in all(&shared) {
                pool.exchanges.borrow_mut().tick();
            }
        }
        let mut keeps = false;
        for pool in all(&shared) {
            keeps |= pool.upstreams.sweep();
        }
        let in_use = || all(&shared).any(|pool| pool.exchanges.borrow().in_use() > 0);
        let [buffered, spooled, _] = shared.budgets.figures();
        let holds = buffered + spooled > 0;
        if count == 0 && !keeps && !holds && !in_use() {
            crowd.look(present, &shared.disk);
            shared.clock.rest(true);
            shared.sweeper.notified().await;
        } else if sweeps.is_multiple_of(SWEEPS_PER_TICK) {
            // Clients may have left before their data: then this is not the last look.
            crowd.look(present.max(1), &shared.disk);
        }
    }
}

fn sweep_once(shared: &Shared, connections: &Connections) {
    shared.clock.refresh();
    if let Some(standstill) = shared.clock.take_standstill() {
        tracing::warn!(
            ?standstill,
            "the front was suspended; timeouts did not run meanwhile (hint: check if the process \
             was stopped, or if the CPU is overloaded)"
        );
    }
    let now_ms = shared.clock.now_ms();
    let setup = shared.setup();
    let server = &shared.counters.server;
    let [buffered, spooled, cuts] = shared.budgets.figures();
    server.buffered_bytes.set(buffered);
    server.spooled_bytes.set(spooled);
    server.buffers_cut_total.set(cuts);
    all(shared).for_each(sweep_pool);
    shared.recorder.flush();
    connections.sweep(&setup.settings.timeouts, now_ms);
}

/// All pools. `shared` is the default pool.
pub(super) fn all(shared: &Shared) -> impl Iterator<Item = &Shared> {
    std::iter::once(shared).chain(shared.others().iter().map(|pool| &**pool))
}

fn sweep_pool(shared: &Shared) {
    let setup = shared.setup();
    let timeouts = &setup.settings.timeouts;
    let mut events: Vec<FrontEvent> = Vec::new();
    let mut exchanges = shared.exchanges.borrow_mut();
    exchanges.heed(&setup.settings);
    exchanges.sweep(timeouts, &mut events);
    shared.counters.pool.queue_depth.set(exchanges.swept_depth() as u64);
    shared.counters.pool.slots_in_use.set(exchanges.in_use() as u64);
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
            FrontEvent::Overrun { overrun: Overrun::After, .. } => {
                counters.pool.post_response_timeouts_total.add(1);
            }
            FrontEvent::KillWorker { reason: KillReason::Overrun(..), .. } => {
                counters.pool.overrun_kills_total.add(1);
            }
            _ => {}
        }
    }
}
