//! The function that an opcode calls: the name in a caller's opcode must match the call above it in
//! the stack.
//!
//! A loop of short calls returns to the same two addresses within nanoseconds. So equal copies may
//! still contain a call and a caller of different moments. The program's own code shows this:
//! `DO_UCALL` and similar opcodes end a call that an earlier opcode, `INIT_FCALL` or similar, has
//! begun with the name (`Zend/zend_compile.c`: `zend_compile_call_common`).
//!
//! Also, between two instructions of such a call, the current call may already be the new one while
//! its caller's opcode is still that of the previous one. A process that loses its processor at
//! that point shows, for a long time, a stack that never existed.

use crate::error::Error;
use crate::layout::{op, string};
use crate::memory::{Memory, half_at};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of opcodes before a call that are searched for the beginning of the call.
const OPCODES_MAX: u64 = 64;

/// Maximum length of a name that is compared.
const NAME_BYTES_MAX: usize = 256;

/// Number of reads, at intervals of at least `WHILE`, in which no attempt matched. After that the
/// call counts as a kind that is not known here, as when an extension replaces a function, and is
/// shown.
const CONTRADICTIONS_MAX: u32 = 8;
const WHILE: Duration = Duration::from_millis(50);

/// Functions that opcodes call, by the addresses of the opcodes.
#[derive(Debug, Default)]
pub(crate) struct Callees {
    known: HashMap<u64, Option<Arc<str>>>,
    /// Calls that their callers' opcodes do not name, by the addresses of opcode and function: the
    /// number of reads, and the time of the last one.
    contradictions: HashMap<(u64, u64), (u32, Instant)>,
    /// The last such call, and the number of successive attempts that saw it.
    last: Option<((u64, u64), u32)>,
    copied: Vec<u8>,
}

impl Callees {
    pub(crate) fn len(&self) -> usize {
        self.known.len() + self.contradictions.len()
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.contradictions.clear();
    }

    /// Notes that the opcode does not name that function. Returns whether this counts as a
    /// contradiction, after all that was noted of both.
    pub(crate) fn contradicts(&mut self, opline: u64, func: u64) -> bool {
        let looks = self.last.filter(|(last, _)| *last == (opline, func)).map_or(0, |last| last.1);
        self.last = Some(((opline, func), looks + 1));
        let noted = self.contradictions.get(&(opline, func));
        noted.is_none_or(|(times, _)| *times < CONTRADICTIONS_MAX)
    }

    /// Notes an attempt without a contradiction.
    pub(crate) fn agree(&mut self) {
        self.last = None;
    }

    /// Notes that none of `looks` attempts at a stack matched, if each had the same contradiction.
    pub(crate) fn note_torn(&mut self, looks: u32) {
        let Some((both, _)) = self.last.take().filter(|last| last.1 >= looks) else { return };
        let now = Instant::now();
        let (times, since) = self.contradictions.entry(both).or_insert((1, now));
        if now.duration_since(*since) >= WHILE {
            (*times, *since) = (*times + 1, now);
        }
    }

    /// The name that the opcode at `opline` calls, in a function whose opcodes begin at `first`:
    /// without its namespace, in lower case. `None` if the name is not in the code, as in calls of
    /// a variable; empty if the opcode calls nothing. Cached if the memory `stays` unchanged.
    pub(crate) fn called(
        &mut self,
        memory: &impl Memory,
        first: u64,
        opline: u64,
        stays: bool,
    ) -> Result<Option<Arc<str>>, Error> {
        if let Some(known) = self.known.get(&opline) {
            return Ok(known.clone());
        }
        let name = self.look_up(memory, first, opline)?;
        if stays {
            self.known.insert(opline, name.clone());
        }
        Ok(name)
    }

    fn look_up(
        &mut self,
        memory: &impl Memory,
        first: u64,
        opline: u64,
    ) -> Result<Option<Arc<str>>, Error> {
        let bytes = op::BYTES as u64;
        let count = (opline.wrapping_sub(first) / bytes).min(OPCODES_MAX) + 1;
        let start = opline.wrapping_sub((count - 1) * bytes);
        self.copied.resize((count * bytes) as usize, 0);
        if !memory.fill(start, &mut self.copied)? {
            return Ok(None);
        }
        let last = self.copied.len() - op::BYTES;
        if !op::RUNS_CODE.contains(&self.copied[last + op::CODE]) {
            return Ok(Some("".into()));
        }
        let Some((place, op)) = beginning(&self.copied) else { return Ok(None) };
        let literal = literal(start + place as u64, op);
        let Some(text) = memory.word(literal)? else { return Ok(None) };
        let length = memory.word(text.wrapping_add(string::LEN as u64))?.unwrap_or(0);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if !(1..=NAME_BYTES_MAX).contains(&length) {
            return Ok(None);
        }
        let mut name = vec![0; length];
        if !memory.fill(text.wrapping_add(string::VAL as u64), &mut name)? {
            return Ok(None);
        }
        Ok(std::str::from_utf8(&name).ok().map(|name| bare(name).into()))
    }
}

/// Whether a function of that name may be the target of a call with the name `called`.
pub(crate) fn is_called_so(function: &str, called: &str) -> bool {
    if called.is_empty() {
        return false;
    }
    let name = bare(function);
    // Stand-ins: the called function is not the one that runs.
    let is_other = name.starts_with('{') || name == "__call" || name == "__callstatic";
    is_other || name.len() > NAME_BYTES_MAX || name == called
}

fn bare(name: &str) -> String {
    name.rsplit('\\').next().unwrap_or_default().to_ascii_lowercase()
}

/// For opcodes of which the last one calls: the opcode that began that call, if it has a constant
/// name. Returns its position and its bytes.
fn beginning(ops: &[u8]) -> Option<(usize, &[u8])> {
    let mut depth = 0_usize;
    for (number, op) in ops.chunks_exact(op::BYTES).enumerate().rev() {
        let code = op[op::CODE];
        if op::CALLS.contains(&code) {
            depth += 1;
        } else if op::BEGINS_CALL.contains(&code) {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                let is_named =
                    op::BEGINS_NAMED_CALL.contains(&code) && op[op::KIND_2] == op::CONSTANT;
                return is_named.then_some((number * op::BYTES, op));
            }
        } else if depth == 0 {
            // The last opcode is not a call.
            return None;
        }
    }
    None
}

/// Address of the name's `zval`: an operand holds the distance of a literal from the opcode
/// (`RT_CONSTANT`).
fn literal(opline: u64, op: &[u8]) -> u64 {
    let distance = half_at(op, op::OPERAND_2).cast_signed();
    opline.wrapping_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An opcode with that number, whose second operand is a constant.
    fn op(code: u8) -> Vec<u8> {
        let mut bytes = vec![0; op::BYTES];
        bytes[op::CODE] = code;
        bytes[op::KIND_2] = op::CONSTANT;
        bytes
    }

    fn place(codes: &[u8]) -> Option<usize> {
        let ops: Vec<u8> = codes.iter().flat_map(|code| op(*code)).collect();
        beginning(&ops).map(|(place, _)| place / op::BYTES)
    }

    const INIT: u8 = 61;
    const SEND: u8 = 117;
    const DO: u8 = 130;
    const DYNAMIC: u8 = 128;

    #[test]
    fn nested_calls_match_their_own_init_opcodes() {
        assert_eq!(place(&[INIT, SEND, DO]), Some(0));
        assert_eq!(place(&[INIT, INIT, SEND, DO, SEND, DO]), Some(0));
        assert_eq!(place(&[INIT, INIT, SEND, DO]), Some(1));
        assert_eq!(place(&[INIT, DO, INIT, DO]), Some(2));
    }

    #[test]
    fn call_without_named_beginning_yields_none() {
        assert_eq!(place(&[DYNAMIC, SEND, DO]), None);
        assert_eq!(place(&[INIT, SEND]), None);
        assert_eq!(place(&[SEND, DO]), None);
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn names_are_compared_without_namespaces() {
        assert!(is_called_so("App\\Basket", "basket") && is_called_so("total", "total"));
        assert!(is_called_so("{closure}", "handle") && is_called_so("__callStatic", "find"));
        assert!(!is_called_so("l104", "l103"));
        assert!(!is_called_so("l104", "") && !is_called_so("{closure}", ""));
    }

    #[test]
    fn literal_address_is_relative_to_opcode() {
        let mut bytes = op(INIT);
        bytes[op::OPERAND_2..op::OPERAND_2 + 4].copy_from_slice(&(-32_i32).to_ne_bytes());
        assert_eq!(literal(1000, &bytes), 968);
    }
}
