//! The calls that a thread is in, as addresses: `executor_globals → current_execute_data →
//! prev_execute_data → …`.
//!
//! The process continues to run while it is read, so an attempt works like a seqlock. One system
//! call copies the pointer to the current call, the calls, the calls again and the pointer again.
//! If nothing moved in between, the copy is a stack; else it is torn, and the next attempt follows.
//! Calls are adjacent in PHP's own stack, so that one copy contains most of them.

use crate::error::Error;
use crate::layout::{Layout, execute_data, generator};
use crate::memory::{Memory, Piece, half_at, word_at};

/// Maximum number of calls that are followed. Deeper stacks are truncated and marked.
pub const FRAMES_MAX: usize = 32_768;

/// Maximum number of generators that wait for one another (`yield from`) in one stack.
const GENERATORS_MAX: usize = 1024;

const PAGE: u64 = 4096;

/// Bytes of PHP's stack that are copied at once: more than most programs use.
const WINDOW_BYTES: usize = 16 << 10;

/// Maximum size of a window: for deep stacks each further window is larger, up to this.
const WINDOW_BYTES_MAX: usize = 256 << 10;

/// Bytes copied of a call that is alone: a generator's, or the first of a part of PHP's stack.
const ALONE_BYTES: usize = 1024;

/// Bytes of `executor_globals` that are read twice: `vm_stack_top`, `vm_stack_end`, `vm_stack` …
/// `current_execute_data`.
const GLOBALS_BYTES: usize = 40;

/// Maximum number of windows of one stack.
const WINDOWS_MAX: usize = 512;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) opline: u64,
    pub(crate) func: u64,
    /// The object of a placeholder; 0: none.
    this: u64,
    prev: u64,
    /// Whether C called it, as is the case for all outermost calls.
    pub(crate) is_outermost: bool,
}

/// Result of one attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No PHP code runs.
    Idle,
    /// Calls, innermost first.
    Calls,
    /// The stack moved.
    Torn,
}

/// Walks stacks and reuses its buffers.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// Calls of the last attempt, innermost first.
    pub(crate) calls: Vec<Raw>,
    /// Their addresses.
    pub(crate) places: Vec<u64>,
    /// Whether there were more than `FRAMES_MAX`.
    pub(crate) is_cut: bool,
    /// Copies of the process's memory, one after the other.
    copies: Vec<u8>,
    windows: Vec<Window>,
    /// The first call of each window except the first, to be compared at the end.
    landmarks: Vec<(u64, Raw)>,
    pieces: Vec<Piece>,
    copied: Vec<u8>,
    /// Number of generators that may still be read.
    generators_left: usize,
}

/// A part of the process's memory that was copied twice.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Address of its first byte in the process.
    start: u64,
    bytes: usize,
    /// Offset of its first byte in `copies`; the second copy follows.
    offset: usize,
}

impl Window {
    fn has(&self, at: u64) -> bool {
        let offset = at.wrapping_sub(self.start);
        offset <= (self.bytes - execute_data::BYTES) as u64
    }
}

impl Raw {
    fn of(bytes: &[u8]) -> Self {
        let info = half_at(bytes, execute_data::THIS_TYPE);
        let is_object = info & 0xff == execute_data::IS_OBJECT;
        Self {
            is_outermost: info & execute_data::IS_TOP != 0,
            opline: word_at(bytes, execute_data::OPLINE),
            func: word_at(bytes, execute_data::FUNC),
            this: if is_object { word_at(bytes, execute_data::THIS) } else { 0 },
            prev: word_at(bytes, execute_data::PREV),
        }
    }
}

impl Walker {
    /// Makes one attempt to read the stack of the thread with these `executor_globals`.
    pub(crate) fn look(
        &mut self,
        memory: &impl Memory,
        layout: &Layout,
        executor: u64,
    ) -> Result<Look, Error> {
        self.calls.clear();
        self.places.clear();
        self.landmarks.clear();
        self.windows.clear();
        self.copies.clear();
        self.is_cut = false;
        self.generators_left = GENERATORS_MAX;
        let mut globals = [0; GLOBALS_BYTES];
        if !memory.fill(executor.wrapping_add(layout.vm_stack_top as u64), &mut globals)? {
            return Ok(Look::Torn);
        }
        let Some(current) = current(&globals, layout) else { return Ok(Look::Idle) };
        let end = current.wrapping_add(execute_data::BYTES as u64);
        // The memory below the start of PHP's stack is not needed.
        let (stack, stack_end) = (word_at(&globals, 16), word_at(&globals, 8));
        let floor = if (stack..stack_end).contains(&current) { stack } else { 0 };
        let watched = Piece {
            address: executor.wrapping_add(layout.vm_stack_top as u64),
            bytes: GLOBALS_BYTES,
        };
        let pointer = layout.current_execute_data - layout.vm_stack_top;
        let is_still =
            self.copy(memory, end, floor, WINDOW_BYTES, Some((watched, pointer, current)))?;
        if !is_still || !self.walk(memory, current)? {
            return Ok(Look::Torn);
        }
        Ok(if self.is_as_it_was(memory)? { Look::Calls } else { Look::Torn })
    }

    /// Copies a window twice, and `watched`, the pointer to the current call, before and after it.
    /// Returns false if the pointer moved, or if there is nothing to copy.
    fn copy(
        &mut self,
        memory: &impl Memory,
        end: u64,
        floor: u64,
        most: usize,
        watched: Option<(Piece, usize, u64)>,
    ) -> Result<bool, Error> {
        let Some(bytes) = self.lay_out(end, floor, most) else { return Ok(false) };
        let below = std::mem::take(&mut self.pieces);
        let head = watched.map_or(0, |(piece, ..)| piece.bytes);
        let watch = watched.map(|(piece, ..)| piece);
        self.pieces.extend(watch);
        self.pieces.extend_from_slice(&below);
        self.pieces.extend_from_slice(&below);
        self.pieces.extend(watch);
        self.copied.resize(2 * (head + bytes), 0);
        let came = memory.copy(&self.pieces, &mut self.copied)?;
        let is_whole = came == self.copied.len();
        let (pieces, bytes) = whole_pieces(&below, came.saturating_sub(head).min(bytes));
        if bytes < execute_data::BYTES {
            return Ok(false);
        }
        if !is_whole {
            // Not all of it exists, as for calls outside PHP's stack: the part that was read is
            // copied again.
            self.pieces.clear();
            self.pieces.extend_from_slice(pieces);
            self.pieces.extend(watch);
            self.copied.truncate(head + bytes);
            self.copied.resize(2 * (head + bytes), 0);
            if memory.copy(&self.pieces, &mut self.copied[head + bytes..])? < head + bytes {
                return Ok(false);
            }
        }
        let offset = self.copies.len();
        assemble(pieces, &self.copied[head..head + bytes], &mut self.copies);
        assemble(pieces, &self.copied[head + bytes..head + 2 * bytes], &mut self.copies);
        self.windows.push(Window { start: end - bytes as u64, bytes, offset });
        let is_still = watched.is_none_or(|(_, pointer, current)| {
            let after = &self.copied[head + 2 * bytes..];
            word_at(&self.copied, pointer) == current && word_at(after, pointer) == current
        });
        self.pieces = below;
        Ok(is_still)
    }

    /// Pieces from `end` down to `floor`, page by page, the highest first. A missing page cuts off
    /// only the pages below it.
    fn lay_out(&mut self, end: u64, floor: u64, most: usize) -> Option<usize> {
        self.pieces.clear();
        let floor = floor.max(end.checked_sub(most as u64)?);
        let mut to = end;
        while to > floor {
            let from = floor.max((to - 1) & !(PAGE - 1));
            self.pieces.push(Piece { address: from, bytes: (to - from) as usize });
            to = from;
        }
        Some((end - floor) as usize).filter(|bytes| *bytes >= execute_data::BYTES)
    }

    /// Follows the calls to the outermost one.
    fn walk(&mut self, memory: &impl Memory, current: u64) -> Result<bool, Error> {
        let mut at = current;
        // Brent's algorithm to detect a circle: a mark that moves at each power of two.
        let (mut mark, mut steps, mut power) = (0, 0_usize, 1_usize);
        let mut inner_generator = 0;
        while at != 0 {
            if at == mark {
                return Ok(false);
            }
            steps += 1;
            if steps == power {
                (mark, power) = (at, power * 2);
            }
            if self.calls.len() >= FRAMES_MAX || steps > 2 * FRAMES_MAX {
                self.is_cut = true;
                break;
            }
            let Some(call) = self.call(memory, at)? else { return Ok(false) };
            if call.prev == 0 && !call.is_outermost {
                // A call that is being prepared: an earlier state of the stack, not the present
                // one.
                return Ok(false);
            }
            if call.func != 0 {
                self.calls.push(call);
                self.places.push(at);
                inner_generator = at;
            } else if call.this != 0 && !self.delegation(memory, call.this, inner_generator)? {
                return Ok(false);
            }
            at = call.prev;
        }
        Ok(true)
    }

    /// A call, from an existing window or from a new one.
    fn call(&mut self, memory: &impl Memory, at: u64) -> Result<Option<Raw>, Error> {
        if !at.is_multiple_of(8) {
            return Ok(None);
        }
        if self.windows.iter().any(|window| window.has(at)) {
            return Ok(self.copied(at));
        }
        let Some(end) = at.checked_add(execute_data::BYTES as u64) else { return Ok(None) };
        if self.windows.len() >= WINDOWS_MAX {
            return Ok(None);
        }
        let most = self.window_bytes(at);
        if !self.copy(memory, end, 0, most, None)? {
            return Ok(None);
        }
        let call = self.copied(at);
        self.landmarks.extend(call.map(|call| (at, call)));
        Ok(call)
    }

    /// Bytes to copy for a call at this address: more and more, the longer the stack continues at
    /// the end of the last copy.
    fn window_bytes(&self, at: u64) -> usize {
        let follows = |w: &Window| at < w.start && w.start - at <= PAGE;
        let before = self.windows.iter().rev().find(|window| follows(window));
        before.map_or(ALONE_BYTES, |w| (w.bytes * 4).clamp(WINDOW_BYTES, WINDOW_BYTES_MAX))
    }

    /// A call of a window, if it was the same in both copies. The opcode of the current call may
    /// have moved on; the opcodes of its callers do not move while it runs.
    fn copied(&self, at: u64) -> Option<Raw> {
        let window = self.windows.iter().rev().find(|window| window.has(at))?;
        let from = window.offset + usize::try_from(at - window.start).ok()?;
        let call = |from: usize| Some(Raw::of(self.copies.get(from..from + execute_data::BYTES)?));
        let (one, two) = (call(from)?, call(from + window.bytes)?);
        let is_current = self.calls.is_empty();
        let is_same = one == two || (is_current && Raw { opline: two.opline, ..one } == two);
        is_same.then_some(two)
    }

    /// Adds the calls of generators that delegate (`yield from`). The outermost one, `leaf`, has a
    /// placeholder in the stack. The innermost one runs and has been seen. Between it and the
    /// caller of `leaf` are the generators that wait for one another.
    fn delegation(&mut self, memory: &impl Memory, leaf: u64, running: u64) -> Result<bool, Error> {
        let mut waiting = Vec::new();
        let mut at = leaf;
        loop {
            if self.generators_left == 0 {
                return Ok(false);
            }
            self.generators_left -= 1;
            let mut bytes = [0; generator::PARENT + 8];
            if !memory.fill(at, &mut bytes)? {
                return Ok(false);
            }
            let frame = word_at(&bytes, generator::EXECUTE_DATA);
            let parent = word_at(&bytes, generator::PARENT);
            if frame == running || frame == 0 {
                break;
            }
            let mut call = [0; execute_data::BYTES];
            if !memory.fill(frame, &mut call)? {
                return Ok(false);
            }
            waiting.push((frame, Raw::of(&call)));
            if parent == 0 {
                break;
            }
            at = parent;
        }
        // Found from the outermost inwards; the stack has the opposite order.
        for (at, call) in waiting.into_iter().rev().filter(|(_, call)| call.func != 0) {
            self.calls.push(call);
            self.places.push(at);
        }
        Ok(true)
    }

    /// Whether the stack still has the calls at which later windows began: then no call below them
    /// can have ended.
    fn is_as_it_was(&self, memory: &impl Memory) -> Result<bool, Error> {
        if self.landmarks.is_empty() {
            return Ok(true);
        }
        let piece =
            |(address, _): &(u64, Raw)| Piece { address: *address, bytes: execute_data::BYTES };
        let pieces: Vec<_> = self.landmarks.iter().map(piece).collect();
        let mut again = Vec::new();
        let came = memory.copy_each(&pieces, &mut again)?;
        let mut calls = again.chunks_exact(execute_data::BYTES).zip(&self.landmarks);
        Ok(came.iter().all(|came| *came) && calls.all(|(now, (_, then))| Raw::of(now) == *then))
    }
}

fn current(globals: &[u8], layout: &Layout) -> Option<u64> {
    let pointer = layout.current_execute_data - layout.vm_stack_top;
    Some(word_at(globals, pointer)).filter(|current| *current != 0)
}

/// The pieces that were copied completely, and their bytes.
fn whole_pieces(pieces: &[Piece], came: usize) -> (&[Piece], usize) {
    let mut bytes = 0;
    let count = pieces
        .iter()
        .take_while(|piece| {
            let is_whole = bytes + piece.bytes <= came;
            bytes += if is_whole { piece.bytes } else { 0 };
            is_whole
        })
        .count();
    (&pieces[..count], bytes)
}

/// Appends pieces, which arrive with the highest address first, in the order of addresses.
fn assemble(pieces: &[Piece], from_pieces: &[u8], copies: &mut Vec<u8>) {
    let mut from = 0;
    copies.resize(copies.len() + from_pieces.len(), 0);
    let mut to = copies.len();
    for piece in pieces {
        to -= piece.bytes;
        copies[to..to + piece.bytes].copy_from_slice(&from_pieces[from..from + piece.bytes]);
        from += piece.bytes;
    }
}
