//! Published values that this process reads, and the one that it writes, through the life of its
//! requests. `published` has the functions that PHP calls.

use samovar_published::{Outgoing, Reader, Region};
use samovar_shared::Client;
use std::os::fd::OwnedFd;

/// State of this process for published values.
pub(super) struct PublishedState {
    pub(super) reader: Reader,
    pub(super) socket: OwnedFd,
    /// A value that is being written.
    pub(super) outgoing: Option<Outgoing>,
    /// The process's memory stays after a request or is rolled back, so the end of a request
    /// releases nothing.
    pub(super) stays: bool,
}

impl PublishedState {
    pub(super) fn new(region: Region, socket: OwnedFd) -> PublishedState {
        PublishedState { reader: Reader::new(region), socket, outgoing: None, stays: false }
    }

    pub(super) fn inherit(&mut self, client: &Client) -> bool {
        self.reader.inherit(client)
    }

    pub(super) fn forked(&mut self, client: &Client) -> bool {
        !self.reader.holds() || (client.begin().is_ok() && self.reader.inherit(client))
    }

    pub(super) fn end_request(&mut self, client: &Client) {
        self.reader.end_request(client, !self.stays);
    }

    pub(super) fn resident(&mut self, client: &Client, rolls_back: bool) {
        self.stays = true;
        if rolls_back {
            self.reader.keep(client);
        } else {
            self.reader.look_again();
        }
    }

    pub(super) fn scripts(&mut self) {
        self.stays = false;
    }

    pub(super) fn keep(&mut self, client: &Client) {
        self.reader.keep(client);
    }

    pub(super) fn rolled_back(&mut self, client: &Client) {
        self.reader.rolled_back(client);
    }
}
