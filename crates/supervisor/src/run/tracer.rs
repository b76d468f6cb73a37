//! Beside the generation that serves: a template with PHP's observer on, whose workers take down call graphs.
//!
//! It begins when the other is up, follows it through reloads, and nothing depends on it: what goes wrong with it costs graphs.

use super::{Supervisor, TRACERS_MAX};
use crate::end::Failed;
use crate::generation::{Generation, Readiness};
use samovar_ring::DesiredState;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Between one that has failed and the next.
const RETRY: Duration = Duration::from_secs(10);

impl Supervisor {
    /// Begins one, or lets one go whose generation does not serve any more.
    pub(super) fn look_at_tracer(&mut self) {
        let wanted = self.serving().filter(|g| g.ready == Readiness::Ready && !self.is_ending);
        let Some(serving) = wanted else { return };
        let (number, settings) = (serving.number, serving.settings.of_tracer());
        let ground = &self.ground;
        let mut tracers = 0;
        let mut has_own = false;
        for generation in self.generations.iter_mut().filter(|g| g.is_tracer) {
            tracers += 1;
            if generation.desired != DesiredState::Serve {
                continue;
            }
            if generation.number != number {
                let end = generation.drain_end();
                generation.retire(Some(end), "the application was reloaded", ground);
                continue;
            }
            has_own = true;
            if generation.ready == Readiness::TemplateReady && generation.is_up(ground) {
                generation.ready = Readiness::Ready;
                info!("workers that take down call graphs are up");
            }
        }
        let may_begin = tracers < TRACERS_MAX && Instant::now() >= self.tracer_after;
        let Some(settings) = settings.filter(|_| !has_own && may_begin) else { return };
        if self.free_cells().len() < settings.workers.max {
            return;
        }
        let lives = self.ground.lives.clone();
        let intake = &self.ground.intake;
        let tracer = Generation::new(number, settings, 0, DesiredState::Serve, lives, intake);
        self.generations.push(tracer);
    }

    /// Ends it; another one begins after a while.
    pub(super) fn give_up_tracer(&mut self, at: usize, failed: &Failed) {
        let generation = &mut self.generations[at];
        if generation.desired == DesiredState::Retire {
            return;
        }
        warn!(%failed, "call graphs cannot be taken down; it is tried again");
        generation.give_up(&self.ground);
        self.tracer_after = Instant::now() + RETRY;
    }
}
