//! Scales a generation's workers with the load: collects their state for `scale`, and executes its
//! decisions.

use super::ground::{Ground, Readiness, is_waiting};
use super::state::Generation;
use crate::scale::{Kernel, Queued, ScaleLine, Seen, Step};
use crate::workers::{Event, WorkerPlace};
use samovar_ring::{DesiredState, Lane, WorkerState};
use std::time::{Duration, Instant};

impl Generation {
    /// Adds or removes workers as `scale` decides.
    pub(crate) fn scale(&mut self, ground: &Ground) {
        let serves = self.desired == DesiredState::Serve && self.ready == Readiness::Ready;
        let may_change = serves || self.is_serving_canary();
        if !self.settings.workers.is_elastic() || !may_change || ground.is_stopping {
            return;
        }
        for script in [false, true] {
            if script && !self.workers.has_scripts() {
                continue;
            }
            let (seen, queued) = (self.seen(script, ground), self.queued(script, ground));
            // Workers above the wanted number exist too, and may be removed.
            let wanted = self.workers.wanted(script).max(self.workers.staying(script));
            let failures = self.workers.fork_failures();
            let scale = &mut self.scales[usize::from(script)];
            let event = match scale.look(wanted, &seen, queued, failures, &Kernel, Instant::now()) {
                Some(Step::Grow(count)) => Event::Grow { script, count },
                Some(Step::Shrink(cells)) => Event::Shrink { cells },
                None => continue,
            };
            self.tell(event);
        }
    }

    /// Whether requests wait and workers may be added for them.
    pub(crate) fn is_urgent(&self) -> bool {
        (self.desired == DesiredState::Serve || self.is_serving_canary())
            && self.scales.iter().any(crate::scale::Scale::is_urgent)
    }

    /// Whether its held workers serve a share of the requests.
    pub(crate) fn is_serving_canary(&self) -> bool {
        self.is_canary && self.desired == DesiredState::Hold
    }

    /// Returns the lines for `samovar status`; empty if the number of workers is fixed.
    pub(crate) fn scale_lines(&self) -> Vec<ScaleLine> {
        let kinds = if self.workers.has_scripts() { 2 } else { 1 };
        let kinds = if self.settings.workers.is_elastic() { kinds } else { 0 };
        self.scales.iter().take(kinds).map(crate::scale::Scale::line).collect()
    }

    /// Returns the number of workers that have a request.
    pub(crate) fn busy(&self, ground: &Ground) -> usize {
        let places = self.workers.places().iter().filter(|place| !place.is_script());
        places.filter(|p| see(p, ground).is_busy).count()
    }

    fn seen(&self, script: bool, ground: &Ground) -> Vec<Seen> {
        let stays =
            |p: &&WorkerPlace| p.is_script() == script && !self.workers.is_leaving(p.cell());
        self.workers.places().iter().filter(stays).map(|place| see(place, ground)).collect()
    }

    /// Returns the queued requests of the lanes that these workers serve.
    fn queued(&self, script: bool, ground: &Ground) -> Queued {
        let lanes: &[Lane] = match (script, self.workers.is_resident()) {
            (true, _) => &[Lane::Script],
            (false, true) => &[Lane::App],
            (false, false) => &[Lane::App, Lane::Script],
        };
        let is_held = self.desired == DesiredState::Hold;
        let lanes = lanes.iter().map(|lane| if is_held { lane.probe() } else { *lane });
        lanes.fold(Queued::default(), |sum, lane| {
            let count = usize::try_from(ground.supervision.queued(lane)).unwrap_or(usize::MAX);
            let oldest = Duration::from_nanos(ground.supervision.oldest_wait_ns(lane));
            Queued { count: sum.count.saturating_add(count), oldest: sum.oldest.max(oldest) }
        })
    }
}

fn see(place: &WorkerPlace, ground: &Ground) -> Seen {
    let pid = place.process().map(|(pid, ..)| pid);
    let report = ground.supervision.report(place.cell()).filter(|_| pid.is_some());
    Seen {
        cell: place.cell(),
        pid,
        is_up: report.is_some_and(|report| is_waiting(&report)),
        is_busy: report.is_some_and(|report| report.state == WorkerState::Busy),
        requests: report.map_or(0, |report| report.requests),
    }
}
