//! The run: opens the connections, drives each until the window ends, and waits for requests in
//! flight.
//!
//! Everything runs on one thread, one task per connection. The data that the tasks share (targets,
//! counters, arrivals) are in cells, borrowed between two awaits and never across one.

use crate::arrivals::{Arrivals, Timer};
use crate::connection::Connection;
use crate::deadline::Deadline;
use crate::failure::Failure;
use crate::measure::{Measure, Outcome};
use crate::options::Options;
use crate::report::{Facts, Report};
use crate::schedule::Schedule;
use crate::targets::Targets;
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Pause after a failure. Without it, a closed loop would only connect to a server that is down.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Maximum bytes of a response that are shown.
const SAMPLE_BYTES_MAX: usize = 4096;

/// Data that the connections share.
#[derive(Debug)]
struct Run {
    targets: RefCell<Targets>,
    measure: RefCell<Measure>,
    start: Instant,
    end: Instant,
    timeout: Duration,
}

/// Measures according to the options.
pub(crate) async fn run(options: &Options, targets: Targets) -> anyhow::Result<Report> {
    if options.show {
        show(options, &targets).await;
    }
    let connections = open(options).await;
    let cpu = cpu_time();
    let run = Rc::new(Run::start(options, targets));
    let mut tasks = JoinSet::new();
    let arrivals = match options.rate {
        None => {
            closed_loop(&run, connections, &mut tasks);
            None
        }
        Some(rate) => {
            let schedule = Schedule::new(rate, options.seconds);
            Some(constant_rate(&run, connections, schedule, &mut tasks)?)
        }
    };
    sleep_until(run.end).await;
    // Requests that are in flight after that are hung.
    let _ = timeout_at(run.end + options.grace_seconds, all_of(&mut tasks)).await;
    let facts = Facts {
        window: options.seconds,
        elapsed: run.start.elapsed(),
        cpu: cpu_time().saturating_sub(cpu),
        unsent: arrivals.map_or(0, |arrivals| arrivals.untaken()),
    };
    Ok(Report::new(&run.measure.borrow(), facts))
}

/// Opens all connections before the clock starts, so that connecting is not part of a request's
/// latency.
async fn open(options: &Options) -> Vec<Connection> {
    let reuse = !options.new_connections;
    let limit = options.timeout_seconds;
    let mut opening = JoinSet::new();
    for _ in 0..options.connections {
        let mut connection = Connection::new(options.url.address, reuse);
        opening.spawn_local(async move {
            if reuse {
                let _ = timeout(limit, connection.open()).await;
            }
            connection
        });
    }
    opening.join_all().await
}

/// Sends requests on each connection, one after another.
fn closed_loop(run: &Rc<Run>, connections: Vec<Connection>, tasks: &mut JoinSet<()>) {
    for mut connection in connections {
        let run = Rc::clone(run);
        tasks.spawn_local(async move {
            let mut deadline = run.deadline();
            loop {
                let begun = Instant::now();
                if begun >= run.end {
                    break;
                }
                let result = run.exchange(&mut connection, &mut deadline, begun).await;
                if matches!(result, Err(Failure::Connect | Failure::Io)) {
                    sleep(PAUSE_AFTER_FAILURE).await;
                }
                connection.settle().await;
            }
        });
    }
}

/// Sends requests when they are due, on any free connection. A request begins when it is due, not
/// when a connection is free: waiting for one is latency that the server caused.
fn constant_rate(
    run: &Rc<Run>,
    connections: Vec<Connection>,
    schedule: Schedule,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Rc<Arrivals>> {
    let timer = Timer::new()?;
    let arrivals = Rc::new(Arrivals::new(schedule, connections.len()));
    for mut connection in connections {
        let (run, arrivals) = (Rc::clone(run), Rc::clone(&arrivals));
        tasks.spawn_local(async move {
            let mut deadline = run.deadline();
            while let Some(due) = arrivals.take().await {
                let _ = run.exchange(&mut connection, &mut deadline, run.start + due).await;
                connection.settle().await;
            }
        });
    }
    let (start, released) = (run.start, Rc::clone(&arrivals));
    tasks.spawn_local(async move { released.release(&timer, start).await });
    Ok(arrivals)
}

async fn all_of(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no task panics");
    }
}

impl Run {
    /// Starts the clock.
    fn start(options: &Options, targets: Targets) -> Run {
        let measure = RefCell::new(Measure::new(targets.class_names()));
        let start = Instant::now();
        let (end, timeout) = (start + options.seconds, options.timeout_seconds);
        Run { targets: RefCell::new(targets), measure, start, end, timeout }
    }

    /// Timer for the requests of one connection.
    fn deadline(&self) -> Deadline {
        Deadline::new(self.start + self.timeout)
    }

    /// One counted request. Latency and timeout count from `begun`.
    async fn exchange(
        &self,
        connection: &mut Connection,
        deadline: &mut Deadline,
        begun: Instant,
    ) -> Result<(), Failure> {
        let number = self.measure.borrow_mut().begin();
        let choice = self.targets.borrow_mut().choose();
        let exchange = connection.exchange(&choice.request, number);
        let end = begun + self.timeout;
        let sent = Instant::now();
        // A request that waited too long for a connection is not sent: its timeout is over.
        let ended = if sent < end { deadline.until(end, exchange).await } else { None };
        let result = ended.unwrap_or(Err(Failure::Timeout));
        let now = Instant::now();
        let (latency, in_window) = (now - begun, share_before(self.end, sent, now));
        let outcome = Outcome { class: choice.class, result, latency, in_window };
        self.measure.borrow_mut().end(&outcome);
        result.map(drop)
    }
}

/// Fraction of the time from `sent` to `responded` that was before `end`.
fn share_before(end: Instant, sent: Instant, responded: Instant) -> f64 {
    if responded <= end {
        return 1.0;
    }
    let before = end.saturating_duration_since(sent);
    before.as_secs_f64() / responded.duration_since(sent).as_secs_f64()
}

/// Sends one request before the measurement and prints the response.
async fn show(options: &Options, targets: &Targets) {
    let mut connection = Connection::new(options.url.address, false);
    let response = timeout(options.timeout_seconds, connection.exchange(targets.first(), 0)).await;
    match response.unwrap_or(Err(Failure::Timeout)) {
        Ok(reply) => {
            let sample = connection.sample();
            let sample = &sample[..sample.len().min(SAMPLE_BYTES_MAX)];
            eprintln!("{}\n({} bytes)", String::from_utf8_lossy(sample).trim_end(), reply.bytes);
        }
        Err(failure) => eprintln!("no response: {failure:?}"),
    }
}

/// CPU time that this process has used so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::share_before;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn response_counts_by_its_part_in_the_window() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        for (sent, responded, percent) in [
            (10, 20, 100),
            (90, 100, 100),
            (99, 100, 100),
            (90, 130, 25),
            (0, 400, 25),
            (100, 101, 0),
            (110, 120, 0),
        ] {
            let share = share_before(at(100), at(sent), at(responded));
            assert!(
                (share * 100.0 - f64::from(percent)).abs() < 0.01,
                "{sent} to {responded}: {share}"
            );
        }
    }
}
