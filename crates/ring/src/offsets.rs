//! Offsets of the control words in the memory file, for tests that write garbage there. Tests of
//! the server run outside the process and cannot access the words by name. Other code uses the
//! structs.

use crate::cells::{CacheLine, ResponseMeta, SlotCell};
use crate::layout::Control;
use crate::queue::Queue;
use crate::usage::UsageCell;
use std::mem::offset_of;

/// Header that a reader of the file checks first.
pub const HEADER: usize = offset_of!(Control, header);
/// The word that stops all workers.
pub const STOP: usize = offset_of!(Control, stop);
/// Whether the first front sleeps, then one bit of news per slot.
pub const FRONT_BELL: usize = offset_of!(Control, notifiers);
/// Workers of each lane, and which of them sleep.
pub const WORKER_SETS: usize = offset_of!(Control, worker_sets);
/// Bytes of all worker sets.
pub const WORKER_SETS_BYTES: usize =
    crate::limits::LANES * size_of::<CacheLine<crate::notifier::WorkerSet>>();
/// Duration of requests.
pub const PACE: usize = offset_of!(Control, pace);
/// Run permits: their limits, the number of cells, and the workers that run.
pub const TURNS: usize = offset_of!(Control, permits);
/// Bytes of the run permits.
pub const TURNS_BYTES: usize = size_of::<crate::permit_words::RunPermits>();
/// Tail of the first lane's queue.
pub const QUEUE_TAIL: usize = offset_of!(Control, queues) + Queue::TAIL_AT;
/// Head of the queue.
pub const QUEUE_HEAD: usize = offset_of!(Control, queues) + Queue::HEAD_AT;
/// Bytes from one lane's queue to the next.
pub const QUEUE_BYTES: usize = size_of::<Queue>();
/// Entries of the queue.
pub const QUEUE_ENTRIES: usize = offset_of!(Control, queues) + Queue::ENTRIES_AT;
/// Cells of the workers.
pub const WORKERS: usize = offset_of!(Control, workers);
/// Bytes from one worker's cell to the next.
pub const WORKER_BYTES: usize = size_of::<CacheLine<crate::cells::WorkerCell>>();
/// Cells of the slots.
pub const SLOTS: usize = offset_of!(Control, slots);
/// Bytes from one slot's cell to the next.
pub const SLOT_BYTES: usize = size_of::<SlotCell>();

/// Within a slot's cell: the ownership word.
pub const WORD: usize = offset_of!(SlotCell, word);
/// Positions and end of the request body: written, read, end.
pub const BODY: usize = offset_of!(SlotCell, body);
/// Status of the response.
pub const STATUS: usize = RESPONSE + offset_of!(ResponseMeta, status);
/// Length of the response's header lines.
pub const HEAD_LENGTH: usize = RESPONSE + offset_of!(ResponseMeta, head_bytes);
/// Usage of the request.
pub const USAGE: usize = RESPONSE + offset_of!(ResponseMeta, usage);
/// Bytes of a usage.
pub const USAGE_BYTES: usize = size_of::<UsageCell>();
/// Length of the interim responses.
pub const INTERIM_LENGTH: usize = RESPONSE + offset_of!(ResponseMeta, interim_bytes);
/// Length of the worker's report on the request.
pub const REPORT_LENGTH: usize = RESPONSE + offset_of!(ResponseMeta, report_bytes);
/// How PHP ended the request.
pub const ENDING: usize = RESPONSE + offset_of!(ResponseMeta, ending);
/// Usage details of the request.
pub const DETAILS: usize = offset_of!(SlotCell, details);
/// Positions and end of the response body, as [`BODY`].
pub const RESPONSE_STREAM: usize = offset_of!(SlotCell, response_stream);
/// Notifier on which the slot's worker sleeps.
pub const SLOT_BELL: usize = offset_of!(SlotCell, notifier);
/// Lowest byte of the word of a slot whose request a worker runs.
pub const STATE_TAKEN: u32 = crate::word::State::Taken.code();

const RESPONSE: usize = offset_of!(SlotCell, response);
