//! A worker for a replay: held back from all other requests, and forked from the serving
//! generation's image. A replay with an observer of PHP gets a generation of its own, whose
//! template starts with other settings.
//!
//! It takes from the lanes of held workers, so there is none during a reload or a canary. It exits
//! after the replay, and has no successor.

use super::pool::{Spare, Supervisor};
use crate::generation::{Generation, Readiness};
use crate::handle::SpareOrder;
use crate::workers::Event;
use samovar_ring::{DesiredState, WorkerState};
use std::time::{Duration, Instant};
use tracing::info;

/// Maximum time until the worker waits for a request: it may boot the application.
const START_LIMIT: Duration = Duration::from_mins(2);

impl Supervisor {
    /// Starts the worker for a replay.
    pub(super) fn begin_spare(&mut self, order: SpareOrder) {
        let SpareOrder { id, script, own, ready } = order;
        if let Some(why) = self.spare_refusal() {
            return ready(Err(why.to_owned()));
        }
        let (lives, since, ready) = (self.ground.lives.clone(), Instant::now(), Some(ready));
        let Some(serving) = self.serving_mut() else { return };
        let script = script && serving.workers.is_resident();
        let (generation, has_own) = (serving.number, own.is_some());
        let mut templates = serving.workers.template_restarts();
        if let Some(own) = own {
            let (settings, serve) = (serving.settings.of_replay(own), DesiredState::Serve);
            let intake = &self.ground.intake;
            let mut own = Generation::new(generation, settings, 0, serve, lives, intake);
            // It serves nothing, and is numbered like the serving one.
            (own.is_tracer, own.replay) = (true, Some(id));
            own.tell(Event::Spare { script });
            templates = 0;
            self.generations.push(own);
        } else {
            serving.tell(Event::Spare { script });
        }
        self.spare = Some(Spare { id, generation, has_own, templates, since, ready });
    }

    fn spare_refusal(&self) -> Option<&'static str> {
        let is_up = self.serving().is_some_and(|serving| serving.ready == Readiness::Ready);
        if self.is_ending {
            Some("the server is stopping")
        } else if self.coming.is_some() || self.awaited.is_some() {
            Some("a reload or a canary is in progress\nhint: try again after its end")
        } else if self.spare.is_some() {
            Some("another replay is running\nhint: try again after its end")
        } else if !is_up {
            Some("the server has not booted\nhint: try again when `samovar status` shows it")
        } else if self.free_cells().is_empty() {
            Some(
                "no cell of the ring is free for another worker\nhint: restart the server with \
                 fewer `workers`",
            )
        } else {
            None
        }
    }

    /// Reports the worker when it waits for a request, or its failure.
    pub(super) fn look_at_spare(&mut self) {
        let Some(spare) = &self.spare else { return };
        let serving = self.serving().filter(|serving| serving.number == spare.generation);
        let mut owned = self.generations.iter().filter(|generation| generation.replay.is_some());
        let of = if spare.has_own { owned.next_back() } else { serving };
        let Some(of) = of.filter(|_| serving.is_some()) else {
            return self.end_spare("the application was reloaded, or its process has ended");
        };
        let workers = &of.workers;
        let is_lost = workers.template_restarts() != spare.templates
            || of.desired == DesiredState::Retire
            || workers.spare().is_none() && !workers.awaits_spare();
        // The event that asks for the worker may still be queued.
        if is_lost && of.is_settled() {
            return self.end_spare("its worker has ended\nhint: see the server's log");
        }
        let process = workers.spare().and_then(|place| Some((place.cell(), place.process()?.0)));
        let waits = |cell| {
            let report = self.ground.supervision.report(cell);
            report.is_some_and(|report| report.state == WorkerState::Idle)
        };
        let ready = process.filter(|(cell, _)| waits(*cell)).map(|(_, pid)| pid);
        let Some(spare) = &mut self.spare else { return };
        if let Some(pid) = ready
            && let Some(tell) = spare.ready.take()
        {
            info!(pid, "a worker for a replay is ready");
            tell(Ok(pid));
        } else if spare.ready.is_some() && spare.since.elapsed() > START_LIMIT {
            self.end_spare("its worker did not start in time\nhint: see the server's log");
        }
    }

    /// Ends the worker immediately: a debugger may have stopped its request for a day.
    pub(super) fn kill_spare(&mut self, id: u64) {
        // A reload ends the replay for the supervisor, and its own generation still runs.
        let own = self.generations.iter_mut().filter(|generation| generation.replay == Some(id));
        own.for_each(|generation| generation.give_up(&self.ground));
        if self.spare.as_ref().is_some_and(|spare| spare.id == id) {
            let places = self.generations.iter().filter_map(|it| it.workers.spare());
            let pids: Vec<i32> = places.filter_map(|place| Some(place.process()?.0)).collect();
            for pid in pids {
                self.ground.kill(pid);
            }
            self.end_spare("the replay was cancelled");
        }
    }

    /// Ends the worker after its request. A replay that has not begun fails for this reason.
    pub(super) fn end_spare(&mut self, why: &str) {
        let Some(spare) = self.spare.take() else { return };
        if let Some(ready) = spare.ready {
            ready(Err(why.to_owned()));
        }
        let ground = &self.ground;
        for generation in &mut self.generations {
            if generation.replay.is_some() {
                // A debugger may have stopped its request, whose time limit still applies.
                generation.retire(None, "the replay has ended", ground);
            } else {
                generation.tell(Event::EndSpare);
            }
        }
    }
}
