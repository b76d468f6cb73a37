//! Size of PHP's heap, from outside: PHP counts the bytes of each block that it gives away.
//!
//! The heap has no symbol. It is found through PHP's stack, which is a block of it.

use crate::error::Error;
use crate::layout::{Layout, heap};
use crate::memory::{Memory, word_at};

/// Maximum size that is believed: 1 TiB. The value may be hostile.
const BYTES_MAX: u64 = 1 << 40;

/// Memory of PHP's heap that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapUse {
    /// Bytes in blocks, as `memory_get_usage()` returns them.
    pub bytes: u64,
    /// Their maximum in this request, as `memory_get_peak_usage()` returns it.
    pub peak_bytes: u64,
}

impl HeapUse {
    /// Bytes that were allocated since an earlier look and are still in use, or were so at a new
    /// peak. 0 if another request has begun, which sets the peak back.
    #[must_use]
    pub fn growth_since(self, before: HeapUse) -> u64 {
        if self.peak_bytes < before.peak_bytes {
            return 0;
        }
        let is_new_peak = self.peak_bytes > before.peak_bytes;
        let highest = if is_new_peak { self.peak_bytes } else { self.bytes };
        highest.saturating_sub(before.bytes)
    }
}

/// Reads the heap of the thread with these `executor_globals`. `None` if PHP has no heap of its own
/// (`USE_ZEND_ALLOC=0`), or if the data contradict themselves.
pub(crate) fn look(
    memory: &impl Memory,
    layout: &Layout,
    executor: u64,
) -> Result<Option<HeapUse>, Error> {
    let vm_stack = executor.wrapping_add(layout.vm_stack_top as u64 + 16);
    let Some(block) = memory.word(vm_stack)?.filter(|block| *block != 0) else { return Ok(None) };
    let chunk = block & !(heap::CHUNK_BYTES - 1);
    let Some(at) = memory.word(chunk)? else { return Ok(None) };
    let first = at.wrapping_sub(heap::IN_CHUNK);
    if !first.is_multiple_of(heap::CHUNK_BYTES) || memory.word(first)? != Some(at) {
        return Ok(None);
    }
    let mut bytes = [0; heap::BYTES];
    if !memory.fill(at, &mut bytes)? {
        return Ok(None);
    }
    let found =
        HeapUse { bytes: word_at(&bytes, heap::SIZE), peak_bytes: word_at(&bytes, heap::PEAK) };
    // PHP writes the peak after the size.
    Ok((found.bytes.max(found.peak_bytes) < BYTES_MAX).then_some(found))
}

#[cfg(test)]
mod tests {
    use super::HeapUse;

    #[test]
    fn growth_is_that_of_size_or_of_new_peak() {
        let heap = |bytes, peak_bytes| HeapUse { bytes, peak_bytes };
        for (before, now, expected) in [
            (heap(10, 20), heap(15, 20), 5),
            (heap(10, 20), heap(8, 20), 0),
            // A block that was freed at once has raised the peak.
            (heap(10, 20), heap(12, 30), 20),
            // Another request.
            (heap(10, 20), heap(15, 16), 0),
            (heap(0, 0), heap(u64::MAX, u64::MAX), u64::MAX),
        ] {
            assert_eq!(now.growth_since(before), expected, "{before:?} {now:?}");
        }
    }
}
