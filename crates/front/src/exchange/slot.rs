//! One row of the table: what a slot is used for, and who awaits what of it.

use super::later::Later;
use super::lost::Lost;
use super::shares::Held;
use super::times::{Audience, Course};
use samovar_ring::Overrun;
use std::task::Waker;
use std::time::Duration;

/// What a slot is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotUse {
    Free,
    Awaited,
    Dying,
    Background,
    Quarantined { until_ms: u64 },
}

/// What the front knows of one slot.
#[derive(Debug)]
pub(super) struct SlotEntry {
    pub(super) used: SlotUse,
    /// Counts the uses, so that a pump notices that its exchange is over.
    pub(super) epoch: u32,
    pub(super) waker: Option<Waker>,
    pub(super) pump: Option<Waker>,
    pub(super) lost: Option<Lost>,
    /// There is news that the awaiting task has not looked at: the client is slow, not the worker.
    pub(super) unseen: bool,
    /// The client owes body bytes: the worker may be waiting for them.
    pub(super) is_feeding: bool,
    pub(super) submitted_ms: u64,
    /// Since when the worker owes a sign of life; 0 while the request is queued.
    pub(super) quiet_since_ms: u64,
    /// Since when nobody waits for the answer any more; 0: somebody does, or the next sweep will note it.
    pub(super) alone_since_ms: u64,
    /// Since when a worker has it; 0: none has, or the next sweep will note it.
    pub(super) running_since_ms: u64,
    /// What holds for its path instead of the times of request and answer.
    pub(super) path_time: Option<Duration>,
    /// Since when its script is asked to end; 0: it is not.
    pub(super) asked_since_ms: u64,
    /// Why.
    pub(super) overrun: Option<Overrun>,
    pub(super) killed: bool,
    /// Its client's place, where places are counted.
    pub(super) held: Option<Held>,
    /// Who is told what it has cost, though nobody awaits its answer any more.
    pub(super) later: Option<Later>,
}

impl SlotEntry {
    pub(super) const FREE: SlotEntry = SlotEntry {
        used: SlotUse::Free,
        epoch: 0,
        waker: None,
        pump: None,
        lost: None,
        unseen: false,
        is_feeding: false,
        submitted_ms: 0,
        quiet_since_ms: 0,
        alone_since_ms: 0,
        running_since_ms: 0,
        path_time: None,
        asked_since_ms: 0,
        overrun: None,
        killed: false,
        held: None,
        later: None,
    };

    /// How the worker's run stands at that time; notes what begins with this look.
    pub(super) fn course(&mut self, now_ms: u64, (wanted_ms, outlives): (u32, bool)) -> Course {
        let now_ms = now_ms.max(1);
        let audience = match self.used {
            SlotUse::Background => Audience::Served,
            SlotUse::Dying => Audience::Gone,
            _ => Audience::Client,
        };
        let begin = |since_ms: &mut u64| {
            if *since_ms == 0 {
                *since_ms = now_ms;
            }
        };
        begin(&mut self.running_since_ms);
        begin(&mut self.quiet_since_ms);
        if audience != Audience::Client {
            begin(&mut self.alone_since_ms);
        } else if self.unseen || self.is_feeding {
            // Of a client that has gone nothing is to be seen any more: it is no excuse for the worker.
            self.quiet_since_ms = now_ms;
        }
        Course {
            audience,
            now_ms,
            running_since_ms: self.running_since_ms,
            quiet_since_ms: self.quiet_since_ms,
            alone_since_ms: self.alone_since_ms,
            wanted_ms,
            outlives,
        }
    }

    /// Wakes who awaits the answer, and who feeds the body.
    pub(super) fn wake(&self) {
        for waker in [&self.waker, &self.pump].into_iter().flatten() {
            waker.wake_by_ref();
        }
    }
}
