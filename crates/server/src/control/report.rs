//! Counters of the front, reports of the supervisor and request statistics → the responses to
//! `status` and `figures`.

mod php;
mod resources;
mod upstreams;

use super::capacity::{Capacity, process_cpu_ns};
use super::recent::Recent;
use super::storage::Storage;
use crate::canary::Canaries;
use crate::graphs::Graphs;
use crate::handover::predecessor::Predecessor;
use crate::logging::Logs;
use crate::pools::Pools;
use crate::sampling::Sampling;
use crate::schedules::Scheduling;
use anyhow::Result;
use samovar_acme::{DomainStatus, Keeper};
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_front::{CountersSnapshot, FrontHandle, Hostile, Rejection, Tls};
use samovar_insight::store::{Event, EventKind};
use samovar_insight::{Costs, Insight, Releases, now};
use samovar_jobs::Jobs;
use samovar_log::Log;
use samovar_profile::loads::{Explained, Includes, Loads};
use samovar_published::Publishing;
use samovar_ring::{DesiredState, WorkerState};
use samovar_shared::Shared;
use samovar_supervisor::{ConsoleLine, Engine, Handle, Image, Linking, Report, ScaleLine};
use samovar_wire::{
    CertificateStatus, ConsoleStatus, EngineStatus, Figures, FrontStatus, ImageFinding,
    ImageStatus, IncludesQuestion, LinkingStatus, PoolStatus, ProfileQuestion, ROUTES_MAX,
    RecentStatus, RouteLine, SavingStatus, ScalingStatus, SettingsFacts, SharedBreaker,
    SharedCache, SharedObject, SharedStatus, Status, UpstreamStatus, WAITS_MAX, WaitLine,
    WorkerStatus, judge,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Data sources of a status.
#[derive(Clone)]
pub(crate) struct StatusSources {
    pub(crate) started: Instant,
    pub(crate) samplers: Samplers,
    pub(crate) listen: Vec<String>,
    pub(crate) admin: Vec<String>,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
    pub(crate) shared: Shared,
    pub(crate) published: Publishing,
    pub(crate) logs: Logs,
    pub(crate) slow_log: Option<Log>,
    pub(crate) insight: Option<Arc<Insight>>,
    pub(crate) canaries: Canaries,
    pub(crate) releases: Releases,
    pub(crate) sampling: Option<Arc<Sampling>>,
    /// Call graphs of traced requests, if requests are traced.
    pub(crate) graphs: Option<Graphs>,
    /// Boots, and loads of requests.
    pub(crate) loads: Loads,
    /// Queues of jobs, if there are any.
    pub(crate) jobs: Option<Jobs>,
    pub(crate) schedules: Scheduling,
    /// Server that this one has replaced.
    pub(crate) predecessor: Option<Predecessor>,
    /// Pools other than the default one.
    pub(crate) pools: Pools,
    /// Keeper of issued certificates.
    pub(crate) keeper: Option<Keeper>,
    /// Certificates from files.
    pub(crate) tls: Option<Arc<Tls>>,
    /// The settings at the server's start, as far as `samovar doctor` checks them.
    pub(crate) settings: Arc<SettingsFacts>,
}

/// Threads that sample counters of the server and of the machine.
#[derive(Clone)]
pub(crate) struct Samplers {
    /// Counters of the last minutes.
    recent: Recent,
    /// Use of cores.
    capacity: Capacity,
    /// Free space of disks.
    storage: Storage,
}

impl Samplers {
    pub(crate) fn start(
        settings: &Settings,
        front: &FrontHandle,
        supervisor: &Handle,
        pools: &Pools,
        insight: Option<&Arc<Insight>>,
    ) -> Result<Samplers> {
        let (supervisor, pools) = (|| supervisor.clone(), || pools.clone());
        Ok(Samplers {
            recent: Recent::start(front.clone(), supervisor(), pools())?,
            capacity: Capacity::start(supervisor(), pools(), insight.cloned())?,
            storage: Storage::start(settings)?,
        })
    }
}

/// Latest boot of a pool.
pub(crate) struct Booted {
    /// Name of the pool; empty if the server has one pool.
    pub(crate) pool: String,
    pub(crate) explained: Explained,
    /// Time from the start of the boot until workers can be forked; 0: unknown.
    pub(crate) image_ms: f64,
    /// Findings of its preflight.
    pub(crate) findings: Vec<ImageFinding>,
    /// Profile query for the functions of the boot.
    pub(crate) question: ProfileQuestion,
}

impl StatusSources {
    /// Returns the files that requests of a pool include, with the name of the pool if there are
    /// several. Returns an error if there is no such pool.
    pub(crate) fn includes(
        &self,
        question: &IncludesQuestion,
    ) -> Result<(String, Option<Includes>), String> {
        let (name, _) = self.pools.supervisor(question.pool.as_deref(), &self.supervisor)?;
        let includes = self.loads.includes(&name, question.route.as_deref());
        let pool = if self.pools.is_empty() { String::new() } else { name };
        Ok((pool, includes))
    }

    /// Returns the latest boot of a pool (`None`: the default pool), if there was one. Returns an
    /// error if there is no such pool.
    pub(crate) fn boot(&self, pool: Option<&str>) -> Result<Option<Booted>, String> {
        let (name, supervisor) = self.pools.supervisor(pool, &self.supervisor)?;
        let Some(explained) = self.loads.latest(&name) else { return Ok(None) };
        let report = supervisor.report();
        // As in profiles, the default pool has an empty name.
        let kept = if name == DEFAULT_POOL { "" } else { &*name };
        let question = explained.asks(kept, report.generation);
        let image_ms = report.image.as_ref().map_or(0.0, boot_ms);
        let pool = if self.pools.is_empty() { String::new() } else { name };
        let findings = findings(&report);
        Ok(Some(Booted { pool, explained, image_ms, findings, question }))
    }
}

fn boot_ms(image: &Image) -> f64 {
    (image.boot.as_secs_f64() * 10_000.0).round() / 10.0
}

/// Returns the current state of the server.
pub(crate) fn status(sources: &StatusSources) -> Status {
    let own = sources.front.counters();
    let report = sources.supervisor.report();
    let others: Vec<_> = (sources.pools.iter())
        .map(|pool| (pool.name.as_str(), pool.front.counters(), pool.supervisor.report()))
        .collect();
    let front = others.iter().fold(own, |sum, (_, front, _)| sum.with(front));
    let is_one = others.is_empty();
    let first = (DEFAULT_POOL, &own, &report);
    let rest = others.iter().map(|(name, front, report)| (*name, front, report));
    let all: Vec<_> = std::iter::once(first).chain(rest).collect();
    let sum = |count: fn(&Report) -> u64| all.iter().map(|(_, _, report)| count(report)).sum();
    let worker = |name: &str, w: &samovar_supervisor::WorkerLine| WorkerStatus {
        pool: if is_one { String::new() } else { name.to_owned() },
        pid: w.pid,
        cell: w.cell,
        state: worker_state(w).to_owned(),
        model: w.model.name().to_owned(),
        tracing: w.is_tracer,
        requests: w.requests,
        rollbacks: w.rollbacks,
        hot_pages: w.hot_pages,
        rss_bytes: rss_bytes(w.pid),
        cpu_seconds: cpu_seconds(w.pid),
        age_seconds: seconds(w.age),
        generation: w.generation,
    };
    let console = |name: &str, line: &ConsoleLine| ConsoleStatus {
        pool: if is_one { String::new() } else { name.to_owned() },
        ..console_status(line)
    };
    let memories = std::iter::once((&sources.shared, &sources.published))
        .chain(sources.pools.iter().map(|pool| (&pool.shared, &pool.published)));
    let insight = sources.insight.as_deref();
    let pools = all.iter().filter(|_| !is_one).zip(memories);
    let label = |pool: &str| sources.releases.serving(pool).to_string();
    let pools = pools.map(|(pool, memory)| pool_status(*pool, label(pool.0), memory, insight));
    let pools = pools.collect();
    let mut status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_seconds: seconds(sources.started.elapsed()),
        cpu_seconds: seconds(Duration::from_nanos(process_cpu_ns())),
        resources: resources::now(),
        listen: sources.listen.clone(),
        admin: sources.admin.clone(),
        draining: !sources.front.is_ready(),
        predecessor_pid: sources.predecessor.as_ref().and_then(Predecessor::pid).unwrap_or(0),
        generation: report.generation,
        release: label(if is_one { "" } else { DEFAULT_POOL }),
        reloading: all.iter().any(|(_, _, report)| report.is_reloading),
        canary: sources
            .canaries
            .status()
            .filter(|canary| !canary.state.is_final())
            .map(|canary| canary.brief()),
        front: front_status(&front),
        worker_restarts_total: sum(|report| report.restarts),
        kills_reasons: kills(all.iter().map(|(_, _, report)| *report)),
        workers_recycled_total: sum(|report| report.recycled),
        workers_added_total: sum(|report| report.grown),
        workers_removed_total: sum(|report| report.shrunk),
        workers_running: sum(|report| report.running),
        scaling: report.scale.iter().map(scaling).collect(),
        log_lines_dropped_total: sources.logs.lost(),
        access_log_lines_dropped_total: front.log_lines_dropped_total,
        slow_log_lines_dropped_total: sources.slow_log.as_ref().map_or(0, Log::lost),
        routes_full: insight.is_some_and(|insight| insight.figures().routes_are_full(now())),
        image: image(if is_one { "" } else { DEFAULT_POOL }, &report, insight),
        php: report.php.clone(),
        engine: report.engine.as_ref().map(engine),
        linking: report.linking.as_ref().map(linking),
        opcache: php::opcache(&report),
        messages: php::messages(&report),
        shared: shared(&sources.shared, &sources.published),
        profile: sources.sampling.as_ref().map(|sampling| sampling.status()),
        growth: sources.loads.growth(),
        workers: (all.iter())
            .flat_map(|(name, _, report)| report.workers.iter().map(|line| worker(name, line)))
            .collect(),
        consoles: (all.iter())
            .flat_map(|(name, _, report)| report.consoles.iter().map(|line| console(name, line)))
            .collect(),
        schedules: sources.schedules.status(),
        upstreams: upstreams(sources),
        queues: sources.jobs.as_ref().map(Jobs::figures).unwrap_or_default(),
        certificates: certificates(sources),
        pools,
        recent: recent(sources, report.boot_failed),
        capacity: sources.samplers.capacity.status(),
        storage: sources.samplers.storage.status(),
        history_file: history_file(sources),
        health: None,
    };
    status.health = Some(judge(&status, samovar_insight::now()));
    status
}

fn history_file(sources: &StatusSources) -> String {
    let path = sources.insight.as_ref().and_then(|insight| insight.history_path());
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// Period in seconds of the longest time in the queue.
const MINUTE_S: u64 = 60;
/// Period in seconds in which failed reloads count.
const NEWS_S: u64 = 300;

fn recent(sources: &StatusSources, boot_failed: bool) -> RecentStatus {
    let recent = RecentStatus { boot_failed, ..sources.samplers.recent.status() };
    let Some(insight) = &sources.insight else { return recent };
    let now = samovar_insight::now();
    let from = now.saturating_sub(MINUTE_S);
    let longest = insight.figures().seconds().since(from).map(|second| second.queue_ns_max).max();
    let history_trouble = insight.history().map(|history| history.trouble).unwrap_or_default();
    let events = insight.events();
    let is_failure =
        |event: &&Event| event.kind == EventKind::ReloadFailed && event.at + NEWS_S > now;
    let reloads_failed = events.iter().filter(is_failure).count() as u64;
    RecentStatus { queue_ns_max: longest.unwrap_or(0), history_trouble, reloads_failed, ..recent }
}

/// Adds up the kills of all pools.
fn kills<'a>(reports: impl Iterator<Item = &'a Report>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (reason, count) in reports.flat_map(|report| &report.kills) {
        *all.entry((*reason).to_owned()).or_default() += count;
    }
    all
}

fn pool_status(
    (name, front, report): (&str, &CountersSnapshot, &Report),
    release: String,
    (memory, published): (&Shared, &Publishing),
    insight: Option<&Insight>,
) -> PoolStatus {
    let is_up =
        |worker: &&&samovar_supervisor::WorkerLine| matches!(worker_state(worker), "idle" | "busy");
    let is_busy = |worker: &&&samovar_supervisor::WorkerLine| worker_state(worker) == "busy";
    let workers: Vec<_> = report.workers.iter().filter(|worker| !worker.is_tracer).collect();
    let front_status = front_status(front);
    PoolStatus {
        name: name.to_owned(),
        generation: report.generation,
        release,
        reloading: report.is_reloading,
        failed: report.boot_failed,
        image: report.image.as_ref().map(|image| image.mode.word().to_owned()).unwrap_or_default(),
        workers: workers.iter().filter(is_up).count() as u64,
        busy: workers.iter().filter(is_busy).count() as u64,
        counts: front.pool,
        rejected_reasons: front_status.rejected_reasons,
        worker_restarts_total: report.restarts,
        workers_recycled_total: report.recycled,
        booted: image(name, report, insight),
        scaling: report.scale.iter().map(scaling).collect(),
        php: report.php.clone(),
        engine: report.engine.as_ref().map(engine),
        linking: report.linking.as_ref().map(linking),
        opcache: php::opcache(report),
        messages: php::messages(report),
        shared: shared(memory, published),
    }
}

/// Returns the upstreams of all pools.
fn upstreams(sources: &StatusSources) -> Vec<UpstreamStatus> {
    let first = if sources.pools.is_empty() { "" } else { DEFAULT_POOL };
    let others = sources.pools.iter().map(|pool| (pool.name.as_str(), &pool.front));
    let all = std::iter::once((first, &sources.front)).chain(others);
    all.flat_map(|(pool, front)| upstreams::of_pool(pool, front.upstreams())).collect()
}

fn certificates(sources: &StatusSources) -> Vec<CertificateStatus> {
    let issued = sources.keeper.iter().flat_map(Keeper::status).map(issued);
    let files = sources.tls.iter().flat_map(|tls| tls.files()).map(|of| CertificateStatus {
        domain: of.names.first().cloned().unwrap_or_default(),
        file: Some(of.path.display().to_string()),
        names: of.names,
        valid_until: u64::try_from(of.until).ok(),
        ..CertificateStatus::default()
    });
    issued.chain(files).collect()
}

fn issued(of: DomainStatus) -> CertificateStatus {
    CertificateStatus {
        domain: of.domain,
        file: None,
        names: Vec::new(),
        valid_until: of.valid_until,
        renewal: of.renewal,
        failures: of.failures,
        trouble: of.trouble,
        failed_at: of.failed_at,
    }
}

fn scaling(line: &ScaleLine) -> ScalingStatus {
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    let cores_wanted = line.cpu_wanted as f64 / 1000.0;
    ScalingStatus {
        kind: if line.is_script { "scripts" } else { "any" }.to_owned(),
        min: line.min as u64,
        max: line.max as u64,
        workers: line.workers as u64,
        queued: line.queued as u64,
        reason: line.reason.to_owned(),
        text: line.text.to_owned(),
        cores_wanted,
        cores: line.cores as u64,
        own_bytes: line.pool_bytes,
    }
}

fn front_status(front: &CountersSnapshot) -> FrontStatus {
    FrontStatus {
        pools: front.pool,
        server: front.server,
        rejected_reasons: Rejection::ALL
            .iter()
            .map(|reason| (reason.name().to_owned(), front.rejected_totals[*reason as usize]))
            .collect(),
        fastcgi_rejected_reasons: Hostile::ALL
            .iter()
            .map(|why| (why.name().to_owned(), front.fastcgi_rejected_totals[*why as usize]))
            .collect(),
        upstream_errors: upstreams::by_failure(&front.upstream_error_totals),
    }
}

/// Returns the request statistics.
pub(crate) fn figures(sources: &StatusSources) -> Figures {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_unix_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    let Some(insight) = &sources.insight else {
        return Figures { at_unix_us, ..Figures::default() };
    };
    let figures = insight.figures();
    let total = figures.total();
    let mut routes: Vec<_> = figures.routes().collect();
    routes.sort_by_key(|(_, route)| Reverse(route.costs.cpu.sum_ns()));
    let mut waits: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for (kind, peer, wait) in routes.iter().flat_map(|(_, route)| route.waits()) {
        let sum = waits.entry((kind, peer)).or_default();
        *sum = (sum.0 + wait.times, sum.1.saturating_add(wait.ns));
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.sort_by_key(|(_, (_, ns))| Reverse(*ns));
    let wait = |((kind, peer), (times, ns)): ((&str, &str), (u64, u64))| WaitLine {
        kind: kind.to_owned(),
        peer: peer.to_owned(),
        times,
        ns,
    };
    Figures {
        at_unix_us,
        measured: true,
        requests: total.requests,
        errors: total.errors(),
        cpu_ns: total.cpu.sum_ns(),
        waiting_ns: total.waiting_ns,
        queue_ns: total.queue.sum_ns(),
        p50_ns: total.wall.quantile_ns(0.5),
        p99_ns: total.wall.quantile_ns(0.99),
        routes_left_out: routes.len().saturating_sub(ROUTES_MAX) as u64,
        routes: routes
            .iter()
            .take(ROUTES_MAX)
            .map(|(name, r)| route_line(name, &r.costs))
            .collect(),
        waits: waits.into_iter().take(WAITS_MAX).map(wait).collect(),
    }
}

fn route_line(name: &str, costs: &Costs) -> RouteLine {
    RouteLine {
        route: name.to_owned(),
        requests: costs.requests,
        errors: costs.errors(),
        cpu_ns: costs.cpu.sum_ns(),
        wall_ns: costs.wall.sum_ns(),
        queue_ns: costs.queue.sum_ns(),
        waiting_ns: costs.waiting_ns,
        p50_ns: costs.wall.quantile_ns(0.5),
        p95_ns: costs.wall.quantile_ns(0.95),
        p99_ns: costs.wall.quantile_ns(0.99),
    }
}

fn cache(figures: samovar_shared::CacheFigures) -> SharedCache {
    SharedCache {
        hits_total: figures.hits,
        misses_total: figures.misses,
        evicted_total: figures.evicted,
        too_large_total: figures.too_large,
        values: figures.values,
        used_bytes: figures.bytes,
    }
}

fn breaker(figures: samovar_shared::BreakerFigures) -> SharedBreaker {
    SharedBreaker {
        state: figures.state.name().to_owned(),
        calls: figures.counts.calls,
        failed: figures.counts.failed,
        slow: figures.counts.slow,
        opened_total: figures.opened,
        refused_total: figures.refused,
    }
}

/// Kind of a published value, next to the kinds of crates/shared.
const PUBLISHED: &str = "published";

fn shared(memory: &Shared, published: &Publishing) -> SharedStatus {
    let figures = memory.figures();
    let of_published = published.publisher().figures();
    let values = of_published.values.into_iter().map(|value| SharedObject {
        kind: PUBLISHED.to_owned(),
        name: value.name,
        bytes: value.bytes,
        reads_total: Some(value.reads),
        ..SharedObject::default()
    });
    let object = |found: &samovar_shared::ObjectFigures| SharedObject {
        kind: found.kind.name().to_owned(),
        name: found.name.clone(),
        bytes: found.bytes,
        used: found.fill.map(|(used, _)| used),
        room: found.fill.map(|(_, room)| room),
        value: found.value,
        cache: found.cache.map(cache),
        held: found.is_held,
        allowed_total: found.allowed.map(|(allowed, _)| allowed),
        denied_total: found.allowed.map(|(_, denied)| denied),
        breaker: found.breaker.map(breaker),
        reads_total: None,
    };
    SharedStatus {
        bytes: figures.bytes,
        bytes_max: figures.bytes_max,
        refused_total: figures.refused,
        objects: figures.objects.iter().map(object).chain(values).collect(),
        published_bytes: of_published.bytes,
        published_bytes_max: of_published.bytes_max,
        published_stale_bytes: of_published.replaced_bytes,
        published_changes_total: of_published.changes,
        published_rejected_total: of_published.refused,
    }
}

/// Returns the state of a worker. `held`: ready while another generation serves; `leaving`: running
/// its last request.
fn worker_state(worker: &samovar_supervisor::WorkerLine) -> &'static str {
    match (worker.desired, worker.state) {
        (DesiredState::Hold, WorkerState::Idle) => "held",
        (DesiredState::Retire, _) => "leaving",
        (_, state) => state.name(),
    }
}

fn console_status(line: &ConsoleLine) -> ConsoleStatus {
    ConsoleStatus {
        pool: String::new(),
        name: line.name.clone(),
        pid: line.pid,
        state: line.state.name().to_owned(),
        restarts: line.restarts,
        rss_bytes: line.rss_bytes,
        age_seconds: seconds(line.age),
    }
}

fn engine(engine: &Engine) -> EngineStatus {
    EngineStatus { file: engine.file.clone(), source: engine.source.clone() }
}

fn linking(linking: &Linking) -> LinkingStatus {
    LinkingStatus {
        state: linking.state.word().to_owned(),
        why: linking.why.clone(),
        libraries: linking.libraries,
        calls: linking.calls,
        loads: linking.loads,
        left: linking.left,
    }
}

/// Returns the saving of the booted application compared with whole scripts. If each worker boots
/// its own image, the boots of replaced workers are part of the cost, spread over the requests.
fn saving(pool: &str, report: &Report, image: &Image, insight: &Insight) -> Option<SavingStatus> {
    let found = insight.figures().saving(pool)?;
    let boots = if image.mode.word() == "worker" { report.reforks } else { 0 };
    let requests = report.rollbacks.count.saturating_add(report.reforks).max(1);
    #[allow(clippy::cast_precision_loss)] // Far below 2^52 requests.
    let boot_ns = image.boot.as_secs_f64() * 1e9 * boots as f64 / requests as f64;
    let us = |ns: f64| (ns / 100.0).round() / 10.0;
    let (ahead_us, script_us) = (us(found.ahead_ns + boot_ns), us(found.whole_ns));
    Some(SavingStatus { ahead_us, script_us, scripts: found.whole })
}

fn findings(report: &Report) -> Vec<ImageFinding> {
    let finding = |f: &samovar_supervisor::Finding| ImageFinding {
        kind: f.kind.clone(),
        action: f.action.clone(),
        what: f.what.clone(),
        place: f.place.clone(),
        advice: f.advice.clone(),
    };
    report.findings.iter().map(finding).collect()
}

/// Returns the state of a pool's image. `pool` is empty if the server has one pool.
fn image(pool: &str, report: &Report, insight: Option<&Insight>) -> Option<ImageStatus> {
    let reasons = report.refork_reasons.iter().map(|(reason, n)| ((*reason).to_owned(), *n));
    let us = |ns: u64| (Duration::from_nanos(ns).as_secs_f64() * 1e7).round() / 10.0;
    report.image.as_ref().map(|image| ImageStatus {
        mode: image.mode.word().to_owned(),
        bytes: image.bytes,
        regions: image.regions,
        shared: image.mode.is_shared(),
        boot_ms: boot_ms(image),
        hot_pages: report.workers.iter().map(|w| w.hot_pages).max().unwrap_or(0),
        rollbacks_total: report.rollbacks.count,
        rollback_us_total: us(report.rollbacks.total_ns),
        searches_total: report.rollbacks.searches,
        rollback_us_p50: us(report.rollbacks.p50_ns),
        rollback_us_p99: us(report.rollbacks.p99_ns),
        connection_resets_total: report.rollbacks.connection_resets,
        refork_total: report.reforks,
        refork_reasons: reasons.collect(),
        saving: insight.and_then(|insight| saving(pool, report, image, insight)),
        findings: findings(report),
    })
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Returns the CPU time of a worker, which has one thread; 0 if it has just ended, or the kernel
/// does not report it.
fn cpu_seconds(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    Duration::from_nanos(ns).as_secs_f64()
}

/// Returns the resident memory of a process, shared pages included; 0 if it has just ended.
fn rss_bytes(pid: i32) -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}
