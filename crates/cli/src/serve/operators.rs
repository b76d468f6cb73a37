//! What operators see: requests are added up, and the admin listener shows it.

mod certificates;
mod pools;
mod ready;
mod table;
mod upstreams;

use super::listen;
use super::ways::{self, SlowLogFile, Ways};
use crate::control::report::{Booted, StatusSources, process_cpu_ns, status};
use crate::handover::predecessor::Predecessor;
use crate::sampling::Sampling;
use anyhow::{Context, Result, bail};
use samovar_admin::{Access, Admin, Host};
use samovar_config::{Listen, Settings};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_insight::pinba::listener::PinbaIn;
use samovar_insight::store::StoreLimits;
use samovar_insight::{
    Clock, HistoryOptions, Insight, Intake, Limits, Options, Turn, Witness, intake,
};
use samovar_profile::Profiles;
use samovar_profile::calls::Selected;
use samovar_profile::loads::Explained;
use samovar_wire::{Application, ImageStatus, ScalingStatus, SharedObject, SharedStatus, Status};
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use table::{Labels, Metric, count, put, put_reasons};

/// The admin listener's sockets. One that others than this machine's users reach needs a token.
pub(super) fn bind(
    settings: &Settings,
    predecessor: Option<&Predecessor>,
) -> Result<Vec<TcpListener>> {
    let handed = |at| predecessor.and_then(|predecessor| predecessor.admin(at));
    settings.admin.iter().map(|at| open(settings, at, handed(at))).collect()
}

fn open(settings: &Settings, at: &Listen, handed: Option<TcpListener>) -> Result<TcpListener> {
    let listener = handed.map_or_else(|| listen::bind(at, BACKLOG), Ok)?;
    refuse_strangers(settings, listener.local_addr()?)?;
    Ok(listener)
}

/// Without a token, operators are those who are on this machine.
pub(crate) fn refuse_strangers(settings: &Settings, address: SocketAddr) -> Result<()> {
    if !address.ip().is_loopback() && settings.admin_token.is_none() {
        bail!(
            "`admin` on {address} would show figures and paths of all requests to everybody who \
             reaches it\nhint: set `admin_token`, or use an address of loopback"
        );
    }
    Ok(())
}

const BACKLOG: usize = 64;

/// The two ends of what is known of requests: the front's, and the readers'.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) intake: Option<Intake>,
    pub(super) insight: Option<Arc<Insight>>,
    pub(super) slow_log: SlowLogFile,
    /// Who looks at workers, if anybody.
    pub(super) sampling: Option<Arc<Sampling>>,
}

/// Starts to add requests up, if anybody can look, or is told.
pub(super) fn measure(
    settings: &Settings,
    pinba_in: Option<PinbaIn>,
    turn: &Turn,
) -> Result<Measured> {
    let of = &settings.insight;
    let is_looked_at = !settings.admin.is_empty() || of.store.is_some();
    let is_measured = of.enabled && (is_looked_at || ways::are_any(settings));
    let sampling = Sampling::open(settings, is_measured, turn.clone())?.map(Arc::new);
    if !is_measured {
        return Ok(Measured { sampling, ..Measured::default() });
    }
    let Ways { sinks, slow_log } = ways::open(settings)?;
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
    let redaction = ways::redaction(settings);
    let cpu: Option<Clock> = Some(Box::new(process_cpu_ns));
    let witness = sampling.as_ref().map(|s| Arc::clone(&s.profiles) as Arc<dyn Witness>);
    let turn = turn.clone();
    let options = Options { history, redaction, sinks, pinba_in, cpu, witness, turn };
    let (front, thread) = intake();
    let insight = Insight::start_with(thread, limits, options);
    let insight = Arc::new(insight.context("cannot start the measuring")?);
    Ok(Measured { intake: Some(front), insight: Some(insight), slow_log, sampling })
}

/// Starts the admin listener, if there are sockets for it; it answers when it is told to begin.
pub(super) fn start(
    listeners: Vec<TcpListener>,
    settings: &Settings,
    sources: StatusSources,
    insight: Option<Arc<Insight>>,
) -> Result<Option<Admin>> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let addresses = listen::addresses(&listeners)?;
    let access =
        Access { token: settings.admin_token.clone(), hosts: settings.admin_hosts.clone() };
    let others = settings.pools.iter().map(|pool| pool.settings.limits.queue_max as u64);
    let queues_max = std::iter::once(settings.limits.queue_max as u64).chain(others).collect();
    let host = Server { sources, queues_max };
    let admin = Admin::hold(listeners, access, Box::new(host), insight)?;
    tracing::info!(admin = addresses.join(" "), "operators are answered");
    Ok(Some(admin))
}

/// This server, as the admin listener asks it.
struct Server {
    sources: StatusSources,
    /// `limits.queue_max` of each pool, the default one's first.
    queues_max: Vec<u64>,
}

impl Host for Server {
    fn profiles(&self) -> Option<Arc<Profiles>> {
        let sampling = self.sources.sampling.as_ref()?;
        (sampling.status().hertz > 0).then(|| Arc::clone(&sampling.profiles))
    }

    fn boot(&self, pool: Option<&str>) -> Option<Explained> {
        // A page asks for pools that there are.
        let Booted { mut explained, question, .. } = self.sources.boot(pool).ok()??;
        if let Some(profiles) = self.profiles() {
            explained.take_functions(&profiles.answer(question));
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

    fn ready(&self, pool: Option<&str>) -> Result<String, String> {
        ready::readiness(&status(&self.sources), &self.queues_max, pool)
    }

    fn metrics(&self, page: &mut Exposition) {
        metrics(&status(&self.sources), page);
    }
}

const TIMES: &[Metric<Status, f64>] = &[
    ("samovar_uptime_seconds", Kind::Gauge, "Time since the start.", |s| s.uptime_seconds),
    ("samovar_server_cpu_seconds", Kind::Counter, "CPU time of the server itself.", |s| {
        s.cpu_seconds
    }),
];

const METRICS: &[Metric<Status, u64>] = &[
    ("samovar_generation", Kind::Gauge, "The application's generation.", |s| s.generation),
    ("samovar_queue_depth", Kind::Gauge, "Requests that wait for a worker.", |s| {
        s.front.queue_depth
    }),
    ("samovar_requests_in_flight", Kind::Gauge, "Requests without a complete answer.", |s| {
        s.front.in_flight
    }),
    ("samovar_connections", Kind::Gauge, "Open connections.", |s| s.front.connections),
    ("samovar_requests", Kind::Counter, "Requests whose head was parsed.", |s| {
        s.front.requests_total
    }),
    ("samovar_requests_rejected", Kind::Counter, "Requests that found no worker in time.", |s| {
        s.front.rejected_total
    }),
    (
        "samovar_connections_refused",
        Kind::Counter,
        "Connections of clients that had enough.",
        |s| s.front.connections_refused_total,
    ),
    (
        "samovar_connections_reclaimed",
        Kind::Counter,
        "Idle connections that were closed to make room for new ones.",
        |s| s.front.connections_reclaimed_total,
    ),
    ("samovar_requests_timed_out", Kind::Counter, "Requests without an answer in time.", |s| {
        s.front.timeouts_total
    }),
    (
        "samovar_after_timeouts",
        Kind::Counter,
        "Scripts that went on for too long without a client.",
        |s| s.front.after_timeouts_total,
    ),
    (
        "samovar_drain_timeouts",
        Kind::Counter,
        "Scripts that the server did not wait for when it stopped.",
        |s| s.front.drain_timeouts_total,
    ),
    ("samovar_answers_compressed", Kind::Counter, "Answers that went out compressed.", |s| {
        s.front.compressed_total
    }),
    ("samovar_overrun_kills", Kind::Counter, "Workers killed because a script did not end.", |s| {
        s.front.overrun_kills_total
    }),
    ("samovar_retries", Kind::Counter, "Requests run again because a worker died.", |s| {
        s.front.retries_total
    }),
    ("samovar_fastcgi_requests", Kind::Counter, "Requests that came by FastCGI.", |s| {
        s.front.fastcgi_requests_total
    }),
    ("samovar_fastcgi_aborted", Kind::Counter, "Requests that a web server took back.", |s| {
        s.front.fastcgi_aborted_total
    }),
    ("samovar_fastcgi_passes", Kind::Counter, "Requests that a location's php-fpm got.", |s| {
        s.front.fastcgi_passes_total
    }),
    ("samovar_fastcgi_passes_open", Kind::Gauge, "Connections to such a php-fpm in use.", |s| {
        s.front.fastcgi_passes_open
    }),
    ("samovar_fastcgi_passes_queued", Kind::Gauge, "Requests that wait for one of them.", |s| {
        s.front.fastcgi_passes_queued
    }),
    ("samovar_traced", Kind::Counter, "Requests whose call graph was taken down.", |s| {
        s.front.traced_total
    }),
    (
        "samovar_not_traced",
        Kind::Counter,
        "Requests that found who takes down call graphs busy.",
        |s| s.front.not_traced_total,
    ),
    ("samovar_panics", Kind::Counter, "Requests that a bug of the server has ended.", |s| {
        s.front.panics_total
    }),
    ("samovar_worker_restarts", Kind::Counter, "Workers replaced after a death.", |s| {
        s.worker_restarts_total
    }),
    (
        "samovar_workers_recycled",
        Kind::Counter,
        "Workers replaced because they had done enough.",
        |s| s.workers_recycled_total,
    ),
    ("samovar_workers_grown", Kind::Counter, "Workers added because requests waited.", |s| {
        s.workers_grown_total
    }),
    ("samovar_workers_shrunk", Kind::Counter, "Workers taken away: nothing to do.", |s| {
        s.workers_shrunk_total
    }),
    ("samovar_workers_running", Kind::Gauge, "Workers that run, where that is limited.", |s| {
        s.workers_running
    }),
    ("samovar_profile_samples", Kind::Counter, "Looks at busy workers.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.samples_total)
    }),
    ("samovar_profiles_pushed", Kind::Counter, "Profiles that Pyroscope has taken.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.pushed_total)
    }),
    ("samovar_profiles_push_lost", Kind::Counter, "Profiles that could not be sent.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.push_lost_total)
    }),
    ("samovar_profiles_push_refused", Kind::Counter, "Profiles that were not wanted.", |s| {
        s.profile.as_ref().map_or(0, |profile| profile.push_refused_total)
    }),
    ("samovar_log_lines_lost", Kind::Counter, "Lines of the logs that were lost.", |s| {
        s.log_lines_lost_total + s.access_log_lines_lost_total
    }),
];

/// Those that an object has, with its kind and name.
const OBJECT_METRICS: &[Metric<SharedObject, Option<u64>>] = &[
    ("samovar_shared_object_bytes", Kind::Gauge, "Shared memory of an object.", |o| Some(o.bytes)),
    ("samovar_shared_rows", Kind::Gauge, "Rows of a table or limiter in use.", |o| o.used),
    ("samovar_shared_rows_max", Kind::Gauge, "Rows that it has.", |o| o.room),
    ("samovar_shared_cache_hits", Kind::Counter, "Values that were found in a cache.", |o| {
        o.cache.as_ref().map(|cache| cache.hits_total)
    }),
    ("samovar_shared_cache_misses", Kind::Counter, "Values that were not.", |o| {
        o.cache.as_ref().map(|cache| cache.misses_total)
    }),
    ("samovar_shared_cache_evicted", Kind::Counter, "Values that had to go for others.", |o| {
        o.cache.as_ref().map(|cache| cache.evicted_total)
    }),
    ("samovar_shared_cache_values", Kind::Gauge, "Values in a cache.", |o| {
        o.cache.as_ref().map(|cache| cache.values)
    }),
    ("samovar_shared_lock_held", Kind::Gauge, "Whether a lock is held.", |o| o.held.map(u64::from)),
    ("samovar_shared_limiter_allowed", Kind::Counter, "What a limiter has allowed.", |o| {
        o.allowed_total
    }),
    ("samovar_shared_limiter_denied", Kind::Counter, "What a limiter has not allowed.", |o| {
        o.denied_total
    }),
    ("samovar_shared_breaker_open", Kind::Gauge, "Whether a breaker lets no call through.", |o| {
        o.breaker.as_ref().map(|breaker| u64::from(breaker.state != "closed"))
    }),
    ("samovar_shared_breaker_opened", Kind::Counter, "Times a breaker has opened.", |o| {
        o.breaker.as_ref().map(|breaker| breaker.opened_total)
    }),
    ("samovar_shared_breaker_refused", Kind::Counter, "Calls that it did not let through.", |o| {
        o.breaker.as_ref().map(|breaker| breaker.refused_total)
    }),
    ("samovar_shared_published_reads", Kind::Counter, "Reads of a published value.", |o| {
        o.reads_total
    }),
];

/// Rows of all pools. The default pool's figures have no label of their pool, whether there are others or not.
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
    ("samovar_shared_bytes", Kind::Gauge, "Memory that workers share, in use.", |s| s.bytes),
    ("samovar_shared_bytes_max", Kind::Gauge, "Memory that workers can share.", |s| s.bytes_max),
    ("samovar_shared_refused", Kind::Counter, "Shared objects that had no room.", |s| {
        s.refused_total
    }),
    ("samovar_published_bytes", Kind::Gauge, "Memory of published values.", |s| s.published_bytes),
    ("samovar_published_bytes_max", Kind::Gauge, "Memory that published values can have.", |s| {
        s.published_bytes_max
    }),
    (
        "samovar_published_replaced_bytes",
        Kind::Gauge,
        "Memory of published values that were replaced and are still read.",
        |s| s.published_replaced_bytes,
    ),
    (
        "samovar_published_changes",
        Kind::Counter,
        "Values published, replaced or taken away.",
        |s| s.published_changes_total,
    ),
    ("samovar_published_refused", Kind::Counter, "Values that could not be published.", |s| {
        s.published_refused_total
    }),
];

fn shared_metrics<'a>(all: &[Application<'a>], page: &mut Exposition) {
    put(page, MEMORY_METRICS, &of_pools(all, |of| iter::once((vec![], of.shared))));
    let labelled = |o: &'a SharedObject| (vec![("kind", &*o.kind), ("name", &*o.name)], o);
    put(page, OBJECT_METRICS, &of_pools(all, |of| of.shared.objects.iter().map(labelled)));
}

const SCALING_METRICS: &[Metric<ScalingStatus, u64>] = &[
    ("samovar_workers_max", Kind::Gauge, "Most workers that there may be.", |one| one.max),
    ("samovar_workers_wanted", Kind::Gauge, "Workers that there are to be.", |one| one.workers),
];

/// A word of the reasons is 1, as a state set has it: the reason why there are not more workers.
const WHY_METRICS: &[Metric<ScalingStatus, u64>] =
    &[("samovar_workers_why", Kind::Gauge, "Why there are not more, or fewer.", |_| 1)];

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
    ("samovar_image_bytes", Kind::Gauge, "The booted application's image.", |image| image.bytes),
    ("samovar_image_findings", Kind::Gauge, "What the boot has left open.", |image| {
        image.findings.len() as u64
    }),
    ("samovar_worker_reforks", Kind::Counter, "Workers that left by themselves.", |image| {
        image.refork_total
    }),
];

/// Nothing where no application is booted ahead.
fn image_metrics(all: &[Application<'_>], page: &mut Exposition) {
    let images = of_pools(all, |of| of.image.into_iter().map(|image| (vec![], image)));
    if !images.is_empty() {
        put(page, IMAGE_METRICS, &images);
    }
}

fn metrics(status: &Status, page: &mut Exposition) {
    page.family("samovar_build_info", Kind::Gauge, "Which server this is.");
    page.sample(&[("version", &status.version)], 1.0);
    let whole = [(vec![], status)];
    put(page, TIMES, &whole);
    put(page, METRICS, &whole);
    let front = &status.front;
    for (name, help, reasons) in [
        ("samovar_requests_shed", "Rejected requests by reason.", &front.rejected_reasons),
        (
            "samovar_fastcgi_refused",
            "FastCGI connections that were closed for what came, by reason.",
            &front.fastcgi_refused_reasons,
        ),
        (
            "samovar_fastcgi_pass_troubles",
            "Requests that a location's php-fpm did not answer, or not to the end, by reason.",
            &front.fastcgi_pass_troubles,
        ),
        (
            "samovar_kills",
            "Workers and templates that were killed, by reason.",
            &status.kills_reasons,
        ),
    ] {
        put_reasons(page, (name, help), [(vec![], reasons)]);
    }
    page.family("samovar_workers", Kind::Gauge, "Workers by state.");
    for state in ["starting", "booting", "idle", "busy", "held", "leaving"] {
        let found = status.workers.iter().filter(|worker| worker.state == state).count();
        page.sample(&[("state", state)], count(found as u64));
    }
    page.family("samovar_workers_memory_bytes", Kind::Gauge, "Resident memory of all workers.");
    page.sample(&[], count(status.workers.iter().map(|worker| worker.rss_bytes).sum()));
    let all = status.applications();
    scaling_metrics(&all, page);
    certificates::metrics(&status.certificates, page);
    upstreams::metrics(&status.upstreams, page);
    shared_metrics(&all, page);
    pools::metrics(&status.pools, page);
    image_metrics(&all, page);
}
