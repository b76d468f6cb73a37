//! Values of PHP's arrays by their keys, in another process's memory: few reads for a table of any
//! size.

use crate::error::Error;
use crate::layout::{Layout, array, string, zval};
use crate::memory::{Memory, half_at, word_at};
use crate::values::Value;

/// Maximum number of entries with the same place in a table that are compared.
const CHAIN_MAX: usize = 64;

/// PHP's hash of a text (`zend_string_hash_val`).
fn hash(key: &str) -> u64 {
    let add = |hash: u64, byte: u8| hash.wrapping_mul(33).wrapping_add(byte.into());
    key.bytes().fold(5381, add) | 1 << 63
}

/// A key of an array as PHP stores it.
#[derive(Clone, Copy)]
enum Key<'a> {
    Text(&'a str),
    Number(u64),
}

impl Key<'_> {
    fn hash(self) -> u64 {
        match self {
            Key::Text(text) => hash(text),
            Key::Number(number) => number,
        }
    }

    fn is_of(self, memory: &impl Memory, bucket: &[u8]) -> Result<bool, Error> {
        let name = word_at(bucket, array::KEY);
        Ok(match self {
            _ if word_at(bucket, array::HASH) != self.hash() => false,
            Key::Text(text) => name != 0 && is_text(memory, name, text)?,
            Key::Number(_) => name == 0,
        })
    }
}

/// The number that PHP stores instead of a text: a decimal integer without leading zeros or sign
/// `+`.
fn number(key: &str) -> Option<u64> {
    let number: i64 = key.parse().ok()?;
    (number.to_string() == key).then_some(number.cast_unsigned())
}

/// The value of an array with this key, a text or a number. `None` if there is none.
pub(crate) fn entry(
    memory: &impl Memory,
    layout: &Layout,
    table: u64,
    key: &str,
) -> Result<Option<Value>, Error> {
    let Some(number) = number(key) else { return find(memory, table, key) };
    let mut head = [0; array::BYTES];
    if !memory.fill(table, &mut head)? {
        return Ok(None);
    }
    if half_at(&head, array::FLAGS) & array::IS_PACKED == 0 {
        return look_up(memory, &head, Key::Number(number));
    }
    // The places of a packed array are its keys.
    if number >= u64::from(half_at(&head, array::USED)) {
        return Ok(None);
    }
    let offset = number * layout.packed_bytes();
    Value::read(memory, word_at(&head, array::BUCKETS).wrapping_add(offset))
        .map(|value| value.filter(|value| value.kind != zval::UNDEFINED))
}

/// The value of a table with this key, which is a text. `None` if there is none.
pub(crate) fn find(memory: &impl Memory, table: u64, key: &str) -> Result<Option<Value>, Error> {
    let mut head = [0; array::BYTES];
    if !memory.fill(table, &mut head)? || half_at(&head, array::FLAGS) & array::IS_PACKED != 0 {
        return Ok(None);
    }
    look_up(memory, &head, Key::Text(key))
}

fn look_up(memory: &impl Memory, head: &[u8], key: Key) -> Result<Option<Value>, Error> {
    let (hash, buckets) = (key.hash(), word_at(head, array::BUCKETS));
    let (mask, used) = (half_at(head, array::MASK), half_at(head, array::USED));
    // The numbers of the buckets are before them: the mask makes each place negative.
    let place = i64::from((hash as u32 | mask).cast_signed());
    let mut number = [0; 4];
    if !memory.fill(buckets.wrapping_add_signed(place * 4), &mut number)? {
        return Ok(None);
    }
    let mut number = half_at(&number, 0);
    for _ in 0..CHAIN_MAX {
        if number >= used {
            break;
        }
        let mut bucket = [0; array::BUCKET_BYTES];
        let at = buckets.wrapping_add(u64::from(number) * array::BUCKET_BYTES as u64);
        if !memory.fill(at, &mut bucket)? {
            break;
        }
        if key.is_of(memory, &bucket)? {
            return Ok(Some(Value::of(&bucket)));
        }
        number = half_at(&bucket, array::NEXT);
    }
    Ok(None)
}

/// Whether the `zend_string` at this address is the text.
pub(crate) fn is_text(memory: &impl Memory, address: u64, text: &str) -> Result<bool, Error> {
    if memory.word(address.wrapping_add(string::LEN as u64))? != Some(text.len() as u64) {
        return Ok(false);
    }
    let mut bytes = vec![0; text.len()];
    let is_there = memory.fill(address.wrapping_add(string::VAL as u64), &mut bytes)?;
    Ok(is_there && bytes == text.as_bytes())
}
