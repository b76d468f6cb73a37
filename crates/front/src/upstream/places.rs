//! submit: how many connections all threads of the front have to each php-fpm, and how it fares: what an operator is told of it.

use crate::runtime::trouble::Trouble;
use samovar_config::Upstream;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;

/// Addresses that are remembered; those that the settings name are, however many there are.
const REMEMBERED_MAX: usize = 64;
/// How long one is told of that nobody has asked any more.
const REMEMBERED_FOR: Duration = Duration::from_hours(1);
/// Of what the system says of a failure, characters.
const WORDS_MAX: usize = 200;

/// Of each php-fpm, by its address.
#[derive(Debug, Default)]
pub(crate) struct AllPlaces {
    by_upstream: Mutex<HashMap<Upstream, Arc<Places>>>,
    /// Requests that wait for a place.
    pub(super) queued: AtomicUsize,
}

/// Of one php-fpm.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Those in use, and those that are being made.
    pub(super) used: AtomicUsize,
    /// A place has become free.
    pub(super) freed: Notify,
    /// Who waits for one.
    pub(super) waiting: AtomicUsize,
    /// Threads that have connections to it, or had one lately.
    pub(super) threads: AtomicUsize,
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

/// What was wrong with a php-fpm most recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTrouble {
    /// What.
    pub trouble: Trouble,
    /// When.
    pub at: SystemTime,
    /// What the system said of it: one line of at most 200 characters; empty where it said nothing.
    pub words: String,
}

/// How a php-fpm fares that `fastcgi_pass` names.
#[derive(Clone, Debug)]
pub struct UpstreamFigures {
    /// As the settings name it.
    pub address: String,
    /// Connections that are in use, or being made.
    pub connections: u64,
    /// Requests that wait for one, be it of this php-fpm or of another that would do.
    pub waiting: u64,
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

impl AllPlaces {
    pub(super) fn of(&self, upstream: &Upstream) -> Arc<Places> {
        let mut all = self.lock();
        let is_used = |places: &Arc<Places>| Arc::strong_count(places) > 1;
        all.retain(|known, places| known == upstream || is_used(places) || places.is_remembered());
        if all.len() >= REMEMBERED_MAX && !all.contains_key(upstream) {
            let unused = all.iter().filter(|(_, places)| !is_used(places));
            let oldest = unused.min_by_key(|(_, places)| places.last().asked);
            let oldest = oldest.map(|(known, _)| known.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        Arc::clone(all.entry(upstream.clone()).or_default())
    }

    /// How each fares, in the order of their addresses.
    pub(crate) fn figures(&self) -> Vec<UpstreamFigures> {
        let all = self.lock();
        let mut figures: Vec<_> =
            all.iter().map(|(upstream, places)| places.figures(upstream)).collect();
        drop(all);
        figures.sort_by(|a, b| a.address.cmp(&b.address));
        figures
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Upstream, Arc<Places>>> {
        self.by_upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    pub(super) fn take(&self, max: usize) -> bool {
        let more = |used: usize| (used < max).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether somebody waits for one of those that are free.
    pub(super) fn has_room_for_others(&self, max: usize) -> bool {
        self.used.load(Ordering::Relaxed) < max && self.waiting.load(Ordering::Relaxed) > 0
    }

    /// A request is sent.
    pub(super) fn sent(&self, now: Instant) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.last().asked = Some(now);
    }

    /// The head of an answer is there, after this time.
    pub(crate) fn answered(&self, waited: Duration) {
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

    fn is_remembered(&self) -> bool {
        self.last().asked.is_some_and(|asked| asked.elapsed() < REMEMBERED_FOR)
    }

    fn figures(&self, upstream: &Upstream) -> UpstreamFigures {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        UpstreamFigures {
            address: upstream.to_string(),
            connections: self.used.load(Ordering::Relaxed) as u64,
            waiting: self.waiting.load(Ordering::Relaxed) as u64,
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
    use std::path::PathBuf;

    fn upstream(number: usize) -> Upstream {
        Upstream::Unix(PathBuf::from(format!("/run/{number:04}.sock")))
    }

    #[test]
    fn what_is_told_of_each_is_bounded() {
        let all = AllPlaces::default();
        let held: Vec<_> = (0..100).map(|number| all.of(&upstream(number))).collect();
        assert_eq!(all.figures().len(), 100, "all that are in use");
        let words = "nobody\r\n\u{1b}[31m ".to_owned() + &"x".repeat(1000);
        held[7].failed(Trouble::Unreachable, Some(&words));
        held[7].sent(Instant::now());
        held[7].answered(Duration::from_millis(3));
        let figures = all.figures();
        let seventh = &figures[7];
        assert_eq!((&*seventh.address, seventh.requests), ("unix:/run/0007.sock", 1));
        assert_eq!(seventh.troubles[Trouble::Unreachable as usize], 1);
        assert_eq!((seventh.answers, seventh.waited), (1, Duration::from_millis(3)));
        let last = seventh.last.as_ref().expect("it was told");
        assert_eq!(last.words.chars().count(), WORDS_MAX);
        assert!(!last.words.contains(char::is_control), "{}", last.words);
        drop(held);
        drop(all.of(&upstream(200)));
        assert_eq!(all.figures().len(), 2, "nobody has asked the others");
    }

    #[test]
    fn of_too_many_the_one_is_forgotten_that_was_asked_longest_ago() {
        let all = AllPlaces::default();
        for number in 0..=REMEMBERED_MAX {
            all.of(&upstream(number)).sent(Instant::now());
        }
        let first = all.figures().into_iter().next().expect("they were asked");
        assert_eq!((all.figures().len(), &*first.address), (REMEMBERED_MAX, "unix:/run/0001.sock"));
    }

    #[test]
    fn who_was_asked_lately_is_remembered() {
        let all = AllPlaces::default();
        all.of(&upstream(1)).sent(Instant::now());
        drop(all.of(&upstream(2)));
        drop(all.of(&upstream(3)));
        let addresses: Vec<_> = all.figures().into_iter().map(|one| one.address).collect();
        assert_eq!(addresses, ["unix:/run/0001.sock", "unix:/run/0003.sock"]);
    }
}
