//! One-time tokens with which visitors request that their next request is traced.

use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Time for which a token is valid.
pub(crate) const NEXT_S: u64 = 300;
/// Maximum number of valid tokens; when it is reached, the oldest is dropped.
const NEXT_MAX: usize = 256;
const TOKEN_BYTES: usize = 16;

/// Tokens for one request each, and their expiry in seconds since 1970. The map's hash has a secret
/// key, so the time of a lookup does not reveal how much of a guess is correct.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, u64>>);

impl Tokens {
    /// Creates a token; `None` if the system has no random numbers.
    pub(crate) fn give(&self, now_s: u64) -> Option<String> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let token = bytes.iter().fold(String::with_capacity(2 * TOKEN_BYTES), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        let mut known = self.known();
        if known.len() >= NEXT_MAX {
            known.retain(|_, expires| *expires >= now_s);
        }
        if known.len() >= NEXT_MAX {
            let oldest = known.iter().min_by_key(|(_, expires)| **expires);
            let oldest = oldest.map(|(token, _)| token.clone());
            oldest.and_then(|token| known.remove(&token));
        }
        known.insert(token.clone(), now_s.saturating_add(NEXT_S));
        Some(token)
    }

    /// Whether the token is valid.
    pub(crate) fn holds(&self, token: &str, now_s: u64) -> bool {
        self.known().get(token).is_some_and(|expires| *expires >= now_s)
    }

    /// Removes a token that was used.
    pub(crate) fn spend(&self, token: &str) {
        self.known().remove(token);
    }

    /// Locked only for requests that contain a token or create one.
    fn known(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_until_spent_expired_or_dropped() {
        let tokens = Tokens::default();
        let token = tokens.give(1_000).expect("random numbers");
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert!(tokens.holds(&token, 1_000) && tokens.holds(&token, 1_000 + NEXT_S));
        assert!(!tokens.holds(&token, 1_001 + NEXT_S), "it is over");
        assert!(!tokens.holds("", 1_000) && !tokens.holds(&token[1..], 1_000));
        tokens.spend(&token);
        assert!(!tokens.holds(&token, 1_000), "it was used");
        let first = tokens.give(1_000).expect("a token");
        let later: Vec<_> =
            (0..2 * NEXT_MAX).map(|_| tokens.give(1_001).expect("a token")).collect();
        assert_eq!(tokens.known().len(), NEXT_MAX);
        assert!(!tokens.holds(&first, 1_001), "the oldest has made room");
        assert!(tokens.holds(&later[2 * NEXT_MAX - 1], 1_001));
    }
}
