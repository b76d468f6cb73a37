//! Packet → aggregate: counts a request of another machine.

use super::packet::Packet;
use crate::aggregate::Aggregate;
use crate::finished::Finished;

impl Aggregate {
    /// Adds a request of another machine from its packet. The route is the script's name. The
    /// caller handles packets within the packet.
    pub fn take_packet(&mut self, packet: &Packet, now: u64) {
        let sender = packet.sender();
        let (numbers, path) = (packet.numbers(), packet.script());
        let finished = Finished { numbers, path, ..Finished::default() };
        self.take_elsewhere((&sender.host, &sender.server), &finished, packet.entries(), now);
    }
}
