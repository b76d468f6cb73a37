//! The loop over all pools: one thread waits for what happens to any of them, and reaps for all.
//!
//! A pool is a [`Supervisor`] with a ring, templates and workers of its own. What ends the first one ends the server;
//! another one that cannot start falls, and is tried again, while the rest goes on.

use super::{Boot, Hooks, PLACES_MAX, Post, Running, Supervisor, TICK, TICK_COMING, TICK_URGENT};
use crate::end::{Ended, Failed};
use crate::generation::Generation;
use crate::os::{self, Signal, Signals};
use crate::settings::Settings;
use crate::workers::Event;
use samovar_ring::Death;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Supervises until [`Command::Stop`](crate::Command::Stop) has been carried out for every pool, or a second signal. `settings`: of
/// each pool, in the order in which they were added.
pub fn run(
    running: Running,
    settings: Vec<Settings>,
    hooks: &mut impl Hooks,
) -> Result<Ended, Failed> {
    let Running { signals, posts } = running;
    debug_assert_eq!(posts.len(), settings.len(), "each pool has settings");
    let pools = posts.into_iter().zip(settings);
    let pools = pools.map(|(post, settings)| Supervisor::new(post, settings)).collect();
    Everything { signals, pools, stop_requests: 0, is_ready: false }.run(hooks)
}

struct Everything {
    signals: Signals,
    /// The default one first.
    pools: Vec<Supervisor>,
    stop_requests: u32,
    /// All have booted, or have had their time.
    is_ready: bool,
}

impl Everything {
    fn run(&mut self, hooks: &mut impl Hooks) -> Result<Ended, Failed> {
        loop {
            self.each(Supervisor::turn)?;
            if self.pools.iter().enumerate().all(|(at, pool)| pool.is_over(at == 0)) {
                let is_broken = self.pools.iter().any(|pool| pool.is_broken);
                return Ok(match (is_broken, self.stop_requests) {
                    (true, _) => Ended::Broken,
                    (false, 0 | 1) => Ended::Drained,
                    (false, _) => Ended::StoppedNow,
                });
            }
            self.pools.iter().for_each(Supervisor::publish);
            hooks.turned();
            for pool in &mut self.pools {
                for news in pool.ground.news.get_mut().take() {
                    hooks.news(&pool.post.name, news);
                }
            }
            self.wait(hooks)?;
            self.each(|pool| {
                pool.look();
                Ok(())
            })?;
            self.look_at_readiness(hooks);
        }
    }

    /// Has every pool do something. What goes wrong with the first one is the server's end, with another one its own.
    fn each(
        &mut self,
        mut act: impl FnMut(&mut Supervisor) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        for (at, pool) in self.pools.iter_mut().enumerate() {
            let _named = samovar_log::pool::enter(&pool.post.name);
            match act(pool) {
                Err(failed) if at > 0 => pool.fall(&failed),
                result => result?,
            }
        }
        Ok(())
    }

    fn wait(&mut self, hooks: &mut impl Hooks) -> Result<(), Failed> {
        let mut fds: Vec<Option<BorrowedFd<'_>>> = Vec::new();
        for pool in &self.pools {
            let own = fds.len();
            fds.extend(pool.generations.iter().map(Generation::fd));
            fds.resize(own + PLACES_MAX, None);
            fds.push(Some(pool.post.handle.wake.as_fd()));
        }
        fds.push(Some(self.signals.as_fd()));
        let readable = os::poll(&fds, self.tick());
        let has_signals = readable.last() == Some(&true);
        let mut of_pools = readable.chunks(PLACES_MAX + 1);
        self.each(|pool| {
            let Some([templates @ .., is_called]) = of_pools.next() else { return Ok(()) };
            for at in (0..pool.generations.len()).filter(|at| templates[*at]) {
                pool.read_template(at)?;
            }
            if *is_called {
                os::silence(&pool.post.handle.wake);
                pool.read_commands();
            }
            Ok(())
        })?;
        if has_signals {
            for signal in self.signals.take() {
                match signal {
                    Signal::Child => self.reap(hooks)?,
                    Signal::Reopen => hooks.reopen_logs(),
                    Signal::Reload => hooks.reload_requested(),
                    Signal::Upgrade => hooks.upgrade_requested(),
                    Signal::Stop => self.stop_requested(hooks),
                }
            }
        }
        Ok(())
    }

    fn tick(&self) -> Duration {
        let is_urgent = |pool: &Supervisor| pool.generations.iter().any(Generation::is_urgent);
        if self.pools.iter().any(|pool| pool.coming.is_some()) {
            TICK_COMING
        } else if self.pools.iter().any(is_urgent) {
            TICK_URGENT
        } else {
            TICK
        }
    }

    fn stop_requested(&mut self, hooks: &mut impl Hooks) {
        self.stop_requests += 1;
        self.pools.iter_mut().for_each(Supervisor::begin_to_end);
        if self.stop_requests == 1 {
            hooks.stop_requested();
        } else {
            // Somebody is in a hurry: the second signal does not wait for requests.
            self.pools.iter_mut().for_each(Supervisor::stop_now);
        }
    }

    /// Our own children: templates, and orphans of a template that died.
    fn reap(&mut self, hooks: &mut impl Hooks) -> Result<(), Failed> {
        // A death and the template's last words may come together: the words first.
        self.each(|pool| (0..pool.generations.len()).try_for_each(|at| pool.read_template(at)))?;
        while let Some((pid, status)) = os::reap() {
            let mut is_known = false;
            self.each(|pool| {
                let (known, result) = pool.reaped(pid, status);
                is_known |= known;
                result
            })?;
            if !is_known {
                hooks.child_ended(pid, status);
                // Perhaps a worker whose `forked` waits to be looked at.
                let death = Death::from_status(status);
                let died = Event::WorkerDied { pid, death, served: false };
                for pool in &mut self.pools {
                    pool.tell_all(&died);
                }
            }
        }
        Ok(())
    }

    /// The server is ready when each pool is, or has had its time.
    fn look_at_readiness(&mut self, hooks: &mut impl Hooks) {
        if self.is_ready {
            return;
        }
        let boots: Option<Vec<Boot>> = self.pools.iter().map(|pool| pool.boot).collect();
        let Some(boots) = boots else { return };
        self.is_ready = true;
        // Who is told so asks for more at once.
        self.pools.iter().for_each(Supervisor::publish);
        let worst = [Boot::Late, Boot::Failed].into_iter().find(|boot| boots.contains(boot));
        hooks.ready(worst.unwrap_or(Boot::Up));
    }
}

impl Running {
    /// Adds a pool beside those that there are, with memory of its own; as [`Running::prepare`].
    pub fn add(
        &mut self,
        name: &str,
        ring: samovar_ring::Ring,
        (shared, published): (samovar_shared::Shared, samovar_published::Publishing),
    ) -> std::io::Result<crate::Handle> {
        let first = &self.posts[0];
        let (inquest, intake) = (first.inquest.clone(), first.intake.clone());
        let post = Post::new(name, ring, (shared, published), intake, inquest)?;
        let handle = post.handle.clone();
        self.posts.push(post);
        Ok(handle)
    }

    /// Its name among others, from when there are any.
    pub fn call_first(&mut self, name: &str) {
        name.clone_into(&mut self.posts[0].name);
    }
}
