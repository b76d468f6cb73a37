//! All client connections that are open.

use super::connection::ConnectionState;
use crate::exchange::shares::Held;
use crate::shared::Shared;
use samovar_config::Role;
use std::cell::{Ref, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Connections idle for this long may be closed to make room for new ones: others may be about to ask again.
const RECLAIM_IDLE_MS: u64 = 1_000;

/// A connection's place among those of a thread, from before it is told of it until its end.
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
    /// One of them has ended.
    pub(crate) room: Notify,
}

impl Connections {
    /// All of them, for a look: nothing may be awaited meanwhile.
    pub(crate) fn all(&self) -> Ref<'_, Vec<Rc<ConnectionState>>> {
        self.list.borrow()
    }

    /// How many connections are open.
    pub(crate) fn count(&self) -> usize {
        self.list.borrow().len()
    }
}

/// A connection that counts. Unregisters when its task ends, however it ends.
#[derive(Debug)]
pub(crate) struct Registered {
    connections: Rc<Connections>,
    pub(super) state: Rc<ConnectionState>,
    /// Its client's place, where places are counted; its own with this thread, where there are several.
    _places: Places,
}

/// A connection's places.
pub(crate) type Places = (Option<Held>, Option<Seat>);

impl Registered {
    pub(crate) fn new(
        shared: &Rc<Shared>,
        connections: &Rc<Connections>,
        role: Role,
        places: Places,
    ) -> Registered {
        let state = Rc::new(ConnectionState::new(shared, role));
        let mut list = connections.list.borrow_mut();
        state.index.set(list.len());
        list.push(Rc::clone(&state));
        shared.counters.connections.set(list.len() as u64);
        shared.counters.connections_accepted.add(1);
        if list.len() == 1 {
            shared.resume_sweeping();
        }
        drop(list);
        Registered { connections: Rc::clone(connections), state, _places: places }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut list = self.connections.list.borrow_mut();
        let index = self.state.index.get();
        list.swap_remove(index);
        if let Some(moved) = list.get(index) {
            moved.index.set(index);
        }
        self.state.shared.counters.connections.set(list.len() as u64);
        self.connections.room.notify_one();
    }
}

/// Has the connection closed that has been idle for longest; false: none has, for [`RECLAIM_IDLE_MS`].
pub(super) fn close_idle(connections: &Connections, now_ms: u64) -> bool {
    let idle = {
        let all = connections.all();
        let idle = all.iter().filter(|c| c.is_idle_for(RECLAIM_IDLE_MS, now_ms));
        idle.min_by_key(|c| c.phase_since_ms()).cloned()
    };
    if let Some(idle) = &idle {
        idle.finish();
    }
    idle.is_some()
}

/// The client's place among all connections, where places are counted. Err: it has enough of them, and this one is closed.
/// Whoever comes through the file system has no address, and is not counted.
pub(super) fn hold_place(
    shared: &Rc<Shared>,
    client: Option<SocketAddr>,
) -> Result<Option<Held>, ()> {
    let Some(client) = client.map(|client| client.ip().to_canonical()) else { return Ok(None) };
    let setup = shared.setup();
    let most = setup.settings.limits.client_connections_max;
    if most == 0 || setup.settings.trusted_proxies.iter().any(|proxy| proxy.contains(&client)) {
        return Ok(None);
    }
    if shared.connection_shares.count(client) < most {
        return Ok(Some(shared.connection_shares.hold(client)));
    }
    shared.counters.connections_refused.add(1);
    if let Some(suppressed) = shared.warnings.client_connections.pass() {
        tracing::warn!(
            %client,
            client_connections_max = most,
            suppressed,
            "a client has as many connections as one may have; further ones are closed at once\n\
             hint: is it a proxy? then it belongs into `trusted_proxies`"
        );
    }
    Err(())
}
