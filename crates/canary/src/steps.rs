//! Shares of a canary, and the time for which each applies.

use std::time::Duration;

/// Minimum number of the canary's requests in a step.
pub const REQUESTS_MIN: u64 = 100;
/// Minimum number of compared blocks in a step. The first block of a comparison only sets the
/// expected rates: without others, a canary that always fails would pass a short step.
pub const BLOCKS_MIN: u64 = 3;
/// Share of all requests, ppm.
const ALL: u32 = 1_000_000;

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Keep the share.
    Wait,
    /// Give the canary this share, ppm.
    Share(u32),
    /// Let the canary take over.
    Promote,
}

/// Steps of a canary.
#[derive(Clone, Debug)]
pub struct Steps {
    shares: Vec<u32>,
    each: Duration,
    at: usize,
    /// Begin of the current step, and the progress up to then.
    began: Duration,
    before: Progress,
}

/// Progress of the canary since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Its requests.
    pub requests: u64,
    /// Blocks of time with requests of both generations.
    pub blocks: u64,
}

impl Steps {
    /// Creates steps through `shares`, in ppm and ascending, each for at least `each`. A single
    /// share is kept until it is changed by hand.
    #[must_use]
    pub fn new(shares: Vec<u32>, each: Duration) -> Steps {
        Steps { shares, each, at: 0, began: Duration::ZERO, before: Progress::default() }
    }

    /// Current share, ppm.
    #[must_use]
    pub fn share(&self) -> u32 {
        self.shares.get(self.at).copied().unwrap_or(0)
    }

    /// Shares that follow, ppm.
    #[must_use]
    pub fn next(&self) -> &[u32] {
        self.shares.get(self.at + 1..).unwrap_or_default()
    }

    /// Minimum duration of a step.
    #[must_use]
    pub fn each(&self) -> Duration {
        self.each
    }

    /// Takes the next step if it is due. `age`: time since the canary began.
    pub fn look(&mut self, age: Duration, now: Progress) -> Advice {
        let is_due = age.saturating_sub(self.began) >= self.each
            && now.requests.saturating_sub(self.before.requests) >= REQUESTS_MIN
            && now.blocks.saturating_sub(self.before.blocks) >= BLOCKS_MIN;
        match self.next().first() {
            Some(share) if is_due && *share >= ALL => Advice::Promote,
            Some(share) if is_due => {
                let share = *share;
                self.enter(self.at + 1, age, now);
                Advice::Share(share)
            }
            _ => Advice::Wait,
        }
    }

    /// Sets the share by hand: the following steps are the larger ones.
    pub fn set(&mut self, share: u32, age: Duration, now: Progress) {
        let larger = self.shares.iter().copied().filter(|other| *other > share);
        let is_by_hand = self.shares.len() == 1;
        let following = larger.filter(|_| !is_by_hand);
        self.shares = std::iter::once(share).chain(following).collect();
        self.enter(0, age, now);
    }

    fn enter(&mut self, at: usize, age: Duration, now: Progress) {
        (self.at, self.began, self.before) = (at, age, now);
    }
}

/// Returns a share for people: `5%`, `0.25%`.
#[must_use]
pub fn share_text(ppm: u32) -> String {
    let (whole, rest) = (ppm / 10_000, ppm % 10_000);
    if rest == 0 {
        return format!("{whole}%");
    }
    let rest = format!("{rest:04}");
    format!("{whole}.{}%", rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn seen(requests: u64, blocks: u64) -> Progress {
        Progress { requests, blocks }
    }

    #[test]
    fn steps_need_time_and_requests() {
        let mut steps = Steps::new(vec![10_000, 50_000, 1_000_000], MINUTE);
        assert_eq!(steps.look(MINUTE, seen(REQUESTS_MIN - 1, 9)), Advice::Wait);
        assert_eq!(steps.look(MINUTE, seen(u64::MAX, BLOCKS_MIN - 1)), Advice::Wait);
        assert_eq!(steps.look(MINUTE / 2, seen(REQUESTS_MIN, BLOCKS_MIN)), Advice::Wait);
        assert_eq!(steps.look(MINUTE, seen(REQUESTS_MIN, BLOCKS_MIN)), Advice::Share(50_000));
        assert_eq!((steps.share(), steps.next()), (50_000, &[1_000_000][..]));
        assert_eq!(steps.look(2 * MINUTE, seen(2 * REQUESTS_MIN - 1, 9)), Advice::Wait);
        assert_eq!(steps.look(2 * MINUTE, seen(2 * REQUESTS_MIN, 9)), Advice::Promote);
    }

    #[test]
    fn single_share_waits_for_the_operator() {
        let mut steps = Steps::new(vec![50_000], Duration::ZERO);
        assert_eq!(steps.look(MINUTE, seen(u64::MAX, 9)), Advice::Wait);
        steps.set(250_000, MINUTE, Progress::default());
        assert_eq!(
            (steps.share(), steps.look(3 * MINUTE, seen(u64::MAX, 9))),
            (250_000, Advice::Wait)
        );
    }

    #[test]
    fn share_set_by_hand_continues_with_larger_steps() {
        let mut steps = Steps::new(vec![10_000, 50_000, 250_000, 1_000_000], MINUTE);
        steps.set(100_000, MINUTE, Progress::default());
        assert_eq!((steps.share(), steps.next()), (100_000, &[250_000, 1_000_000][..]));
        assert_eq!(
            steps.look(MINUTE, seen(REQUESTS_MIN, 9)),
            Advice::Wait,
            "the step begins again"
        );
        assert_eq!(steps.look(2 * MINUTE, seen(REQUESTS_MIN, 9)), Advice::Share(250_000));
    }

    #[test]
    fn shares_are_readable() {
        let texts = [50_000, 2_500, 1_000_000, 1, 15_000].map(share_text);
        assert_eq!(texts, ["5%", "0.25%", "100%", "0.0001%", "1.5%"]);
    }
}
