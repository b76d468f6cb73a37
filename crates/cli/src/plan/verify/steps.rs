//! The measurement: steps of the search, sent by the client of crates/load.

use super::options::VerifyOptions;
use crate::control_client::{self, understand};
use anyhow::Result;
use samovar_load::{Cut, Failure, Figures, Limits, Mix, OpenLoop, Step};
use samovar_plan::rate as shown_rate;
use samovar_plan::verify::{
    Bounds, Ceiling, Client, EarlyEnd, End, FailureKind, Measured, Next, Responses, Search,
    StepLine, Verification, judge,
};
use samovar_server::terminal;
use samovar_wire::{Request, Status};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Responses that a step should have for its percentiles; at low rates a step is longer for them.
const RESPONSES: f64 = 200.0;
/// Maximum factor of that.
const LONGER_MAX: u32 = 6;
/// The warm-up of a step, as a part of its length.
const WARM_UP: u32 = 5;
/// Requests that wait for a connection, as seconds of arrivals: the goal times this.
const BACKLOG_GOALS: f64 = 4.0;
/// Minimum and maximum number of them.
const BACKLOG: (f64, f64) = (100.0, 100_000.0);
/// Timeout of a request: the goal times this, within limits.
const TIMEOUT_GOALS: f64 = 10.0;
const TIMEOUT: (f64, f64) = (5.0, 60.0);

/// Measures until the search ends. Returns the steps and the ceiling.
pub(super) fn search(
    options: &VerifyOptions,
    mix: Mix,
    bounds: Bounds,
) -> Result<(Vec<StepLine>, Ceiling)> {
    let timeout = (TIMEOUT_GOALS * options.goal.latency).clamp(TIMEOUT.0, TIMEOUT.1);
    let limits =
        Limits { connections: options.connections, timeout: Duration::from_secs_f64(timeout) };
    let mut client = OpenLoop::new(options.against.clone(), mix, limits)?;
    let meter = Meter::new(options);
    let (begun, is_shown) = (Instant::now(), std::io::stderr().is_terminal());
    let (mut search, mut steps) = (Search::new(bounds), Vec::new());
    loop {
        if begun.elapsed() >= options.time_limit {
            search.stop();
        }
        let rate = match search.next() {
            Next::Done(ceiling) => return Ok((steps, ceiling)),
            Next::Measure(rate) => rate,
        };
        if is_shown {
            terminal::complain(&format!("samovar: {} requests/s …", shown_rate(rate)));
        }
        let left = options.time_limit.saturating_sub(begun.elapsed());
        let step = step(options, rate, steps.len(), left);
        let (before, since) = (meter.read(), Instant::now());
        let figures = client.step(step)?;
        let server_cores = meter.cores(before.as_ref(), since);
        let measured = measured(options, rate, &figures, server_cores);
        let light = steps.first().and_then(|first: &StepLine| first.measured.p50);
        let verdict = judge(&measured, &options.goal, light);
        search.take(verdict);
        let line = StepLine { measured, verdict };
        if is_shown {
            terminal::complain(line.line().trim_end());
        }
        steps.push(line);
    }
}

/// Returns a step that is long enough for its percentiles, but no longer than the time that is left
/// or a usual step.
fn step(options: &VerifyOptions, rate: f64, number: usize, left: Duration) -> Step {
    let needed = Duration::from_secs_f64(RESPONSES / rate);
    let longest = left.clamp(options.step_time, options.step_time * LONGER_MAX);
    let window = needed.clamp(options.step_time, longest);
    let waiting = rate * (BACKLOG_GOALS * options.goal.latency).max(1.0);
    #[allow(clippy::cast_sign_loss)] // Within the limits.
    let backlog = waiting.clamp(BACKLOG.0, BACKLOG.1) as usize;
    Step { rate, warm_up: options.step_time / WARM_UP, window, backlog, seed: number as u64 }
}

#[allow(clippy::cast_precision_loss)] // Counts far below 2^52.
fn measured(
    options: &VerifyOptions,
    rate: f64,
    figures: &Figures,
    server_cores: Option<f64>,
) -> Measured {
    let quantile = options.goal.quantile;
    Measured {
        rate,
        responses: figures.responses,
        p50: figures.latency(0.5),
        latency: figures.latency(quantile),
        on_connection: figures.on_connection(quantile),
        errors: figures.errors_share(),
        other_status: figures.other_status as f64 / figures.responses.max(1) as f64,
        kinds: kinds(figures),
        server_cores,
        client: Client {
            lag: figures.lag(quantile),
            cpu: figures.cpu_share,
            in_flight: figures.in_flight_max,
            connections: options.connections as usize,
        },
        ended: figures.cut.map(|cut| match cut {
            Cut::Backlog => EarlyEnd::Backlog,
            Cut::Failures => EarlyEnd::Failures,
            Cut::Dead => EarlyEnd::Dead,
            Cut::Interrupted => EarlyEnd::Interrupted,
        }),
    }
}

fn kinds(figures: &Figures) -> Responses {
    let kind = |failure| match failure {
        Failure::Connect => FailureKind::Connect,
        Failure::Io => FailureKind::Closed,
        Failure::Incomplete => FailureKind::CutOff,
        Failure::Malformed => FailureKind::Malformed,
        Failure::HeadLimit => FailureKind::HeadLimit,
        Failure::Timeout => FailureKind::Timeout,
        Failure::Refused => FailureKind::Refused,
    };
    let failures = figures.failures.iter().map(|(failure, count)| (kind(*failure), *count));
    Responses {
        statuses: figures.statuses.clone(),
        failures: failures.collect(),
        unusual: figures.unusual,
    }
}

/// Returns the actions after an incomplete measurement, and against a missing prediction.
pub(super) fn hints(found: &Verification) -> Vec<&str> {
    let end = found.measured.end().and_then(End::hint);
    let prediction = found.not_predicted.lines().filter_map(|line| line.strip_prefix("hint: "));
    end.into_iter().chain(prediction).collect()
}

/// Reads the CPU time of the measured server, if it is a Samovar on this machine.
struct Meter(Option<PathBuf>);

/// CPU time of a server: of itself, and of each worker by process id.
#[derive(Debug, Default)]
struct CpuTime {
    own: f64,
    workers: BTreeMap<i32, f64>,
}

impl Meter {
    fn new(options: &VerifyOptions) -> Meter {
        let address = options.against.address;
        let found = || {
            let ip = address.ip().to_canonical();
            let is_here = ip.is_loopback() || ip.is_unspecified();
            is_here.then(|| samovar_config::discover_control_of(address.port()).ok()).flatten()
        };
        Meter(options.against_control.clone().or_else(found))
    }

    fn read(&self) -> Option<CpuTime> {
        let path = self.0.as_ref()?;
        let line = control_client::ask(path, &Request::Status, control_client::RESPONSE_LIMIT);
        let status: Status = understand(&line.ok()?).ok()?;
        let workers = status.workers.iter().map(|one| (one.pid, one.cpu_seconds)).collect();
        Some(CpuTime { own: status.cpu_seconds, workers })
    }

    /// Cores that the server used since a reading.
    fn cores(&self, before: Option<&CpuTime>, since: Instant) -> Option<f64> {
        let (before, after) = (before?, self.read()?);
        Some(after.used_since(before) / since.elapsed().as_secs_f64().max(1e-9))
    }
}

impl CpuTime {
    /// CPU time between two readings. Workers that ended meanwhile are missing.
    fn used_since(&self, before: &CpuTime) -> f64 {
        let workers = self
            .workers
            .iter()
            .map(|(pid, time)| (time - before.workers.get(pid).copied().unwrap_or(0.0)).max(0.0));
        (self.own - before.own).max(0.0) + workers.sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_counts_new_and_kept_workers() {
        let time = |own, workers: &[(i32, f64)]| CpuTime {
            own,
            workers: workers.iter().copied().collect(),
        };
        let before = time(10.0, &[(1, 5.0), (2, 3.0)]);
        let after = time(11.0, &[(1, 5.5), (3, 0.25)]);
        assert!((after.used_since(&before) - 1.75).abs() < 1e-9);
        // Another server with the same socket.
        assert!(time(0.0, &[]).used_since(&before).abs() < 1e-9);
    }
}
