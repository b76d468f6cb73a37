//! Ways in which the task of a request gives up its slot before the worker has finished: the client
//! has left, has all that it wanted, or the worker has written invalid content.

use super::deferred_usage::{Cost, Later};
use super::slot::{Served, SlotUse};
use super::table::Exchanges;
use crate::runtime::clock::is_over;
use crate::runtime::link::{FrontEvent, KillReason};
use crate::runtime::presence::ClientPresence;
use samovar_ring::{Incarnation, Progress, SlotIndex};
use std::time::Duration;

/// Time that a script has to end normally after its response needs nothing more. Its end at an
/// output costs a resident worker its application.
const SERVED_GRACE: Duration = Duration::from_secs(1);

impl Exchanges {
    /// Cancels a request. Its slot becomes free now, or when its worker releases it.
    pub(super) fn cancel(&mut self, slot: SlotIndex) -> Cost {
        if let Ok(Progress::Responded) = self.front.progress(slot) {
            return self.settle(slot);
        }
        if self.front.cancel(slot) {
            self.forget(slot, SlotUse::Free);
            self.grant_next();
            return Cost::Unknown;
        }
        // The deadline of the client's request still applies to the slot.
        self.forget(slot, SlotUse::Dying);
        self.later(slot)
    }

    /// Detaches the client, which has the whole promised response. The script still runs to its
    /// end.
    pub(super) fn leave(&mut self, slot: SlotIndex) -> Cost {
        if let Ok(Progress::Responded) = self.front.progress(slot) {
            return self.settle(slot);
        }
        self.forget(slot, SlotUse::Background);
        let now_ms = self.clock.now_ms();
        self.entries[slot.get()].runs(now_ms);
        let cost = self.later(slot);
        self.discard(slot);
        cost
    }

    /// Does the same as [`Self::leave`]. If the client leaves, the script ends at its next output.
    pub(super) fn leave_with(&mut self, slot: SlotIndex, client: &ClientPresence) -> Cost {
        let cost = self.leave(slot);
        let entry = &self.entries[slot.get()];
        if entry.used == SlotUse::Background && entry.served.is_none() {
            self.serve(slot, Some(client.clone()));
        }
        cost
    }

    /// Does the same as [`Self::leave`]. The script ends at its next output. The time limits of a
    /// script without a client apply until then.
    pub(super) fn dismiss(&mut self, slot: SlotIndex) -> Cost {
        let cost = self.leave(slot);
        if self.entries[slot.get()].used == SlotUse::Background {
            self.serve(slot, None);
        }
        cost
    }

    pub(super) fn serve(&mut self, slot: SlotIndex, client: Option<ClientPresence>) {
        let served = &mut self.entries[slot.get()].served;
        let since_ms = served.as_ref().map_or(self.clock.now_ms(), |served| served.since_ms);
        *served = Some(Served { since_ms, client });
    }

    /// Requests the end of a script that runs on although its output is not needed, or its client
    /// has left.
    pub(super) fn end_unneeded(&mut self, slot: SlotIndex) {
        let now_ms = self.clock.now_ms();
        let is_unneeded = |served: &mut Served| {
            is_over(SERVED_GRACE, served.since_ms, now_ms)
                && served.client.as_ref().is_none_or(ClientPresence::has_left)
        };
        if self.entries[slot.get()].served.take_if(is_unneeded).is_some() {
            self.front.end_run(slot);
        }
    }

    /// Releases the slot after the worker has finished and the rest of the response is not needed.
    pub(super) fn settle(&mut self, slot: SlotIndex) -> Cost {
        let account = self.front.account(slot);
        self.release(slot);
        Cost::Known(account)
    }

    fn later(&mut self, slot: SlotIndex) -> Cost {
        let later = Later::default();
        self.entries[slot.get()].later = Some(later.clone());
        Cost::Later(later)
    }

    /// Handles invalid content: has the worker killed and quarantines the slot.
    pub(super) fn accuse(&mut self, slot: SlotIndex, what: &str) {
        if let Some(suppressed) = self.broken.pass() {
            tracing::warn!(
                what,
                suppressed,
                "a worker wrote an invalid response into the ring; the worker is replaced (hint: \
                 look for an extension that corrupts memory; see the worker's log)"
            );
        }
        let kill = kill(self.front.owner(slot), KillReason::BrokenRing);
        self.quarantine(slot);
        self.tell(kill);
    }
}

/// Event that requests the kill of a slot's owner, if it has one.
fn kill(owner: u32, reason: KillReason) -> Option<FrontEvent> {
    let incarnation = Incarnation::new(owner)?;
    Some(FrontEvent::KillWorker { incarnation, reason })
}
