//! Usage of a request, reported when its worker has finished. The client may have received the
//! response, or disconnected, before that.

use samovar_ring::Account;
use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::rc::Rc;

/// Known usage of a request at the time when no task awaits its response any more.
#[derive(Debug)]
pub(crate) enum Cost {
    /// The worker has finished.
    Known(Account),
    /// The worker is still running.
    Later(Later),
    /// No worker ran the request, or its worker died.
    Unknown,
}

/// An account that is not known yet. The slot holds one end and the request's log entry the other;
/// there is at most one per slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Later(Rc<RefCell<State>>);

#[derive(Default)]
enum State {
    #[default]
    Open,
    /// The account arrived before the callback was registered.
    Reported(Account),
    /// Callback that receives the account.
    Asked(Box<dyn FnOnce(Account)>),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Open => "Open",
            State::Reported(_) => "Reported",
            State::Asked(_) => "Asked",
        })
    }
}

impl Later {
    /// Reports the account after the worker has finished. A slot that drops its end instead reports
    /// nothing.
    pub(super) fn tell(self, account: Account) {
        // The callback may do anything, so the `RefCell` borrow ends before the call.
        let state = mem::take(&mut *self.0.borrow_mut());
        match state {
            State::Asked(then) => then(account),
            State::Open | State::Reported(_) => {
                *self.0.borrow_mut() = State::Reported(account);
            }
        }
    }

    /// Calls `then` with the account as soon as it is known. Drops `then` if the account never
    /// arrives.
    pub(crate) fn ask(self, then: impl FnOnce(Account) + 'static) {
        let state = mem::take(&mut *self.0.borrow_mut());
        match state {
            State::Reported(account) => then(account),
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
    fn account_arrives_once_in_either_order() {
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
            assert_eq!(*all.borrow(), [7], "reported first: {is_told_first}");
        }
    }

    #[test]
    fn dropped_slot_end_drops_callback() {
        let (of_slot, kept) = (Later::default(), Rc::new(()));
        let keeps = Rc::clone(&kept);
        of_slot.clone().ask(move |_| drop(keeps));
        drop(of_slot);
        assert_eq!(Rc::strong_count(&kept), 1);
    }
}
