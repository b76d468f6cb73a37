//! Finished requests → the comparison. Called on the thread of the request accounting.

use super::report::{KnownError, TRACE_BYTES_MAX, fingerprint};
use super::run::{Canaries, Run};
use samovar_canary::{Arm, Costs, FINGERPRINTS_MAX, Observation};
use samovar_insight::{Aggregate, End, ErrorKind, RecordedError, Seen, Sink, Tally};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Receives each finished request while a canary runs.
pub(crate) struct CanarySink {
    canaries: Canaries,
    tally: Arc<Tally>,
}

impl CanarySink {
    pub(crate) fn new(canaries: Canaries) -> CanarySink {
        CanarySink { canaries, tally: Tally::new("canary") }
    }

    fn is_on(&self) -> bool {
        self.canaries.0.is_on.load(Ordering::Relaxed)
    }
}

impl Sink for CanarySink {
    fn take(&mut self, seen: &Seen) {
        if !self.is_on() {
            return;
        }
        if let Some(run) = &mut *self.canaries.run() {
            run.take(seen);
        }
    }

    /// Without a canary it needs no request. While there is one, the reload asks for all.
    fn wants_from_ns(&self) -> u64 {
        u64::MAX
    }

    fn look(&mut self, _: &Aggregate, _: u64, _: u64) {
        if !self.is_on() {
            return;
        }
        if let Some(run) = &mut *self.canaries.run() {
            run.look();
        }
    }

    fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }
}

impl Run {
    fn take(&mut self, seen: &Seen) {
        let numbers = &seen.finished.numbers;
        if seen.finished.pool != self.pool {
            return;
        }
        let is_canarys = numbers.generation == self.routing.generation;
        let arm = if is_canarys { Arm::New } else { Arm::Old };
        let costs = (numbers.worker != 0 && numbers.run_ns > 0).then_some(Costs {
            cpu_ns: numbers.cpu_ns,
            run_ns: numbers.run_ns,
            peak_bytes: numbers.peak_bytes,
            grown_bytes: numbers.grown_bytes,
        });
        self.comparison.add(&Observation {
            arm,
            route: seen.route,
            status: numbers.status,
            is_fatal: matches!(numbers.end, End::Fatal | End::Died | End::Overtime),
            is_failed: matches!(numbers.end, End::Cut | End::Refused | End::TimedOut | End::Died),
            worker: numbers.worker,
            costs,
        });
        for error in RecordedError::of_entries(seen.entries) {
            let id = fingerprint(&error, &self.roots[arm as usize]);
            let is_first = self.comparison.add_message(arm, id);
            if is_first && self.errors.len() < FINGERPRINTS_MAX {
                let mut trace = error.trace();
                trace.truncate(trace.floor_char_boundary(TRACE_BYTES_MAX));
                let is_fatal = matches!(error.kind, ErrorKind::Fatal | ErrorKind::Uncaught);
                let route = seen.route.to_owned();
                self.errors.push(KnownError { id, trace, route, is_fatal });
            }
        }
    }
}
