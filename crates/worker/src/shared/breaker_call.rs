//! Calls that a breaker let through. The end of the request ends those that have not returned.

use samovar_shared::{Breaker, Call, Client, Outcome};

/// A call that has not returned yet.
pub(super) struct Begun {
    pub(super) number: i64,
    pub(super) breaker: Breaker,
    pub(super) call: Call,
}

impl Begun {
    pub(super) fn end(self, client: &Client, outcome: Outcome) {
        self.breaker.report(client, self.call, outcome);
    }
}
