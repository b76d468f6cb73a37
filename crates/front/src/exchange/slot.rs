//! One row of the table: the use of a slot, and the tasks that wait for its events.

use super::deferred_usage::Later;
use super::missing_response::Lost;
use super::shares::Held;
use super::time_limits::{Audience, Course};
use super::turn_queue::Turn;
use crate::runtime::presence::ClientPresence;
use samovar_ring::Overrun;
use std::task::Waker;
use std::time::Duration;

/// Current use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotUse {
    Free,
    Awaited,
    Dying,
    Background,
    Quarantined { until_ms: u64 },
}

/// A response that needs nothing more from its script.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) since_ms: u64,
    /// The script may run on until this client leaves. `None`: its output is not needed at all.
    pub(super) client: Option<ClientPresence>,
}

/// State that the front keeps for one slot.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one request")]
#[derive(Debug)]
pub(super) struct SlotEntry {
    pub(super) used: SlotUse,
    /// Number of uses, so that a body pump notices when its exchange is over.
    pub(super) epoch: u32,
    pub(super) waker: Option<Waker>,
    pub(super) pump: Option<Waker>,
    pub(super) lost: Option<Lost>,
    /// The awaiting task has not read the latest event yet: the client is slow, not the worker.
    pub(super) unseen: bool,
    /// The client still has to send body bytes; the worker may be waiting for them.
    pub(super) is_feeding: bool,
    pub(super) submitted_ms: u64,
    /// Time since which the worker has been expected to send a byte; 0 while the request is queued.
    pub(super) quiet_since_ms: u64,
    /// Time since which no client waits for the response; 0 if a client waits, or if the next sweep
    /// will set it.
    pub(super) alone_since_ms: u64,
    /// Time since which a worker runs the request; 0 if none does, or if the next sweep will set
    /// it.
    pub(super) running_since_ms: u64,
    /// Time limit of the path; replaces `timeouts.request` and `timeouts.response`.
    pub(super) path_time: Option<Duration>,
    /// Time at which the script was requested to end; 0 if it was not.
    pub(super) asked_since_ms: u64,
    /// Reason why the script was requested to end.
    pub(super) overrun: Option<Overrun>,
    pub(super) killed: bool,
    /// The client's place, if requests are counted per client.
    pub(super) held: Option<Held>,
    /// Set while the script runs on although its response needs nothing more.
    pub(super) served: Option<Served>,
    /// Client of a request that the workers have not finished, if the queue is fair by client.
    pub(super) turn: Option<Turn>,
    /// Receiver of the request's usage when no task awaits the response any more.
    pub(super) later: Option<Later>,
    /// A client's request that waits for workers of the canary.
    pub(super) is_canary: bool,
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
        served: None,
        turn: None,
        later: None,
        is_canary: false,
    };

    /// A worker runs the request at `now_ms`, although no look at the deadlines has seen it yet.
    pub(super) fn runs(&mut self, now_ms: u64) {
        if self.running_since_ms == 0 {
            self.running_since_ms = now_ms.max(1);
        }
    }

    /// Timing of the worker's run at `now_ms`. Sets the start times that are not set yet.
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
        self.runs(now_ms);
        begin(&mut self.quiet_since_ms);
        if audience != Audience::Client {
            begin(&mut self.alone_since_ms);
        } else if self.unseen || self.is_feeding {
            // The client is slow, not the worker. Not counted after a disconnect, because then no
            // task reads the events.
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

    /// Wakes the task that awaits the response and the task that feeds the body.
    pub(super) fn wake(&self) {
        for waker in [&self.waker, &self.pump].into_iter().flatten() {
            waker.wake_by_ref();
        }
    }
}
