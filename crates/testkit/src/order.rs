//! Numbers in an order determined by a seed, so that a failure can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// Generator: xorshift64*.
#[derive(Debug)]
pub struct Order(u64);

impl Order {
    /// Creates one of several generators with the same seed, by its number.
    pub fn new(seed: u64, number: usize) -> Order {
        // Never 0, and with many bits set even for a small seed.
        Order((seed ^ (number as u64) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number, at least 0 and less than `below`.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        (high % below as u64) as usize
    }
}

/// The seed from that environment variable, or a different one each time. It is printed.
pub fn seed(variable: &str) -> u64 {
    let seed = number_of(variable).unwrap_or_else(seed_of_now);
    println!("{variable}={seed}");
    seed
}

/// The number from that environment variable, if it is set.
pub fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    u64::from(now.subsec_nanos()) ^ now.as_secs()
}
