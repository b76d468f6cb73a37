//! Development mode (`samovar dev`): state shared by the front's threads and the server's watcher.
//!
//! The watcher reports changes and failed boots. Open pages listen to them (`Listener`), and a
//! request whose script failed gets the page that the server builds.

use samovar_insight::RecordedError;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Maximum number of pages that listen at a time.
const LISTENERS_MAX: usize = 64;

/// A request that ended with an uncaught exception or a fatal error.
#[derive(Clone, Debug, Default)]
pub struct FailedRequest {
    /// Method.
    pub method: String,
    /// Target as received, with the query string.
    pub target: String,
    /// Id of the request.
    pub id: String,
    /// Headers, in the order of arrival.
    pub headers: Vec<(String, String)>,
}

/// Builds the page for a failed request. Called on a front thread.
pub type BuildErrorPage = Box<dyn Fn(&FailedRequest, &[RecordedError]) -> String + Send + Sync>;

/// State of the application in development.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Number that grows with each change.
    pub(crate) version: u64,
    /// The latest version does not boot; the one before it serves.
    pub(crate) is_failed: bool,
}

/// Development mode of one server. No request of a server in production sees one.
pub struct Development {
    hub: Mutex<Hub>,
    build_error_page: BuildErrorPage,
}

#[derive(Default)]
struct Hub {
    state: State,
    /// Page about the failed boot.
    failure: Option<Arc<str>>,
    is_closed: bool,
    next_id: u64,
    /// Listeners by id, with the waker of the latest poll.
    listeners: HashMap<u64, Option<Waker>>,
}

impl fmt::Debug for Development {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Development").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Development {
    /// Creates the state. `version` must differ from the versions of an earlier server, so that
    /// open pages notice a restart.
    #[must_use]
    pub fn new(version: u64, build_error_page: BuildErrorPage) -> Arc<Development> {
        let state = State { version, is_failed: false };
        let hub = Mutex::new(Hub { state, ..Hub::default() });
        Arc::new(Development { hub, build_error_page })
    }

    /// Reports that the application has changed: open pages load again.
    pub fn changed(&self) {
        self.update(|hub| {
            hub.state = State { version: hub.state.version + 1, is_failed: false };
            hub.failure = None;
        });
    }

    /// Reports that the latest version does not boot. Open pages show `page`.
    pub fn failed(&self, page: &str) {
        self.update(|hub| {
            hub.state = State { version: hub.state.version + 1, is_failed: true };
            hub.failure = Some(page.into());
        });
    }

    /// Ends all event streams, because the server stops.
    pub fn close(&self) {
        self.update(|hub| hub.is_closed = true);
    }

    fn state(&self) -> State {
        self.hub().state
    }

    /// Returns the version of the application.
    pub(crate) fn version(&self) -> u64 {
        self.state().version
    }

    pub(crate) fn failure_page(&self) -> Option<Arc<str>> {
        self.hub().failure.clone()
    }

    pub(crate) fn error_page(&self, request: &FailedRequest, errors: &[RecordedError]) -> String {
        (self.build_error_page)(request, errors)
    }

    /// Adds a listener; `None`: there are too many.
    pub(crate) fn listen(self: &Arc<Self>) -> Option<Listener> {
        let mut hub = self.hub();
        if hub.listeners.len() >= LISTENERS_MAX {
            return None;
        }
        hub.next_id += 1;
        let id = hub.next_id;
        hub.listeners.insert(id, None);
        drop(hub);
        Some(Listener { of: Arc::clone(self), id, seen: None })
    }

    fn update(&self, change: impl FnOnce(&mut Hub)) {
        let mut hub = self.hub();
        change(&mut hub);
        let wakers: Vec<Waker> = hub.listeners.values_mut().filter_map(Option::take).collect();
        drop(hub);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open page that listens for changes.
#[derive(Debug)]
pub(crate) struct Listener {
    of: Arc<Development>,
    id: u64,
    seen: Option<State>,
}

impl Listener {
    /// Waits for a state that was not returned before; the first one is returned at once. `None`:
    /// the server stops.
    pub(crate) fn poll_state(&mut self, cx: &Context<'_>) -> Poll<Option<State>> {
        let mut hub = self.of.hub();
        if hub.is_closed {
            return Poll::Ready(None);
        }
        if self.seen != Some(hub.state) {
            self.seen = Some(hub.state);
            return Poll::Ready(self.seen);
        }
        hub.listeners.insert(self.id, Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.of.hub().listeners.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn development() -> Arc<Development> {
        Development::new(7, Box::new(|request, _| request.target.clone()))
    }

    #[test]
    fn listener_sees_each_latest_state_once() {
        let development = development();
        let mut listener = development.listen().expect("room");
        let cx = Context::from_waker(Waker::noop());
        let state = |version, is_failed| Poll::Ready(Some(State { version, is_failed }));
        assert_eq!(listener.poll_state(&cx), state(7, false));
        assert_eq!(listener.poll_state(&cx), Poll::Pending);
        development.failed("page");
        assert_eq!(development.failure_page().as_deref(), Some("page"));
        assert_eq!(listener.poll_state(&cx), state(8, true));
        development.changed();
        development.changed();
        assert_eq!(listener.poll_state(&cx), state(10, false));
        assert_eq!(development.failure_page(), None);
        development.close();
        assert_eq!(listener.poll_state(&cx), Poll::Ready(None));
    }

    #[test]
    fn listeners_beyond_the_limit_are_refused() {
        let development = development();
        let mut all: Vec<_> = (0..LISTENERS_MAX).map(|_| development.listen()).collect();
        assert!(all.iter().all(Option::is_some) && development.listen().is_none());
        all.pop();
        assert!(development.listen().is_some());
    }
}
