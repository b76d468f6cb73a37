//! Steps of growing rate: requests are due at random times, whether the server keeps up or not.
//!
//! Latency counts from the moment at which a request was due (not from its transmission), so a
//! server that stops also delays the requests that were due meanwhile: no coordinated omission.
//!
//! One task releases requests; one task per connection takes them, in the order in which they were
//! due. A request that waits for a connection is late because of the server, or because there are
//! too few connections; `Figures` has both times. The lag between due and released is the
//! lateness of the client itself.

use crate::arrivals::Timer;
use crate::connection::Connection;
use crate::deadline::Deadline;
use crate::failure::Failure;
use crate::figures::{Cut, Figures};
use crate::mix::{Mix, Sendable};
use crate::options::allow_connections;
use crate::poisson::Poisson;
use crate::url::Url;
use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, interval, sleep, timeout};

/// Maximum number of connections.
pub const CONNECTIONS_MAX: u32 = 20_000;
/// Pause of a connection after a failure; else a dead server would get nothing but SYN packets.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Number of releases after which other tasks run.
const YIELD: u64 = 32;
/// Time between two checks for a reason to end the step.
const CHECK: Duration = Duration::from_millis(50);

/// Limits of all steps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections, and so of requests in flight.
    pub connections: u32,
    /// A response that comes later than this after its request was due is a failure.
    pub timeout: Duration,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Mean requests per second.
    pub rate: f64,
    /// Time at the start whose requests do not count.
    pub warm_up: Duration,
    /// Time whose requests count.
    pub window: Duration,
    /// Maximum number of requests that wait for a connection; more end the step.
    pub backlog: usize,
    /// Seed of the random times.
    pub seed: u64,
}

/// A client with kept connections.
#[derive(Debug)]
pub struct OpenLoop {
    runtime: LocalRuntime,
    interrupt: Signal,
    url: Url,
    limits: Limits,
    mix: Rc<RefCell<Mix>>,
    idle: Vec<Connection>,
}

/// Data that the tasks of a step share; borrowed between two awaits, never across one.
#[derive(Debug)]
struct Shared {
    mix: Rc<RefCell<Mix>>,
    figures: RefCell<Figures>,
    due: RefCell<VecDeque<Duration>>,
    ready: Semaphore,
    in_flight: Cell<usize>,
    is_over: Cell<bool>,
    start: Instant,
    step: Step,
    limits: Limits,
    numbers: Cell<u64>,
}

impl OpenLoop {
    /// Creates a client. From now on, Ctrl-C ends the current step instead of this process.
    ///
    /// # Errors
    ///
    /// The system denies the event loop or the number of open files.
    pub fn new(url: Url, mix: Mix, limits: Limits) -> anyhow::Result<OpenLoop> {
        allow_connections(limits.connections)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .context("cannot start the event loop")?;
        let interrupt = {
            let _entered = runtime.enter();
            signal(SignalKind::interrupt()).context("cannot receive Ctrl-C")?
        };
        let mix = Rc::new(RefCell::new(mix));
        Ok(OpenLoop { runtime, interrupt, url, limits, mix, idle: Vec::new() })
    }

    /// Runs one step to its end.
    ///
    /// # Errors
    ///
    /// The system denies a timer.
    pub fn step(&mut self, step: Step) -> anyhow::Result<Figures> {
        let OpenLoop { runtime, interrupt, url, limits, mix, idle } = self;
        let connections = limits.connections as usize;
        let mut kept = std::mem::take(idle);
        kept.resize_with(connections, || Connection::new(url.address, true));
        let (figures, rest) =
            runtime.block_on(run(step, *limits, Rc::clone(mix), kept, interrupt))?;
        *idle = rest;
        Ok(figures)
    }
}

async fn run(
    step: Step,
    limits: Limits,
    mix: Rc<RefCell<Mix>>,
    connections: Vec<Connection>,
    interrupt: &mut Signal,
) -> anyhow::Result<(Figures, Vec<Connection>)> {
    let timer = Timer::new()?;
    let start = Instant::now();
    let takers = connections.len();
    let shared = Rc::new(Shared {
        mix,
        figures: RefCell::new(Figures::new()),
        due: RefCell::default(),
        ready: Semaphore::new(0),
        in_flight: Cell::new(0),
        is_over: Cell::new(false),
        start,
        step,
        limits,
        numbers: Cell::new(0),
    });
    let mut tasks = JoinSet::new();
    for connection in connections {
        tasks.spawn_local(Rc::clone(&shared).send(connection));
    }
    let cpu = cpu_time();
    let cut = {
        let released = shared.release(&timer);
        select! {
            cut = released => cut,
            cut = shared.watch() => Some(cut),
            _ = interrupt.recv() => Some(Cut::Interrupted),
        }
    };
    let busy = cpu_time().saturating_sub(cpu).as_secs_f64();
    let elapsed = start.elapsed();
    shared.is_over.set(true);
    shared.ready.add_permits(takers);
    let mut cut = cut;
    let mut rest = Vec::with_capacity(takers);
    // Requests in flight get their time, unless the step ended early. Dropped tasks close their
    // connections.
    if cut.is_none() {
        let all = async {
            while let Some(ended) = tasks.join_next().await {
                rest.extend(ended.ok());
            }
        };
        select! {
            _ = timeout(limits.timeout, all) => {}
            _ = interrupt.recv() => cut = Some(Cut::Interrupted),
        }
    }
    drop(tasks);
    let mut figures = shared.figures.borrow().clone();
    figures.elapsed = elapsed.saturating_sub(step.warm_up);
    figures.cpu_share = busy / elapsed.as_secs_f64().max(1e-9);
    figures.cut = cut;
    Ok((figures, rest))
}

impl Shared {
    /// Releases each request when it is due, until the end of the window.
    async fn release(&self, timer: &Timer) -> Option<Cut> {
        let end = self.step.warm_up + self.step.window;
        let mut arrivals = Poisson::new(self.step.rate, self.step.seed);
        let mut releases = 0_u64;
        loop {
            let next = arrivals.next();
            if next >= end {
                timer.sleep_until(self.start, end).await;
                return None;
            }
            timer.sleep_until(self.start, next).await;
            let elapsed = self.start.elapsed();
            if next >= self.step.warm_up {
                self.figures.borrow_mut().release(elapsed.saturating_sub(next));
            }
            let waiting = {
                let mut due = self.due.borrow_mut();
                due.push_back(next);
                due.len()
            };
            if waiting > self.step.backlog {
                return Some(Cut::Backlog);
            }
            self.ready.add_permits(1);
            arrivals.advance();
            // If this client is late there is nothing to sleep for, but other tasks must run.
            releases += 1;
            if releases.is_multiple_of(YIELD) {
                yield_now().await;
            }
        }
    }

    /// Waits for a reason to end the step early.
    async fn watch(&self) -> Cut {
        let mut checks = interval(CHECK);
        loop {
            checks.tick().await;
            if let Some(cut) = self.figures.borrow().reason_to_end() {
                return cut;
            }
        }
    }

    /// Sends requests over one connection. Returns the connection for the next step.
    async fn send(self: Rc<Self>, mut connection: Connection) -> Connection {
        let mut deadline = Deadline::new(self.start + self.limits.timeout);
        loop {
            let Ok(permit) = self.ready.acquire().await else { return connection };
            permit.forget();
            let Some(due) = self.due.borrow_mut().pop_front() else {
                if self.is_over.get() {
                    return connection;
                }
                continue;
            };
            let target = self.mix.borrow_mut().draw();
            let result = self.exchange(&mut connection, &mut deadline, due, &target).await;
            if result.is_err() {
                sleep(PAUSE_AFTER_FAILURE).await;
            }
            connection.settle().await;
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        deadline: &mut Deadline,
        due: Duration,
        target: &Sendable,
    ) -> Result<(), Failure> {
        let number = self.numbers.replace(self.numbers.get() + 1);
        let in_flight = self.in_flight.get() + 1;
        self.in_flight.set(in_flight);
        let (begun, sent) = (self.start + due, Instant::now());
        let end = begun + self.limits.timeout;
        // A request that waited too long for a connection is not sent: its timeout is over.
        let ended = if sent < end {
            deadline.until(end, connection.exchange(&target.request, number)).await
        } else {
            None
        };
        self.in_flight.set(self.in_flight.get() - 1);
        let result = ended.unwrap_or(Err(Failure::Timeout));
        let now = Instant::now();
        let mut figures = self.figures.borrow_mut();
        figures.observe(result, target.expected);
        if due >= self.step.warm_up {
            figures.in_flight_max = figures.in_flight_max.max(in_flight);
            figures.end(result, target.expected, now - begun, now - sent);
        }
        result.map(drop)
    }
}

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
