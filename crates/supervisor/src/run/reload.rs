//! Reload: a new generation boots beside the one that serves, and takes over when all of it is up.
//!
//! Until then its workers are held back ([`DesiredState::Hold`]), so that what goes wrong with it costs nothing: it ends,
//! and the old one goes on. Only a probe they answer: one that shows less than the old generation does, or another model,
//! is something that goes wrong. At the change the old workers finish their requests and leave.

use super::{GENERATIONS_MAX, Supervisor};
use crate::end::Failed;
use crate::generation::{Coming, Generation, Readiness, Step};
use crate::handle::{Command, Reload};
use crate::workers::Event;
use samovar_ring::{DesiredState, Model};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// A worker that finds out by a request that its application is to be booted ahead says so a moment later.
const MODEL_LIMIT: Duration = Duration::from_secs(2);

impl Supervisor {
    /// Begins a reload, or has it wait until the server itself is up.
    pub(super) fn begin_reload(&mut self, reload: Reload) {
        if let Some(why) = self.refusal() {
            warn!(why, "no reload");
            (reload.done)(Err(why.to_owned()));
            return;
        }
        if self.fallen_until.is_some() {
            // What was changed may be what it has need of.
            self.settings = (*reload.settings).clone();
            self.fallen_until = Some(Instant::now());
        }
        if self.serving().is_none_or(|generation| generation.ready != Readiness::Ready) {
            info!("reload: it waits until the server itself has booted");
            self.awaited = Some(reload);
            return;
        }
        let number = self.number + 1;
        info!(generation = number, "reload: the application boots anew beside the one that serves");
        let lives = self.ground.lives.clone();
        let Reload { settings, probe, gate, may_change_model, done } = reload;
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
        self.coming = Some(Coming { attempt, may_change_model, step, gate, done });
    }

    /// Begins the reload that came while the server booted.
    pub(super) fn look_at_awaited(&mut self) {
        let is_up = self.serving().is_some_and(|generation| generation.ready == Readiness::Ready);
        if let Some(reload) = self.awaited.take_if(|_| is_up) {
            self.begin_reload(reload);
        }
    }

    /// Why there can be no reload now.
    fn refusal(&self) -> Option<&'static str> {
        let is_full = self.free_cells().is_empty();
        if self.is_ending {
            Some("the server is stopping")
        } else if self.coming.is_some() || self.awaited.is_some() {
            Some("another reload has not ended yet")
        } else if is_full && self.serving_generations() == 1 {
            Some(
                "there is no room for a worker more: all cells of the ring are in use\n\
                 hint: restart the server with fewer `workers`",
            )
        } else if is_full || self.serving_generations() >= GENERATIONS_MAX {
            Some(
                "workers of earlier generations are still busy with their requests\n\
                 hint: `timeouts.drain` says for how long they may be",
            )
        } else {
            None
        }
    }

    /// Lets the new generation take over when it is up and answers, or gives it up.
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
            self.give_up(
                "the application's boot failed\nhint: its messages are in the server's log",
            );
        } else if matches!(self.coming, Some(Coming { step: Step::AtGate, .. })) {
            // Others are waited for, each of which has its time.
        } else if generation.is_late() {
            self.give_up_late();
        } else if generation.is_up(&self.ground) {
            self.advance(at);
        }
    }

    fn give_up_late(&mut self) {
        let is_asked = self.coming.as_ref().is_some_and(|c| matches!(c.step, Step::Probed));
        self.give_up(if is_asked {
            "the new generation has not answered `reload_probe` within `timeouts.boot`\n\
             hint: the server's log may say why; `samovar reload --force` asks for no answer"
        } else {
            "the application has not booted within `timeouts.boot`\n\
             hint: the server's log may say why; a longer time may help"
        });
    }

    /// Its workers are up: they are asked, their answer is judged, they take over.
    fn advance(&mut self, at: usize) {
        let Some(coming) = &mut self.coming else { return };
        match &mut coming.step {
            Step::Probed | Step::AtGate => {}
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

    /// What the workers that are held back have answered.
    pub(super) fn hear_probe(&mut self, attempt: u64, result: Result<bool, String>) {
        let Some(coming) = self.coming.as_mut().filter(|c| c.attempt == attempt) else { return };
        match result {
            Ok(by_app) => coming.step = Step::Passed { since: Instant::now(), by_app },
            Err(why) => self.give_up(&why),
        }
    }

    /// It takes over, or asks whether it may.
    fn enter(&mut self, at: usize) {
        let Some(coming) = &mut self.coming else { return };
        let Some(gate) = coming.gate.take() else { return self.promote(at) };
        coming.step = Step::AtGate;
        let (handle, attempt) = (self.post.handle.clone(), coming.attempt);
        info!("reload: the new generation could take over, and waits for those of the other pools");
        gate(Box::new(move |result| handle.send(Command::Admitted { attempt, result })));
    }

    /// Whether the generation that waits may take over.
    pub(super) fn hear_gate(&mut self, attempt: u64, result: Result<(), String>) {
        if self.coming.as_ref().is_none_or(|coming| coming.attempt != attempt) {
            return;
        }
        let held = self.generations.iter().position(|g| g.desired == DesiredState::Hold);
        match (result, held) {
            (Ok(()), Some(at)) => self.promote(at),
            (Ok(()), None) => {}
            (Err(why), _) => self.give_up(&why),
        }
    }

    /// Why the new generation's application is no successor of the old one's, if it is booted ahead otherwise, or not.
    fn lost_model(&self, at: usize, by_app: bool) -> Option<String> {
        let (old, new) = (self.serving()?, &self.generations[at]);
        let hint = "hint: `samovar reload --force` lets it take over all the same";
        match (old.model(&self.ground), new.model(&self.ground)) {
            // Nobody has asked it for anything that would show.
            (_, Model::Script) if !by_app && !old.workers.is_told_resident() => None,
            (Model::Script, _) => None,
            (before, after) if before == after => None,
            (before, Model::Script) => Some(format!(
                "the application that serves is booted ahead ({}), the new one is not: its front controller does not come \
                 to the call that has it booted\n{hint}",
                before.name()
            )),
            (before, after) => Some(format!(
                "the application that serves is of the {} model, the new one of the {} model\n{hint}",
                before.name(),
                after.name()
            )),
        }
    }

    fn promote(&mut self, at: usize) {
        self.count_generation(at);
        let number = self.number;
        let old =
            self.generations.iter().position(|p| p.desired == DesiredState::Serve && !p.is_tracer);
        self.generations[at].serve(&self.ground);
        self.settings = self.generations[at].settings.clone();
        if let Some(old) = old {
            let end = self.generations[at].drain_end();
            self.generations[old].retire(Some(end), "the application was reloaded", &self.ground);
        }
        if let Some(coming) = self.coming.take() {
            (coming.done)(Ok(number));
        }
        info!(generation = number, "reload: the new generation serves");
    }

    /// The old generation goes on as if nothing had been.
    pub(super) fn give_up(&mut self, why: &str) {
        if let Some(generation) =
            self.generations.iter_mut().find(|p| p.desired == DesiredState::Hold)
        {
            generation.give_up(&self.ground);
        }
        let awaited = self.awaited.take().map(|reload| reload.done);
        for done in self.coming.take().map(|coming| coming.done).into_iter().chain(awaited) {
            warn!(why, "the reload is given up; the old generation goes on");
            done(Err(why.to_owned()));
        }
    }

    /// What ends a server that has just been started only ends a reload.
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
                warn!(%failed, "an older generation ends");
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
