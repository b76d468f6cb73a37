//! Reload: a new generation boots beside the one that serves, and takes over when all of it is up.
//!
//! Until then its workers are held back ([`Standing::Hold`]), so that what goes wrong with it costs nothing: it ends,
//! and the old one goes on. At the change the old workers finish their requests and leave.

use super::Supervisor;
use super::end::Failed;
use super::pool::{Pool, Readiness};
use super::{GENERATIONS_MAX, Settings};
use crate::state::Event;
use samovar_ring::Standing;
use tracing::{info, warn};

/// An order to reload.
pub struct Reload {
    /// Of the new generation.
    pub settings: Box<Settings>,
    /// Called once, on the supervisor's thread, and must not block: with the new generation's number when its workers have
    /// taken over, or with why there is none.
    pub done: ReloadDone,
}

/// See [`Reload::done`].
pub type ReloadDone = Box<dyn FnOnce(Result<u64, String>) + Send>;

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Supervisor {
    pub(super) fn begin_reload(&mut self, reload: Reload) {
        if let Some(why) = self.refusal() {
            warn!(why, "no reload");
            (reload.done)(Err(why.to_owned()));
            return;
        }
        let number = self.generation + 1;
        info!(generation = number, "reload: the application boots anew beside the one that serves");
        let lives = self.ground.lives.clone();
        self.pools.push(Pool::new(number, *reload.settings, Standing::Hold, lives));
        self.coming = Some(reload.done);
    }

    /// Why there can be no reload now.
    fn refusal(&self) -> Option<&'static str> {
        let is_full = self.free_cells().is_empty();
        if self.is_ending {
            Some("the server is stopping")
        } else if self.coming.is_some() {
            Some("another reload has not ended yet")
        } else if self.serving().is_none_or(|pool| pool.ready != Readiness::Ready) {
            Some("the server itself has not booted yet")
        } else if is_full && self.pools.len() == 1 {
            Some(
                "there is no room for a worker more: all of the 256 serve\n\
                 hint: restart the server with fewer `workers`",
            )
        } else if is_full || self.pools.len() >= GENERATIONS_MAX {
            Some(
                "workers of earlier generations are still busy with their requests\n\
                 hint: `timeouts.drain` says for how long they may be",
            )
        } else {
            None
        }
    }

    /// Lets the new generation take over when it is up, or gives it up.
    pub(super) fn look_at_coming(&mut self) {
        if self.coming.is_none() {
            return;
        }
        let Some(at) = self.pools.iter().position(|p| p.standing == Standing::Hold) else { return };
        let old_boots = self.serving().is_some_and(|old| !old.boot_failed);
        let needs_scripts = self.serving().is_some_and(|old| old.state.has_scripts());
        let pool = &mut self.pools[at];
        if needs_scripts && pool.state.is_resident() && !pool.state.has_scripts() {
            pool.tell(Event::ScriptsWait);
        } else if pool.boot_failed && old_boots {
            self.give_up(
                "the application's boot failed\nhint: its messages are in the server's log",
            );
        } else if pool.is_up(&self.ground) {
            self.promote(at);
        } else if pool.is_late() {
            self.give_up(
                "the application has not booted within `timeouts.boot`\n\
                 hint: the server's log may say why; a longer time may help",
            );
        }
    }

    fn promote(&mut self, at: usize) {
        self.count_generation(at);
        let number = self.generation;
        let old = self.pools.iter().position(|p| p.standing == Standing::Serve);
        self.pools[at].serve(&self.ground);
        if let Some(old) = old {
            let end = self.pools[at].drain_end();
            self.pools[old].retire(Some(end), "the application was reloaded", &self.ground);
        }
        if let Some(done) = self.coming.take() {
            done(Ok(number));
        }
        info!(generation = number, "reload: the new generation serves");
    }

    /// The old generation goes on as if nothing had been.
    pub(super) fn give_up(&mut self, why: &str) {
        if let Some(pool) = self.pools.iter_mut().find(|p| p.standing == Standing::Hold) {
            pool.give_up(&self.ground);
        }
        if let Some(done) = self.coming.take() {
            warn!(why, "the reload is given up; the old generation goes on");
            done(Err(why.to_owned()));
        }
    }

    /// What ends a server that has just been started only ends a reload.
    pub(super) fn survive(
        &mut self,
        standing: Standing,
        result: Result<(), Failed>,
    ) -> Result<(), Failed> {
        match (standing, result) {
            (Standing::Serve, result) => result,
            (Standing::Hold, Err(failed)) => {
                self.give_up(&failed.to_string());
                Ok(())
            }
            (Standing::Retire, Err(failed)) => {
                warn!(%failed, "an older generation ends");
                Ok(())
            }
            (_, Ok(())) => Ok(()),
        }
    }

    pub(super) fn serving(&self) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.standing == Standing::Serve)
    }
}
