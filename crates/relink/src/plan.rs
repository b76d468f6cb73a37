//! Computes a library's new text from its text and tables.
//!
//! Does not know of processes. An instruction is rewritten only under two conditions: a decoder
//! that began at the first byte of its function reached it, and no branch of the whole text leads
//! into the middle of an instruction of that function. The new bytes are decoded again and must
//! have the intended meaning.

use foldhash::fast::RandomState;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};
use std::collections::HashMap;
use std::ops::Range;
use thiserror::Error;

const BITS: u32 = 64;
/// Maximum length of a stub: an `endbr64` and a jump.
const STUB_BYTES_MAX: usize = 16;
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// Target of a table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) target: u64,
    /// Whether calls through the entry may go to the target directly.
    pub(crate) is_direct: bool,
}

/// The table entries, by their addresses. There is one lookup for each instruction that reads
/// memory near itself.
pub(crate) type Slots = HashMap<u64, Slot, RandomState>;

/// Input of a plan. Addresses are those in memory.
pub(crate) struct Code64<'a> {
    pub(crate) at: u64,
    pub(crate) text: &'a [u8],
    /// In order, without overlaps, within the text.
    pub(crate) functions: &'a [Range<u64>],
    pub(crate) slots: &'a Slots,
}

/// The new text and the number of changes in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) text: Vec<u8>,
    pub(crate) calls: u64,
    pub(crate) loads: u64,
    /// Calls that still go through the table.
    pub(crate) left: u64,
}

/// Reasons not to trust any of the result.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Doubt {
    #[error("a branch leads into the middle of the instruction at {0:#x}")]
    Inside(u64),
    #[error("the instruction written at {0:#x} does not decode as intended")]
    Written(u64),
}

/// An instruction to be rewritten.
#[derive(Clone, Copy, Debug)]
struct Site {
    at: u64,
    len: usize,
    what: What,
    target: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// `call`, `jmp` or `jcc` to a stub: its last four bytes hold the target.
    Branch,
    /// `call *slot(%rip)`
    CallBySlot,
    /// `mov slot(%rip), %reg`
    Load,
}

pub(crate) fn plan(code: &Code64) -> Result<Plan, Doubt> {
    let mut walk = Walk {
        code,
        starts: vec![0; code.text.len().div_ceil(64)],
        branches: Vec::new(),
        sites: Vec::new(),
        known: Vec::new(),
        begun: Vec::new(),
        left: 0,
    };
    for function in code.functions {
        walk.walk(function);
    }
    walk.check_branches()?;
    let mut plan = Plan { text: code.text.to_vec(), calls: 0, loads: 0, left: walk.left };
    for site in &walk.sites {
        if write(code, site, &mut plan.text) {
            check(code, site, &plan.text)?;
            *(if site.what == What::Load { &mut plan.loads } else { &mut plan.calls }) += 1;
        } else if site.what != What::Load {
            plan.left += 1;
        }
    }
    Ok(plan)
}

struct Walk<'a> {
    code: &'a Code64<'a>,
    /// One bit per byte of the text: an instruction begins there.
    starts: Vec<u64>,
    /// Targets of branches.
    branches: Vec<u64>,
    sites: Vec<Site>,
    /// Functions that were decoded to their end.
    known: Vec<Range<u64>>,
    /// Starts of the instructions of the current function.
    begun: Vec<u64>,
    left: u64,
}

impl Walk<'_> {
    /// Decodes a function. One with an unknown instruction, or one whose end is not the end of an
    /// instruction, is left unchanged.
    fn walk(&mut self, function: &Range<u64>) {
        let Some(bytes) = self.code.bytes(function.clone()) else { return };
        let (sites, branches, left) = (self.sites.len(), self.branches.len(), self.left);
        let mut decoder = Decoder::with_ip(BITS, bytes, function.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        self.begun.clear();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                self.sites.truncate(sites);
                self.branches.truncate(branches);
                self.left = left;
                return;
            }
            self.begun.push(instruction.ip());
            self.note(&instruction);
        }
        for &at in &self.begun {
            let offset = (at - self.code.at) as usize;
            self.starts[offset / 64] |= 1 << (offset % 64);
        }
        self.known.push(function.clone());
    }

    fn note(&mut self, instruction: &Instruction) {
        if instruction.op0_kind() == OpKind::NearBranch64 {
            let target = instruction.near_branch64();
            self.branches.push(target);
            let bytes = self.code.bytes(instruction.ip()..instruction.next_ip()).unwrap_or(&[]);
            if is_branch_of_four_bytes(instruction, bytes)
                && let Some(slot) = self.stub(target)
            {
                self.note_use(instruction, What::Branch, slot);
            }
        } else if instruction.is_ip_rel_memory_operand()
            && let Some(slot) = self.code.slots.get(&instruction.ip_rel_memory_address())
        {
            match instruction.code() {
                Code::Call_rm64 => self.note_use(instruction, What::CallBySlot, *slot),
                Code::Mov_r64_rm64 if slot.is_direct => {
                    self.note_use(instruction, What::Load, *slot);
                }
                _ => {}
            }
        }
    }

    fn note_use(&mut self, instruction: &Instruction, what: What, slot: Slot) {
        if slot.is_direct {
            let (at, len) = (instruction.ip(), instruction.len());
            self.sites.push(Site { at, len, what, target: slot.target });
        } else {
            self.left += 1;
        }
    }

    /// The slot that the stub at this address jumps through, if there is a stub: `jmp *slot(%rip)`,
    /// after an `endbr64` in libraries that have them, and with the prefix `bnd` of older linkers.
    fn stub(&self, at: u64) -> Option<Slot> {
        let end = (at.checked_add(STUB_BYTES_MAX as u64)?).min(self.code.end());
        let bytes = self.code.bytes(at..end)?;
        // Almost all branches lead elsewhere: the decoder is not called for them.
        let rest = bytes.strip_prefix(ENDBR64).unwrap_or(bytes);
        if !matches!(rest, [0xff, 0x25, ..] | [0xf2, 0xff, 0x25, ..]) {
            return None;
        }
        let ip = at + (bytes.len() - rest.len()) as u64;
        let jump = Decoder::with_ip(BITS, rest, ip, DecoderOptions::NONE).decode();
        let is_stub = jump.code() == Code::Jmp_rm64 && jump.is_ip_rel_memory_operand();
        self.code.slots.get(&jump.ip_rel_memory_address()).filter(|_| is_stub).copied()
    }

    /// Checks that all branches into decoded functions lead to one of their instructions.
    fn check_branches(&self) -> Result<(), Doubt> {
        for &target in &self.branches {
            let after = self.known.partition_point(|function| function.start <= target);
            let is_known = after > 0 && self.known[after - 1].contains(&target);
            if is_known {
                let offset = (target - self.code.at) as usize;
                if self.starts[offset / 64] >> (offset % 64) & 1 == 0 {
                    return Err(Doubt::Inside(target));
                }
            }
        }
        Ok(())
    }
}

impl<'a> Code64<'a> {
    fn end(&self) -> u64 {
        self.at + self.text.len() as u64
    }

    fn bytes(&self, range: Range<u64>) -> Option<&'a [u8]> {
        let from = usize::try_from(range.start.checked_sub(self.at)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.at)?).ok()?;
        self.text.get(from..to)
    }
}

/// `call`, `jmp` or `jcc` (0f 80 to 0f 8f), with the distance at its end.
fn is_branch_of_four_bytes(instruction: &Instruction, bytes: &[u8]) -> bool {
    match instruction.code() {
        Code::Call_rel32_64 | Code::Jmp_rel32_64 => true,
        _ => matches!(bytes, [0x0f, 0x80..=0x8f, _, _, _, _]),
    }
}

/// Rewrites an instruction. Returns false if the target is too far away, or if the instruction is
/// not encoded as compilers do.
fn write(code: &Code64, site: &Site, text: &mut [u8]) -> bool {
    let from = (site.at - code.at) as usize;
    let end = site.at + site.len as u64;
    let Ok(distance) = i32::try_from(site.target.wrapping_sub(end).cast_signed()) else {
        return false;
    };
    let bytes = &mut text[from..from + site.len];
    match (site.what, &*bytes) {
        (What::Branch, _) => {}
        (What::CallBySlot, [0xff, 0x15, ..]) if bytes.len() == 6 => {
            // The prefix has no effect there; it fills the byte that the shorter call leaves.
            bytes[..2].copy_from_slice(&[0x67, 0xe8]);
        }
        (What::Load, [0x48 | 0x4c, 0x8b, to, ..]) if bytes.len() == 7 && to & 0xc7 == 0x05 => {
            bytes[1] = 0x8d;
        }
        _ => return false,
    }
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&distance.to_le_bytes());
    true
}

/// Decodes the new and the old instruction and compares them.
fn check(code: &Code64, site: &Site, text: &[u8]) -> Result<(), Doubt> {
    let from = (site.at - code.at) as usize;
    let one = |bytes: &[u8]| {
        let bytes = &bytes[from..from + site.len];
        Decoder::with_ip(BITS, bytes, site.at, DecoderOptions::NONE).decode()
    };
    let (before, after) = (one(code.text), one(text));
    let is_meant = match site.what {
        What::Branch => after.code() == before.code() && after.near_branch64() == site.target,
        What::CallBySlot => {
            after.code() == Code::Call_rel32_64 && after.near_branch64() == site.target
        }
        What::Load => {
            after.code() == Code::Lea_r64_m
                && after.op0_register() == before.op0_register()
                && after.segment_prefix() == Register::None
                && before.segment_prefix() == Register::None
                && after.is_ip_rel_memory_operand()
                && after.ip_rel_memory_address() == site.target
        }
    };
    (is_meant && after.len() == site.len).then_some(()).ok_or(Doubt::Written(site.at))
}
