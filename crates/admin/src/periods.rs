//! Figures of a period: from memory where it reaches, before that from the history.

use crate::period_cache::Subject;
use crate::range::{Period, Range, Resolved, Span};
use crate::sources::Sources;
use crate::{figures, format};
use samovar_insight::store::{RouteMinute, RouteSum, Store};
use samovar_insight::{Costs, Part};
use std::collections::HashMap;
use std::sync::Arc;

const MINUTE_S: u64 = 60;
/// Possible lengths of a chart's pieces, in seconds.
const STEPS: [u64; 9] = [60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400, 604_800];
/// Maximum number of a chart's pieces.
const PIECES_MAX: u64 = 170;
/// Length from which the pieces are at least as long as merged parts in memory.
const MERGED_FROM_S: u64 = 2 * 3_600;
const MERGED_S: u64 = 600;

/// Sums of each route in a period.
#[derive(Debug, Default)]
pub(crate) struct PeriodSums {
    pub(crate) routes: HashMap<String, RouteSum>,
    /// Reason why a part of the period is missing; empty if it is complete.
    pub(crate) missing: String,
}

impl PeriodSums {
    /// Returns the sum of all routes.
    pub(crate) fn total(&self) -> RouteSum {
        let mut total = RouteSum::default();
        for sum in self.routes.values() {
            total.merge(sum);
        }
        total
    }
}

/// Figures in pieces of equal length.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Begin of the first piece, in seconds since 1970.
    pub(crate) from: u64,
    /// Length of a piece in seconds.
    pub(crate) step: u64,
    /// End of the period: the last piece may be shorter.
    to: u64,
    pub(crate) pieces: Vec<RouteMinute>,
    pub(crate) missing: String,
}

impl Timeline {
    fn new(period: Period) -> Timeline {
        let least = if period.seconds() > MERGED_FROM_S { MERGED_S } else { MINUTE_S };
        let fits = |step: &u64| *step >= least && period.seconds() / step <= PIECES_MAX;
        let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
        let from = period.from - period.from % step;
        let count = (period.to - from).div_ceil(step).clamp(1, 10 * PIECES_MAX) as usize;
        let pieces = vec![RouteMinute::default(); count];
        Timeline { from, step, to: period.to, pieces, missing: String::new() }
    }

    fn at(&mut self, at: u64) -> Option<&mut RouteMinute> {
        let place = usize::try_from(at.checked_sub(self.from)? / self.step).ok()?;
        self.pieces.get_mut(place)
    }

    /// Returns the seconds of a piece that belong to the period.
    pub(crate) fn seconds_of(&self, piece: usize) -> f64 {
        let begin = self.from + piece as u64 * self.step;
        self.to.saturating_sub(begin).clamp(1, self.step) as f64
    }

    /// Returns the sum of all pieces.
    pub(crate) fn sum(&self) -> RouteMinute {
        let mut sum = RouteMinute::default();
        for piece in &self.pieces {
            sum.merge(piece);
        }
        sum
    }

    /// Returns the pieces for charts that also have figures by the second.
    pub(crate) fn brief(&self) -> figures::Pieces {
        let mut all: Vec<_> = self.pieces.iter().map(figures::Piece::of_minute).collect();
        // A piece that is not over would look like a drop of the rate.
        if all.len() > 1 && self.seconds_of(all.len() - 1) < self.step as f64 {
            all.pop();
        }
        figures::Pieces { from: self.from, step: self.step, all }
    }
}

/// Parts of a period in memory, and the store that has the rest.
struct Gathered {
    parts: Vec<Part>,
    stored: Option<(Store, Period)>,
    missing: String,
}

impl Sources {
    /// Returns a range's times.
    pub(crate) fn resolve(&self, range: &Range, now: u64) -> Resolved {
        range.resolve(&self.known(now))
    }

    /// Returns the sums of each route since the start, or in the range's period.
    pub(crate) fn sums_of(&self, range: &Range, period: Period, now: u64) -> Arc<PeriodSums> {
        match &self.insight {
            Some(insight) if range.span == Span::Start => {
                let figures = insight.figures();
                let routes = figures.routes().map(|(name, r)| (name.to_owned(), sum(&r.costs)));
                Arc::new(PeriodSums { routes: routes.collect(), missing: String::new() })
            }
            _ => self.sums(period, now),
        }
    }

    /// Returns the sums of each route in a period.
    pub(crate) fn sums(&self, period: Period, now: u64) -> Arc<PeriodSums> {
        self.periods.get(Subject::Routes, period, now, || {
            let Gathered { parts, stored, mut missing } = self.gather(period, now);
            let mut routes = HashMap::new();
            if let Some((store, of)) = stored {
                match store.sums(of.from, of.to) {
                    Ok(sums) => routes = sums.into_iter().collect(),
                    Err(error) => missing = error.to_string(),
                }
            }
            for (name, minute) in parts.iter().flat_map(|part| part.routes.iter()) {
                if let Some(sum) = routes.get_mut(&**name) {
                    RouteSum::merge_minute(sum, minute);
                } else {
                    let mut sum = RouteSum::default();
                    sum.merge_minute(minute);
                    routes.insert(name.to_string(), sum);
                }
            }
            PeriodSums { routes, missing }
        })
    }

    /// Returns all figures of a route in a period, and the reason why a part is missing.
    pub(crate) fn route_in(&self, route: &str, period: Period, now: u64) -> (RouteMinute, String) {
        let timeline = self.timeline(Some(route), period, now);
        (timeline.sum(), timeline.missing.clone())
    }

    /// Returns the figures of a route, or of all routes together, over time.
    pub(crate) fn timeline(&self, route: Option<&str>, period: Period, now: u64) -> Arc<Timeline> {
        let subject = Subject::Timeline(route.map(str::to_owned));
        self.periods.get(subject, period, now, || {
            let Gathered { parts, stored, missing } = self.gather(period, now);
            let mut timeline = Timeline { missing, ..Timeline::new(period) };
            if let Some((store, of)) = stored {
                let (step, from) = (timeline.step, timeline.from);
                let read = store.each_of(route, (of.from, of.to), step, |at, figures| {
                    // An hour that begins before the period belongs to its first piece.
                    if let Some(piece) = timeline.at(at.max(from)) {
                        piece.merge(&figures);
                    }
                });
                if let Err(error) = read {
                    timeline.missing = error.to_string();
                }
            }
            for part in &parts {
                let Some(piece) = timeline.at(part.middle()) else { continue };
                for (name, minute) in part.routes.iter() {
                    match route {
                        None => piece.merge_route(minute),
                        Some(route) if **name == *route => piece.merge(minute),
                        Some(_) => {}
                    }
                }
            }
            timeline
        })
    }

    fn gather(&self, period: Period, now: u64) -> Gathered {
        let recent = self.insight.as_ref().and_then(|insight| insight.figures().recent(now));
        let (begin, mut parts) = recent.unwrap_or((now, Vec::new()));
        let path = self.insight.as_ref().and_then(|insight| insight.history_path());
        let mut stored = None;
        let mut missing = String::new();
        let mut boundary = 0;
        let floor = |at: u64| at - at % MINUTE_S;
        match path.map(Store::reader) {
            _ if period.from >= begin => {}
            None if period.from + MINUTE_S < begin => {
                missing = format!(
                    "Memory has figures since {} UTC. Set insight.store to keep older ones.",
                    format::moment(begin)
                );
            }
            None => {}
            Some(Err(error)) => missing = error.to_string(),
            Some(Ok(store)) => {
                let first = store.begin().ok().flatten().unwrap_or(begin).min(begin);
                if floor(period.from) < floor(first) {
                    let first = format::moment(first);
                    missing = format!("The history begins on {first} UTC.");
                }
                // The minute of the start may have requests of a previous server.
                boundary = begin.next_multiple_of(MINUTE_S);
                let to = floor(period.to).min(boundary);
                stored = Some((store, Period { from: period.from, to }));
            }
        }
        parts.retain(|part| period.contains(part.middle()) && part.middle() >= boundary);
        Gathered { parts, stored, missing }
    }
}

/// Returns the sums of a route since the start.
fn sum(costs: &Costs) -> RouteSum {
    RouteSum {
        requests: costs.requests,
        errors: costs.errors(),
        wall: costs.wall.clone(),
        cpu: costs.cpu.clone(),
        queue_ns: costs.queue.sum_ns(),
        run_ns: costs.run_ns,
        waiting_ns: costs.waiting_ns,
        rollback_ns: costs.rollback_ns,
        peak_bytes_max: costs.peak_bytes_max,
    }
}
