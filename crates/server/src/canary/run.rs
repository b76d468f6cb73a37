//! The canary that runs, or the last one: its state, and the changes of it.

use super::report::KnownError;
use crate::machine_load::MachineLoad;
use samovar_canary::{Advice, Comparison, Steps, share_text};
use samovar_front::{CanaryRouting, FrontHandle};
use samovar_supervisor::GateDone;
use samovar_wire::{CanaryAction, CanaryAssignment, CanaryQuestion, CanaryState, CanaryStatus};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// CPU time in use, in percent of the machine's, from which on the machine is saturated.
const SATURATED_PERCENT: u64 = 90;
const NONE_RUNS: &str = "no canary is running\nhint: start one with `samovar reload --canary 5%`";

/// The canary that runs, or the last one. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Canaries(pub(super) Arc<Inner>);

#[derive(Default)]
pub(super) struct Inner {
    /// Whether a canary serves requests.
    pub(super) is_on: AtomicBool,
    pub(super) run: Mutex<Option<Run>>,
}

/// A canary that is ready to serve its share.
pub(crate) struct Start {
    /// Name of its pool; empty if the server has one pool.
    pub(crate) pool: String,
    pub(crate) generation: u64,
    /// Label of its release; empty: none was given.
    pub(crate) release: String,
    /// Document roots of the serving generation and of the canary.
    pub(crate) roots: [PathBuf; 2],
    pub(crate) by: CanaryAssignment,
    pub(crate) front: FrontHandle,
    pub(crate) routing: CanaryRouting,
    pub(crate) steps: Steps,
    /// Lets it take over, or ends it.
    pub(crate) admit: GateDone,
}

/// The canary, and its figures.
pub(super) struct Run {
    pub(super) pool: String,
    pub(super) generation: u64,
    pub(super) release: String,
    pub(super) roots: [PathBuf; 2],
    pub(super) by: CanaryAssignment,
    pub(super) front: FrontHandle,
    pub(super) routing: CanaryRouting,
    pub(super) steps: Steps,
    pub(super) admit: Option<GateDone>,
    pub(super) comparison: Comparison,
    pub(super) load: MachineLoad,
    pub(super) errors: Vec<KnownError>,
    pub(super) began: Instant,
    pub(super) state: CanaryState,
    pub(super) reason: String,
    pub(super) is_aborted_by_operator: bool,
    pub(super) ended: Option<(Duration, u64)>,
}

impl Canaries {
    /// Sends the first share of the requests to the canary.
    pub(crate) fn begin(&self, start: Start) {
        let Start { pool, generation, release, roots, by, front, routing, steps, admit } = start;
        front.set_canary(Some(&routing));
        tracing::info!(generation, share = share_text(routing.share_ppm), "the canary serves");
        *self.run() = Some(Run {
            pool,
            generation,
            release,
            roots,
            by,
            front,
            routing,
            steps,
            admit: Some(admit),
            comparison: Comparison::new(samovar_canary::Settings::default()),
            load: MachineLoad::default(),
            errors: Vec::new(),
            began: Instant::now(),
            state: CanaryState::Running,
            reason: String::new(),
            is_aborted_by_operator: false,
            ended: None,
        });
        self.0.is_on.store(true, Ordering::Release);
    }

    /// The supervisor has ended the canary: it has taken over, or it was given up for that reason.
    /// Returns whether an operator has aborted it.
    pub(crate) fn ended(&self, outcome: Result<u64, &str>) -> bool {
        self.0.is_on.store(false, Ordering::Release);
        let mut locked = self.run();
        let Some(run) = locked.as_mut().filter(|run| !run.state.is_final()) else {
            return false;
        };
        run.front.set_canary(None);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        run.ended = Some((run.began.elapsed(), unix.as_secs()));
        match outcome {
            Ok(_) => {
                run.state = CanaryState::Promoted;
            }
            Err(why) => {
                if run.state != CanaryState::Aborting {
                    why.clone_into(&mut run.reason);
                    tracing::warn!(generation = run.generation, "canary aborted: {why}");
                }
                run.state = CanaryState::Aborted;
            }
        }
        run.is_aborted_by_operator
    }

    /// Carries out a command of an operator.
    pub(crate) fn command(&self, question: &CanaryQuestion) -> Result<(), String> {
        let mut locked = self.run();
        if question.action == CanaryAction::Status {
            return Ok(());
        }
        let run = locked.as_mut().filter(|run| run.state == CanaryState::Running);
        let run = run.ok_or(NONE_RUNS)?;
        match question.action {
            CanaryAction::Promote => run.promote("an operator has promoted it"),
            CanaryAction::Abort => {
                run.is_aborted_by_operator = true;
                run.abort("an operator has aborted it".to_owned());
            }
            CanaryAction::Share => match question.shares_ppm[..] {
                [share @ 1..1_000_000] => {
                    let (age, progress) = (run.began.elapsed(), run.comparison.progress());
                    run.steps.set(share, age, progress);
                    run.share(share);
                }
                _ => return Err("the share must be above 0% and below 100%".to_owned()),
            },
            CanaryAction::Status | CanaryAction::Start => {}
        }
        Ok(())
    }

    /// Returns the state of the canary, or of the last one.
    pub(crate) fn status(&self) -> Option<CanaryStatus> {
        self.run().as_ref().map(Run::status)
    }

    pub(super) fn run(&self) -> MutexGuard<'_, Option<Run>> {
        // The figures are usable even after a panic of a thread that held the lock.
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// Ends the block of requests, and decides.
    pub(super) fn look(&mut self) {
        if self.state != CanaryState::Running {
            return;
        }
        let age = self.began.elapsed();
        self.comparison.close_block(age);
        self.comparison.set_saturated(self.load.busy_percent() >= SATURATED_PERCENT);
        if let Some(reason) = self.alarm() {
            return self.abort(reason);
        }
        match self.steps.look(age, self.comparison.progress()) {
            Advice::Wait => {}
            Advice::Share(share) => self.share(share),
            Advice::Promote => self.promote("all steps have passed"),
        }
    }

    fn share(&mut self, share_ppm: u32) {
        self.routing.share_ppm = share_ppm;
        self.comparison.restart(self.began.elapsed());
        self.front.set_canary(Some(&self.routing));
        tracing::info!(generation = self.generation, share = share_text(share_ppm), "canary: step");
    }

    fn promote(&mut self, reason: &str) {
        self.state = CanaryState::Promoting;
        reason.clone_into(&mut self.reason);
        if let Some(admit) = self.admit.take() {
            admit(Ok(()));
        }
    }

    fn abort(&mut self, reason: String) {
        self.state = CanaryState::Aborting;
        tracing::warn!(generation = self.generation, "canary aborted: {reason}");
        // From now on, the serving generation gets all requests. The canary takes
        // its waiting requests before it retires.
        self.front.set_canary(None);
        if let Some(admit) = self.admit.take() {
            admit(Err(reason.clone()));
        }
        self.reason = reason;
    }
}
