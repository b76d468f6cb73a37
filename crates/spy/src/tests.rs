//! Misleading memory: regardless of the bytes that a process writes where it is read, an attempt
//! ends in bounded time and memory, and never panics.

use crate::engine::Engine;
use crate::error::Error;
use crate::frames::{FRAMES_MAX, Look, Walker};
use crate::layout::{LAYOUTS, execute_data, function, op};
use crate::memory::{Memory, Piece};
use crate::names::Names;
use crate::threads::Context;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Start of the simulated memory.
const START: u64 = 0x7000_0000_0000;
const EXECUTOR: u64 = START;
const STACK: u64 = START + 0x1_0000;

/// Simulated memory: its ranges, and nothing else, can be read.
#[derive(Debug, Default)]
struct Invented {
    ranges: BTreeMap<u64, Vec<u8>>,
}

impl Memory for Invented {
    fn copy(&self, pieces: &[Piece], into: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        for piece in pieces {
            let range = self.ranges.range(..=piece.address).next_back();
            let part = range.and_then(|(start, bytes)| {
                let offset = usize::try_from(piece.address - start).ok()?;
                bytes.get(offset..offset.checked_add(piece.bytes)?)
            });
            let Some(part) = part else { break };
            into[done..done + part.len()].copy_from_slice(part);
            done += part.len();
        }
        Ok(done)
    }
}

impl Invented {
    fn put(&mut self, address: u64, word: u64) {
        for (start, bytes) in self.ranges.range_mut(..=address).rev().take(1) {
            let offset = (address - start) as usize;
            if let Some(place) = bytes.get_mut(offset..offset + 8) {
                place.copy_from_slice(&word.to_ne_bytes());
            }
        }
    }

    /// Memory with globals that point to a call at `current`, and room for a stack.
    fn with_stack(bytes: usize, current: u64) -> Self {
        let mut memory = Self::default();
        memory.ranges.insert(EXECUTOR, vec![0; 4096]);
        memory.ranges.insert(STACK, vec![0; bytes]);
        let layout = &LAYOUTS[1];
        memory.put(EXECUTOR + layout.vm_stack_top as u64 + 8, STACK + bytes as u64);
        memory.put(EXECUTOR + layout.vm_stack_top as u64 + 16, STACK);
        memory.put(EXECUTOR + layout.current_execute_data as u64, current);
        memory
    }

    fn look(&self) -> (Look, Walker) {
        let mut walker = Walker::default();
        let look = walker.look(self, &LAYOUTS[1], EXECUTOR).expect("no error of the system");
        (look, walker)
    }
}

fn engine() -> Engine {
    Engine {
        layout: &LAYOUTS[1],
        contexts: vec![Context { thread: 1, executor: EXECUTOR, sapi: None }],
        frameless: Some(STACK),
        request_target: None,
        steady: std::iter::once(START..START + 0x10_0000).collect(),
        permanent: std::iter::once(START..START + 0x10_0000).collect(),
        build_id: String::new(),
    }
}

#[test]
fn circular_calls_are_torn() {
    let step = execute_data::BYTES as u64;
    for length in [1_u64, 2, 7] {
        let mut memory = Invented::with_stack(4096, STACK);
        for call in 0..length {
            let at = STACK + call * step;
            memory.put(at + execute_data::FUNC as u64, 1);
            let next = STACK + (call + 1) % length * step;
            memory.put(at + execute_data::PREV as u64, next);
        }
        assert_eq!(memory.look().0, Look::Torn, "{length}");
    }
}

#[test]
fn calls_without_outermost_call_are_torn() {
    let mut memory = Invented::with_stack(4096, STACK);
    memory.put(STACK + execute_data::FUNC as u64, 1);
    assert_eq!(memory.look().0, Look::Torn);
    let top = u64::from(execute_data::IS_TOP);
    memory.put(STACK + execute_data::THIS_TYPE as u64, top);
    assert_eq!(memory.look().0, Look::Calls);
}

#[test]
fn endless_stack_is_truncated() {
    let step = execute_data::BYTES as u64;
    let count = FRAMES_MAX as u64 + 10;
    let mut memory = Invented::with_stack((count * step) as usize, STACK + (count - 1) * step);
    for call in 1..count {
        memory.put(STACK + call * step + execute_data::FUNC as u64, 1);
        memory.put(STACK + call * step + execute_data::PREV as u64, STACK + (call - 1) * step);
    }
    let (look, walker) = memory.look();
    assert_eq!((look, walker.calls.len(), walker.is_cut), (Look::Calls, FRAMES_MAX, true));
}

#[test]
fn huge_claimed_name_length_is_not_trusted() {
    let (call, func, code, name) = (STACK, STACK + 0x200, STACK + 0x400, STACK + 0x600);
    let mut memory = Invented::with_stack(4096, call);
    memory.put(call, code);
    memory.put(call + execute_data::FUNC as u64, func);
    memory.put(call + execute_data::THIS_TYPE as u64, u64::from(execute_data::IS_TOP));
    memory.put(func, u64::from(function::USER));
    memory.put(func + function::NAME as u64, name);
    let layout = &LAYOUTS[1];
    memory.put(func + layout.last as u64, 1);
    memory.put(func + layout.opcodes as u64, code);
    memory.put(func + layout.filename as u64, name);
    memory.put(code + op::EXTENDED_VALUE as u64 + 4, 7);
    memory.put(name + 24, u64::from_ne_bytes(*b"f\x1b[2Jff\0"));
    let named = |length: u64, memory: &mut Invented| {
        memory.put(name + 16, length);
        let (look, walker) = memory.look();
        assert_eq!(look, Look::Calls);
        let frames = Names::new().name(memory, &engine(), EXECUTOR, &walker.calls).expect("read");
        frames.map(|frames| (frames[0].function.name.clone(), frames[0].line))
    };
    assert_eq!(named(7, &mut memory), Some(("f\u{fffd}[2Jff".to_owned(), 7)));
    assert_eq!(named(u64::MAX, &mut memory), Some(("f\u{fffd}[2Jff".to_owned(), 7)));
    assert_eq!(named(1 << 40, &mut memory), Some(("f\u{fffd}[2Jff".to_owned(), 7)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Words that point into the stack or anywhere, or are small: most of the content that an
    /// attempt can meet.
    #[test]
    fn attempt_on_arbitrary_memory_ends(
        drawn in proptest::collection::vec(any::<u64>(), 2048),
        current in prop_oneof![(0_u64..2048).prop_map(|at| STACK + at * 8), any::<u64>()],
    ) {
        let mut memory = Invented::with_stack(drawn.len() * 8, current);
        for (at, drawn) in drawn.iter().enumerate() {
            // A strategy with four kinds of words takes many times the time.
            let rest = drawn / 4;
            let word = match drawn % 4 {
                0 => STACK + rest % 0x2000 * 8,
                1 => rest % 0x10_0000,
                2 => rest.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                _ => 0,
            };
            memory.put(STACK + at as u64 * 8, word);
        }
        let (look, walker) = memory.look();
        if look == Look::Calls {
            prop_assert!(walker.calls.len() <= FRAMES_MAX + 1024);
            let named = Names::new().name(&memory, &engine(), EXECUTOR, &walker.calls);
            prop_assert!(named.is_ok());
        }
    }
}
