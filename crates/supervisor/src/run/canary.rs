//! A canary: the workers of a coming generation stay held and serve the requests that the front
//! queues in the lanes of held workers.
//!
//! The canary waits at the reload's gate. Its promotion is that of a reload. If it is aborted, it
//! takes the requests that still wait for it, then retires: its workers finish their requests.

use super::pool::{Deaths, Supervisor};
use crate::generation::Step;
use crate::workers::Event;
use samovar_ring::Lane;
use std::time::{Duration, Instant};
use tracing::info;

/// Maximum time for which an aborted canary takes requests that wait for it.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// Number of deaths of its workers within [`DEATHS_SPAN`] that aborts a canary.
const DEATHS_MAX: u64 = 5;
const DEATHS_SPAN: Duration = Duration::from_mins(1);

impl Supervisor {
    /// The workers of the new generation begin to serve a share of the requests.
    pub(super) fn begin_canary(&mut self, at: usize) {
        let generation = &mut self.generations[at];
        generation.is_canary = true;
        let before = generation.workers.restarts();
        self.canary_deaths = Some(Deaths { since: Instant::now(), before });
        // The serving generation may get a new template meanwhile, which needs another number.
        self.number = self.number.max(generation.number);
        info!(generation = generation.number, "the canary is ready");
        // The status that is requested next has the canary.
        self.publish();
    }

    /// The canary was aborted.
    pub(super) fn let_canary_leave(&mut self, why: String) {
        if let Some(coming) = &mut self.coming {
            coming.step = Step::Leaves { by: Instant::now() + LEAVE_LIMIT, why };
        }
    }

    /// Aborts a canary whose workers die again and again, and retires an aborted one.
    pub(super) fn look_at_canary(&mut self) {
        let Some(coming) = self.coming.as_ref().filter(|coming| coming.is_canary) else { return };
        if let Step::Leaves { by, why } = &coming.step {
            let queued = |lane| self.ground.supervision.queued(lane);
            let is_served = queued(Lane::AppProbe) + queued(Lane::ScriptProbe) == 0;
            if is_served || Instant::now() >= *by {
                let why = why.clone();
                self.give_up(&why);
            }
            return;
        }
        let canary = self.generations.iter_mut().find(|generation| generation.is_serving_canary());
        let (Some(canary), Some(deaths)) = (canary, &mut self.canary_deaths) else { return };
        let restarts = canary.workers.restarts();
        let count = restarts.saturating_sub(deaths.before);
        if count >= DEATHS_MAX {
            let seconds = deaths.since.elapsed().as_secs() + 1;
            self.give_up(&format!(
                "its workers died {count} times within {seconds} s\nhint: see the server's log"
            ));
        } else if deaths.since.elapsed() >= DEATHS_SPAN {
            *deaths = Deaths { since: Instant::now(), before: restarts };
        } else if canary.workers.is_resident()
            && !canary.workers.has_scripts()
            && self.ground.supervision.queued(Lane::ScriptProbe) > 0
        {
            canary.tell(Event::ScriptsWait);
        }
    }
}
