//! Connections whose request has not been received yet.
//!
//! They do not count towards the limit on pages, so clients that connect and send nothing keep no
//! other client out: when too many are open, one of the client that has most of them is closed.
//! Health checks are answered within this budget, so pages do not delay them either.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::Notify;

/// Maximum number of connections without a complete request head, and of health checks in
/// progress.
pub(crate) const ARRIVALS_MAX: usize = 128;

/// All such connections, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(RefCell<Vec<Rc<Arrival>>>);

#[derive(Debug)]
struct Arrival {
    client: IpAddr,
    closed: Notify,
}

/// One such connection. Dropped when its request needs another budget, or when it ends.
#[derive(Debug)]
pub(crate) struct Arriving {
    all: Rc<Arrivals>,
    arrival: Rc<Arrival>,
}

impl Arrivals {
    /// Adds a connection. Closes another one if there are too many.
    pub(crate) fn enter(self: &Rc<Self>, client: IpAddr) -> Arriving {
        let arrival = Rc::new(Arrival { client: client.to_canonical(), closed: Notify::new() });
        let mut open = self.0.borrow_mut();
        if open.len() >= ARRIVALS_MAX {
            let at = oldest_of_most(&open);
            open.remove(at).closed.notify_one();
        }
        open.push(Rc::clone(&arrival));
        Arriving { all: Rc::clone(self), arrival }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

/// Position of the oldest connection of the client that has most of them.
fn oldest_of_most(open: &[Rc<Arrival>]) -> usize {
    let count = |client| open.iter().filter(|other| other.client == client).count();
    // Of several with the same number, `max_by_key` returns the last one.
    let most = open.iter().enumerate().rev().max_by_key(|(_, one)| count(one.client));
    most.map_or(0, |(at, _)| at)
}

/// The order to close such a connection. Never comes after it has left the budget.
#[derive(Debug)]
pub(crate) struct Eviction(Rc<Arrival>);

impl Eviction {
    /// Waits until the connection must be closed to make room for another one.
    pub(crate) async fn wait(&self) {
        self.0.closed.notified().await;
    }
}

impl Arriving {
    pub(crate) fn eviction(&self) -> Eviction {
        Eviction(Rc::clone(&self.arrival))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.all.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.arrival));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_closed(arriving: &Arriving) -> bool {
        let eviction = arriving.eviction();
        pin!(eviction.wait()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn full_arrivals_close_oldest_of_client_with_most() {
        let all = Rc::new(Arrivals::default());
        let other = all.enter([10, 0, 0, 2].into());
        let mut flood: Vec<_> =
            (1..ARRIVALS_MAX).map(|_| all.enter([10, 0, 0, 1].into())).collect();
        assert!(!flood.iter().chain([&other]).any(is_closed));
        let newcomer = all.enter([10, 0, 0, 3].into());
        assert!(is_closed(&flood[0]) && !is_closed(&flood[1]));
        assert!(!is_closed(&other) && !is_closed(&newcomer));
        flood.push(all.enter([10, 0, 0, 1].into()));
        assert!(is_closed(&flood[1]) && !is_closed(&other));
        assert_eq!(all.0.borrow().len(), ARRIVALS_MAX);
        drop((flood, other, newcomer));
        assert!(all.is_empty());
    }
}
