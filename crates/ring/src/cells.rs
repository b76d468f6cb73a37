//! Cells of the control block: the words of one slot, and those of one worker. `layout` has their
//! positions, `protocol` the steps that change them.

use crate::limits::WORKERS_MAX;
use crate::report::{DesiredState, LeaveReason, Model, RETURNS, WorkerReport, WorkerState};
use crate::stream::Stream;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::usage::{CELLS_MAX, Usage, UsageCell, UsageDetailsCell};
use crate::word::Word;

/// Keeps data that different processes write on different cache lines.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct CacheLine<T>(pub T);

/// One slot's control words, grouped by the process that writes them.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotCell {
    /// Written by all processes, by the transitions of [`Word`].
    pub(crate) word: CacheLine<Word>,
    /// Written by the front, before it submits.
    pub(crate) request: CacheLine<RequestMeta>,
    /// Request body: front → worker.
    pub(crate) body: CacheLine<Stream>,
    /// Written by the worker, before it begins the response or finishes.
    pub(crate) response: CacheLine<ResponseMeta>,
    /// Written by the worker, before it finishes.
    pub(crate) details: CacheLine<UsageDetailsCell>,
    /// Response body: worker → front.
    pub(crate) response_stream: CacheLine<Stream>,
    /// The worker sleeps here for bytes or room; the front wakes it.
    pub(crate) notifier: CacheLine<SlotNotifier>,
}

// The usage of a request contains the number of its worker's cell.
const _: () = assert!(WORKERS_MAX <= CELLS_MAX);

impl SlotCell {
    pub(crate) fn store_usage(&self, usage: &Usage) {
        let response = &self.response.0;
        response.usage.store(usage, &self.details.0, &response.ending);
    }

    pub(crate) fn load_usage(&self) -> Usage {
        let response = &self.response.0;
        response.usage.load(&self.details.0, &response.ending)
    }
}

/// Metadata of a request, in addition to its bytes. Written by the front, except where noted.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RequestMeta {
    /// Start of the wait for a worker, `CLOCK_MONOTONIC`.
    pub(crate) submitted_ns: AtomicU64,
    /// An [`Overrun`](crate::Overrun): the script must end now; 0: it may continue.
    pub(crate) overrun: AtomicU32,
    /// Maximum run time of the script if it requests more time, ms; 0: it cannot.
    pub(crate) extended_ms_max: AtomicU32,
    /// Run time that the script requests, ms from its take; 0: none requested. Written by the
    /// worker; it is here because the response's cache line is full.
    pub(crate) wanted_ms: AtomicU32,
    /// Whether the script continues when its client is gone; 0: it does not. Also written by the
    /// worker.
    pub(crate) outlives: AtomicU32,
}

/// Metadata of a response, in addition to its bytes. Written by the worker, except where noted.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ResponseMeta {
    pub(crate) status: AtomicU32,
    pub(crate) head_bytes: AtomicU32,
    pub(crate) usage: UsageCell,
    /// Bytes of interim responses before the response body, in the same stream.
    pub(crate) interim_bytes: AtomicU32,
    /// A [`Death`](crate::Death). Written by the supervisor, before it orphans the slot.
    pub(crate) death: AtomicU32,
    /// Length of the worker's report; 0: there is none.
    pub(crate) report_bytes: AtomicU32,
    /// An [`Ending`](crate::Ending), and a flag for the presence of
    /// [`UsageDetails`](crate::UsageDetails).
    pub(crate) ending: AtomicU32,
}

// All words that most responses use are on one cache line.
const _: () = assert!(cfg!(loom) || size_of::<CacheLine<ResponseMeta>>() == 64);

/// A worker blocked on one slot. `rings` changes with every wake-up; `waiting` is 1 while it
/// sleeps.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotNotifier {
    pub(crate) rings: AtomicU32,
    pub(crate) waiting: AtomicU32,
}

/// One worker's cell: it sleeps on `awake`; the rest is for reports.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WorkerCell {
    pub(crate) awake: AtomicU32,
    pub(crate) state: AtomicU32,
    pub(crate) model: AtomicU32,
    /// Incarnation of the process that uses the cell; 0: none.
    pub(crate) incarnation: AtomicU32,
    pub(crate) requests: AtomicU64,
    /// Slot number + 1 of the request it runs; 0: none.
    pub(crate) slot: AtomicU32,
    /// Pages that a rollback copies.
    pub(crate) hot_pages: AtomicU32,
    pub(crate) rollbacks: AtomicU64,
    /// A [`LeaveReason`](crate::LeaveReason); 0: none.
    pub(crate) leave: AtomicU32,
    /// A [`DesiredState`](crate::DesiredState). Written by the supervisor.
    pub(crate) desired_state: AtomicU32,
    /// Generation of the application that the worker runs. Written by the supervisor, before the
    /// fork.
    pub(crate) generation: AtomicU32,
    /// Changes each time a worker without a request looks for one: at least once a second.
    pub(crate) beat: AtomicU32,
    /// Changes each time the worker begins to run: with a request, and after each wait within one.
    pub(crate) stretch: AtomicU32,
}

impl WorkerCell {
    /// Contents of the cell, for the supervisor.
    pub(crate) fn report(&self) -> WorkerReport {
        let code = self.state.load(Ordering::Relaxed);
        let returns = code == RETURNS;
        let state = if returns { Some(WorkerState::Busy) } else { WorkerState::from_code(code) };
        let model = Model::from_code(self.model.load(Ordering::Relaxed));
        WorkerReport {
            state: state.unwrap_or(WorkerState::Starting),
            model: model.unwrap_or(Model::Script),
            requests: self.requests.load(Ordering::Relaxed),
            has_request: self.slot.load(Ordering::Relaxed) != 0,
            returns,
            beat: self.beat.load(Ordering::Relaxed),
            hot_pages: self.hot_pages.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
            leave: LeaveReason::from_code(self.leave.load(Ordering::SeqCst)),
        }
    }

    /// Desired state of the worker. Garbage reads as [`DesiredState::Serve`]; the supervisor writes
    /// the state again.
    pub(crate) fn desired_state(&self) -> DesiredState {
        let code = self.desired_state.load(Ordering::SeqCst);
        DesiredState::from_code(code).unwrap_or(DesiredState::Serve)
    }
}
