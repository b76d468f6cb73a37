//! The list of names: a table in the region. Each change builds a new list; a list never changes.
//!
//! It consists of two words (the number of slots, and 0), then slots of six words each, then the
//! names. A slot holds:
//!
//! - the hash of a name, as PHP computes it
//! - the address of the name; 0: the slot is free
//! - the length of the name
//! - the value (two words, a `zval`)
//! - the number under which its reads are counted

use crate::layout::{Top, hash};
use crate::region::Region;

const SLOT_WORDS: usize = 6;
const HEAD_WORDS: usize = 2;

/// A value and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) top: Top,
    pub(crate) number: usize,
}

/// Bytes of the list for position `at` of a region with the address `base`.
pub(crate) fn lay_out(values: &[Named<'_>], base: u64, at: u64) -> Vec<u8> {
    let slots = (values.len() * 2).next_power_of_two();
    let mut words = vec![0_u64; HEAD_WORDS + slots * SLOT_WORDS];
    let mut names: Vec<u8> = Vec::new();
    words[0] = slots as u64;
    for value in values {
        let hash = hash(value.name);
        let is_free = |slot: &usize| words[HEAD_WORDS + slot * SLOT_WORDS + 1] == 0;
        let mut from = (0..slots).map(|step| (hash as usize).wrapping_add(step) & (slots - 1));
        let Some(slot) = from.find(is_free) else { continue };
        let name = base + at + (words.len() * 8 + names.len()) as u64;
        let fields = [
            hash,
            name,
            value.name.len() as u64,
            value.top.word,
            u64::from(value.top.kind),
            value.number as u64,
        ];
        words[HEAD_WORDS + slot * SLOT_WORDS..][..SLOT_WORDS].copy_from_slice(&fields);
        names.extend(value.name);
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend(names);
    bytes
}

/// Finds a value of the list at `place`, which the reader's pin must hold.
pub(crate) fn find(region: &Region, place: u64, name: &[u8], hash: u64) -> Option<(Top, usize)> {
    if place == 0 {
        return None;
    }
    let list = std::ptr::with_exposed_provenance::<u64>((region.base() + place) as usize);
    // SAFETY: only the server writes the region; it has put a list here, and the pin keeps it.
    let slots = unsafe { *list } as usize;
    for step in 0..slots {
        let slot = (hash as usize).wrapping_add(step) & (slots - 1);
        // SAFETY: one of the list's slots.
        let slot = unsafe { list.add(HEAD_WORDS + slot * SLOT_WORDS) };
        // SAFETY: six words, aligned.
        let slot = unsafe { &*slot.cast::<[u64; SLOT_WORDS]>() };
        let [its_hash, at, len, word, kind, number] = *slot;
        if at == 0 {
            return None;
        }
        if its_hash == hash && len as usize == name.len() {
            let its = std::ptr::with_exposed_provenance::<u8>(at as usize);
            // SAFETY: the list's name has `len` bytes, which equals the length used here.
            let its = unsafe { std::slice::from_raw_parts(its, name.len()) };
            if its == name {
                return Some((Top { word, kind: kind as u32 }, number as usize));
            }
        }
    }
    None
}
