//! Shares of a canary, and the time for which each applies.

use std::time::Duration;

/// Minimum number of the canary's requests in a step.
pub const REQUESTS_MIN: u64 = 100;
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
    /// Length of the current step so far, and the canary's requests at its begin.
    began: Duration,
    requests: u64,
}

impl Steps {
    /// Creates steps through `shares`, in ppm and ascending, each for at least `each`. A single
    /// share is kept until it is changed by hand.
    #[must_use]
    pub fn new(shares: Vec<u32>, each: Duration) -> Steps {
        Steps { shares, each, at: 0, began: Duration::ZERO, requests: 0 }
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

    /// Takes the next step if it is due. `age`: time since the canary began; `requests`: its
    /// requests since then.
    pub fn look(&mut self, age: Duration, requests: u64) -> Advice {
        let is_due = age.saturating_sub(self.began) >= self.each
            && requests.saturating_sub(self.requests) >= REQUESTS_MIN;
        match self.next().first() {
            Some(share) if is_due && *share >= ALL => Advice::Promote,
            Some(share) if is_due => {
                let share = *share;
                self.enter(self.at + 1, age, requests);
                Advice::Share(share)
            }
            _ => Advice::Wait,
        }
    }

    /// Sets the share by hand: the following steps are the larger ones.
    pub fn set(&mut self, share: u32, age: Duration, requests: u64) {
        let larger = self.shares.iter().copied().filter(|other| *other > share);
        let is_by_hand = self.shares.len() == 1;
        let following = larger.filter(|_| !is_by_hand);
        self.shares = std::iter::once(share).chain(following).collect();
        self.enter(0, age, requests);
    }

    fn enter(&mut self, at: usize, age: Duration, requests: u64) {
        (self.at, self.began, self.requests) = (at, age, requests);
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

    #[test]
    fn steps_need_time_and_requests() {
        let mut steps = Steps::new(vec![10_000, 50_000, 1_000_000], MINUTE);
        assert_eq!(steps.look(MINUTE, REQUESTS_MIN - 1), Advice::Wait);
        assert_eq!(steps.look(MINUTE / 2, REQUESTS_MIN), Advice::Wait);
        assert_eq!(steps.look(MINUTE, REQUESTS_MIN), Advice::Share(50_000));
        assert_eq!((steps.share(), steps.next()), (50_000, &[1_000_000][..]));
        assert_eq!(steps.look(2 * MINUTE, 2 * REQUESTS_MIN - 1), Advice::Wait);
        assert_eq!(steps.look(2 * MINUTE, 2 * REQUESTS_MIN), Advice::Promote);
    }

    #[test]
    fn single_share_waits_for_the_operator() {
        let mut steps = Steps::new(vec![50_000], Duration::ZERO);
        assert_eq!(steps.look(MINUTE, u64::MAX), Advice::Wait);
        steps.set(250_000, MINUTE, 0);
        assert_eq!((steps.share(), steps.look(3 * MINUTE, u64::MAX)), (250_000, Advice::Wait));
    }

    #[test]
    fn share_set_by_hand_continues_with_larger_steps() {
        let mut steps = Steps::new(vec![10_000, 50_000, 250_000, 1_000_000], MINUTE);
        steps.set(100_000, MINUTE, 0);
        assert_eq!((steps.share(), steps.next()), (100_000, &[250_000, 1_000_000][..]));
        assert_eq!(steps.look(MINUTE, REQUESTS_MIN), Advice::Wait, "the step begins again");
        assert_eq!(steps.look(2 * MINUTE, REQUESTS_MIN), Advice::Share(250_000));
    }

    #[test]
    fn shares_are_readable() {
        let texts = [50_000, 2_500, 1_000_000, 1, 15_000].map(share_text);
        assert_eq!(texts, ["5%", "0.25%", "100%", "0.0001%", "1.5%"]);
    }
}
