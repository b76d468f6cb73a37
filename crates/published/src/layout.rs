//! Lays out a value's bytes as PHP's immutable arrays and interned strings: `Zend/zend_types.h` and
//! `zend_hash.h` of PHP 8.2 to 8.4.
//!
//! csrc/functions/published.c compares every number here with PHP's headers at compile time.
//!
//! Strings contain their hashes, so PHP never writes to them. Equal short strings are stored once.
//! They are interned and not *permanent*: PHP does not keep a pointer to them beyond a request on
//! its own. Arrays are immutable: PHP never counts their references, and copies them before a
//! write.

use crate::encoding::{
    DEPTH_MAX, Encoded, FALSE, FLOAT, Garbled, INT, LIST, MAP, NULL, STRING, TRUE,
};
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Bytes of a `zval`.
pub const VALUE_BYTES: usize = 16;
/// Bytes of a `Bucket`.
const BUCKET_BYTES: usize = 32;
/// Bytes of a `HashTable`.
const TABLE_BYTES: usize = 56;
/// Bytes of a `zend_string` before its text.
const STRING_HEAD_BYTES: usize = 24;

/// `IS_NULL` and so on.
const TYPE_NULL: u32 = 1;
const TYPE_FALSE: u32 = 2;
const TYPE_TRUE: u32 = 3;
const TYPE_INT: u32 = 4;
const TYPE_FLOAT: u32 = 5;
/// `IS_INTERNED_STRING_EX`: no flag marks it as reference-counted.
const TYPE_STRING: u32 = 6;
/// Type of an immutable array, also without the flag for reference counting.
const TYPE_ARRAY: u32 = 7;

/// `GC_STRING | IS_STR_INTERNED`.
const STRING_INFO: u32 = 6 | 1 << 4 | 1 << 6;
/// `IS_ARRAY | GC_NOT_COLLECTABLE | GC_IMMUTABLE`.
const ARRAY_INFO: u32 = 7 | 1 << 4 | 1 << 6;
/// More than one reference, so PHP never writes to it.
const ARRAY_COUNT: u32 = 2;

/// `HASH_FLAG_PACKED`.
const FLAG_PACKED: u32 = 1 << 2;
/// `HASH_FLAG_UNINITIALIZED`.
const FLAG_UNINITIALIZED: u32 = 1 << 3;
/// `HASH_FLAG_STATIC_KEYS`.
const FLAG_STATIC_KEYS: u32 = 1 << 4;
/// `HT_MIN_SIZE`.
const SIZE_MIN: usize = 8;
/// `HT_MAX_SIZE`.
const SIZE_MAX: usize = 0x4000_0000;
/// `HT_MIN_MASK`: two hash slots.
const MASK_MIN: u32 = (-2_i32).cast_unsigned();
/// `HT_INVALID_IDX`.
const NO_INDEX: u32 = u32::MAX;

/// Maximum length of a string that is compared with the strings stored before.
const SHARED_TEXT_BYTES_MAX: usize = 256;

/// Why a value cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It is not an encoded value.
    #[error(transparent)]
    Garbled(#[from] Garbled),
    /// It has too many bytes.
    #[error("it takes more than {0} bytes")]
    TooLarge(usize),
    /// Its arrays are nested too deep.
    #[error("its arrays are nested deeper than {DEPTH_MAX}")]
    TooDeep,
}

/// The top-level value: the content of a `zval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Top {
    /// A number's bits, or the offset of the string or array in the bytes.
    pub(crate) word: u64,
    pub(crate) kind: u32,
}

impl Top {
    pub(crate) fn is_address(self) -> bool {
        self.kind >= TYPE_STRING
    }
}

/// A value laid out for address 0, and the positions of the addresses in it.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(crate) bytes: Vec<u8>,
    addresses: Vec<u64>,
    pub(crate) top: Top,
}

impl Laid {
    /// Moves it to an address.
    pub(crate) fn move_to(&mut self, base: u64) {
        for at in std::mem::take(&mut self.addresses) {
            let at = at as usize;
            let word = &mut self.bytes[at..at + 8];
            let offset = u64::from_ne_bytes(word.try_into().unwrap_or_default());
            word.copy_from_slice(&(base + offset).to_ne_bytes());
        }
        if self.top.is_address() {
            self.top.word += base;
        }
    }
}

/// PHP's hash of a string: `zend_inline_hash_func`.
pub(crate) fn hash(text: &[u8]) -> u64 {
    let times33 = |hash: u64, byte: &u8| hash.wrapping_mul(33).wrapping_add(u64::from(*byte));
    text.iter().fold(5381, times33) | 1 << 63
}

/// Lays out a value in at most `bytes_max` bytes.
pub(crate) fn lay_out(encoded: &[u8], bytes_max: usize) -> Result<Laid, LayoutError> {
    let mut layout = Layout {
        from: Encoded::new(encoded),
        bytes: Vec::new(),
        bytes_max,
        addresses: Vec::new(),
        texts: HashMap::default(),
    };
    let top = layout.value(0)?;
    if !layout.from.is_at_end() {
        return Err(layout.from.garbled().into());
    }
    Ok(Laid { bytes: layout.bytes, addresses: layout.addresses, top })
}

struct Layout<'a> {
    from: Encoded<'a>,
    bytes: Vec<u8>,
    bytes_max: usize,
    addresses: Vec<u64>,
    texts: HashMap<&'a [u8], u64, FixedState>,
}

impl<'a> Layout<'a> {
    /// Adds `bytes` zero bytes and returns their offset.
    fn room(&mut self, bytes: usize) -> Result<usize, LayoutError> {
        let at = self.bytes.len().next_multiple_of(8);
        let end = at.checked_add(bytes).filter(|end| *end <= self.bytes_max);
        self.bytes.resize(end.ok_or(LayoutError::TooLarge(self.bytes_max))?, 0);
        Ok(at)
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn put_u64(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    fn put_address(&mut self, at: usize, offset: u64) {
        self.put_u64(at, offset);
        self.addresses.push(at as u64);
    }

    fn put_value(&mut self, at: usize, value: Top) {
        if value.is_address() {
            self.put_address(at, value.word);
        } else {
            self.put_u64(at, value.word);
        }
        self.put_u32(at + 8, value.kind);
    }

    fn value(&mut self, depth: usize) -> Result<Top, LayoutError> {
        let number = |word, kind| Ok(Top { word, kind });
        match self.from.tag()? {
            NULL => number(0, TYPE_NULL),
            FALSE => number(0, TYPE_FALSE),
            TRUE => number(0, TYPE_TRUE),
            INT => number(self.from.word()?, TYPE_INT),
            FLOAT => number(self.from.word()?, TYPE_FLOAT),
            STRING => {
                let text = self.from.text()?;
                number(self.text(text)?, TYPE_STRING)
            }
            tag @ (LIST | MAP) => {
                if depth == DEPTH_MAX {
                    return Err(LayoutError::TooDeep);
                }
                let count = self.from.count()?;
                let next = self.from.word()?;
                let table = match (count, tag) {
                    (0, _) => self.empty(next)?,
                    (_, LIST) => self.list(count, next, depth)?,
                    _ => self.map(count, next, depth)?,
                };
                number(table, TYPE_ARRAY)
            }
            _ => Err(self.from.garbled().into()),
        }
    }

    /// Adds a `zend_string`.
    fn text(&mut self, text: &'a [u8]) -> Result<u64, LayoutError> {
        let is_short = text.len() <= SHARED_TEXT_BYTES_MAX;
        if let Some(there) = self.texts.get(text).filter(|_| is_short) {
            return Ok(*there);
        }
        let at = self.room(STRING_HEAD_BYTES + text.len() + 1)?;
        self.put_u32(at, 1);
        self.put_u32(at + 4, STRING_INFO);
        self.put_u64(at + 8, hash(text));
        self.put_u64(at + 16, text.len() as u64);
        let from = at + STRING_HEAD_BYTES;
        self.bytes[from..from + text.len()].copy_from_slice(text);
        if is_short {
            self.texts.insert(text, at as u64);
        }
        Ok(at as u64)
    }

    /// Adds a `HashTable` whose data begin at `data`.
    fn table(
        &mut self,
        (flags, mask, size): (u32, u32, usize),
        data: usize,
        count: usize,
        next: u64,
    ) -> Result<u64, LayoutError> {
        let at = self.room(TABLE_BYTES)?;
        self.put_u32(at, ARRAY_COUNT);
        self.put_u32(at + 4, ARRAY_INFO);
        self.put_u32(at + 8, flags);
        self.put_u32(at + 12, mask);
        self.put_address(at + 16, data as u64);
        self.put_u32(at + 24, count as u32);
        self.put_u32(at + 28, count as u32);
        self.put_u32(at + 32, size as u32);
        self.put_u32(at + 36, 0);
        self.put_u64(at + 40, next);
        // No destructor: an immutable array is never destroyed, and its copies have their own.
        self.put_u64(at + 48, 0);
        Ok(at as u64)
    }

    fn empty(&mut self, next: u64) -> Result<u64, LayoutError> {
        let slots = self.room(8)?;
        self.put_u64(slots, u64::MAX);
        self.table((FLAG_UNINITIALIZED, MASK_MIN, SIZE_MIN), slots + 8, 0, next)
    }

    fn list(&mut self, count: usize, next: u64, depth: usize) -> Result<u64, LayoutError> {
        let slots = self.room(8 + count.saturating_mul(VALUE_BYTES))?;
        self.put_u64(slots, u64::MAX);
        let data = slots + 8;
        for index in 0..count {
            let value = self.value(depth + 1)?;
            self.put_value(data + index * VALUE_BYTES, value);
        }
        let shape = (FLAG_PACKED | FLAG_STATIC_KEYS, MASK_MIN, self.size(count)?);
        self.table(shape, data, count, next)
    }

    fn map(&mut self, count: usize, next: u64, depth: usize) -> Result<u64, LayoutError> {
        let size = self.size(count)?;
        let hash_slots = 2 * size;
        let slots = self.room(hash_slots * 4 + count.saturating_mul(BUCKET_BYTES))?;
        let data = slots + hash_slots * 4;
        self.bytes[slots..data].fill(u8::MAX);
        for index in 0..count {
            let bucket = data + index * BUCKET_BYTES;
            let hash = match self.from.tag()? {
                INT => self.from.word()?,
                STRING => {
                    let text = self.from.text()?;
                    let key = self.text(text)?;
                    self.put_address(bucket + 24, key);
                    hash(text)
                }
                _ => return Err(self.from.garbled().into()),
            };
            self.put_u64(bucket + 16, hash);
            let value = self.value(depth + 1)?;
            self.put_value(bucket, value);
            // The slot of `hash | mask`, counted from the end of the slots.
            let slot = slots + (hash as usize & (hash_slots - 1)) * 4;
            let first: [u8; 4] = self.bytes[slot..slot + 4].try_into().unwrap_or_default();
            self.put_u32(bucket + 12, u32::from_ne_bytes(first));
            self.put_u32(slot, index as u32);
        }
        let mask = (hash_slots as u32).wrapping_neg();
        self.table((FLAG_STATIC_KEYS, mask, size), data, count, next)
    }

    /// `nTableSize` for `count` elements.
    fn size(&self, count: usize) -> Result<usize, LayoutError> {
        let size = count.max(SIZE_MIN).next_power_of_two();
        if size >= SIZE_MAX { Err(LayoutError::TooLarge(self.bytes_max)) } else { Ok(size) }
    }
}

const _: () = assert!(NO_INDEX == u32::MAX && TABLE_BYTES.is_multiple_of(8));

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Vec<u8> {
        [&[STRING][..], &(bytes.len() as u32).to_ne_bytes(), bytes].concat()
    }

    fn array(tag: u8, count: u32, parts: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![tag];
        bytes.extend(count.to_ne_bytes());
        bytes.extend(u64::from(count).to_ne_bytes());
        bytes.extend(parts.concat());
        bytes
    }

    fn word(laid: &Laid, at: u64) -> u64 {
        u64::from_ne_bytes(laid.bytes[at as usize..][..8].try_into().unwrap())
    }

    #[test]
    fn string_hash_matches_php() {
        // Results of zend_inline_hash_func for the empty string and "a".
        assert_eq!(hash(b""), 0x8000_0000_0000_1505);
        assert_eq!(hash(b"a"), 0x8000_0000_0002_b606);
    }

    #[test]
    fn map_is_found_by_hash_and_short_strings_are_stored_once() {
        let entry = [text(b"a"), text(b"a")].concat();
        let mut laid = lay_out(&array(MAP, 1, &[entry]), 4096).unwrap();
        laid.move_to(0);
        let table = laid.top.word;
        let data = word(&laid, table + 16);
        assert_eq!(word(&laid, data), word(&laid, data + 24), "one string");
        let mask = (word(&laid, table + 8) >> 32) as u32;
        let slot = (hash(b"a") as u32 | mask).cast_signed();
        let at = data.wrapping_add_signed(i64::from(slot) * 4);
        let index = u32::from_ne_bytes(laid.bytes[at as usize..][..4].try_into().unwrap());
        assert_eq!((index, word(&laid, data + 16)), (0, hash(b"a")));
    }

    #[test]
    fn invalid_encodings_are_rejected() {
        for bytes in [
            &[][..],
            &[8],
            &[INT, 1],
            &[NULL, NULL],
            &[STRING, 255, 255, 255, 255],
            &[STRING, 2, 0, 0, 0, b'a'],
            &array(LIST, 200, &[]),
            &array(MAP, 1, &[vec![NULL, NULL]]),
            &array(LIST, 1, &[vec![MAP]]),
        ] {
            assert!(matches!(lay_out(bytes, 4096), Err(LayoutError::Garbled(_))), "{bytes:?}");
        }
        let mut deep = vec![NULL];
        for _ in 0..=DEPTH_MAX {
            deep = array(LIST, 1, &[deep]);
        }
        assert_eq!(lay_out(&deep, 1 << 20).err(), Some(LayoutError::TooDeep));
        let many = array(LIST, 4096, &[vec![NULL; 4096]]);
        assert_eq!(lay_out(&many, 4096).err(), Some(LayoutError::TooLarge(4096)));
        assert!(lay_out(&many, 1 << 20).is_ok());
    }

    #[test]
    fn garbage_is_rejected_or_laid_out_within_limits() {
        let good =
            array(MAP, 2, &[text(b"k"), array(LIST, 1, &[text(b"v")]), vec![INT; 9], text(b"")]);
        assert!(lay_out(&good, 4096).is_ok());
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(0..bytes.len());
                bytes[at] = if random.bool() { random.u8(..8) } else { random.u8(..) };
            }
            bytes.truncate(random.usize(0..=bytes.len()));
            if let Ok(mut laid) = lay_out(&bytes, 4096) {
                let len = laid.bytes.len() as u64;
                assert!(laid.addresses.iter().all(|at| *at + 8 <= len && word(&laid, *at) < len));
                laid.move_to(1 << 32);
            }
        }
    }
}
