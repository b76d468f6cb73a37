//! Callbacks to the owner of the supervisor.

use crate::news::News;

/// Callbacks to the owner. Called on the supervisor's thread; must not block.
pub trait Hooks {
    /// The workers wait for requests, or the time limit for that is over.
    fn ready(&mut self, boot: Boot);
    /// SIGTERM, SIGINT or SIGHUP was received: drain the front, then send
    /// [`Command::Stop`](crate::Command::Stop).
    fn stop_requested(&mut self);
    /// SIGUSR1 was received: log files were moved away.
    fn reopen_logs(&mut self);
    /// SIGUSR2 was received: send [`Command::Reload`](crate::Command::Reload).
    fn reload_requested(&mut self);
    /// SIGRTMIN was received: start a [`Successor`](crate::successor::Successor).
    fn upgrade_requested(&mut self);
    /// A child that the supervisor did not start has ended, with that status.
    fn child_ended(&mut self, pid: i32, status: i32);
    /// The supervisor has done its due work. Called at least ten times a second.
    fn turned(&mut self);
    /// An event of a worker of that pool. The name is empty if there is only one pool.
    fn news(&mut self, pool: &str, news: News);
}

/// Result of the first boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// All workers are up.
    Up,
    /// Not all workers are up after `boot_limit`.
    Late,
    /// All workers are up, but the application could not be booted in advance: they run it as whole
    /// scripts.
    Failed,
}
