//! The tracer generation: a second template with PHP's observer enabled, whose workers record call
//! graphs while the other generation serves.
//!
//! It starts when the serving generation is up, and follows it through reloads. Nothing depends on
//! it: its failures only lose graphs.

use super::pool::{Supervisor, TRACERS_MAX};
use crate::end::Failed;
use crate::generation::{Generation, Readiness};
use samovar_ring::DesiredState;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Wait between a failed tracer generation and the next.
const RETRY: Duration = Duration::from_secs(10);

impl Supervisor {
    /// Starts a tracer generation, or retires one whose serving generation was replaced.
    pub(super) fn look_at_tracer(&mut self) {
        let wanted = self.serving().filter(|g| g.ready == Readiness::Ready && !self.is_ending);
        let Some(serving) = wanted else { return };
        let (number, settings) = (serving.number, serving.settings.of_tracer());
        let ground = &self.ground;
        let mut tracers = 0;
        let mut has_own = false;
        for generation in self.generations.iter_mut().filter(|g| g.is_tracer && g.replay.is_none())
        {
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
                info!("tracing workers started");
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

    /// Ends a tracer generation; another one starts later.
    pub(super) fn give_up_tracer(&mut self, at: usize, failed: &Failed) {
        let generation = &mut self.generations[at];
        if generation.desired == DesiredState::Retire {
            return;
        }
        warn!(%failed, "tracing workers failed, retrying");
        generation.give_up(&self.ground);
        self.tracer_after = Instant::now() + RETRY;
    }
}
