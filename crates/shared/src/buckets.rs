//! Rows of a limiter's buckets: their number and size, also from the definition that `limiter`
//! writes.

use crate::chain::Dimensions;
use crate::sync::words_of;

pub(crate) const KEYS_MAX: usize = 1 << 20;
/// Maximum length of a stored key, bytes. A longer key is replaced by its hash.
pub(crate) const KEY_BYTES: usize = 64;

pub(crate) fn dimensions(keys: usize) -> Dimensions {
    Dimensions { rows: keys, key_words: words_of(KEY_BYTES), data_words: 1 }
}

/// Parses a definition; `None` if it is none of a limiter.
pub(crate) fn parse(definition: &str) -> Option<Dimensions> {
    keys_of(definition).map(dimensions)
}

fn keys_of(definition: &str) -> Option<usize> {
    let keys = definition.rsplit_once("keys=")?.1.parse().ok()?;
    (1..=KEYS_MAX).contains(&keys).then_some(keys)
}
