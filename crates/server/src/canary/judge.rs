//! Judgment of a canary: the reason for an abort, and the state for readers.

use super::report::{KnownError, alarm_text, route_status};
use super::run::Run;
use samovar_canary::{Metric, RouteSummary};
use samovar_wire::{CanaryError, CanaryStatus};

/// Maximum number of routes and of errors in a status.
const ROUTES_SHOWN_MAX: usize = 20;
const ERRORS_SHOWN_MAX: usize = 20;

impl Run {
    /// Returns the reason for an abort, if there is enough evidence.
    pub(super) fn alarm(&self) -> Option<String> {
        if let Some(alarm) = self.comparison.alarm() {
            let mut text = alarm_text(&alarm);
            let is_error = matches!(alarm.metric, Metric::Fatal | Metric::Failure);
            if let Some(error) = self.new_errors().find(|error| {
                is_error && (error.route == alarm.route || alarm.route.is_empty() || alarm.is_sum)
            }) {
                text.push('\n');
                text.push_str(&error.trace);
            }
            return Some(text);
        }
        let alarm = self.comparison.message_alarm()?;
        let error = self.errors.iter().find(|error| error.id == alarm.fingerprint)?;
        let [old, new] = alarm.count;
        error.is_fatal.then(|| {
            format!(
                "a fatal error on `{}`: {new} times in the canary, {old} times in the serving \
                 generation\n{}",
                error.route, error.trace
            )
        })
    }

    /// Errors that only the canary has reported, the fatal ones first.
    fn new_errors(&self) -> impl Iterator<Item = &KnownError> {
        let is_new = |error: &&KnownError| {
            let [old, new] = self.comparison.occurrences(error.id);
            old == 0 && new > 0
        };
        let fatal = self.errors.iter().filter(|error| error.is_fatal).filter(is_new);
        fatal.chain(self.errors.iter().filter(|error| !error.is_fatal).filter(is_new))
    }

    pub(super) fn status(&self) -> CanaryStatus {
        let (age, ended_unix_s) = self.ended.unwrap_or((self.began.elapsed(), 0));
        let nearest = self.comparison.nearest();
        let (evidence, figure, route) = match nearest {
            Some((evidence, metric, route)) if evidence > 0.0 => {
                (evidence, metric.name().to_owned(), route.to_owned())
            }
            _ => (0.0, String::new(), String::new()),
        };
        let mut routes: Vec<RouteSummary> = self.comparison.routes().collect();
        let singles = routes.get_mut(1..).unwrap_or_default();
        singles.sort_by_key(|route| std::cmp::Reverse((route.requests[1], route.requests[0])));
        routes.truncate(ROUTES_SHOWN_MAX + 1);
        let error = |error: &KnownError| CanaryError {
            trace: error.trace.clone(),
            route: error.route.clone(),
            count: self.comparison.occurrences(error.id),
        };
        CanaryStatus {
            state: self.state,
            reason: self.reason.clone(),
            generation: self.generation,
            release: self.release.clone(),
            pool: self.pool.clone(),
            root: self.roots[1].clone(),
            by: self.by,
            share_ppm: self.routing.share_ppm,
            next_ppm: self.steps.next().to_vec(),
            step_s: self.steps.each().as_secs(),
            age_s: age.as_secs(),
            ended_unix_s,
            requests: self.comparison.requests(),
            evidence,
            evidence_figure: figure,
            evidence_route: route,
            routes: routes.iter().map(route_status).collect(),
            new_errors: self.new_errors().take(ERRORS_SHOWN_MAX).map(error).collect(),
        }
    }
}
