//! Values of PHP's arrays by their keys, in another process's memory: few reads for a table of any
//! size.

use crate::error::Error;
use crate::layout::{array, string};
use crate::memory::{Memory, half_at, word_at};
use crate::values::Value;

/// Maximum number of entries with the same place in a table that are compared.
const CHAIN_MAX: usize = 64;

/// PHP's hash of a text (`zend_string_hash_val`).
fn hash(key: &str) -> u64 {
    let add = |hash: u64, byte: u8| hash.wrapping_mul(33).wrapping_add(byte.into());
    key.bytes().fold(5381, add) | 1 << 63
}

/// The value with this key, which is a text. `None` if there is none.
pub(crate) fn find(memory: &impl Memory, table: u64, key: &str) -> Result<Option<Value>, Error> {
    let mut head = [0; array::BYTES];
    if !memory.fill(table, &mut head)? || half_at(&head, array::FLAGS) & array::IS_PACKED != 0 {
        return Ok(None);
    }
    let (hash, buckets) = (hash(key), word_at(&head, array::BUCKETS));
    let (mask, used) = (half_at(&head, array::MASK), half_at(&head, array::USED));
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
        let name = word_at(&bucket, array::KEY);
        if word_at(&bucket, array::HASH) == hash && name != 0 && is_text(memory, name, key)? {
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
