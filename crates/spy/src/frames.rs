//! The calls that a thread is in, as addresses: `executor_globals → current_execute_data → prev_execute_data → …`.
//!
//! The process runs on while it is read, so a look is taken like a seqlock's: the pointer to the current call, the calls, the
//! calls once more and the pointer once more, in one system call. Only if nothing moved between is it a stack; else it is
//! torn, and the next look is taken. Calls lie one behind the other in PHP's own stack, so that one copy has most of them.

use crate::error::Error;
use crate::layout::{Layout, execute_data, generator};
use crate::memory::{Memory, Piece, half_at, word_at};

/// Calls that are followed; deeper ones are cut off, and the stack says so.
pub const FRAMES_MAX: usize = 32_768;

/// Generators that wait for one another (`yield from`), in one stack.
const GENERATORS_MAX: usize = 1024;

const PAGE: u64 = 4096;

/// What is copied at once of PHP's stack: more than most programs have.
const WINDOW_BYTES: usize = 16 << 10;

/// Of deep stacks, each window that follows another is twice as large, up to this.
const WINDOW_BYTES_MAX: usize = 256 << 10;

/// Of what lies alone: a generator's call, or the first of a part of PHP's stack.
const ALONE_BYTES: usize = 1024;

/// The words of `executor_globals` that are read twice: `vm_stack_top`, `vm_stack_end`, `vm_stack` … `current_execute_data`.
const GLOBALS_BYTES: usize = 40;

/// Windows of one stack.
const WINDOWS_MAX: usize = 512;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) opline: u64,
    pub(crate) func: u64,
    /// The object of a placeholder, or 0.
    this: u64,
    prev: u64,
    /// Whether C called it: so are all outermost calls.
    pub(crate) is_outermost: bool,
}

/// What one look has seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No PHP code runs.
    Idle,
    /// Calls, innermost first.
    Calls,
    /// The stack moved.
    Torn,
}

/// Walks stacks; its buffers serve again.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// The calls of the last look, innermost first.
    pub(crate) calls: Vec<Raw>,
    /// There were more than `FRAMES_MAX`.
    pub(crate) is_cut: bool,
    /// Copies of the other's memory, one behind the other.
    copies: Vec<u8>,
    windows: Vec<Window>,
    /// The first call of each window but the first, to be compared in the end.
    landmarks: Vec<(u64, Raw)>,
    pieces: Vec<Piece>,
    copied: Vec<u8>,
    /// Generators that may still be looked at.
    generators_left: usize,
}

/// A part of the other's memory that has been copied, twice.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Its first byte, there.
    start: u64,
    bytes: usize,
    /// Its first byte in `copies`; the second copy follows.
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
    /// Takes one look at the stack of the thread whose `executor_globals` these are.
    pub(crate) fn look(
        &mut self,
        memory: &impl Memory,
        layout: &Layout,
        executor: u64,
    ) -> Result<Look, Error> {
        self.calls.clear();
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
        // Below the start of PHP's stack there is nothing of ours.
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

    /// Copies a window, twice; what is `watched`, the pointer to the current call, before and behind. False if that moved, or if
    /// there is nothing to be copied.
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
            // Not all of it is there, as with calls outside PHP's stack: what came is copied again.
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

    /// Pieces from `end` down to `floor`, page by page, the highest first: what is not there cuts off only what is below it.
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
        // Brent's way to notice a circle: a mark that moves on at each power of two.
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
                // A call that is being prepared: this is where the stack was, not where it is.
                return Ok(false);
            }
            if call.func != 0 {
                self.calls.push(call);
                inner_generator = at;
            } else if call.this != 0 && !self.delegation(memory, call.this, inner_generator)? {
                return Ok(false);
            }
            at = call.prev;
        }
        Ok(true)
    }

    /// A call, from a window that there is or a new one.
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

    /// How much to copy for a call at this address: more and more, the longer the stack goes on where the last copy ended.
    fn window_bytes(&self, at: u64) -> usize {
        let follows = |w: &Window| at < w.start && w.start - at <= PAGE;
        let before = self.windows.iter().rev().find(|window| follows(window));
        before.map_or(ALONE_BYTES, |w| (w.bytes * 4).clamp(WINDOW_BYTES, WINDOW_BYTES_MAX))
    }

    /// A call of a window, if it was the same in both copies. The opcode of the current call may have moved on; those of its
    /// callers stand still while it runs.
    fn copied(&self, at: u64) -> Option<Raw> {
        let window = self.windows.iter().rev().find(|window| window.has(at))?;
        let from = window.offset + usize::try_from(at - window.start).ok()?;
        let call = |from: usize| Some(Raw::of(self.copies.get(from..from + execute_data::BYTES)?));
        let (one, two) = (call(from)?, call(from + window.bytes)?);
        let is_current = self.calls.is_empty();
        let is_same = one == two || (is_current && Raw { opline: two.opline, ..one } == two);
        is_same.then_some(two)
    }

    /// A generator that delegates (`yield from`) has a placeholder in the stack: between the innermost generator, which runs
    /// and has been seen, and the caller of the outermost, `leaf`, stand those that wait for one another.
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
            waiting.push(Raw::of(&call));
            if parent == 0 {
                break;
            }
            at = parent;
        }
        // Found from the outermost inwards; the stack is told the other way round.
        self.calls.extend(waiting.into_iter().rev().filter(|call| call.func != 0));
        Ok(true)
    }

    /// Whether the stack still has the calls at which later windows began: nothing below them can have ended.
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

/// The pieces that came whole, and their bytes.
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

/// Appends pieces, which came the highest address first, in the order of addresses.
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
