//! What a request has cost, told when its worker is done: that may be after its client has the answer, or has left.

use samovar_ring::Account;
use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::rc::Rc;

/// What is known of a request's cost when nobody awaits its answer any more.
#[derive(Debug)]
pub(crate) enum Cost {
    /// Its worker is done.
    Known(Account),
    /// Its worker goes on.
    Later(Later),
    /// No worker had it, or its worker died.
    Unknown,
}

/// An account that is to come. The slot has one end of it, the request's entry in the log the other; there is at most one
/// for each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Later(Rc<RefCell<State>>);

#[derive(Default)]
enum State {
    #[default]
    Open,
    /// Nobody has asked yet.
    Told(Account),
    /// Whom to tell.
    Asked(Box<dyn FnOnce(Account)>),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Open => "Open",
            State::Told(_) => "Told",
            State::Asked(_) => "Asked",
        })
    }
}

impl Later {
    /// The worker is done. A slot that drops its end instead knows nothing.
    pub(super) fn tell(self, account: Account) {
        // Whoever asked may do anything: the state is let go of first.
        let state = mem::take(&mut *self.0.borrow_mut());
        match state {
            State::Asked(then) => then(account),
            State::Open | State::Told(_) => *self.0.borrow_mut() = State::Told(account),
        }
    }

    /// Calls `then` with the account when it is there; drops it if none ever is.
    pub(crate) fn ask(self, then: impl FnOnce(Account) + 'static) {
        let state = mem::take(&mut *self.0.borrow_mut());
        match state {
            State::Told(account) => then(account),
            State::Open | State::Asked(_) => *self.0.borrow_mut() = State::Asked(Box::new(then)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Later;
    use samovar_ring::{Account, Usage};
    use std::cell::RefCell;
    use std::rc::Rc;

    fn account() -> Account {
        let usage = Usage { cpu_ns: 7, ..Usage::default() };
        Account { usage, report: Vec::new() }
    }

    #[test]
    fn whoever_comes_first_the_account_arrives_once() {
        for is_told_first in [true, false] {
            let (of_slot, all) = (Later::default(), Rc::new(RefCell::new(Vec::new())));
            let (of_entry, to_hear) = (of_slot.clone(), Rc::clone(&all));
            let ask = || of_entry.ask(move |a| to_hear.borrow_mut().push(a.usage.cpu_ns));
            if is_told_first {
                of_slot.tell(account());
                ask();
            } else {
                ask();
                of_slot.tell(account());
            }
            assert_eq!(*all.borrow(), [7], "told first: {is_told_first}");
        }
    }

    #[test]
    fn whoever_asks_in_vain_is_let_go_of() {
        let (of_slot, kept) = (Later::default(), Rc::new(()));
        let keeps = Rc::clone(&kept);
        of_slot.clone().ask(move |_| drop(keeps));
        drop(of_slot);
        assert_eq!(Rc::strong_count(&kept), 1);
    }
}
