//! Data for operators: the request accounting, and the admin listener that shows it.

mod canary;
mod capacity;
mod certificates;
mod php;
mod pools;
mod queues;
mod ready;
mod releases;
mod schedules;
mod table;
mod upstreams;

use super::exporters::{self, SlowLogFile, Ways};
use super::listen;
use crate::admin_token::AdminAccess;
use crate::canary::{Canaries, CanarySink};
use crate::companion;
use crate::control::capacity::process_cpu_ns;
use crate::control::report::{Booted, StatusSources, status};
use crate::development::Developer;
use crate::handover::predecessor::Predecessor;
use crate::jobs;
use crate::logging::Logs;
use crate::sampling::Sampling;
use anyhow::{Context, Result, bail};
use samovar_admin::{Access, Admin, Host};
use samovar_config::{AdminToken, Listen, Settings};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_insight::export::otlp::JobSpans;
use samovar_insight::pinba::listener::PinbaIn;
use samovar_insight::store::StoreLimits;
use samovar_insight::{
    Bounds, Clock, HandoverGate, HistoryOptions, Insight, Intake, Limits, Options, Redaction,
    Releases, Witness, intake,
};
use samovar_jobs::{Chosen, Command, Jobs};
use samovar_profile::Profiles;
use samovar_profile::calls::Selected;
use samovar_profile::loads::Explained;
use samovar_wire::{
    About, Application, CanaryStatus, Health, HealthProblem, ImageStatus, PoolCounters,
    QueueMinute, QueueResponse, ScalingStatus, ServerCounters, Severity, SharedObject,
    SharedStatus, Status, judged,
};
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use table::{Labels, Metric, count, put, put_counters, put_reasons};

/// Binds the admin listener's sockets. A socket that other machines can reach requires a token.
pub(super) fn bind(
    settings: &Settings,
    predecessor: Option<&Predecessor>,
) -> Result<Vec<TcpListener>> {
    let handed = |at| predecessor.and_then(|predecessor| predecessor.admin(at));
    settings.admin.iter().map(|at| open(settings, at, handed(at))).collect()
}

fn open(settings: &Settings, at: &Listen, handed: Option<TcpListener>) -> Result<TcpListener> {
    let listener = handed.map_or_else(|| listen::bind("admin", at, BACKLOG), Ok)?;
    refuse_strangers(settings, listener.local_addr()?)?;
    Ok(listener)
}

/// Checks that an address without a token is reachable from this machine only.
pub(crate) fn refuse_strangers(settings: &Settings, address: SocketAddr) -> Result<()> {
    let has_own_token = matches!(settings.admin_token, AdminToken::Given(_));
    if !address.ip().is_loopback() && !has_own_token {
        bail!(
            "`admin` on {address} would expose figures and paths of all requests to other \
             machines\nhint: set `admin_token`, or use a loopback address"
        );
    }
    Ok(())
}

const BACKLOG: usize = 64;

/// Both ends of the request accounting: the front's and the readers'.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) intake: Option<Intake>,
    pub(super) insight: Option<Arc<Insight>>,
    pub(super) slow_log: SlowLogFile,
    /// Sampler, if workers are sampled.
    pub(super) sampling: Option<Arc<Sampling>>,
    pub(super) job_spans: Option<JobSpans>,
    pub(super) canaries: Canaries,
}

/// Starts the request accounting, if its data can be read or exported.
pub(super) fn measure(
    settings: &Settings,
    pinba_in: Option<PinbaIn>,
    handover_gate: &HandoverGate,
    developer: Option<&Developer>,
    releases: &Releases,
) -> Result<Measured> {
    let of = &settings.insight;
    let is_looked_at = !settings.admin.is_empty() || of.store.is_some();
    let is_read = is_looked_at || developer.is_some() || companion::writes_requests();
    let is_measured = of.enabled && (is_read || exporters::are_any(settings));
    let sampling = Sampling::open(settings, is_measured, handover_gate.clone())?.map(Arc::new);
    if !is_measured {
        return Ok(Measured { sampling, ..Measured::default() });
    }
    let Ways { mut sinks, slow_log, job_spans } = exporters::open(settings, releases)?;
    sinks.extend(developer.map(Developer::request_lines));
    let canaries = Canaries::default();
    sinks.push(Box::new(CanarySink::new(canaries.clone())));
    let limits = Limits {
        routes_max: of.routes_max,
        slow_ns: u64::try_from(of.slow_request.as_nanos()).unwrap_or(u64::MAX),
    };
    let history = of.store.clone().map(|path| HistoryOptions {
        path,
        limits: StoreLimits {
            bytes_max: of.store_bytes_max,
            days_max: u32::try_from(of.days_max).unwrap_or(u32::MAX),
        },
        trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
    });
    let redaction = Redaction::of_setting(&settings.insight.redact);
    let cpu: Option<Clock> = Some(Box::new(process_cpu_ns));
    let witness = sampling.as_ref().map(|s| Arc::clone(&s.profiles) as Arc<dyn Witness>);
    let handover_gate = handover_gate.clone();
    let routes_full: Option<samovar_insight::Notice> =
        Some(Box::new(|text| tracing::warn!("{text}")));
    let options = Options {
        history,
        releases: releases.clone(),
        bounds: Bounds::of(&of.buckets),
        redaction,
        sinks,
        pinba_in,
        cpu,
        witness,
        routes_full,
        handover_gate,
    };
    let (front, thread) = intake();
    let insight = Insight::start_with(thread, limits, options);
    let insight = Arc::new(insight.context("cannot start the request accounting")?);
    let (intake, insight) = (Some(front), Some(insight));
    Ok(Measured { intake, insight, slow_log, sampling, job_spans, canaries })
}

/// Starts the admin listener, if it has sockets; it serves after its `begin`.
pub(super) fn start(
    listeners: Vec<TcpListener>,
    (token, logs): (AdminAccess, &Logs),
    settings: &Settings,
    sources: StatusSources,
    insight: Option<Arc<Insight>>,
) -> Result<Option<Admin>> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let addresses = listen::addresses(&listeners)?;
    token.report(&addresses, logs);
    let access = Access { token: token.into_token(), hosts: settings.admin_hosts.clone() };
    let others = settings.pools.iter().map(|pool| pool.settings.limits.queue_max as u64);
    let queues_max = std::iter::once(settings.limits.queue_max as u64).chain(others).collect();
    let host = Server { sources, queues_max };
    let admin = Admin::hold(listeners, access, Box::new(host), insight)?;
    Ok(Some(admin))
}

/// This server, as the admin listener's host.
struct Server {
    sources: StatusSources,
    /// `limits.queue_max` of each pool, the default pool first.
    queues_max: Vec<u64>,
}

impl Host for Server {
    fn profiles(&self) -> Option<Arc<Profiles>> {
        let sampling = self.sources.sampling.as_ref()?;
        (sampling.status().hertz > 0).then(|| Arc::clone(&sampling.profiles))
    }

    fn boot(&self, pool: Option<&str>) -> Option<Explained> {
        // Pages request only pools that exist.
        let Booted { mut explained, question, .. } = self.sources.boot(pool).ok()??;
        if let Some(profiles) = self.profiles() {
            explained.take_functions(&profiles.respond(question));
        }
        Some(explained)
    }

    fn calls(
        &self,
        pool: Option<&str>,
        day: Option<u64>,
        route: Option<&str>,
    ) -> Option<Result<Selected, String>> {
        self.sources.graphs.as_ref().map(|graphs| graphs.select(pool, day, route))
    }

    fn status(&self) -> Status {
        status(&self.sources)
    }

    fn dead_jobs(&self, queue: &str, after: i64, limit: usize) -> QueueResponse {
        let chosen = Chosen { queue: queue.to_owned(), after, limit, ..Chosen::default() };
        match self.sources.jobs.as_ref().map(|jobs| jobs.ask(Command::Dead(chosen))) {
            Some(Some(result)) => jobs::response(result),
            Some(None) => QueueResponse::refused("the store of jobs did not respond".to_owned()),
            None => QueueResponse::refused("this server has no queue".to_owned()),
        }
    }

    fn queue_minutes(&self) -> Vec<Arc<QueueMinute>> {
        self.sources.jobs.as_ref().map(Jobs::minutes).unwrap_or_default()
    }

    fn canary(&self) -> Option<CanaryStatus> {
        self.sources.canaries.status()
    }

    fn ready(&self, pool: Option<&str>) -> Result<String, String> {
        ready::readiness(&status(&self.sources), &self.queues_max, pool)
    }

    fn metrics(&self, page: &mut Exposition) {
        metrics(&status(&self.sources), page);
    }
}

const TIMES: &[Metric<Status, f64>] = &[
    ("samovar_uptime_seconds", Kind::Gauge, "Time since the start.", |s| s.uptime_seconds),
    ("samovar_server_cpu_seconds", Kind::Counter, "CPU time of the server process.", |s| {
        s.cpu_seconds
    }),
];

const METRICS: &[Metric<Status, u64>] = &[
    ("samovar_generation", Kind::Gauge, "Generation of the application that serves.", |s| {
        s.generation
    }),
    ("samovar_worker_restarts", Kind::Counter, "Workers replaced after they died.", |s| {
        s.worker_restarts_total
    }),
    (
        "samovar_workers_recycled",
        Kind::Counter,
        "Workers replaced after they reached a recycling limit.",
        |s| s.workers_recycled_total,
    ),
    ("samovar_workers_added", Kind::Counter, "Workers added because requests waited.", |s| {
        s.workers_added_total
    }),
    ("samovar_workers_removed", Kind::Counter, "Workers removed because they were idle.", |s| {
        s.workers_removed_total
    }),
    (
        "samovar_workers_running",
        Kind::Gauge,
        "Workers that hold a run permit, if their number is limited.",
        |s| s.workers_running,
    ),
    ("samovar_profile_samples", Kind::Counter, "Profiler samples.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.samples_total)
    }),
    ("samovar_profile_pushes", Kind::Counter, "Profiles accepted by Pyroscope.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.pushes_total)
    }),
    (
        "samovar_profile_pushes_dropped",
        Kind::Counter,
        "Profiles that could not be sent to Pyroscope.",
        |s| s.profile.as_ref().map_or(0, |profile| profile.pushes_dropped_total),
    ),
    ("samovar_profile_pushes_rejected", Kind::Counter, "Profiles rejected by Pyroscope.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.pushes_rejected_total)
    }),
    ("samovar_log_lines_dropped", Kind::Counter, "Log lines dropped.", |s| {
        s.log_lines_dropped_total + s.access_log_lines_dropped_total
    }),
];

/// Metrics of a shared object, with its kind and name as labels.
const OBJECT_METRICS: &[Metric<SharedObject, Option<u64>>] = &[
    ("samovar_shared_object_bytes", Kind::Gauge, "Memory of a shared object.", |o| Some(o.bytes)),
    ("samovar_shared_rows", Kind::Gauge, "Rows in use of a table or limiter.", |o| o.used),
    ("samovar_shared_rows_max", Kind::Gauge, "Maximum rows of a table or limiter.", |o| o.room),
    ("samovar_shared_cache_hits", Kind::Counter, "Cache hits.", |o| {
        o.cache.as_ref().map(|cache| cache.hits_total)
    }),
    ("samovar_shared_cache_misses", Kind::Counter, "Cache misses.", |o| {
        o.cache.as_ref().map(|cache| cache.misses_total)
    }),
    ("samovar_shared_cache_evicted", Kind::Counter, "Cache values evicted for new ones.", |o| {
        o.cache.as_ref().map(|cache| cache.evicted_total)
    }),
    ("samovar_shared_cache_values", Kind::Gauge, "Values in a cache.", |o| {
        o.cache.as_ref().map(|cache| cache.values)
    }),
    ("samovar_shared_lock_held", Kind::Gauge, "Whether a lock is held.", |o| o.held.map(u64::from)),
    ("samovar_shared_limiter_allowed", Kind::Counter, "Calls allowed by a limiter.", |o| {
        o.allowed_total
    }),
    ("samovar_shared_limiter_denied", Kind::Counter, "Calls denied by a limiter.", |o| {
        o.denied_total
    }),
    ("samovar_shared_breaker_open", Kind::Gauge, "Whether a breaker is open or half-open.", |o| {
        o.breaker.as_ref().map(|breaker| u64::from(breaker.state != "closed"))
    }),
    ("samovar_shared_breaker_opened", Kind::Counter, "Times a breaker opened.", |o| {
        o.breaker.as_ref().map(|breaker| breaker.opened_total)
    }),
    ("samovar_shared_breaker_rejected", Kind::Counter, "Calls rejected by a breaker.", |o| {
        o.breaker.as_ref().map(|breaker| breaker.refused_total)
    }),
    ("samovar_shared_published_reads", Kind::Counter, "Reads of a published value.", |o| {
        o.reads_total
    }),
];

/// Returns the rows of all pools. The default pool's rows have no pool label, with and without
/// other pools.
fn of_pools<'a, T, I: Iterator<Item = (Labels<'a>, &'a T)>>(
    all: &[Application<'a>],
    of_one: impl Fn(&Application<'a>) -> I,
) -> Vec<(Labels<'a>, &'a T)> {
    let mut rows = Vec::new();
    for (at, of) in all.iter().enumerate() {
        let named = (at > 0).then_some(("pool", of.pool));
        rows.extend(
            of_one(of).map(|(labels, row)| (named.into_iter().chain(labels).collect(), row)),
        );
    }
    rows
}

const MEMORY_METRICS: &[Metric<SharedStatus, u64>] = &[
    ("samovar_shared_bytes", Kind::Gauge, "Memory in use by shared objects.", |s| s.bytes),
    ("samovar_shared_bytes_max", Kind::Gauge, "Maximum memory for shared objects.", |s| {
        s.bytes_max
    }),
    (
        "samovar_shared_objects_rejected",
        Kind::Counter,
        "Shared objects rejected because the memory was full.",
        |s| s.refused_total,
    ),
    ("samovar_published_bytes", Kind::Gauge, "Memory of published values.", |s| s.published_bytes),
    ("samovar_published_bytes_max", Kind::Gauge, "Maximum memory for published values.", |s| {
        s.published_bytes_max
    }),
    (
        "samovar_published_stale_bytes",
        Kind::Gauge,
        "Memory of replaced published values that are still in use.",
        |s| s.published_stale_bytes,
    ),
    ("samovar_published_changes", Kind::Counter, "Values published, replaced or removed.", |s| {
        s.published_changes_total
    }),
    ("samovar_published_rejected", Kind::Counter, "Values that could not be published.", |s| {
        s.published_rejected_total
    }),
];

fn shared_metrics<'a>(all: &[Application<'a>], page: &mut Exposition) {
    put(page, MEMORY_METRICS, &of_pools(all, |of| iter::once((vec![], of.shared))));
    let labelled = |o: &'a SharedObject| (vec![("kind", &*o.kind), ("name", &*o.name)], o);
    put(page, OBJECT_METRICS, &of_pools(all, |of| of.shared.objects.iter().map(labelled)));
}

const SCALING_METRICS: &[Metric<ScalingStatus, u64>] = &[
    ("samovar_workers_max", Kind::Gauge, "Maximum number of workers.", |one| one.max),
    ("samovar_workers_target", Kind::Gauge, "Target number of workers.", |one| one.workers),
];

/// The current reason has the value 1, like a state set: the reason why the number of workers is
/// not larger or smaller.
const WHY_METRICS: &[Metric<ScalingStatus, u64>] = &[(
    "samovar_workers_limit_reason",
    Kind::Gauge,
    "Reason why the number of workers is not higher or lower.",
    |_| 1,
)];

fn scaling_metrics<'a>(all: &[Application<'a>], page: &mut Exposition) {
    let each: Vec<_> =
        of_pools(all, |of| of.scaling.iter().map(|one| (vec![("kind", &*one.kind)], one)));
    put(page, SCALING_METRICS, &each);
    let reason = |(mut labels, one): (Labels<'a>, &'a ScalingStatus)| {
        labels.push(("reason", &*one.reason));
        (labels, one)
    };
    let each: Vec<_> = each.into_iter().map(reason).collect();
    put(page, WHY_METRICS, &each);
}

const IMAGE_METRICS: &[Metric<ImageStatus, u64>] = &[
    ("samovar_image_bytes", Kind::Gauge, "Size of the booted application's image.", |image| {
        image.bytes
    }),
    (
        "samovar_image_findings",
        Kind::Gauge,
        "Preflight findings of the booted application.",
        |image| image.findings.len() as u64,
    ),
    (
        "samovar_worker_reforks",
        Kind::Counter,
        "Workers that exited to be replaced by a fresh fork.",
        |image| image.refork_total,
    ),
];

/// Writes the image metrics; nothing if no application is booted.
fn image_metrics(all: &[Application<'_>], page: &mut Exposition) {
    let images = of_pools(all, |of| of.image.into_iter().map(|image| (vec![], image)));
    if !images.is_empty() {
        put(page, IMAGE_METRICS, &images);
    }
}

fn health_metrics(health: &Health, page: &mut Exposition) {
    page.family("samovar_healthy", Kind::Gauge, "Whether no health finding is a problem.");
    page.sample(&[], f64::from(u8::from(health.healthy)));
    page.family("samovar_health_findings", Kind::Gauge, "Health findings, by subject.");
    for about in About::ALL {
        for severity in [Severity::Problem, Severity::Warning] {
            let is_it = |found: &&HealthProblem| (found.about, found.severity) == (about, severity);
            let found = health.findings.iter().filter(is_it).count();
            page.sample(
                &[("what", about.name()), ("severity", severity.name())],
                count(found as u64),
            );
        }
    }
}

fn metrics(status: &Status, page: &mut Exposition) {
    page.family("samovar_build_info", Kind::Gauge, "Version of the server.");
    page.sample(&[("version", &status.version)], 1.0);
    let whole = [(vec![], status)];
    put(page, TIMES, &whole);
    put(page, METRICS, &whole);
    health_metrics(&judged(status), page);
    let front = &status.front;
    put_counters(page, PoolCounters::METRICS, |metric| metric.name, &[(vec![], &front.pools)]);
    put_counters(page, ServerCounters::METRICS, |metric| metric.name, &[(vec![], &front.server)]);
    for (name, help, reasons) in [
        ("samovar_requests_rejected", "Requests rejected, by reason.", &front.rejected_reasons),
        (
            "samovar_fastcgi_rejected",
            "FastCGI connections closed because of invalid or untrusted input, by reason.",
            &front.fastcgi_rejected_reasons,
        ),
        (
            "samovar_upstream_errors",
            "Requests without a complete response from the php-fpm of a location, by reason.",
            &front.upstream_errors,
        ),
        ("samovar_kills", "Workers and templates killed, by reason.", &status.kills_reasons),
    ] {
        put_reasons(page, (name, help), [(vec![], reasons)]);
    }
    page.family("samovar_workers", Kind::Gauge, "Workers by state.");
    for state in ["starting", "booting", "idle", "busy", "held", "leaving"] {
        let found = status.in_state(state);
        page.sample(&[("state", state)], count(found as u64));
    }
    page.family("samovar_tracing_workers", Kind::Gauge, "Workers that record call graphs.");
    page.sample(&[], count(status.tracing_workers() as u64));
    page.family("samovar_workers_memory_bytes", Kind::Gauge, "Resident memory of all workers.");
    page.sample(&[], count(status.workers.iter().map(|worker| worker.rss_bytes).sum()));
    let all = status.applications();
    scaling_metrics(&all, page);
    capacity::metrics(&status.capacity, page);
    certificates::metrics(&status.certificates, page);
    canary::metrics(status.canary.as_ref(), page);
    releases::metrics(status, page);
    schedules::metrics(&status.schedules, page);
    upstreams::metrics(&status.upstreams, page);
    queues::metrics(&status.queues, page);
    shared_metrics(&all, page);
    pools::metrics(&status.pools, page);
    image_metrics(&all, page);
    php::metrics(status, page);
}
