//! The comparison of a whole canary run.
//!
//! Two books are kept. One covers the whole run; the other begins again with each step, and when
//! the time since its begin has doubled, so that a late change is not diluted. Each gets half of
//! the false-alarm rate; the restarts divide their half like routes do.

use crate::book::{Book, Found};
use crate::metric::{Arm, Metric, Observation};
use crate::steps::Progress;
use std::time::Duration;

/// Minimum age of a book before it begins again.
const RESTART_MIN: Duration = Duration::from_mins(5);

/// Settings of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Probability of an alarm, during the whole run, for a release that differs from the serving
    /// one by no more than the tolerance.
    pub false_alarm_rate: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { false_alarm_rate: 0.01 }
    }
}

/// Evidence of a regression in a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    /// The figure.
    pub metric: Metric,
    /// Route with the strongest evidence; empty if no single route has any.
    pub route: String,
    /// Whether the requests of all routes led to the alarm, rather than this route alone.
    pub is_sum: bool,
    /// Share of requests or mean, in the serving generation and in the canary.
    pub figures: [f64; 2],
    /// Compared requests, by arm.
    pub requests: [u64; 2],
    /// Natural logarithm of the ratio of evidence to threshold.
    pub excess: f64,
}

/// Evidence of a message that is more frequent in the canary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageAlarm {
    /// Fingerprint of the message.
    pub fingerprint: u64,
    /// Occurrences, by arm.
    pub count: [u64; 2],
}

/// Figures of one route.
#[derive(Clone, Debug)]
pub struct RouteSummary {
    /// Name; empty: all routes.
    pub name: String,
    /// Requests, by arm.
    pub requests: [u64; 2],
    /// Figures in the order of [`Metric::ALL`], by arm.
    pub figures: [[f64; 2]; Metric::ALL.len()],
}

/// The comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    settings: Settings,
    whole: Book,
    recent: Book,
    /// Number of the recent book, and its begin since the begin of the run.
    restarts: u32,
    began: Duration,
    /// Compared blocks, and the requests before the current one, by arm.
    blocks: u64,
    compared: [u64; 2],
    is_saturated: bool,
}

impl Comparison {
    /// Begins a comparison.
    #[must_use]
    pub fn new(settings: Settings) -> Comparison {
        let (whole, recent) = (Book::new(), Book::new());
        Comparison {
            settings,
            whole,
            recent,
            restarts: 1,
            began: Duration::ZERO,
            blocks: 0,
            compared: [0; 2],
            is_saturated: false,
        }
    }

    /// Adds a finished request.
    pub fn add(&mut self, seen: &Observation) {
        self.whole.add(seen, self.is_saturated);
        self.recent.add(seen, self.is_saturated);
    }

    /// Adds a message of the request that was added last. Returns whether it is the first one with
    /// this fingerprint in the run.
    pub fn add_message(&mut self, arm: Arm, fingerprint: u64) -> bool {
        let is_first = self.whole.add_message(arm, fingerprint);
        self.recent.add_message(arm, fingerprint);
        is_first
    }

    /// Ends the block of requests. Call it about twice a second. `age`: time since the begin.
    pub fn close_block(&mut self, age: Duration) {
        self.whole.close_block();
        self.recent.close_block();
        let requests = self.requests();
        if requests.iter().zip(self.compared).all(|(now, before)| *now > before) {
            (self.blocks, self.compared) = (self.blocks + 1, requests);
        }
        if age.saturating_sub(self.began) >= self.began.max(RESTART_MIN) {
            self.restart(age);
        }
    }

    /// Whether the machine has no idle CPU now. Then the times of the following requests may differ
    /// more, until the next call.
    pub fn set_saturated(&mut self, is_saturated: bool) {
        self.is_saturated = is_saturated;
    }

    /// Begins again with recent requests: the share has changed.
    pub fn restart(&mut self, age: Duration) {
        self.recent.restart();
        self.restarts += 1;
        self.began = age;
    }

    /// Returns the strongest evidence, if it is above its threshold.
    #[must_use]
    pub fn alarm(&self) -> Option<Alarm> {
        let of_book = |(book, alpha): (&'_ Book, f64)| {
            let found = book.strongest(alpha).filter(|found| found.excess >= 0.0)?;
            Some(alarm_of(book, found))
        };
        let found = self.books().into_iter().filter_map(of_book);
        found.max_by(|a, b| a.excess.total_cmp(&b.excess))
    }

    /// Returns the message with the strongest evidence, if it is above its threshold.
    #[must_use]
    pub fn message_alarm(&self) -> Option<MessageAlarm> {
        let of_book = |(book, alpha): (&'_ Book, f64)| book.strongest_message(alpha);
        let found = self.books().into_iter().filter_map(of_book);
        let found = found.filter(|(_, excess)| *excess >= 0.0);
        let (fingerprint, _) = found.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(MessageAlarm { fingerprint, count: self.occurrences(fingerprint) })
    }

    /// Occurrences of a message, by arm.
    #[must_use]
    pub fn occurrences(&self, fingerprint: u64) -> [u64; 2] {
        self.whole.occurrences(fingerprint)
    }

    /// Returns how near the strongest evidence is to an alarm: 0 is none, 1 an alarm. Also returns
    /// its metric and route.
    #[must_use]
    pub fn nearest(&self) -> Option<(f64, Metric, &str)> {
        let of_book = |(book, alpha): (&Book, f64)| book.strongest(alpha);
        let [whole, recent] = self.books().map(of_book);
        let of_whole = whole.map(|found| (found, &self.whole));
        let of_recent = recent.map(|found| (found, &self.recent));
        let both = of_whole.into_iter().chain(of_recent);
        let (found, book) = both.max_by(|a, b| a.0.excess.total_cmp(&b.0.excess))?;
        let route = &book.routes[found.route];
        let log_e = route.log_e(found.metric).max(0.0);
        let threshold = log_e - found.excess;
        Some(((log_e / threshold.max(1.0)).clamp(0.0, 1.0), found.metric, &route.name))
    }

    /// Requests of all routes, by arm.
    #[must_use]
    pub fn requests(&self) -> [u64; 2] {
        self.whole.routes[0].requests
    }

    /// Returns the canary's progress since its begin.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { requests: self.requests()[1], blocks: self.blocks }
    }

    /// Returns the figures of all routes together, then of each route.
    pub fn routes(&self) -> impl Iterator<Item = RouteSummary> {
        self.whole.routes.iter().map(|route| RouteSummary {
            name: route.name.clone(),
            requests: route.requests,
            figures: Metric::ALL.map(|metric| route.figures(metric)),
        })
    }

    fn books(&self) -> [(&Book, f64); 2] {
        let half = self.settings.false_alarm_rate / 2.0;
        let number = f64::from(self.restarts);
        [(&self.whole, half), (&self.recent, half / (number * (number + 1.0)))]
    }
}

fn alarm_of(book: &Book, found: Found) -> Alarm {
    let metric = found.metric;
    let evidence = |at: &usize| book.routes[*at].log_e(metric);
    let difference = |at: &usize| {
        let [old, new] = book.routes[*at].figures(metric);
        (new - old) * book.routes[*at].count(Arm::New) as f64
    };
    let singles = 1..book.routes.len();
    let costliest = singles.clone().max_by(|a, b| difference(a).total_cmp(&difference(b)));
    let single = singles.max_by(|a, b| evidence(a).total_cmp(&evidence(b)));
    let single = single.filter(|at| evidence(at) > 0.0);
    let is_sum = found.route == 0;
    // The sum of all routes names the route that contributes most.
    let named = if is_sum { single.or(costliest) } else { Some(found.route) };
    let route = &book.routes[named.unwrap_or(0)];
    Alarm {
        metric,
        route: route.name.clone(),
        is_sum,
        figures: route.figures(metric),
        requests: [Arm::Old, Arm::New].map(|arm| route.count(arm)),
        excess: found.excess,
    }
}
