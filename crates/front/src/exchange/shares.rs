//! Counts how many places (requests or connections) each client has, in a table of fixed size.
//!
//! The table is a count-min sketch (Cormode, Muthukrishnan: "An Improved Data Stream Summary",
//! 2005). A client is counted in one cell of each row; its count is at most the smallest of these
//! cells. Two clients that share a cell in each row (one pair in four million) count as one. The
//! seeds of the rows are random and change at each start, so a client cannot cause a collision on
//! purpose.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) const ROWS: usize = 2;
const CELLS: usize = 2048;

/// Numbers of places of all clients.
#[derive(Debug)]
pub(crate) struct Shares {
    table: Arc<Table>,
}

/// The table of counts.
#[derive(Debug)]
pub(super) struct Table {
    cells: Box<[[AtomicU32; CELLS]; ROWS]>,
    seeds: [RandomState; ROWS],
    /// Several threads count in it. A single thread needs no locked instruction.
    is_shared: bool,
}

/// A place in transfer from one thread to another.
#[derive(Debug)]
pub(crate) struct Unheld([usize; ROWS]);

/// One place of a client, released on drop.
#[derive(Debug)]
pub(crate) struct Held {
    /// `None` if the place was transferred.
    shares: Option<Rc<Shares>>,
    at: [usize; ROWS],
}

impl Default for Shares {
    fn default() -> Shares {
        Shares { table: Arc::new(Table::new(false)) }
    }
}

impl Shares {
    /// Returns one handle per thread; all handles use the same table.
    pub(crate) fn of(threads: usize) -> Vec<Shares> {
        let table = Arc::new(Table::new(threads > 1));
        (0..threads).map(|_| Shares { table: Arc::clone(&table) }).collect()
    }

    /// Takes a place for the client at that address.
    pub(crate) fn hold(self: &Rc<Self>, address: IpAddr) -> Held {
        let at = self.table.cells_of(address);
        self.table.change(at, 1);
        Held { shares: Some(Rc::clone(self)), at }
    }

    /// Takes over a place that another thread has taken.
    pub(crate) fn go_on(self: &Rc<Self>, place: &Unheld) -> Held {
        Held { shares: Some(Rc::clone(self)), at: place.0 }
    }

    /// Number of places of the client at that address.
    pub(crate) fn count(&self, address: IpAddr) -> usize {
        self.table.count(self.table.cells_of(address)) as usize
    }
}

impl Table {
    pub(super) fn new(is_shared: bool) -> Table {
        let cells = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0)));
        let seeds = std::array::from_fn(|_| RandomState::new());
        Table { cells: Box::new(cells), seeds, is_shared }
    }

    pub(super) fn cells_of(&self, address: IpAddr) -> [usize; ROWS] {
        let client = client(address);
        std::array::from_fn(|row| self.seeds[row].hash_one(client) as usize % CELLS)
    }

    /// Count of the client with these cells.
    pub(super) fn count(&self, at: [usize; ROWS]) -> u32 {
        let cells = self.cells.iter().zip(at);
        let counts = cells.map(|(row, cell)| row[cell].load(Ordering::Relaxed));
        counts.min().unwrap_or(0)
    }

    /// Adds `by`, which may be negative.
    pub(super) fn change(&self, at: [usize; ROWS], by: i32) {
        for (row, cell) in self.cells.iter().zip(at) {
            let cell = &row[cell];
            if self.is_shared {
                cell.fetch_add(by.cast_unsigned(), Ordering::Relaxed);
            } else {
                let now = cell.load(Ordering::Relaxed);
                cell.store(now.wrapping_add_signed(by), Ordering::Relaxed);
            }
        }
    }
}

impl Held {
    /// Releases the place for a transfer: another thread takes it over with [`Shares::go_on`].
    pub(crate) fn let_go(mut self) -> Unheld {
        self.shares = None;
        Unheld(self.at)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(shares) = &self.shares {
            shares.table.change(self.at, -1);
        }
    }
}

/// Key that identifies a client: its IPv4 address, or the first 64 bits of its IPv6 address (the
/// network of one customer).
pub(crate) fn client(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) >> 64 | 1 << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_key_is_ipv4_address_or_ipv6_network() {
        let one = |a: &str, b: &str| client(a.parse().unwrap()) == client(b.parse().unwrap());
        assert!(one("10.0.0.1", "10.0.0.1") && !one("10.0.0.1", "10.0.0.2"));
        assert!(one("10.0.0.1", "::ffff:10.0.0.1"));
        assert!(one("2001:db8::1", "2001:db8::ffff:2") && !one("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!one("0.0.0.0", "::"));
    }

    #[test]
    fn dropped_places_are_subtracted_from_counts() {
        let shares = Rc::new(Shares::default());
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        let many: Vec<Held> = (0..3000).map(|n| shares.hold(address(n % 1000))).collect();
        let right = (0..1000).filter(|n| shares.count(address(*n)) == 3).count();
        assert!((0..1000).all(|n| shares.count(address(n)) >= 3), "never too few");
        assert!(right > 600, "and seldom too many: {right}");
        drop(many);
        assert!((0..1000).all(|n| shares.count(address(n)) == 0));
    }

    #[test]
    fn transferred_place_stays_counted_until_dropped() {
        let mut all: Vec<_> = Shares::of(2).into_iter().map(Rc::new).collect();
        let (second, first) = (all.remove(1), all.remove(0));
        let client = IpAddr::from([10, 0, 0, 1]);
        let taken = first.hold(client).let_go();
        assert_eq!((first.count(client), second.count(client)), (1, 1), "it stays taken");
        let held = second.go_on(&taken);
        drop(held);
        assert_eq!((first.count(client), second.count(client)), (0, 0));
    }
}
