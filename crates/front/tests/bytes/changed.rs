//! Byte strings with some bytes changed.

use proptest::prelude::*;
use proptest::sample::Index;

/// Changes up to `most` of `bytes`.
pub(crate) fn changed(
    bytes: impl Strategy<Value = Vec<u8>>,
    most: usize,
) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..=most);
    (bytes, changes).prop_map(|(mut bytes, changes)| {
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        bytes
    })
}
