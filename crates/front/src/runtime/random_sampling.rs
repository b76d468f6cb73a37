//! Random sampling of requests.

use std::cell::Cell;

const ALL_PPM: u64 = 1_000_000;

/// A random number generator that selects requests.
#[derive(Debug)]
pub(crate) struct Lots(Cell<u64>);

impl Default for Lots {
    fn default() -> Lots {
        let seed = samovar_ring::monotonic_ns() ^ u64::from(std::process::id()) << 32;
        Lots(Cell::new(seed | 1))
    }
}

impl Lots {
    /// Returns true with a probability of `ppm` in a million.
    pub(crate) fn draw(&self, ppm: u32) -> bool {
        // Scales the upper bits, so no share is favored as by a modulo.
        ((self.number() >> 32) * ALL_PPM) >> 32 < u64::from(ppm)
    }

    /// Returns the next number.
    pub(crate) fn number(&self) -> u64 {
        // xorshift64 (Marsaglia, 2003): predicting it gives no advantage.
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x
    }
}
