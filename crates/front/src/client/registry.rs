//! All open client connections.
//!
//! There may be tens of thousands, nearly all of them idle. Frequent work, for deadlines and for
//! room, therefore does not visit all of them each time.
//!
//! Room is made by closing the connection that has been idle longest. If none is idle, a connection
//! is closed that waits for its client: of the client that has most of them, so that a client which
//! opens thousands and finishes no request keeps no other client out.

use super::connection::{ConnectionState, Stall};
use crate::exchange::shares::{self, Held};
use crate::shared::Shared;
use samovar_config::{Role, Timeouts};
use std::cell::{Cell, Ref, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum number of connections that one scan finds to make room, for as many new ones.
const IDLERS_MAX: usize = 64;
/// Minimum time between a scan that found none and the next one.
const BARREN_MS: u64 = 200;

/// Minimum idle time of connections that may be closed to make room. Clients of others may be about
/// to send their next request.
const RECLAIM_IDLE_MS: u64 = 1_000;

/// Number of stalled connections of a client from which all of them may be closed to make room, for
/// all threads together. Of clients with fewer, only incomplete heads are closed, after
/// [`RECLAIM_IDLE_MS`].
const STALLED_MANY: usize = 32;

/// A connection's place in the count of a thread, from before the thread receives it until its end.
#[derive(Debug)]
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Seat {
    pub(super) fn take(load: &Arc<AtomicUsize>) -> Seat {
        load.fetch_add(1, Ordering::Relaxed);
        Seat(Arc::clone(load))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The list of open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    list: RefCell<Vec<Rc<ConnectionState>>>,
    /// Time at which each connection must be checked next. Small, and read sequentially.
    due_ms: RefCell<Vec<u64>>,
    /// The timeouts used to compute these times.
    by: Cell<[Duration; 3]>,
    /// The connections that were idle longest at the last scan, each with the start of its idle
    /// phase. The longest one is first.
    idlers: RefCell<VecDeque<(Weak<ConnectionState>, u64)>>,
    /// The stalled connections of the clients that had most of them at the last scan, and that can
    /// be closed.
    stalled: RefCell<VecDeque<Weak<ConnectionState>>>,
    /// Time of the last scan, if it found none. Zero: it found some.
    barren_since_ms: Cell<u64>,
    /// Notified when a connection has ended.
    pub(crate) room: Notify,
}

impl Connections {
    /// All connections. Must not be held across an await.
    pub(crate) fn all(&self) -> Ref<'_, Vec<Rc<ConnectionState>>> {
        self.list.borrow()
    }

    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.list.borrow().len()
    }

    /// Ends connections that exceed a timeout. Checks only those that may exceed one.
    pub(crate) fn sweep(&self, timeouts: &Timeouts, now_ms: u64) {
        let by = [timeouts.header, timeouts.idle, timeouts.write];
        let are_new = self.by.replace(by) != by;
        let list = self.list.borrow();
        for (connection, due_ms) in list.iter().zip(self.due_ms.borrow_mut().iter_mut()) {
            if are_new || now_ms >= *due_ms {
                *due_ms = connection.sweep(timeouts, now_ms);
            }
        }
    }

    /// Returns the connection that has been idle longest, and for at least `age_ms`. No connection
    /// is returned a second time before all candidates have been returned.
    pub(crate) fn idlest(&self, age_ms: u64, now_ms: u64) -> Option<Rc<ConnectionState>> {
        let barren_ms = self.barren_since_ms.get();
        let mut idlers = self.idlers.borrow_mut();
        for is_anew in [false, true] {
            if is_anew {
                if barren_ms != 0 && now_ms.saturating_sub(barren_ms) < BARREN_MS {
                    return None;
                }
                *idlers = self.look_for_idlers(age_ms, now_ms);
                self.barren_since_ms.set(if idlers.is_empty() { now_ms.max(1) } else { 0 });
            }
            while let Some((idler, since_ms)) = idlers.pop_front() {
                let idler = idler.upgrade();
                let still = idler.filter(|c| c.is_idle_for(age_ms, now_ms));
                if let Some(found) = still.filter(|c| c.phase_since_ms() == since_ms) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Returns a connection that waits for its client: one of the client that has most of them.
    fn most_stalled(&self, threads: usize, now_ms: u64) -> Option<Rc<ConnectionState>> {
        let mut stalled = self.stalled.borrow_mut();
        for is_anew in [false, true] {
            if is_anew {
                *stalled = self.look_for_stalled(threads, now_ms);
            }
            while let Some(found) = stalled.pop_front() {
                let still = found.upgrade().filter(|c| c.stall(now_ms).is_some());
                if still.is_some() {
                    return still;
                }
            }
        }
        None
    }

    fn look_for_stalled(&self, threads: usize, now_ms: u64) -> VecDeque<Weak<ConnectionState>> {
        let many = STALLED_MANY.div_ceil(threads);
        let list = self.list.borrow();
        let mut counts: HashMap<u128, usize> = HashMap::new();
        let mut stalled = Vec::new();
        for (at, connection) in list.iter().enumerate() {
            let Some(client) = connection.client.get().map(shares::client) else { continue };
            if let Some(stall) = connection.stall(now_ms) {
                *counts.entry(client).or_default() += 1;
                stalled.push((client, stall, connection.phase_since_ms(), at));
            }
        }
        let mut found: Vec<_> = stalled
            .into_iter()
            .map(|(client, stall, since_ms, at)| (counts[&client], stall, since_ms, at))
            .filter(|(count, stall, since_ms, _)| {
                let is_old = now_ms.saturating_sub(*since_ms) >= RECLAIM_IDLE_MS;
                *count >= many || *stall == Stall::Head && is_old
            })
            .map(|(count, _, since_ms, at)| (usize::MAX - count, since_ms, at))
            .collect();
        if found.len() > IDLERS_MAX {
            found.select_nth_unstable(IDLERS_MAX);
            found.truncate(IDLERS_MAX);
        }
        found.sort_unstable();
        found.into_iter().map(|(_, _, at)| Rc::downgrade(&list[at])).collect()
    }

    fn look_for_idlers(&self, age_ms: u64, now_ms: u64) -> VecDeque<(Weak<ConnectionState>, u64)> {
        let list = self.list.borrow();
        let idle = list.iter().enumerate().filter(|(_, c)| c.is_idle_for(age_ms, now_ms));
        let mut found: Vec<(u64, usize)> = idle.map(|(at, c)| (c.phase_since_ms(), at)).collect();
        if found.len() > IDLERS_MAX {
            found.select_nth_unstable(IDLERS_MAX);
            found.truncate(IDLERS_MAX);
        }
        found.sort_unstable();
        found.into_iter().map(|(since_ms, at)| (Rc::downgrade(&list[at]), since_ms)).collect()
    }
}

/// A counted connection. Unregisters when its task ends, in any way.
#[derive(Debug)]
pub(crate) struct Registered {
    connections: Rc<Connections>,
    pub(super) state: Rc<ConnectionState>,
    /// The client's place, if places are counted, and the connection's place in this thread, if
    /// there are several.
    _places: Places,
}

/// Places of a connection.
pub(crate) type Places = (Option<Held>, Option<Seat>);

impl Registered {
    pub(crate) fn new(
        shared: &Rc<Shared>,
        connections: &Rc<Connections>,
        role: Role,
        client: Option<IpAddr>,
        places: Places,
    ) -> Registered {
        let state = Rc::new(ConnectionState::new(shared, role));
        state.client.set(client);
        let mut list = connections.list.borrow_mut();
        state.index.set(list.len());
        list.push(Rc::clone(&state));
        connections.due_ms.borrow_mut().push(0);
        shared.counters.server.connections.set(list.len() as u64);
        shared.counters.server.connections_total.add(1);
        if list.len() == 1 {
            shared.resume_sweeping();
        }
        drop(list);
        Registered { connections: Rc::clone(connections), state, _places: places }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.state.ended();
        let mut list = self.connections.list.borrow_mut();
        let index = self.state.index.get();
        list.swap_remove(index);
        self.connections.due_ms.borrow_mut().swap_remove(index);
        if let Some(moved) = list.get(index) {
            moved.index.set(index);
        }
        self.state.shared.counters.server.connections.set(list.len() as u64);
        self.connections.room.notify_one();
    }
}

/// Closes the connection that has been idle longest. Returns false if none has been idle for
/// [`RECLAIM_IDLE_MS`].
fn close_idle(shared: &Shared, connections: &Connections) -> bool {
    let Some(idle) = connections.idlest(RECLAIM_IDLE_MS, shared.clock.now_ms()) else {
        return false;
    };
    idle.finish();
    shared.counters.server.connections_reclaimed_total.add(1);
    if let Some(suppressed) = shared.common.warnings.reclaimed.pass() {
        tracing::info!(suppressed, "closed an idle connection to make room for a new one");
    }
    true
}

/// Makes room for a new connection. Closes an idle connection or, if there is none, a stalled one.
/// Returns false if all connections are in use.
pub(super) fn close_one(shared: &Shared, connections: &Connections) -> bool {
    if close_idle(shared, connections) {
        return true;
    }
    let threads = shared.exchanges.borrow().threads();
    let stalled = connections.most_stalled(threads, shared.clock.now_ms());
    let Some(stalled) = stalled else { return false };
    stalled.cut();
    shared.counters.server.connections_unfinished_reclaimed_total.add(1);
    if let (Some(suppressed), Some(client)) =
        (shared.common.warnings.unfinished.pass(), stalled.client.get())
    {
        tracing::warn!(
            %client,
            suppressed,
            "closed an unfinished connection to make room for a new one: its client has most of \
             them\nhint: if this client is a proxy, add it to `trusted_proxies`; else lower \
             `client_connections_max`, or block its address"
        );
    }
    true
}

/// Returns the client to which an unfinished connection is attributed, if it is not a proxy.
pub(super) fn attributed(shared: &Shared, peer: Option<SocketAddr>) -> Option<IpAddr> {
    let client = peer?.ip().to_canonical();
    let setup = shared.setup();
    let is_proxy = setup.settings.trusted_proxies.iter().any(|proxy| proxy.contains(&client));
    (!is_proxy).then_some(client)
}

/// Takes a place for the client, if places are counted. `Err`: the client has reached its limit,
/// and this connection is closed. Clients of a Unix socket have no address, and are not counted.
pub(super) fn hold_place(
    shared: &Rc<Shared>,
    client: Option<SocketAddr>,
) -> Result<Option<Held>, ()> {
    let Some(client) = attributed(shared, client) else { return Ok(None) };
    let limits = &shared.setup().settings.limits;
    let Some(most) = limits.client_connections_max(client.is_loopback()) else { return Ok(None) };
    if shared.connection_shares.count(client) < most {
        return Ok(Some(shared.connection_shares.hold(client)));
    }
    shared.counters.server.connections_refused_total.add(1);
    if let Some(suppressed) = shared.common.warnings.client_connections.pass() {
        tracing::warn!(
            %client,
            client_connections_max = most,
            suppressed,
            "connection limit of a client reached; further connections are closed immediately\n\
             hint: if this client is a proxy, add it to `trusted_proxies`"
        );
    }
    Err(())
}
