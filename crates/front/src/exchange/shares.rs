//! How many places each client has: counted in a fixed table, whoever and how many they are.
//!
//! A count-min sketch (Cormode, Muthukrishnan: "An Improved Data Stream Summary", 2005): a client is counted in one cell
//! of each row, and has at most what the smallest of these says. Two clients that share a cell in each row, which one
//! pair in four million does, count as one; the rows' seeds are drawn anew at each start, so that nobody can choose to.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;

const ROWS: usize = 2;
const CELLS: usize = 2048;

/// Places of all clients.
#[derive(Debug)]
pub(crate) struct Shares {
    cells: RefCell<Box<[[u32; CELLS]; ROWS]>>,
    seeds: [RandomState; ROWS],
}

/// One place of a client, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    shares: Rc<Shares>,
    at: [usize; ROWS],
}

impl Default for Shares {
    fn default() -> Shares {
        Shares {
            cells: RefCell::new(Box::new([[0; CELLS]; ROWS])),
            seeds: std::array::from_fn(|_| RandomState::new()),
        }
    }
}

impl Shares {
    /// Takes a place for the client at that address.
    pub(crate) fn hold(self: &Rc<Self>, address: IpAddr) -> Held {
        let at = self.cells_of(address);
        let mut cells = self.cells.borrow_mut();
        for (row, cell) in at.iter().enumerate() {
            cells[row][*cell] += 1;
        }
        Held { shares: Rc::clone(self), at }
    }

    /// How many it has.
    pub(crate) fn count(&self, address: IpAddr) -> usize {
        let (at, cells) = (self.cells_of(address), self.cells.borrow());
        let counts = at.iter().enumerate().map(|(row, cell)| cells[row][*cell]);
        counts.min().unwrap_or(0) as usize
    }

    fn cells_of(&self, address: IpAddr) -> [usize; ROWS] {
        let client = client(address);
        std::array::from_fn(|row| self.seeds[row].hash_one(client) as usize % CELLS)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut cells = self.shares.cells.borrow_mut();
        for (row, cell) in self.at.iter().enumerate() {
            cells[row][*cell] -= 1;
        }
    }
}

/// Who is one client: an address of IPv4, and the network of 64 bits that a customer has of IPv6.
fn client(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) >> 64 | 1 << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_one_client() {
        let one = |a: &str, b: &str| client(a.parse().unwrap()) == client(b.parse().unwrap());
        assert!(one("10.0.0.1", "10.0.0.1") && !one("10.0.0.1", "10.0.0.2"));
        assert!(one("10.0.0.1", "::ffff:10.0.0.1"));
        assert!(one("2001:db8::1", "2001:db8::ffff:2") && !one("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!one("0.0.0.0", "::"));
    }

    #[test]
    fn places_are_counted_and_given_back() {
        let shares = Rc::new(Shares::default());
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        let many: Vec<Held> = (0..3000).map(|n| shares.hold(address(n % 1000))).collect();
        let right = (0..1000).filter(|n| shares.count(address(*n)) == 3).count();
        assert!((0..1000).all(|n| shares.count(address(n)) >= 3), "never too few");
        assert!(right > 600, "and seldom too many: {right}");
        drop(many);
        assert!((0..1000).all(|n| shares.count(address(n)) == 0));
    }
}
