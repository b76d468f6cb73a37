//! record: how those fare that run a location's scripts: what they were sent, what they answered, and what was wrong last.

use crate::runtime::trouble::Trouble;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Of what the system says of a failure, characters.
const WORDS_MAX: usize = 200;

/// Of one php-fpm, or of one of the addresses that its name stands for.
#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: AtomicU64,
    answers: AtomicU64,
    answers_us: AtomicU64,
    troubles: [AtomicU64; Trouble::ALL.len()],
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    trouble: Option<LastTrouble>,
    asked: Option<Instant>,
}

/// What was wrong most recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTrouble {
    /// What.
    pub trouble: Trouble,
    /// When.
    pub at: SystemTime,
    /// What the system said of it: one line of at most 200 characters; empty where it said nothing.
    pub words: String,
}

/// A [`Tally`], read.
#[derive(Clone, Debug)]
pub struct TallyFigures {
    /// Requests that it was sent.
    pub requests: u64,
    /// Of these, how many it has begun to answer.
    pub answers: u64,
    /// How long they waited for the head of their answer, together.
    pub waited: Duration,
    /// Requests that it did not answer, or not to the end, by the number of a [`Trouble`].
    pub troubles: [u64; Trouble::ALL.len()],
    /// The last of them.
    pub last: Option<LastTrouble>,
}

impl Tally {
    /// A request is sent.
    pub(super) fn sent(&self, now: Instant) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.last().asked = Some(now);
    }

    /// The head of an answer is there, after this time.
    pub(super) fn answered(&self, waited: Duration) {
        let us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.answers_us.fetch_add(us, Ordering::Relaxed);
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Something was wrong; `error` is what the system said.
    pub(super) fn failed(&self, trouble: Trouble, error: Option<&str>) {
        self.troubles[trouble as usize].fetch_add(1, Ordering::Relaxed);
        let plain = error.unwrap_or_default().chars().filter(|c| !c.is_control());
        let words = plain.take(WORDS_MAX).collect();
        let mut last = self.last();
        last.asked = Some(Instant::now());
        last.trouble = Some(LastTrouble { trouble, at: SystemTime::now(), words });
    }

    /// When there was something to tell last.
    pub(super) fn asked(&self) -> Option<Instant> {
        self.last().asked
    }

    pub(super) fn figures(&self) -> TallyFigures {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TallyFigures {
            requests: get(&self.requests),
            answers: get(&self.answers),
            waited: Duration::from_micros(get(&self.answers_us)),
            troubles: self.troubles.each_ref().map(get),
            last: self.last().trouble.clone(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told() {
        let tally = Tally::default();
        assert_eq!((tally.asked(), tally.figures().last), (None, None));
        let now = Instant::now();
        tally.sent(now);
        tally.answered(Duration::from_millis(3));
        let figures = tally.figures();
        assert_eq!((figures.requests, figures.answers), (1, 1));
        assert_eq!((figures.waited, tally.asked()), (Duration::from_millis(3), Some(now)));
        let words = "nobody\r\n\u{1b}[31m ".to_owned() + &"x".repeat(1000);
        tally.failed(Trouble::Unreachable, Some(&words));
        let figures = tally.figures();
        assert_eq!(figures.troubles[Trouble::Unreachable as usize], 1);
        let last = figures.last.expect("it was told");
        assert_eq!((last.trouble, last.words.chars().count()), (Trouble::Unreachable, WORDS_MAX));
        assert!(!last.words.contains(char::is_control), "{}", last.words);
    }
}
