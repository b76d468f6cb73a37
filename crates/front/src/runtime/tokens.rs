//! Tokens by which visitors ask for one thing once: that their next request is traced.

use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a token holds.
pub(crate) const NEXT_S: u64 = 300;
/// Tokens that hold; beyond them the oldest do not any more.
const NEXT_MAX: usize = 256;
const TOKEN_BYTES: usize = 16;

/// Tokens of one request each, and until when they hold, seconds since 1970. By a hash that nobody knows, so that no time tells how much of
/// a guess was right.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, u64>>);

impl Tokens {
    /// A new one; `None`: the system has no random numbers.
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

    /// Whether that is one.
    pub(crate) fn holds(&self, token: &str, now_s: u64) -> bool {
        self.known().get(token).is_some_and(|expires| *expires >= now_s)
    }

    /// It was used.
    pub(crate) fn spend(&self, token: &str) {
        self.known().remove(token);
    }

    /// Asked for by who has a token alone, or wants one.
    fn known(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_once_and_for_a_while() {
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
