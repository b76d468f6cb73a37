//! Misleading memory: regardless of the bytes that a process writes where it is read, an attempt
//! ends in bounded time and memory, and never panics.

use crate::engine::Engine;
use crate::error::Error;
use crate::frames::{FRAMES_MAX, Look, Walker};
use crate::heap;
use crate::layout::{LAYOUTS, SYMBOL_TABLE, execute_data, function, op};
use crate::memory::{Memory, Piece};
use crate::names::Names;
use crate::peek::{CallAddress, Peek};
use crate::stack::{Frame, Function};
use crate::tables;
use crate::threads::Context;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// An array with one entry, `key`, whose value has this type and content. The entry follows itself.
fn with_array(kind: u8, content: u64) -> (Invented, u64) {
    let mut memory = Invented::with_stack(0x2000, 0);
    let (array, buckets, name) = (STACK, STACK + 0x400, STACK + 0x800);
    // The mask is -2, so the numbers of two buckets are before the buckets.
    memory.put(array + 8, 0xffff_fffe_u64 << 32);
    memory.put(array + 16, buckets);
    memory.put(array + 24, 1 << 32 | 1);
    memory.put(buckets - 8, 0);
    memory.put(buckets, content);
    memory.put(buckets + 8, u64::from(kind));
    memory.put(buckets + 16, 0x8000_0000_0000_0000 | hash_of_key());
    memory.put(buckets + 24, name);
    memory.put(name + 16, 3);
    memory.put(name + 24, u64::from_ne_bytes(*b"key\0\0\0\0\0"));
    (memory, array)
}

fn hash_of_key() -> u64 {
    b"key".iter().fold(5381, |hash, byte| hash * 33 + u64::from(*byte))
}

#[test]
fn values_of_arrays_are_shown_and_bounded() {
    let text = STACK + 0x1000;
    for (kind, content, expected) in [
        (1, 0, Some("null")),
        (2, 0, Some("false")),
        (3, 0, Some("true")),
        (4, u64::MAX, Some("-1")),
        (5, 1.5_f64.to_bits(), Some("1.5")),
        (5, f64::NEG_INFINITY.to_bits(), Some("-INF")),
        (7, STACK, Some("array(1)")),
        (9, 1, Some("resource")),
        // Undefined, of an unknown type, a text outside memory.
        (0, 7, None),
        (77, 7, None),
        (6, u64::MAX - 30, None),
        // A reference to itself.
        (12, STACK + 0x400, None),
    ] {
        let (memory, array) = with_array(kind, content);
        let found = tables::find(&memory, array, "key").expect("read").expect("an entry");
        let found = found.resolved(&memory).expect("read");
        let shown = found.and_then(|value| value.shown(&memory).expect("read"));
        assert_eq!(shown.as_deref(), expected, "{kind}");
        assert_eq!(tables::find(&memory, array, "kez").expect("read"), None);
    }
    let (mut memory, array) = with_array(6, text);
    let shown = |memory: &Invented| {
        let found = tables::find(memory, array, "key").expect("read").expect("an entry");
        found.shown(memory).expect("read").expect("a text")
    };
    memory.put(text + 16, 4);
    memory.put(text + 24, u64::from_ne_bytes(*b"a\x1b[2Jjkl"));
    assert_eq!(shown(&memory), "\"a\u{fffd}[2\"");
    memory.put(text + 16, 1 << 60);
    let cut = shown(&memory);
    assert!(cut.chars().count() < 200 && cut.ends_with("(1152921504606846976 bytes)"), "{cut}");
}

#[test]
fn heap_that_contradicts_itself_is_not_shown() {
    // The chunk with PHP's stack leads to the heap in the first chunk.
    let chunk = START & !((2 << 20) - 1);
    let with = |at: u64, size: u64| {
        let mut memory = Invented::default();
        memory.ranges.insert(EXECUTOR + 0x8000, vec![0; 4096]);
        memory.ranges.insert(chunk, vec![0; 256]);
        memory.put(EXECUTOR + 0x8000 + LAYOUTS[1].vm_stack_top as u64 + 16, chunk + 0x1000);
        memory.put(chunk, at);
        memory.put(chunk + 64 + 16, size);
        memory.put(chunk + 64 + 24, size + 1);
        let found = heap::look(&memory, &LAYOUTS[1], EXECUTOR + 0x8000).expect("read");
        found.map(|heap| (heap.bytes, heap.peak_bytes))
    };
    assert_eq!(with(chunk + 64, 7), Some((7, 8)));
    assert_eq!(with(chunk + 72, 7), None);
    assert_eq!(with(u64::MAX, 7), None);
    assert_eq!(with(chunk + 64, 1 << 60), None);
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

    /// Variables of a call, and global ones, in arbitrary memory.
    #[test]
    fn peek_into_arbitrary_memory_ends(
        drawn in proptest::collection::vec(any::<u64>(), 1024),
        call in (0_u64..1024).prop_map(|at| STACK + at * 8),
        func in prop_oneof![(0_u64..1024).prop_map(|at| STACK + at * 8), any::<u64>()],
    ) {
        let mut memory = Invented::with_stack(drawn.len() * 8, call);
        for (at, drawn) in drawn.iter().enumerate() {
            let rest = drawn / 4;
            let word = match drawn % 4 {
                0 => STACK + rest % 0x400 * 8,
                1 => rest % 16,
                2 => *drawn,
                _ => 1,
            };
            memory.put(STACK + at as u64 * 8, word);
        }
        memory.put(call + execute_data::FUNC as u64, func);
        memory.put(func, u64::from(function::USER));
        let function = Function { name: "f".to_owned(), ..Function::default() };
        let frames = [Frame { function: Arc::new(function), line: 1 }];
        let places = [CallAddress { call, func }];
        for peek in ["a@f", "a.key@f", "this@f"].map(|text| Peek::variable(text).expect("one")) {
            let found = peek.look(&memory, &LAYOUTS[1], EXECUTOR, (&frames, &places));
            prop_assert!(found.expect("read").is_none_or(|text| text.len() < 1024));
        }
        let peek = Peek::global("server.key").expect("one");
        let executor = STACK - SYMBOL_TABLE as u64;
        prop_assert!(peek.look(&memory, &LAYOUTS[1], executor, (&[], &[])).is_ok());
    }
}
