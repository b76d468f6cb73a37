//! Where the control words lie in the memory file, for tests that write garbage there: those of the server cannot be
//! told apart by name from outside. Nobody else needs this, who has the structs.

use crate::layout::{CacheLine, Control, ResponseMeta, SlotCell};
use crate::queue::Queue;
use crate::usage::UsageCell;
use std::mem::offset_of;

/// What the reader of the file checks first.
pub const HEADER: usize = offset_of!(Control, header);
/// The word that stops all workers.
pub const STOP: usize = offset_of!(Control, stop);
/// Whether the first front sleeps, then a bit of news for each slot.
pub const FRONT_BELL: usize = offset_of!(Control, bells);
/// Each lane's workers, and which of them sleep.
pub const WORKER_SETS: usize = offset_of!(Control, worker_sets);
/// Bytes of all these.
pub const WORKER_SETS_BYTES: usize = crate::LANES * size_of::<CacheLine<crate::bell::WorkerSet>>();
/// How long requests take.
pub const PACE: usize = offset_of!(Control, pace);
/// How many workers may run, how many cells there are, and who runs.
pub const TURNS: usize = offset_of!(Control, turns);
/// Bytes of these.
pub const TURNS_BYTES: usize = size_of::<crate::turns::Turns>();
/// The first lane's queue: its tail.
pub const QUEUE_TAIL: usize = offset_of!(Control, queues) + Queue::TAIL_AT;
/// The queue's head.
pub const QUEUE_HEAD: usize = offset_of!(Control, queues) + Queue::HEAD_AT;
/// Bytes from one lane's queue to the next one's.
pub const QUEUE_BYTES: usize = size_of::<Queue>();
/// The queue's entries.
pub const QUEUE_ENTRIES: usize = offset_of!(Control, queues) + Queue::ENTRIES_AT;
/// The cells of the workers.
pub const WORKERS: usize = offset_of!(Control, workers);
/// Bytes from one worker's cell to the next one's.
pub const WORKER_BYTES: usize = size_of::<CacheLine<crate::layout::WorkerCell>>();
/// The cells of the slots.
pub const SLOTS: usize = offset_of!(Control, slots);
/// Bytes from one slot's cell to the next one's.
pub const SLOT_BYTES: usize = size_of::<SlotCell>();

/// Within a slot's cell: who owns it.
pub const WORD: usize = offset_of!(SlotCell, word);
/// Positions and end of the request's body: written, read, end.
pub const BODY: usize = offset_of!(SlotCell, body);
/// The answer's status.
pub const STATUS: usize = RESPONSE + offset_of!(ResponseMeta, status);
/// Length of its header lines.
pub const HEAD_LENGTH: usize = RESPONSE + offset_of!(ResponseMeta, head_bytes);
/// What the request cost: its usage.
pub const USAGE: usize = RESPONSE + offset_of!(ResponseMeta, usage);
/// Bytes of a usage.
pub const USAGE_BYTES: usize = size_of::<UsageCell>();
/// Length of the interim answers.
pub const INTERIM_LENGTH: usize = RESPONSE + offset_of!(ResponseMeta, interim_bytes);
/// Length of what the worker says of the request.
pub const REPORT_LENGTH: usize = RESPONSE + offset_of!(ResponseMeta, report_bytes);
/// How PHP ended it.
pub const ENDING: usize = RESPONSE + offset_of!(ResponseMeta, ending);
/// What else the request cost.
pub const DETAILS: usize = offset_of!(SlotCell, details);
/// Positions and end of the answer's body, as [`BODY`].
pub const ANSWER: usize = offset_of!(SlotCell, answer);
/// Where its worker sleeps.
pub const SLOT_BELL: usize = offset_of!(SlotCell, bell);
/// The word's lowest byte in a slot whose request a worker runs.
pub const STATE_TAKEN: u32 = crate::word::State::Taken.code();

const RESPONSE: usize = offset_of!(SlotCell, response);
