//! Two samples of the server → the activity between them.

use super::sample::Sample;
use samovar_wire::{Status, judged};
use serde::Serialize;
use std::collections::HashMap;
use std::time::Duration;

/// Activity of the server between two samples; rates are per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rows {
    /// Time between the samples; 0 with only one.
    pub(super) seconds: f64,
    /// Whether no finding is a problem.
    pub(super) healthy: bool,
    /// Health findings, worst first.
    pub(super) troubles: Vec<String>,
    /// Addresses of the server, for people.
    pub(super) listen: Vec<String>,
    pub(super) version: String,
    pub(super) generation: u64,
    /// Whether request accounting is enabled.
    pub(super) measured: bool,
    pub(super) requests_per_second: f64,
    pub(super) errors_per_second: f64,
    /// CPU time of the workers, in cores.
    pub(super) workers_cores: f64,
    /// CPU time of the server itself, in cores.
    pub(super) server_cores: f64,
    pub(super) in_flight: u64,
    pub(super) queue_depth: u64,
    pub(super) connections: u64,
    /// Median since the server's start.
    pub(super) p50_ms: f64,
    /// 99th percentile since the server's start.
    pub(super) p99_ms: f64,
    pub(super) routes: Vec<RouteRow>,
    pub(super) routes_left_out: u64,
    pub(super) workers: Vec<WorkerRow>,
    pub(super) waits: Vec<WaitRow>,
    pub(super) queues: Vec<QueueRow>,
}

/// One route. Percentiles are since the server's start, the other values are between the samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct RouteRow {
    pub(super) route: String,
    pub(super) requests_per_second: f64,
    pub(super) errors_per_second: f64,
    pub(super) cores: f64,
    pub(super) cpu_ms_each: f64,
    pub(super) waiting_ms_each: f64,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
    /// Number of requests since the server's start.
    pub(super) requests: u64,
}

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct WorkerRow {
    /// Pool of the worker; empty if the server has one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) pool: String,
    pub(super) pid: i32,
    pub(super) state: String,
    pub(super) model: String,
    pub(super) requests_per_second: f64,
    pub(super) cores: f64,
    pub(super) rss_bytes: u64,
    /// Number of requests since its fork.
    pub(super) requests: u64,
    pub(super) age_seconds: f64,
    pub(super) generation: u64,
}

/// A peer that PHP waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct WaitRow {
    pub(super) kind: String,
    pub(super) peer: String,
    pub(super) times_per_second: f64,
    /// Mean number of workers that wait for it.
    pub(super) waiting: f64,
    pub(super) ms_each: f64,
}

/// A queue of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct QueueRow {
    pub(super) queue: String,
    pub(super) ready: u64,
    pub(super) delayed: u64,
    pub(super) running: u64,
    pub(super) dead: u64,
    /// Time for which the oldest ready job has been ready.
    pub(super) oldest_seconds: f64,
    pub(super) pushed_per_second: f64,
    pub(super) done_per_second: f64,
    pub(super) failed_per_second: f64,
    pub(super) paused: bool,
}

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

/// Computes rates from sums now and before. If a sum has decreased, it was reset by a restart of
/// the server or worker, and counts from zero.
#[derive(Clone, Copy)]
struct Between {
    seconds: f64,
}

impl Between {
    fn rate(self, now: u64, then: Option<u64>) -> f64 {
        if self.seconds > 0.0 { self.sum(now, then) / self.seconds } else { 0.0 }
    }

    #[allow(clippy::cast_precision_loss)] // Counters stay below 2⁵³.
    fn sum(self, now: u64, then: Option<u64>) -> f64 {
        if self.seconds > 0.0 {
            now.checked_sub(then.unwrap_or(0)).unwrap_or(now) as f64
        } else {
            0.0
        }
    }
}

fn per(sum: f64, times: f64) -> f64 {
    if times > 0.0 { sum / times } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)] // Same reason as above.
fn ms(ns: u64) -> f64 {
    ns as f64 / NS_PER_MS
}

impl Rows {
    /// Computes the rows. With only one sample there are no rates.
    pub(super) fn between(then: Option<&Sample>, now: &Sample) -> Rows {
        let none = Sample::default();
        // Another process id means another server.
        let then = then.filter(|then| then.status.pid == now.status.pid);
        #[allow(clippy::cast_precision_loss)] // Same reason as above.
        let elapsed = |then: &Sample| {
            now.figures.at_unix_us.saturating_sub(then.figures.at_unix_us) as f64 / 1e6
        };
        let uptime = |then: &Sample| now.status.uptime_seconds - then.status.uptime_seconds;
        let seconds =
            then.map_or(
                0.0,
                |then| if now.figures.at_unix_us > 0 { elapsed(then) } else { uptime(then) },
            );
        let (between, then) = (Between { seconds }, then.unwrap_or(&none));
        let (front, front_then) = (&now.status.front, &then.status.front);
        let cpu = |of: &Status| of.workers.iter().map(|w| w.cpu_seconds).sum::<f64>();
        let health = judged(&now.status);
        Rows {
            seconds,
            healthy: health.healthy,
            troubles: health.findings.into_iter().map(|found| found.text).collect(),
            listen: now.status.listen.clone(),
            version: now.status.version.clone(),
            generation: now.status.generation,
            measured: now.figures.measured,
            requests_per_second: between
                .rate(front.pools.requests_total, Some(front_then.pools.requests_total)),
            errors_per_second: between
                .rate(front.pools.responses_5xx_total, Some(front_then.pools.responses_5xx_total)),
            workers_cores: per((cpu(&now.status) - cpu(&then.status)).max(0.0), seconds),
            server_cores: per(now.status.cpu_seconds - then.status.cpu_seconds, seconds),
            in_flight: front.pools.in_flight,
            queue_depth: front.pools.queue_depth,
            connections: front.server.connections,
            p50_ms: ms(now.figures.p50_ns),
            p99_ms: ms(now.figures.p99_ns),
            routes: routes(between, then, now),
            routes_left_out: now.figures.routes_left_out,
            workers: workers(between, then, now),
            waits: waits(between, then, now),
            queues: queues(between, then, now),
        }
    }
}

fn routes(between: Between, then: &Sample, now: &Sample) -> Vec<RouteRow> {
    let before: HashMap<_, _> = then.figures.routes.iter().map(|r| (&*r.route, r)).collect();
    let row = |r: &samovar_wire::RouteLine| {
        let was = before.get(&*r.route);
        let requests = between.sum(r.requests, was.map(|w| w.requests));
        let cpu = between.sum(r.cpu_ns, was.map(|w| w.cpu_ns));
        let waiting = between.sum(r.waiting_ns, was.map(|w| w.waiting_ns));
        RouteRow {
            route: r.route.clone(),
            requests_per_second: per(requests, between.seconds),
            errors_per_second: between.rate(r.errors, was.map(|w| w.errors)),
            cores: per(cpu / NS_PER_S, between.seconds),
            cpu_ms_each: per(cpu / NS_PER_MS, requests),
            waiting_ms_each: per(waiting / NS_PER_MS, requests),
            p50_ms: ms(r.p50_ns),
            p95_ms: ms(r.p95_ns),
            p99_ms: ms(r.p99_ns),
            requests: r.requests,
        }
    };
    now.figures.routes.iter().map(row).collect()
}

fn workers(between: Between, then: &Sample, now: &Sample) -> Vec<WorkerRow> {
    let before: HashMap<_, _> = then.status.workers.iter().map(|w| (w.pid, w)).collect();
    let row = |w: &samovar_wire::WorkerStatus| {
        let was = before.get(&w.pid);
        let cpu = w.cpu_seconds - was.map_or(0.0, |was| was.cpu_seconds);
        WorkerRow {
            pool: w.pool.clone(),
            pid: w.pid,
            state: if w.tracing { format!("{}, tracing", w.state) } else { w.state.clone() },
            model: w.model.clone(),
            requests_per_second: between.rate(w.requests, was.map(|was| was.requests)),
            cores: per(cpu.max(0.0), between.seconds),
            rss_bytes: w.rss_bytes,
            requests: w.requests,
            age_seconds: w.age_seconds,
            generation: w.generation,
        }
    };
    now.status.workers.iter().map(row).collect()
}

fn waits(between: Between, then: &Sample, now: &Sample) -> Vec<WaitRow> {
    let name = |w: &samovar_wire::WaitLine| (w.kind.clone(), w.peer.clone());
    let before: HashMap<_, _> = then.figures.waits.iter().map(|w| (name(w), w)).collect();
    let row = |w: &samovar_wire::WaitLine| {
        let was = before.get(&name(w));
        let times = between.sum(w.times, was.map(|was| was.times));
        let ns = between.sum(w.ns, was.map(|was| was.ns));
        WaitRow {
            kind: w.kind.clone(),
            peer: w.peer.clone(),
            times_per_second: per(times, between.seconds),
            waiting: per(ns / NS_PER_S, between.seconds),
            ms_each: per(ns / NS_PER_MS, times),
        }
    };
    now.figures.waits.iter().map(row).collect()
}

fn queues(between: Between, then: &Sample, now: &Sample) -> Vec<QueueRow> {
    let before: HashMap<_, _> = then.status.queues.iter().map(|q| (&*q.name, q)).collect();
    let row = |q: &samovar_wire::QueueStatus| {
        let was = before.get(&*q.name);
        QueueRow {
            queue: q.name.clone(),
            ready: q.ready as u64,
            delayed: q.delayed as u64,
            running: q.running as u64,
            dead: q.dead,
            oldest_seconds: Duration::from_millis(q.oldest_ms).as_secs_f64(),
            pushed_per_second: between.rate(q.pushed_total, was.map(|was| was.pushed_total)),
            done_per_second: between.rate(q.done_total, was.map(|was| was.done_total)),
            failed_per_second: between.rate(q.failed_total, was.map(|was| was.failed_total)),
            paused: q.paused,
        }
    };
    now.status.queues.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::{Rows, Sample};
    use samovar_wire::{Figures, QueueStatus, RouteLine, Status, WaitLine, WorkerStatus};

    fn sample(pid: u32, at_s: u64, requests: u64) -> Sample {
        let route = RouteLine {
            route: "shop".to_owned(),
            requests,
            errors: requests / 10,
            cpu_ns: requests * 2_000_000,
            waiting_ns: requests * 5_000_000,
            ..RouteLine::default()
        };
        let wait = WaitLine {
            kind: "tcp".into(),
            peer: "db:5432".into(),
            times: 2 * requests,
            ns: requests * 5_000_000,
        };
        let worker = WorkerStatus { pid: 9, requests, cpu_seconds: 0.5, ..WorkerStatus::default() };
        let queue = QueueStatus {
            name: "emails".to_owned(),
            pushed_total: requests,
            oldest_ms: 2_500,
            ..QueueStatus::default()
        };
        let mut status =
            Status { pid, workers: vec![worker], queues: vec![queue], ..Status::default() };
        status.front.pools.requests_total = requests;
        let figures = Figures {
            at_unix_us: at_s * 1_000_000,
            measured: true,
            routes: vec![route],
            waits: vec![wait],
            ..Figures::default()
        };
        Sample { status, figures }
    }

    #[test]
    fn rates_are_computed_between_samples() {
        let rows = Rows::between(Some(&sample(1, 100, 1_000)), &sample(1, 102, 1_200));
        assert_eq!((rows.seconds, rows.requests_per_second), (2.0, 100.0));
        let route = &rows.routes[0];
        assert_eq!((route.requests_per_second, route.errors_per_second), (100.0, 10.0));
        assert!((route.cores - 0.2).abs() < 1e-9 && (route.cpu_ms_each - 2.0).abs() < 1e-9);
        assert!((route.waiting_ms_each - 5.0).abs() < 1e-9);
        let wait = &rows.waits[0];
        assert!((wait.times_per_second - 200.0).abs() < 1e-9);
        assert!((wait.waiting - 0.5).abs() < 1e-9 && (wait.ms_each - 2.5).abs() < 1e-9);
        assert_eq!((rows.workers[0].requests_per_second, rows.workers[0].cores), (100.0, 0.0));
        let queue = &rows.queues[0];
        assert_eq!((queue.pushed_per_second, queue.oldest_seconds), (100.0, 2.5));
    }

    #[test]
    fn first_sample_and_new_server_have_no_rates() {
        for then in [None, Some(&sample(2, 100, 1_000))] {
            let rows = Rows::between(then, &sample(1, 102, 1_200));
            assert_eq!((rows.seconds, rows.routes[0].requests_per_second), (0.0, 0.0));
            assert_eq!((rows.routes[0].requests, rows.workers_cores), (1_200, 0.0));
        }
    }
}
