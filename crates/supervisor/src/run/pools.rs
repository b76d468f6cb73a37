//! The loop over all pools: one thread waits for the events of all pools, and reaps children for
//! all.
//!
//! A pool is a [`Supervisor`] with its own ring, templates and workers. A fatal error of the first
//! pool ends the server. Another pool that cannot start is tried again, while the others continue.

use super::hooks::{Boot, Hooks};
use super::pool::{PLACES_MAX, Supervisor};
use super::prepared::{Post, Running};
use crate::end::{Ended, Failed};
use crate::generation::Generation;
use crate::handle::Handle;
use crate::os::{self, Signal, Signals};
use crate::settings::Settings;
use crate::workers::Event;
use samovar_ring::Death;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Interval at which the state machines run without an event: backoffs end, models change.
const TICK: Duration = Duration::from_millis(100);
/// Interval while a new generation boots, so that a reload is not delayed.
const TICK_COMING: Duration = Duration::from_millis(5);
/// Interval while requests wait and workers may be added for them.
const TICK_URGENT: Duration = Duration::from_millis(25);
/// Supervises until [`Command::Stop`](crate::Command::Stop) has been executed for every pool, or a
/// second signal arrives. `settings`: one per pool, in the order in which the pools were added.
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
    /// The pools, the default pool first.
    pools: Vec<Supervisor>,
    stop_requests: u32,
    /// All pools have booted, or their time limit is over.
    is_ready: bool,
}

impl Everything {
    fn run(&mut self, hooks: &mut impl Hooks) -> Result<Ended, Failed> {
        loop {
            self.each(Supervisor::step)?;
            if self.pools.iter().enumerate().all(|(at, pool)| pool.is_over(at == 0)) {
                let is_broken = self.pools.iter().any(|pool| pool.is_broken);
                return Ok(match (is_broken, self.stop_requests) {
                    (true, _) => Ended::Broken,
                    (false, 0 | 1) => Ended::Drained,
                    (false, _) => Ended::StoppedNow,
                });
            }
            self.pools.iter_mut().for_each(Supervisor::publish);
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

    /// Calls a function for every pool. An error of the first pool ends the server; an error of
    /// another one ends only that pool.
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
        let boots = |pool: &Supervisor| {
            pool.coming.as_ref().is_some_and(|coming| !coming.is_running_canary())
        };
        if self.pools.iter().any(boots) {
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
            // The operator is in a hurry: after a second signal, the server does not wait for
            // requests.
            self.pools.iter_mut().for_each(Supervisor::stop_now);
        }
    }

    /// Reaps the server's children: templates, and orphans of a template that died.
    fn reap(&mut self, hooks: &mut impl Hooks) -> Result<(), Failed> {
        // A death and the template's last messages may arrive together. The messages are read
        // first.
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
                // The process may be a worker whose `forked` message is not processed yet.
                let death = Death::from_status(status);
                let died = Event::WorkerDied { pid, death, served: false };
                for pool in &mut self.pools {
                    pool.tell_all(&died);
                }
            }
        }
        Ok(())
    }

    /// Reports that the server is ready, after each pool is ready or its time limit is over.
    fn look_at_readiness(&mut self, hooks: &mut impl Hooks) {
        if self.is_ready {
            return;
        }
        let boots: Option<Vec<Boot>> = self.pools.iter().map(|pool| pool.boot).collect();
        let Some(boots) = boots else { return };
        self.is_ready = true;
        // Published first, because the owner reads the state immediately.
        self.pools.iter_mut().for_each(Supervisor::publish);
        let worst = [Boot::Late, Boot::Failed].into_iter().find(|boot| boots.contains(boot));
        hooks.ready(worst.unwrap_or(Boot::Up));
    }
}

impl Running {
    /// Adds another pool with its own memory; otherwise like [`Running::prepare`].
    pub fn add(
        &mut self,
        name: &str,
        ring: samovar_ring::Ring,
        (shared, published): (samovar_shared::Shared, samovar_published::Publishing),
    ) -> std::io::Result<Handle> {
        let first = &self.posts[0];
        let (diagnosis, intake) = (first.diagnosis.clone(), first.intake.clone());
        let post = Post::new(name, ring, (shared, published), intake, diagnosis)?;
        let handle = post.handle.clone();
        self.posts.push(post);
        Ok(handle)
    }

    /// Sets the first pool's name. Used when there are several pools.
    pub fn call_first(&mut self, name: &str) {
        name.clone_into(&mut self.posts[0].name);
    }
}
