//! Whether the client of a connection has left.
//!
//! A script may run on after its client has the whole response. It then has no body whose end would
//! show that the client has left, so it shares this flag with the client's connection.

use std::cell::Cell;
use std::rc::Rc;

/// Flag of one connection, shared with the scripts that run on for its client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientPresence(Rc<Cell<bool>>);

impl ClientPresence {
    /// The connection has ended, and not by an order of the server.
    pub(crate) fn leave(&self) {
        self.0.set(true);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.0.get()
    }
}
