//! A reading process: the values that its request sees, and the epoch since which it holds them.

use crate::index;
use crate::region::{Region, epoch_of_root, place_of_root};
use samovar_shared::{Client, NO_PIN, NO_SPAN, RegistryFull, joined, span};
use std::sync::atomic::Ordering;

/// Content of PHP's `zval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number's bits, or the address of the string or array.
    pub word: u64,
    /// `u1.type_info`.
    pub kind: u32,
}

/// A process's view of the region.
#[derive(Debug)]
pub struct Reader {
    region: Region,
    /// Root that its request reads; 0: the request has not read yet.
    view: u64,
    /// The oldest epoch that it may hold; it may also hold all newer ones.
    pin: u64,
    /// Span that it read before its image was taken, held as long as it lives.
    kept: u64,
    /// The last process that held this span: the parent of this process, or this process.
    keeper: u64,
}

impl Reader {
    /// Creates a reader of a region that the server has created.
    pub fn new(region: Region) -> Reader {
        Reader { region, view: 0, pin: NO_PIN, kept: NO_SPAN, keeper: 0 }
    }

    /// Finds the value of that name. `hash` is PHP's hash of the name. The value stays until the
    /// request ends.
    pub fn find(
        &mut self,
        client: &Client,
        name: &[u8],
        hash: u64,
    ) -> Result<Option<Found>, RegistryFull> {
        if self.view == 0 {
            self.look(client)?;
        }
        let found = index::find(&self.region, place_of_root(self.view), name, hash);
        Ok(found.map(|(top, number)| {
            client.count_read(number);
            Found { word: top.word, kind: top.kind }
        }))
    }

    #[cold]
    fn look(&mut self, client: &Client) -> Result<(), RegistryFull> {
        client.begin()?;
        let newest = || self.region.root().load(Ordering::SeqCst);
        if self.pin != NO_PIN {
            // The pin holds all newer epochs as well.
            self.view = newest();
            return Ok(());
        }
        let root = client.pin_newest(self.region.floor(), newest, epoch_of_root);
        self.view = root.ok_or(RegistryFull::All)?;
        self.pin = epoch_of_root(self.view);
        Ok(())
    }

    /// Makes newly published values visible to this process from now on.
    pub fn look_again(&mut self) {
        self.view = 0;
    }

    /// Ends a request. `forgets`: nothing that the request has seen is kept. It is false for a
    /// resident application, which may have kept it.
    pub fn end_request(&mut self, client: &Client, forgets: bool) {
        self.view = 0;
        if forgets && self.pin != NO_PIN {
            self.pin = NO_PIN;
            client.set_pin(self.pin);
        }
    }

    /// Called after a rollback: the process's memory, and so the values that it may hold, are as
    /// before the request.
    pub fn rolled_back(&mut self, client: &Client) {
        self.view = 0;
        client.restore_pin(self.pin);
    }

    /// Ends a boot, whose memory other processes start with. The values that it has seen stay, and
    /// no later ones.
    pub fn keep(&mut self, client: &Client) {
        self.view = 0;
        if self.pin != NO_PIN {
            let newest = epoch_of_root(self.region.root().load(Ordering::SeqCst));
            self.kept = joined(self.kept, span(self.pin, newest));
            self.keeper = client.keep(self.kept);
            self.pin = NO_PIN;
        }
    }

    /// Called in a process with a seat of its own, forked from a reading process. Returns false if
    /// the parent, and the values it has seen, are gone.
    #[must_use]
    pub fn inherit(&mut self, client: &Client) -> bool {
        if self.kept != NO_SPAN {
            let Some(keeper) = client.keep_again(self.kept, self.keeper) else { return false };
            self.keeper = keeper;
        }
        self.pin == NO_PIN || client.pin_again(self.region.floor(), self.pin)
    }

    /// Whether it holds any value.
    pub fn holds(&self) -> bool {
        self.pin != NO_PIN || self.kept != NO_SPAN
    }
}
