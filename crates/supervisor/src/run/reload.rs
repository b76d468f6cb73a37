//! Reload: a new generation boots while the old one serves, and takes over when all of it is up.
//!
//! Until then its workers are held back ([`DesiredState::Hold`]), so that a failure has no effect:
//! the new generation ends, and the old one continues. Its workers only respond to a probe. A worse
//! result than that of the old generation, or another model, counts as a failure. At the change,
//! the old workers finish their requests and exit.

use super::pool::{GENERATIONS_MAX, Supervisor};
use crate::end::Failed;
use crate::generation::{Coming, Generation, Readiness, Step};
use crate::handle::{Command, Reload};
use crate::workers::Event;
use samovar_ring::{DesiredState, Model};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Wait for the new model. A worker can learn from a request that its application should be booted
/// in advance, and reports that a moment later.
const MODEL_LIMIT: Duration = Duration::from_secs(2);

impl Supervisor {
    /// Starts a reload, or delays it until the server itself is up.
    pub(super) fn begin_reload(&mut self, reload: Reload) {
        if let Some(why) = self.refusal() {
            warn!(why, "reload rejected");
            (reload.done)(Err(why.to_owned()));
            return;
        }
        if self.fallen_until.is_some() {
            // The change may be the correction that the failed pool needs.
            self.settings = (*reload.settings).clone();
            self.fallen_until = Some(Instant::now());
        }
        if self.serving().is_none_or(|generation| generation.ready != Readiness::Ready) {
            info!("reload: waiting for the boot of the server");
            self.awaited = Some(reload);
            return;
        }
        // The new generation's workers take from the same lanes until they serve.
        self.end_spare("a reload has begun");
        let number = self.number + 1;
        info!(generation = number, "reload: booting the new generation");
        let lives = self.ground.lives.clone();
        let Reload { settings, probe, gate, is_canary, may_change_model, done } = reload;
        let busy = self.serving().map_or(0, |generation| generation.busy(&self.ground));
        let generation = Generation::new(
            number,
            *settings,
            busy,
            DesiredState::Hold,
            lives,
            &self.ground.intake,
        );
        self.generations.push(generation);
        self.attempts += 1;
        let (attempt, step) = (self.attempts, Step::Boots(probe));
        self.coming = Some(Coming { attempt, may_change_model, is_canary, step, gate, done });
    }

    /// Starts the reload that was requested while the server booted.
    pub(super) fn look_at_awaited(&mut self) {
        let is_up = self.serving().is_some_and(|generation| generation.ready == Readiness::Ready);
        if let Some(reload) = self.awaited.take_if(|_| is_up) {
            self.begin_reload(reload);
        }
    }

    /// Returns the reason why a reload is not possible now, if there is one.
    fn refusal(&self) -> Option<&'static str> {
        let is_full = self.free_cells().is_empty();
        if self.is_ending {
            Some("the server is stopping")
        } else if self.coming.as_ref().is_some_and(Coming::is_running_canary) {
            Some(
                "a canary is running\nhint: run `samovar canary promote` or `samovar canary abort` \
                 first",
            )
        } else if self.coming.is_some() || self.awaited.is_some() {
            Some("another reload is in progress")
        } else if is_full && self.serving_generations() == 1 {
            Some(
                "no cell of the ring is free for another worker\nhint: restart the server with \
                 fewer `workers`",
            )
        } else if is_full || self.serving_generations() >= GENERATIONS_MAX {
            Some(
                "workers of earlier generations are still busy with requests\nhint: try again \
                 after `timeouts.drain`",
            )
        } else {
            None
        }
    }

    /// Lets the new generation take over if it is up and passes the probe, or gives it up.
    pub(super) fn look_at_coming(&mut self) {
        if self.coming.is_none() {
            return;
        }
        let Some(at) = self.generations.iter().position(|p| p.desired == DesiredState::Hold) else {
            return;
        };
        let old_boots = self.serving().is_some_and(|old| !old.boot_failed);
        let needs_scripts = self.serving().is_some_and(|old| old.workers.has_scripts());
        let generation = &mut self.generations[at];
        if needs_scripts && generation.workers.is_resident() && !generation.workers.has_scripts() {
            generation.tell(Event::ScriptsWait);
        } else if generation.boot_failed && old_boots {
            self.give_up("the application's boot failed\nhint: see the server's log");
        } else if matches!(
            self.coming,
            Some(Coming { step: Step::AtGate | Step::Leaves { .. }, .. })
        ) {
            // Waits for other pools, each of which has its own time limit; or is a canary.
        } else if generation.is_late() {
            self.give_up_late();
        } else if generation.is_up(&self.ground) {
            self.advance(at);
        }
    }

    fn give_up_late(&mut self) {
        let is_asked = self.coming.as_ref().is_some_and(|c| matches!(c.step, Step::Probed));
        self.give_up(if is_asked {
            "the new generation has not answered `reload_probe` within `timeouts.boot`\nhint: see \
             the server's log; `samovar reload --force` ignores the probe"
        } else {
            "the application did not boot within `timeouts.boot`\nhint: see the server's log, or \
             raise `timeouts.boot`"
        });
    }

    /// Advances a new generation whose workers are up: starts the probe, judges its result, and
    /// lets the generation take over.
    fn advance(&mut self, at: usize) {
        let Some(coming) = &mut self.coming else { return };
        match &mut coming.step {
            Step::Probed | Step::AtGate | Step::Leaves { .. } => {}
            Step::Boots(probe) => {
                let probe = probe.take();
                let attempt = coming.attempt;
                let Some(probe) = probe else {
                    coming.step = Step::Passed { since: Instant::now(), by_app: false };
                    return self.advance(at);
                };
                coming.step = Step::Probed;
                let handle = self.post.handle.clone();
                probe(Box::new(move |result| handle.send(Command::Probed { attempt, result })));
            }
            Step::Passed { since, by_app } => {
                let (since, by_app) = (*since, *by_app);
                let may_change = coming.may_change_model;
                match self.lost_model(at, by_app) {
                    Some(_) if may_change => self.enter(at),
                    Some(_) if since.elapsed() < MODEL_LIMIT => {}
                    Some(why) => self.give_up(&why),
                    None => self.enter(at),
                }
            }
        }
    }

    /// Handles the result of the probe.
    pub(super) fn hear_probe(&mut self, attempt: u64, result: Result<bool, String>) {
        let Some(coming) = self.coming.as_mut().filter(|c| c.attempt == attempt) else { return };
        match result {
            Ok(by_app) => coming.step = Step::Passed { since: Instant::now(), by_app },
            Err(why) => self.give_up(&why),
        }
    }

    /// Lets the generation take over, or requests admission from the gate first.
    fn enter(&mut self, at: usize) {
        let Some(coming) = &mut self.coming else { return };
        let Some(gate) = coming.gate.take() else { return self.promote(at) };
        coming.step = Step::AtGate;
        let (handle, attempt) = (self.post.handle.clone(), coming.attempt);
        let is_canary = coming.is_canary;
        let number = self.generations[at].number;
        if is_canary {
            self.begin_canary(at);
        } else {
            info!("reload: the new generation is ready, waiting for the other pools");
        }
        gate(number, Box::new(move |result| handle.send(Command::Admitted { attempt, result })));
    }

    /// Handles the gate's reply.
    pub(super) fn hear_gate(&mut self, attempt: u64, result: Result<(), String>) {
        if self.coming.as_ref().is_none_or(|coming| coming.attempt != attempt) {
            return;
        }
        let held = self.generations.iter().position(|g| g.desired == DesiredState::Hold);
        match (result, held) {
            (Ok(()), Some(at)) => self.promote(at),
            (Ok(()), None) => {}
            (Err(why), Some(at)) if self.generations[at].is_canary => self.let_canary_leave(why),
            (Err(why), _) => self.give_up(&why),
        }
    }

    /// Returns the reason why the new application cannot replace the old one, if their models
    /// differ.
    fn lost_model(&self, at: usize, by_app: bool) -> Option<String> {
        let (old, new) = (self.serving()?, &self.generations[at]);
        let hint = "hint: `samovar reload --force` accepts this";
        match (old.model(&self.ground), new.model(&self.ground)) {
            // No request has reached the front controller that would reveal its model.
            (_, Model::Script) if !by_app && !old.workers.is_told_resident() => None,
            (Model::Script, _) => None,
            (before, after) if before == after => None,
            (before, Model::Script) => Some(format!(
                "the serving application is booted before its requests ({}), but the new one is \
                 not: its front controller does not call Samovar\\checkpoint() or \
                 Samovar\\serve()\n{hint}",
                before.name()
            )),
            (before, after) => Some(format!(
                "the serving application uses the {} model, but the new one uses the {} \
                 model\n{hint}",
                before.name(),
                after.name()
            )),
        }
    }

    fn promote(&mut self, at: usize) {
        // A canary has got its number when it began to serve.
        if !self.generations[at].is_canary {
            self.count_generation(at);
        }
        let number = self.generations[at].number;
        self.generations[at].is_canary = false;
        let old =
            self.generations.iter().position(|p| p.desired == DesiredState::Serve && !p.is_tracer);
        self.generations[at].serve(&self.ground);
        self.settings = self.generations[at].settings.clone();
        if let Some(old) = old {
            let end = self.generations[at].drain_end();
            self.generations[old].retire(Some(end), "the application was reloaded", &self.ground);
        }
        let coming = self.coming.take();
        // A status that is requested after the response has the new generation.
        self.publish();
        if let Some(coming) = coming {
            (coming.done)(Ok(number));
        }
        info!(generation = number, "reload: the new generation serves");
    }

    /// Gives up the reload. The old generation continues unchanged.
    pub(super) fn give_up(&mut self, why: &str) {
        if let Some(generation) =
            self.generations.iter_mut().find(|p| p.desired == DesiredState::Hold)
        {
            if generation.is_canary {
                let end = generation.drain_end();
                generation.retire(Some(end), "the canary was aborted", &self.ground);
            } else {
                generation.give_up(&self.ground);
            }
        }
        let awaited = self.awaited.take().map(|reload| (false, reload.done));
        let coming = self.coming.take().map(|coming| (coming.is_running_canary(), coming.done));
        if coming.is_some() || awaited.is_some() {
            self.publish();
        }
        for (is_canary, done) in coming.into_iter().chain(awaited) {
            // The server logs the reason of an aborted canary.
            if !is_canary {
                warn!(why, "reload failed, the old generation keeps serving");
            }
            done(Err(why.to_owned()));
        }
    }

    /// Handles an error of a generation. An error that ends a starting server only ends a reload.
    pub(super) fn survive(
        &mut self,
        at: usize,
        desired: DesiredState,
        result: Result<(), Failed>,
    ) -> Result<(), Failed> {
        if self.generations[at].is_tracer {
            if let Err(failed) = result {
                self.give_up_tracer(at, &failed);
            }
            return Ok(());
        }
        match (desired, result) {
            (DesiredState::Serve, result) => result,
            (DesiredState::Hold, Err(failed)) => {
                self.give_up(&failed.to_string());
                Ok(())
            }
            (DesiredState::Retire, Err(failed)) => {
                warn!(%failed, "an older generation failed");
                Ok(())
            }
            (_, Ok(())) => Ok(()),
        }
    }

    pub(super) fn serving(&self) -> Option<&Generation> {
        self.generations.iter().find(|g| g.desired == DesiredState::Serve && !g.is_tracer)
    }

    pub(super) fn serving_mut(&mut self) -> Option<&mut Generation> {
        self.generations.iter_mut().find(|g| g.desired == DesiredState::Serve && !g.is_tracer)
    }

    fn serving_generations(&self) -> usize {
        self.generations.iter().filter(|generation| !generation.is_tracer).count()
    }
}
