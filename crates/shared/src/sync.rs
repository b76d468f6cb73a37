//! The words of the protocol: the standard atomics, or loom's under the model checker.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, fence};
pub(crate) use std::sync::atomic::Ordering;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, fence};

/// Copies words that others may write at the same time. The caller must check whether the copied
/// words belong together.
pub(crate) fn load(from: &[AtomicU64], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Ordering::Relaxed);
    }
}

/// Writes words that others may read at the same time.
pub(crate) fn store(to: &[AtomicU64], from: &[u64]) {
    for (to, from) in to.iter().zip(from) {
        to.store(*from, Ordering::Relaxed);
    }
}

/// Number of words for `bytes` bytes.
pub(crate) const fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// Writes bytes; the rest of the last word is 0. Bytes that do not fit are left out: callers
/// compare first.
pub(crate) fn store_bytes(to: &[AtomicU64], bytes: &[u8]) {
    let mut chunks = bytes.chunks_exact(8);
    let mut words = to.iter();
    for (chunk, word) in chunks.by_ref().zip(words.by_ref()) {
        word.store(u64::from_ne_bytes(chunk.try_into().unwrap_or_default()), Ordering::Relaxed);
    }
    let rest = chunks.remainder();
    if let Some(word) = to.get(bytes.len() / 8).filter(|_| !rest.is_empty()) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        word.store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

/// Reads as many bytes as `to` has.
pub(crate) fn load_bytes(from: &[AtomicU64], to: &mut [u8]) {
    for (chunk, word) in to.chunks_mut(8).zip(from) {
        let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        let len = chunk.len();
        chunk.copy_from_slice(&bytes[..len]);
    }
}

/// Whether the words contain these bytes, as [`store_bytes`] writes them.
pub(crate) fn holds_bytes(words: &[AtomicU64], bytes: &[u8]) -> bool {
    words.len() >= words_of(bytes.len())
        && bytes.chunks(8).zip(words).all(|(chunk, word)| {
            let mut expected = [0; 8];
            expected[..chunk.len()].copy_from_slice(chunk);
            word.load(Ordering::Relaxed) == u64::from_ne_bytes(expected)
        })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn stored_bytes_are_read_back_unchanged() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(u64::MAX)).collect();
        for len in 0..=32 {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8 + 1).collect();
            store_bytes(&words, &bytes);
            assert!(holds_bytes(&words, &bytes), "{len}");
            let mut back = vec![0; len];
            load_bytes(&words, &mut back);
            assert_eq!(back, bytes);
            if len > 0 {
                assert!(!holds_bytes(&words, &vec![7; len]));
            }
        }
        assert!(!holds_bytes(&words, &[0; 33]));
    }
}
