//! A process that reads: what its request sees, and since when it holds that.

use crate::index;
use crate::region::{Region, epoch_of_root, place_of_root};
use samovar_shared::{Client, NO_PIN, NO_SPAN, NoSeat, joined, span};
use std::sync::atomic::Ordering;

/// What stands in PHP's `zval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number's bits, or the address of the string or array.
    pub word: u64,
    /// `u1.type_info`.
    pub kind: u32,
}

/// What a process has of the region.
#[derive(Debug)]
pub struct Reader {
    region: Region,
    /// What its request reads; 0: it has not asked yet.
    view: u64,
    /// The oldest that it may hold; all that is newer it may hold, too.
    pin: u64,
    /// What it has read before its image was taken, and holds as long as it lives.
    kept: u64,
    /// Who held that last: the process that has forked this one, or this one.
    keeper: u64,
}

impl Reader {
    /// Of a region that the server has made.
    pub fn new(region: Region) -> Reader {
        Reader { region, view: 0, pin: NO_PIN, kept: NO_SPAN, keeper: 0 }
    }

    /// The value of that name, if there is one; `hash` is PHP's of the name. It stays until the request ends.
    pub fn find(
        &mut self,
        client: &Client,
        name: &[u8],
        hash: u64,
    ) -> Result<Option<Found>, NoSeat> {
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
    fn look(&mut self, client: &Client) -> Result<(), NoSeat> {
        client.begin()?;
        let newest = || self.region.root().load(Ordering::SeqCst);
        if self.pin != NO_PIN {
            // All that is newer than the pin is held by it, too.
            self.view = newest();
            return Ok(());
        }
        let root = client.pin_newest(self.region.floor(), newest, epoch_of_root);
        self.view = root.ok_or(NoSeat::All)?;
        self.pin = epoch_of_root(self.view);
        Ok(())
    }

    /// Something was published: this process sees it from now on.
    pub fn look_again(&mut self) {
        self.view = 0;
    }

    /// A request has ended. Whether all that it has seen is forgotten: not where an application stays, which may
    /// have kept it.
    pub fn end_request(&mut self, client: &Client, forgets: bool) {
        self.view = 0;
        if forgets && self.pin != NO_PIN {
            self.pin = NO_PIN;
            client.set_pin(self.pin);
        }
    }

    /// The process's memory is as it was before the request: so is what it may hold.
    pub fn rolled_back(&mut self, client: &Client) {
        self.view = 0;
        client.restore_pin(self.pin);
    }

    /// A boot has ended, whose memory others begin with: what it has seen stays, and nothing that comes later.
    pub fn keep(&mut self, client: &Client) {
        self.view = 0;
        if self.pin != NO_PIN {
            let newest = epoch_of_root(self.region.root().load(Ordering::SeqCst));
            self.kept = joined(self.kept, span(self.pin, newest));
            self.keeper = client.keep(self.kept);
            self.pin = NO_PIN;
        }
    }

    /// In a process that was forked from one that reads, and sits on a seat of its own. False: that one has gone, and what
    /// it has seen with it.
    #[must_use]
    pub fn inherit(&mut self, client: &Client) -> bool {
        if self.kept != NO_SPAN {
            let Some(keeper) = client.keep_again(self.kept, self.keeper) else { return false };
            self.keeper = keeper;
        }
        self.pin == NO_PIN || client.pin_again(self.region.floor(), self.pin)
    }

    /// Whether it holds anything.
    pub fn holds(&self) -> bool {
        self.pin != NO_PIN || self.kept != NO_SPAN
    }
}
