//! State of the server: the response to `status`, and the JSON output of `samovar status`.

use crate::canary::CanaryBrief;
use crate::capacity::CapacityStatus;
use crate::counters::{PoolCounters, ServerCounters};
use crate::finding::Health;
use crate::php::{MessagesStatus, OpcacheStatus};
use crate::queues::QueueStatus;
use crate::resources::Resources;
use crate::schedules::ScheduleStatus;
use crate::shared::SharedStatus;
use crate::upstreams::UpstreamStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// State of the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Version of the server; the command can have another one.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Time since the server's start.
    pub uptime_seconds: f64,
    /// CPU time of the server itself, without its child processes.
    pub cpu_seconds: f64,
    /// Descriptors by kind, threads, child processes, memory mappings.
    pub resources: Resources,
    /// Judgment of this status. `null`: the server is older than this field.
    pub health: Option<Health>,
    /// Counters of the last minutes.
    pub recent: RecentStatus,
    /// Use of the cores and of memory, and the number of further requests that they carry.
    pub capacity: CapacityStatus,
    /// Free space of the file systems that the server writes to: those of `temp_dir`, of the
    /// history, and of log files.
    pub storage: Vec<StorageStatus>,
    /// File of the history (`insight.store`); empty: none.
    pub history_file: String,
    /// Addresses for clients.
    pub listen: Vec<String>,
    /// Addresses of the admin listener.
    pub admin: Vec<String>,
    /// Whether the server is stopping or has not started yet.
    pub draining: bool,
    /// Process id of the server that this one has replaced, while it finishes its requests; 0:
    /// none.
    pub predecessor_pid: i32,
    /// Generation that serves; counted from 1.
    pub generation: u64,
    /// Label of its release; empty: none was given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Whether a new generation boots while the current one serves.
    pub reloading: bool,
    /// The canary that serves a share of the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryBrief>,
    /// Counters of the front; their keys are on the same level as the others.
    #[serde(flatten)]
    pub front: FrontStatus,
    /// Workers replaced after they died.
    pub worker_restarts_total: u64,
    /// Workers and templates killed by the server, by reason.
    #[serde(default)]
    pub kills_reasons: BTreeMap<String, u64>,
    /// Workers replaced after they reached a recycling limit.
    #[serde(default)]
    pub workers_recycled_total: u64,
    /// Workers added because requests waited.
    pub workers_added_total: u64,
    /// Workers removed because they were idle.
    pub workers_removed_total: u64,
    /// Workers that run PHP at the moment, if their number is limited.
    pub workers_running: u64,
    /// Number of workers and its reason, if it follows the load. The first entry is for workers
    /// that run any request, the second for workers that run scripts next to a booted application.
    pub scaling: Vec<ScalingStatus>,
    /// Lines of the server's log, its child processes' lines included, that were not read in time
    /// or could not be written.
    pub log_lines_dropped_total: u64,
    /// Same for the access log.
    pub access_log_lines_dropped_total: u64,
    /// Same for the slow log.
    pub slow_log_lines_dropped_total: u64,
    /// Whether routes were counted as `(other)` within the last ten minutes, because there are
    /// `insight.routes_max` others.
    pub routes_full: bool,
    /// Booted application; `null` while there is none.
    pub image: Option<ImageStatus>,
    /// PHP's version; empty while PHP starts.
    pub php: String,
    /// The libphp of `php_engine`; `null` if that is not set, and while PHP starts.
    pub engine: Option<EngineStatus>,
    /// Linking of PHP's internal calls; `null` while PHP starts.
    pub linking: Option<LinkingStatus>,
    /// opcache of the default pool; `null` if it is off, and in the first seconds.
    pub opcache: Option<OpcacheStatus>,
    /// Messages of PHP in workers of the default pool.
    pub messages: MessagesStatus,
    /// Objects that workers share, except requests.
    pub shared: SharedStatus,
    /// State of the sampler; `null`: there is none.
    pub profile: Option<ProfileStatus>,
    /// Growing values in resident workers, latest report first.
    pub growth: Vec<GrowthStatus>,
    /// Workers of all generations.
    pub workers: Vec<WorkerStatus>,
    /// Processes of `[[console]]`, and free places for them.
    pub consoles: Vec<ConsoleStatus>,
    /// Schedules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleStatus>,
    /// Certificates that an authority issues, and those of files.
    pub certificates: Vec<CertificateStatus>,
    /// php-fpm servers of `fastcgi_pass` that received a request within the last hour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<UpstreamStatus>,
    /// Queues of jobs.
    pub queues: Vec<QueueStatus>,
    /// The default pool, then the others; empty if the server has one pool. The front's figures
    /// above cover all pools. The figures of the application and of shared memory above are the
    /// default pool's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolStatus>,
}

/// Counters of the last minutes, of all pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentStatus {
    /// Requests of the last minute.
    pub requests: u64,
    /// Responses of the last minute with a status of 500 or above.
    pub errors: u64,
    /// Longest time of a request in the queue in the last minute; 0 without request accounting.
    pub queue_ns_max: u64,
    /// Minimum number of queued requests in the last six seconds.
    pub queue_depth_min: u64,
    /// Workers that died in the last five minutes.
    pub crashes: u64,
    /// Workers and templates that the server killed in the last five minutes.
    pub kills: u64,
    /// Failed reloads in the last five minutes; 0 without request accounting.
    pub reloads_failed: u64,
    /// Whether the application failed to boot at the last start or reload.
    pub boot_failed: bool,
    /// Error of the history on disk; empty: none.
    pub history_trouble: String,
}

/// A file system that the server writes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageStatus {
    /// Setting of the first folder that is in this file system, such as `temp_dir`.
    pub setting: String,
    /// Path of that folder.
    pub folder: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes that the server can still write.
    pub bytes_free: u64,
    /// Maximum number of files; 0: unlimited or unknown.
    pub files: u64,
    /// Number of files that the server can still create.
    pub files_free: u64,
}

/// One of several pools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolStatus {
    /// Name in the settings; `default` for the default pool.
    pub name: String,
    /// Generation that serves; 0: none does.
    pub generation: u64,
    /// Label of its release; empty: none was given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Whether a new generation boots while the current one serves.
    pub reloading: bool,
    /// Whether the application failed to boot or the pool failed to start.
    pub failed: bool,
    /// Mode of the booted application; empty: none, or not yet.
    pub image: String,
    /// Workers that are idle or busy.
    pub workers: u64,
    /// Busy workers.
    pub busy: u64,
    /// Counters of the pool.
    #[serde(flatten)]
    pub counts: PoolCounters,
    /// Rejected requests by reason.
    pub rejected_reasons: BTreeMap<String, u64>,
    /// Workers replaced after they died.
    pub worker_restarts_total: u64,
    /// Workers replaced after they reached a recycling limit.
    pub workers_recycled_total: u64,
    /// Booted application of this pool. This field and those below correspond to the server's
    /// fields for the default pool.
    pub booted: Option<ImageStatus>,
    /// Number of workers and its reason, if it follows the load.
    pub scaling: Vec<ScalingStatus>,
    /// PHP's version; empty while PHP starts.
    pub php: String,
    /// The libphp of `php_engine`.
    pub engine: Option<EngineStatus>,
    /// Linking of PHP's internal calls.
    pub linking: Option<LinkingStatus>,
    /// opcache of this pool.
    pub opcache: Option<OpcacheStatus>,
    /// Messages of PHP in workers of this pool.
    pub messages: MessagesStatus,
    /// Objects that the pool's workers share, except requests.
    pub shared: SharedStatus,
}

/// A value that grows in resident workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrowthStatus {
    /// Pool of the workers; empty if the server has one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Name of the value, such as `App\Registry::$items`.
    pub name: String,
    /// Unit of the growth: `elements`, `bytes`, `objects`.
    pub unit: String,
    /// Place of the declaration, such as `/srv/Foo.php:88`; empty: none, as for a global variable.
    pub place: String,
    /// Generation of the workers.
    pub generation: u32,
    /// Growth in the latest report, in `unit`.
    pub grown: u64,
    /// Number of requests in which it grew by `grown`.
    pub requests: u64,
    /// Estimated bytes per unit.
    pub bytes_each: u64,
    /// Time of the first report, in seconds since 1970.
    pub since: u64,
    /// Time of the latest report, in seconds since 1970.
    pub at: u64,
    /// Number of workers that reported it.
    pub workers: u64,
}

/// One name of `acme.domains`, or a certificate from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateStatus {
    /// The name; for a file, the first name of its certificate, empty if it has none.
    pub domain: String,
    /// Path of the file; `null`: an authority issues the certificate.
    pub file: Option<String>,
    /// All names of a file's certificate.
    pub names: Vec<String>,
    /// End of the certificate's validity, in seconds of Unix time; `null`: there is no certificate.
    pub valid_until: Option<u64>,
    /// Time of the next renewal, in seconds of Unix time.
    pub renewal: Option<u64>,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Error of the last failed attempt.
    pub trouble: Option<String>,
    /// Time of the last failed attempt, in seconds of Unix time; `null`: none failed.
    pub failed_at: Option<u64>,
}

/// State of the sampler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileStatus {
    /// Samples per second of each busy worker; 0: only slow requests are sampled.
    pub hertz: u32,
    /// Samples taken.
    pub samples_total: u64,
    /// Samples of stacks that changed too fast to be read.
    pub torn_total: u64,
    /// CPU time of the sampler.
    pub cpu_seconds: f64,
    /// Minutes of profiles lost because the disk was too slow.
    pub minutes_lost_total: u64,
    /// Reason why stacks cannot be read; empty if they can.
    pub trouble: String,
    /// Profiles accepted by Pyroscope.
    pub pushes_total: u64,
    /// Profiles that could not be sent.
    pub pushes_dropped_total: u64,
    /// Profiles rejected by Pyroscope.
    pub pushes_rejected_total: u64,
}

/// Counters of the front.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FrontStatus {
    /// Sums over all pools.
    #[serde(flatten)]
    pub pools: PoolCounters,
    /// Values of the server as a whole.
    #[serde(flatten)]
    pub server: ServerCounters,
    /// Rejected requests by reason.
    pub rejected_reasons: BTreeMap<String, u64>,
    /// FastCGI connections closed because of invalid or untrusted input, by reason.
    pub fastcgi_rejected_reasons: BTreeMap<String, u64>,
    /// Requests without a complete response from the php-fpm of a location, by reason.
    pub upstream_errors: BTreeMap<String, u64>,
}

/// Booted application: cost of its boot and of its rollbacks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageStatus {
    /// `shared`, `resident`, `worker` or `script`.
    pub mode: String,
    /// Size of the image.
    pub bytes: u64,
    /// Memory ranges of the image.
    pub regions: u64,
    /// Whether all workers share the same image.
    pub shared: bool,
    /// Duration of the boot.
    pub boot_ms: f64,
    /// Hot pages of the worker that has most of them.
    pub hot_pages: u32,
    /// Number of rollbacks to the image.
    pub rollbacks_total: u64,
    /// Total duration of the rollbacks.
    pub rollback_us_total: f64,
    /// Rollbacks that searched memory for written pages.
    pub searches_total: u64,
    /// Median duration of a rollback.
    pub rollback_us_p50: f64,
    /// 99th percentile of the duration of a rollback.
    pub rollback_us_p99: f64,
    /// Database connections opened above the checkpoint whose session was reset after a request.
    pub connection_resets_total: u64,
    /// Workers that exited to be replaced by a fresh fork.
    pub refork_total: u64,
    /// These exits by reason.
    pub refork_reasons: BTreeMap<String, u64>,
    /// CPU time compared with whole scripts; `null` while too few requests ran as whole scripts.
    pub saving: Option<SavingStatus>,
    /// Findings of the preflight.
    pub findings: Vec<ImageFinding>,
}

/// CPU time of requests that the booted application ran, compared with requests to the same routes
/// that ran as whole scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavingStatus {
    /// Mean CPU time of a request to the booted application.
    pub ahead_us: f64,
    /// Mean CPU time that the same request would take as a whole script.
    pub script_us: f64,
    /// Number of whole scripts that this comparison is based on.
    pub scripts: u64,
}

impl SavingStatus {
    /// Returns the CPU time of a booted request as a fraction of a whole script's.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.script_us > 0.0 { self.ahead_us / self.script_us } else { 0.0 }
    }
}

/// The libphp that the settings name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineStatus {
    /// Path of the file.
    pub file: String,
    /// Name of the source package that `make php-engine` built it from; empty: built by other
    /// means.
    pub source: String,
}

/// Direct linking of PHP's code in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkingStatus {
    /// `direct`, `off` or `refused`.
    pub state: String,
    /// Reason why linking is not `direct`.
    pub why: String,
    /// Libraries whose code was changed.
    pub libraries: u64,
    /// Calls that are direct.
    pub calls: u64,
    /// Loads of an address that need no table.
    pub loads: u64,
    /// Calls that still use the table.
    pub left: u64,
}

/// A finding that prevents sharing the booted application or rolling it back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageFinding {
    /// Kind of the finding.
    pub kind: String,
    /// Action that the server takes.
    pub action: String,
    /// The object found.
    pub what: String,
    /// Source line that created the object.
    #[serde(rename = "where")]
    pub place: String,
    /// Advice for the operator.
    pub advice: String,
}

/// Number of workers of one kind, and its reason.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScalingStatus {
    /// `any` or `scripts`.
    pub kind: String,
    /// Minimum number of workers.
    pub min: u64,
    /// Maximum number of workers.
    pub max: u64,
    /// Current target number of workers.
    pub workers: u64,
    /// Requests that wait for one of these workers.
    pub queued: u64,
    /// Reason why the number is not larger or smaller, as one word.
    pub reason: String,
    /// The reason as text for people.
    pub text: String,
    /// Cores that the workers wanted when requests last waited.
    pub cores_wanted: f64,
    /// Available cores.
    pub cores: u64,
    /// Estimated private memory of the workers in bytes; 0: not measured yet.
    pub own_bytes: u64,
}

/// One worker process of a generation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStatus {
    /// Pool of the worker; empty if the server has one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Process id.
    pub pid: i32,
    /// Index of its cell in the ring. A worker that replaces it gets the same cell.
    pub cell: usize,
    /// `idle`, `busy`, `booting`, `starting`, `held`, `leaving`.
    pub state: String,
    /// Execution model.
    pub model: String,
    /// Whether it is a tracing worker, which only runs requests whose call graph is recorded. It is
    /// not part of the number of workers.
    pub tracing: bool,
    /// Number of requests it has run.
    pub requests: u64,
    /// Number of rollbacks to the image.
    pub rollbacks: u64,
    /// Pages that a rollback copies.
    pub hot_pages: u32,
    /// Resident memory, shared pages included.
    pub rss_bytes: u64,
    /// CPU time of the process, its boot or fork included.
    pub cpu_seconds: f64,
    /// Time since its fork.
    pub age_seconds: f64,
    /// Generation of the application that it runs.
    pub generation: u64,
}

/// One process of a `[[console]]`, or the free place of one that ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsoleStatus {
    /// Pool of the process; empty if the server has one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Name in the settings.
    pub name: String,
    /// Process id; 0: there is no process.
    pub pid: i32,
    /// State of the process.
    pub state: String,
    /// Number of restarts.
    pub restarts: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Time since its start.
    pub age_seconds: f64,
}

/// View of one pool's application and workers in a status.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    /// Name of the pool; empty if the server has one pool.
    pub pool: &'a str,
    /// The booted application.
    pub image: Option<&'a ImageStatus>,
    /// Number of workers and its reason.
    pub scaling: &'a [ScalingStatus],
    /// PHP's version.
    pub php: &'a str,
    /// The libphp that the settings name.
    pub engine: Option<&'a EngineStatus>,
    /// Linking of PHP's internal calls.
    pub linking: Option<&'a LinkingStatus>,
    /// Figures of opcache.
    pub opcache: Option<&'a OpcacheStatus>,
    /// Messages of PHP.
    pub messages: &'a MessagesStatus,
    /// Objects that workers share.
    pub shared: &'a SharedStatus,
}

impl Application<'_> {
    /// Returns ` of pool export`, or an empty string if the server has one pool.
    #[must_use]
    pub fn of_pool(&self) -> String {
        if self.pool.is_empty() { String::new() } else { format!(" of pool {}", self.pool) }
    }
}

impl Status {
    /// Returns the application of each pool, the default pool first.
    #[must_use]
    pub fn applications(&self) -> Vec<Application<'_>> {
        fn of(pool: &PoolStatus) -> Application<'_> {
            Application {
                pool: &pool.name,
                image: pool.booted.as_ref(),
                scaling: &pool.scaling,
                php: &pool.php,
                engine: pool.engine.as_ref(),
                linking: pool.linking.as_ref(),
                opcache: pool.opcache.as_ref(),
                messages: &pool.messages,
                shared: &pool.shared,
            }
        }
        // An older server sends only `PoolStatus` for the other pools.
        let first = Application {
            pool: self.pools.first().map_or("", |pool| &pool.name),
            image: self.image.as_ref(),
            scaling: &self.scaling,
            php: &self.php,
            engine: self.engine.as_ref(),
            linking: self.linking.as_ref(),
            opcache: self.opcache.as_ref(),
            messages: &self.messages,
            shared: &self.shared,
        };
        std::iter::once(first).chain(self.pools.iter().skip(1).map(of)).collect()
    }

    /// Returns the workers that take any request: all except tracing workers.
    pub fn serving_workers(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.workers.iter().filter(|worker| !worker.tracing)
    }

    /// Returns the number of tracing workers.
    #[must_use]
    pub fn tracing_workers(&self) -> usize {
        self.workers.iter().filter(|worker| worker.tracing).count()
    }

    /// Returns the number of workers in each state, in the order in which a worker passes the
    /// states. Tracing workers are not counted.
    #[must_use]
    pub fn by_state(&self) -> Vec<(&str, u64)> {
        const ORDER: [&str; 6] = ["idle", "busy", "booting", "starting", "held", "leaving"];
        let mut states: Vec<(&str, u64)> = Vec::new();
        for worker in self.serving_workers() {
            match states.iter_mut().find(|(state, _)| *state == worker.state) {
                Some((_, n)) => *n += 1,
                None => states.push((&worker.state, 1)),
            }
        }
        let place = |state: &str| ORDER.iter().position(|s| *s == state).unwrap_or(ORDER.len());
        states.sort_by_key(|(state, _)| place(state));
        states
    }

    /// Returns the number of workers in a state. Tracing workers are not counted.
    #[must_use]
    pub fn in_state(&self, state: &str) -> usize {
        self.serving_workers().filter(|w| w.state == state).count()
    }

    /// Returns the resident memory of all workers. A shared page is counted once per worker.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.workers.iter().map(|w| w.rss_bytes).sum()
    }

    /// Returns the number of lost lines of all logs.
    #[must_use]
    pub fn lines_lost(&self) -> u64 {
        self.log_lines_dropped_total
            .saturating_add(self.access_log_lines_dropped_total)
            .saturating_add(self.slow_log_lines_dropped_total)
    }
}

#[cfg(test)]
mod tests {
    use super::Status;
    use serde_json::json;

    #[test]
    fn status_with_missing_and_unknown_keys_parses() {
        let said = json!({"pid": 7, "in_flight": 3, "new": [],
            "workers": [{"state": "busy"}, {"state": "idle"}, {"state": "idle", "tracing": true}]});
        let status: Status = serde_json::from_value(said).unwrap();
        assert_eq!((status.pid, status.front.pools.in_flight), (7, 3));
        assert_eq!(status.by_state(), [("idle", 1), ("busy", 1)]);
        assert_eq!((status.in_state("idle"), status.tracing_workers()), (1, 1));
        assert!(status.image.is_none());
    }
}
