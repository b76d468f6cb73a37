//! Constant rate: releases each request when it is due, to any free connection.
//!
//! A permit of the semaphore is a request that is due and not yet taken. While all connections are
//! busy, permits accumulate, at most as many as the schedule has. The semaphore is fair.
//! Connections number the requests in the order in which they take them, which is the order in
//! which they were due.

use crate::schedule::Schedule;
use anyhow::Context;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The requests that are due.
#[derive(Debug)]
pub(crate) struct Arrivals {
    schedule: Schedule,
    takers: usize,
    due: Semaphore,
    taken: Cell<u64>,
}

impl Arrivals {
    /// Creates requests for `takers` connections.
    pub(crate) fn new(schedule: Schedule, takers: usize) -> Arrivals {
        Arrivals { schedule, takers, due: Semaphore::new(0), taken: Cell::new(0) }
    }

    /// Waits until a request is due and takes it. Returns when it was due; `None` after the last.
    pub(crate) async fn take(&self) -> Option<Duration> {
        self.due.acquire().await.expect("the semaphore is never closed").forget();
        let number = self.taken.get();
        if number == self.schedule.total() {
            return None;
        }
        self.taken.set(number + 1);
        Some(self.schedule.due(number))
    }

    /// Number of requests that no connection has taken.
    pub(crate) fn untaken(&self) -> u64 {
        self.schedule.total() - self.taken.get()
    }

    /// Releases requests by the schedule until its end, then signals the end to each taker.
    pub(crate) async fn release(&self, timer: &Timer, start: Instant) {
        let mut released = 0;
        loop {
            let step = self.schedule.step(released, start.elapsed());
            released += step.due;
            self.due.add_permits(step.due as usize);
            let Some(wait) = step.wait else { break };
            timer.sleep(wait).await;
        }
        self.due.add_permits(self.takers);
    }
}

/// A kernel timer. Tokio's timer has steps of a millisecond: with 5,000 requests per second, five
/// would be sent at once, and each late.
#[derive(Debug)]
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[allow(unsafe_code)]
    pub(crate) fn new() -> anyhow::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let file = timerfd_create(TimerfdClockId::Monotonic, flags).context("no timer")?;
        // SAFETY: the descriptor is new and owned. The `AsyncFd` keeps it, so it stays open and the
        // same until the `AsyncFd` is dropped, which deregisters it first.
        let registered = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) };
        Ok(Timer(registered.context("no timer")?))
    }

    /// Sleeps until a time after `start`; not at all if it has passed.
    pub(crate) async fn sleep_until(&self, start: Instant, time: Duration) {
        let wait = time.saturating_sub(start.elapsed());
        if !wait.is_zero() {
            self.sleep(wait).await;
        }
    }

    async fn sleep(&self, wait: Duration) {
        let it_value = Timespec::try_from(wait).expect("a wait within the window");
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)
            .expect("an open timer takes any time");
        // Not read: the next `timerfd_settime` clears the expiry, which saves a system call each
        // time.
        self.0.readable().await.expect("the event loop runs").clear_ready();
    }
}
