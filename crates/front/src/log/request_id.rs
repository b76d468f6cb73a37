//! The request id: taken from `X-Request-Id`, or generated.

use http::HeaderValue;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Maximum length of an id that is taken from a request, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 128;

/// Generates ids: 16 random hex digits per process, then 16 hex digits of a counter with a random
/// start.
#[derive(Debug)]
pub(crate) struct RequestIds {
    prefix: [u8; 16],
    next: Cell<u64>,
}

impl RequestIds {
    pub(crate) fn new() -> RequestIds {
        // The standard library seeds `RandomState` from the kernel.
        let random = RandomState::new();
        RequestIds { prefix: hex(random.hash_one(0)), next: Cell::new(random.hash_one(1)) }
    }

    /// Returns the client's id if it is harmless in logs and headers, otherwise a new one.
    pub(crate) fn of(&self, sent: Option<&HeaderValue>) -> HeaderValue {
        match sent {
            Some(id) if is_harmless(id.as_bytes()) => id.clone(),
            _ => self.make(),
        }
    }

    fn make(&self) -> HeaderValue {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let mut id = [0; 32];
        id[..16].copy_from_slice(&self.prefix);
        id[16..].copy_from_slice(&hex(number));
        let mut id = HeaderValue::from_bytes(&id).expect("hex digits are a valid header value");
        // The value occurs only once. In HTTP/2's header table (RFC 7541, section 7.1.3) it would
        // evict values that occur again.
        id.set_sensitive(true);
        id
    }
}

fn is_harmless(id: &[u8]) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len())
        && id.iter().all(|b| b.is_ascii_alphanumeric() || b"._~:@/+=-".contains(b))
}

fn hex(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (two, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        two.copy_from_slice(&OF_BYTES[usize::from(byte)]);
    }
    digits
}

/// Two hex digits for each byte.
const OF_BYTES: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut of_bytes = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        of_bytes[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    of_bytes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_id_is_kept_and_other_is_replaced() {
        let ids = RequestIds::new();
        for (sent, is_taken) in [
            ("abc-123", true),
            ("root=1:a/b+c@d~e.f_g", true),
            ("", false),
            ("with space", false),
            ("quote\"", false),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
        ] {
            let value = HeaderValue::from_str(sent).unwrap();
            assert_eq!(ids.of(Some(&value)) == value, is_taken, "{sent:?}");
        }
    }

    #[test]
    fn generated_ids_differ() {
        let ids = RequestIds::new();
        let (a, b) = (ids.of(None), ids.of(None));
        assert_eq!(a.len(), 32);
        assert_ne!(a, b);
        assert_eq!(a.as_bytes()[..16], b.as_bytes()[..16]);
    }
}
