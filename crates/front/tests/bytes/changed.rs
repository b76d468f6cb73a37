//! Bytes of which some are others than they should be.

use proptest::prelude::*;
use proptest::sample::Index;

/// Up to so many of `bytes` are others.
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
