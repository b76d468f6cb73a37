//! Budgets for the bytes that the front holds for clients: in memory, and in temporary files.
//!
//! A budget has a limit for all clients together and one for each client. At a limit:
//!
//! - A response that finds half of the memory in use goes to a temporary file. A client that leaves
//!   too many response bytes unread gets 503 for its next requests (`Rejection::Unread`).
//! - A request body that finds no room in temporary files gets 503 (`Rejection::Spool`), if its own
//!   client has most of them.
//! - Otherwise the largest response or body is cut, of the client that holds most: its HTTP/2
//!   stream is reset, or its connection is closed. A worker never waits because of a budget.
//!
//! Bytes are counted in pages, so small changes touch no shared counter. Clients are counted in the
//! table of `shares`. Each thread cuts only its own holdings.

use super::shares::{self, ROWS, Table};
use samovar_config::Limits;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are counted as one unit.
const UNIT_BYTES: u64 = 4096;

/// State of one budget that all threads share.
#[derive(Debug)]
struct Counts {
    clients: Table,
    total: AtomicU64,
}

/// State of all budgets, for one thread.
#[derive(Clone, Debug)]
pub(crate) struct BudgetCounts([Arc<Counts>; 2]);

/// All budgets of one thread.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// Response bytes in memory.
    pub(crate) memory: Rc<Budget>,
    /// Bytes of request bodies and responses in temporary files.
    pub(crate) spool: Rc<Budget>,
}

/// One budget.
#[derive(Debug)]
pub(crate) struct Budget {
    counts: Arc<Counts>,
    /// A client over its limit loses its largest holding.
    cuts_client: bool,
    /// Limits in units.
    total_max: Cell<u64>,
    client_max: Cell<u64>,
    /// Units of this thread.
    own: Cell<u64>,
    holdings: RefCell<Vec<Rc<Holding>>>,
    cuts: Cell<u64>,
}

/// Units that one response or body holds.
struct Holding {
    client: IpAddr,
    units: Cell<u64>,
    index: Cell<usize>,
    is_cut: Cell<bool>,
    cut: Cutter,
}

/// Ends the response or body that holds the bytes. Called at most once.
pub(crate) type Cutter = Rc<dyn Fn()>;

/// A response's or body's part of a budget. Given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Rc<Budget>,
    cells: [usize; ROWS],
    holding: Rc<Holding>,
}

/// The parts of a response in all budgets.
#[derive(Debug)]
pub(crate) struct Charges {
    pub(crate) memory: Charge,
    pub(crate) spool: Charge,
}

impl BudgetCounts {
    /// Creates the state for a front with that many threads.
    pub(crate) fn of(threads: usize) -> BudgetCounts {
        let counts =
            || Arc::new(Counts { clients: Table::new(threads > 1), total: AtomicU64::new(0) });
        BudgetCounts([counts(), counts()])
    }
}

impl Budgets {
    pub(crate) fn new(BudgetCounts([memory, spool]): BudgetCounts, limits: &Limits) -> Budgets {
        let budgets =
            Budgets { memory: Budget::new(memory, false), spool: Budget::new(spool, true) };
        budgets.limit(limits);
        budgets
    }

    /// Applies the limits in the settings.
    pub(crate) fn limit(&self, limits: &Limits) {
        let share = limits.buffer_share as u64;
        self.memory.limit(limits.buffered_bytes_max, share);
        self.spool.limit(limits.spooled_bytes_max, share);
    }

    /// The parts of one response or body in all budgets. `cut` ends it.
    pub(crate) fn charges(&self, client: IpAddr, cut: &Cutter) -> Charges {
        let memory = self.memory.charge(client, cut);
        Charges { memory, spool: self.spool.charge(client, cut) }
    }

    /// Bytes that this thread holds in memory, then in files, and the number of holdings cut.
    pub(crate) fn figures(&self) -> [u64; 3] {
        let Budgets { memory, spool } = self;
        let bytes = |budget: &Budget| budget.own.get() * UNIT_BYTES;
        [bytes(memory), bytes(spool), memory.cuts.get() + spool.cuts.get()]
    }
}

impl Budget {
    fn new(counts: Arc<Counts>, cuts_client: bool) -> Rc<Budget> {
        Rc::new(Budget {
            counts,
            cuts_client,
            total_max: Cell::new(u64::MAX),
            client_max: Cell::new(u64::MAX),
            own: Cell::new(0),
            holdings: RefCell::default(),
            cuts: Cell::new(0),
        })
    }

    /// `bytes_max`: 0 is no limit. `share`: maximum share of one client, in percent.
    fn limit(&self, bytes_max: u64, share: u64) {
        let total = if bytes_max == 0 { u64::MAX } else { (bytes_max / UNIT_BYTES).max(1) };
        self.total_max.set(total);
        self.client_max.set(if share >= 100 || bytes_max == 0 {
            u64::MAX
        } else {
            (bytes_max / UNIT_BYTES * share / 100).max(1)
        });
    }

    pub(crate) fn charge(self: &Rc<Self>, client: IpAddr, cut: &Cutter) -> Charge {
        let holding = Rc::new(Holding {
            client,
            units: Cell::new(0),
            index: Cell::new(0),
            is_cut: Cell::new(false),
            cut: Rc::clone(cut),
        });
        Charge { cells: self.counts.clients.cells_of(client), budget: Rc::clone(self), holding }
    }

    /// Whether the client may hold no more bytes. Cheap while all clients together hold less than
    /// one of them may.
    pub(crate) fn is_used_up_by(&self, client: impl FnOnce() -> IpAddr) -> bool {
        let max = self.client_max.get();
        self.total() >= max && {
            let clients = &self.counts.clients;
            u64::from(clients.count(clients.cells_of(client()))) >= max
        }
    }

    fn total(&self) -> u64 {
        self.counts.total.load(Ordering::Relaxed)
    }

    /// Cuts the largest holdings of the clients that hold most, until the rest is within the limit.
    /// With `newcomer`, which needs that many units more, none of this client is cut. Returns false
    /// if it is over the limit nevertheless.
    fn relieve(&self, newcomer: Option<(IpAddr, u64)>) -> bool {
        let holdings = self.holdings.borrow();
        let mut clients: HashMap<u128, u64> = HashMap::new();
        let mut cut_units = 0;
        for holding in holdings.iter() {
            let units = holding.units.get();
            if holding.is_cut.get() {
                cut_units += units;
            } else {
                *clients.entry(shares::client(holding.client)).or_default() += units;
            }
        }
        let newcomer = newcomer.map(|(client, more)| (shares::client(client), more));
        let more = newcomer.map_or(0, |(client, more)| {
            *clients.entry(client).or_default() += more;
            more
        });
        let mut total = (self.total() + more).saturating_sub(cut_units);
        loop {
            let most = clients.iter().max_by_key(|(_, units)| **units);
            let Some((&client, &units)) = most else { return total <= self.total_max.get() };
            let is_over = self.cuts_client && units > self.client_max.get();
            if !is_over && total <= self.total_max.get() {
                return true;
            }
            if newcomer.is_some_and(|(own, _)| own == client) {
                return false;
            }
            let of_client = holdings.iter().filter(|holding| {
                !holding.is_cut.get() && shares::client(holding.client) == client
            });
            let Some(largest) = of_client.max_by_key(|holding| holding.units.get()) else {
                clients.remove(&client);
                continue;
            };
            largest.is_cut.set(true);
            (largest.cut)();
            self.cuts.set(self.cuts.get() + 1);
            let freed = largest.units.get();
            total = total.saturating_sub(freed);
            clients.insert(client, units.saturating_sub(freed));
        }
    }
}

impl Charge {
    /// Records the number of bytes held now. If a limit is exceeded, the largest holding of the
    /// client that holds most is cut, which may be this one.
    pub(crate) fn set(&self, bytes: u64) {
        let before = self.holding.units.get();
        if self.change(bytes.div_ceil(UNIT_BYTES)) > before && self.is_over() {
            self.budget.relieve(None);
        }
    }

    /// Records the number of bytes held now. Returns false, and records nothing, if a limit would
    /// be exceeded and its own client holds most.
    pub(crate) fn try_set(&self, bytes: u64) -> bool {
        let (before, after) = (self.holding.units.get(), bytes.div_ceil(UNIT_BYTES));
        self.change(after);
        let is_allowed = !self.is_over() || {
            self.change(before);
            self.budget.relieve(Some((self.holding.client, after.saturating_sub(before))))
        };
        if is_allowed {
            self.change(after);
        }
        is_allowed
    }

    /// Whether the budget has room for more bytes that could also go elsewhere. They use at most
    /// half of it.
    pub(crate) fn has_room(&self) -> bool {
        let budget = &*self.budget;
        budget.total() < budget.total_max.get() / 2
            && u64::from(budget.counts.clients.count(self.cells)) < budget.client_max.get() / 2
    }

    fn is_over(&self) -> bool {
        let budget = &*self.budget;
        budget.total() > budget.total_max.get()
            || budget.cuts_client
                && u64::from(budget.counts.clients.count(self.cells)) > budget.client_max.get()
    }

    /// Changes the number of units. Returns the new one.
    fn change(&self, units: u64) -> u64 {
        let Charge { budget, cells, holding } = self;
        let before = holding.units.replace(units);
        if units == before {
            return units;
        }
        // A response has less than 2³¹ units: 8 TB.
        budget.counts.clients.change(*cells, (units.wrapping_sub(before)).cast_signed() as i32);
        budget.counts.total.fetch_add(units.wrapping_sub(before), Ordering::Relaxed);
        budget.own.set(budget.own.get().wrapping_add(units).wrapping_sub(before));
        let mut holdings = budget.holdings.borrow_mut();
        if before == 0 {
            holding.index.set(holdings.len());
            holdings.push(Rc::clone(holding));
        } else if units == 0 {
            let index = holding.index.get();
            holdings.swap_remove(index);
            if let Some(moved) = holdings.get(index) {
                moved.index.set(index);
            }
        }
        units
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.change(0);
    }
}

impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holding").field("units", &self.units).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
