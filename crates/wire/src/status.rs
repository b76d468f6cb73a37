//! How the server is: the answer to `status`, and the JSON of `samovar status`.

use crate::{Resources, SharedStatus, UpstreamStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Of the server, which may be another than the command's.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Since its start.
    pub uptime_seconds: f64,
    /// CPU time of the server itself, without its processes.
    pub cpu_seconds: f64,
    /// Descriptors by kind, threads, child processes, memory mappings.
    pub resources: Resources,
    /// Where clients are answered.
    pub listen: Vec<String>,
    /// Where operators are answered.
    pub admin: Vec<String>,
    /// It ends, or has not begun.
    pub draining: bool,
    /// The server that this one has taken over from, while that finishes its requests; 0: there is none.
    pub predecessor_pid: i32,
    /// Counts the applications that have served, from 1.
    pub generation: u64,
    /// Another generation boots beside the one that serves.
    pub reloading: bool,
    /// The front's counters; their keys stand among these.
    #[serde(flatten)]
    pub front: FrontStatus,
    /// Workers replaced after a death.
    pub worker_restarts_total: u64,
    /// Workers and templates that the server has killed, by reason.
    #[serde(default)]
    pub kills_reasons: BTreeMap<String, u64>,
    /// Workers that had done enough, and were replaced.
    #[serde(default)]
    pub workers_recycled_total: u64,
    /// Workers that were added because requests waited.
    pub workers_grown_total: u64,
    /// Workers that were taken away because they had nothing to do.
    pub workers_shrunk_total: u64,
    /// Workers that run, where that is limited.
    pub workers_running: u64,
    /// How many workers there are, and why, where their number follows the load: those for any request, then those for
    /// scripts beside a booted application.
    pub scaling: Vec<ScalingStatus>,
    /// Lines of the server's log, those of its processes included, that nobody read or that could not be written.
    pub log_lines_lost_total: u64,
    /// The same of the access log.
    pub access_log_lines_lost_total: u64,
    /// The same of the slow log.
    pub slow_log_lines_lost_total: u64,
    /// `null` while no application has been booted ahead.
    pub image: Option<ImageStatus>,
    /// PHP's version; empty while PHP starts.
    pub php: String,
    /// The libphp that `php_engine` names; `null` without that, and while PHP starts.
    pub engine: Option<EngineStatus>,
    /// How PHP's code calls its own functions; `null` while PHP starts.
    pub linking: Option<LinkingStatus>,
    /// What workers share beside requests.
    pub shared: SharedStatus,
    /// How the sampler fares; `null`: there is none.
    pub profile: Option<ProfileStatus>,
    /// What makes resident workers grow, the latest first.
    pub growth: Vec<GrowthStatus>,
    /// Of all generations.
    pub workers: Vec<WorkerStatus>,
    /// The processes of `[[console]]`, and places where one is to be.
    pub consoles: Vec<ConsoleStatus>,
    /// Names whose certificates an authority issues.
    pub certificates: Vec<CertificateStatus>,
    /// Each php-fpm that `fastcgi_pass` names and that was asked within the last hour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<UpstreamStatus>,
    /// The default pool and the others; empty where there is one. The front's figures above are of all of them, those of
    /// the application and of what workers share are the default pool's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolStatus>,
}

/// One pool of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolStatus {
    /// As the settings call it; `default`.
    pub name: String,
    /// Counts the applications that have served; 0: none does.
    pub generation: u64,
    /// Another generation boots beside the one that serves.
    pub reloading: bool,
    /// The application could not be booted, or the pool not be started.
    pub failed: bool,
    /// How the application is booted ahead; empty: not, or not yet.
    pub image: String,
    /// Workers that wait for a request or run one.
    pub workers: u64,
    /// Those of them that run one.
    pub busy: u64,
    /// Requests that wait for a worker.
    pub queue_depth: u64,
    /// Requests without a complete answer.
    pub in_flight: u64,
    /// Requests whose head was parsed.
    pub requests_total: u64,
    /// Answers with a status of 500 or above.
    pub responses_5xx_total: u64,
    /// Requests that found no worker in time.
    pub rejected_total: u64,
    /// Of these, how many for which reason.
    pub rejected_reasons: BTreeMap<String, u64>,
    /// Requests without an answer in time.
    pub timeouts_total: u64,
    /// Requests run again because a worker died.
    pub retries_total: u64,
    /// Workers replaced after a death.
    pub worker_restarts_total: u64,
    /// Workers that had done enough, and were replaced.
    pub workers_recycled_total: u64,
    /// Its booted application, as `image` of the server is the default pool's; likewise the others.
    pub booted: Option<ImageStatus>,
    /// How many workers there are, and why, where their number follows the load.
    pub scaling: Vec<ScalingStatus>,
    /// PHP's version; empty while PHP starts.
    pub php: String,
    /// The libphp that `php_engine` names.
    pub engine: Option<EngineStatus>,
    /// How PHP's code calls its own functions.
    pub linking: Option<LinkingStatus>,
    /// What its workers share beside requests.
    pub shared: SharedStatus,
}

/// What makes resident workers grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrowthStatus {
    /// Whose workers they are; empty where there is one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// `App\Registry::$items`.
    pub name: String,
    /// By how much it grew: `elements`, `bytes`, `objects`.
    pub unit: String,
    /// Where it is declared, `/srv/Foo.php:88`; empty: nowhere, as a global.
    pub place: String,
    /// Of which generation the workers are.
    pub generation: u32,
    /// By how many of that unit, in the latest report.
    pub grown: u64,
    /// In so many requests.
    pub requests: u64,
    /// Bytes of each, about.
    pub bytes_each: u64,
    /// When it was first said, seconds since 1970.
    pub since: u64,
    /// When it was said last.
    pub at: u64,
    /// By how many workers.
    pub workers: u64,
}

/// One name of `acme.domains`, or a certificate of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateStatus {
    /// The name; of a file's certificate the first, empty if it has none.
    pub domain: String,
    /// Where it lies; `null`: an authority issues it.
    pub file: Option<String>,
    /// All names of a file's.
    pub names: Vec<String>,
    /// When its certificate ends, in seconds of Unix time; `null`: it has none.
    pub valid_until: Option<u64>,
    /// When it is renewed, likewise.
    pub renewal: Option<u64>,
    /// Attempts in a row that came to nothing.
    pub failures: u32,
    /// What was wrong the last time.
    pub trouble: Option<String>,
    /// When an attempt came to nothing last, in seconds of Unix time; `null`: none did.
    pub failed_at: Option<u64>,
}

/// The sampler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileStatus {
    /// Looks per second at each busy worker; 0: it only looks at slow requests.
    pub hertz: u32,
    /// Looks so far.
    pub samples_total: u64,
    /// Of them, those at stacks that changed too fast to be read.
    pub torn_total: u64,
    /// CPU time that it has used.
    pub cpu_seconds: f64,
    /// Minutes of profiles that a disk was too slow for.
    pub minutes_lost_total: u64,
    /// Why stacks cannot be read; empty if they can.
    pub trouble: String,
    /// Profiles that Pyroscope has taken.
    pub pushed_total: u64,
    /// Those that it could not be sent.
    pub push_lost_total: u64,
    /// Those that it did not want.
    pub push_refused_total: u64,
}

/// What the front counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FrontStatus {
    /// Requests that wait for a worker.
    pub queue_depth: u64,
    /// Requests without a complete answer.
    pub in_flight: u64,
    /// Open connections.
    pub connections: u64,
    /// Requests whose head was parsed.
    pub requests_total: u64,
    /// Answers with a status of 500 or above.
    pub responses_5xx_total: u64,
    /// Requests that found no worker in time.
    pub rejected_total: u64,
    /// Requests without an answer in time.
    pub timeouts_total: u64,
    /// Scripts that went on too long after their answer.
    pub after_timeouts_total: u64,
    /// Scripts that the server did not wait for any longer when it stopped.
    pub drain_timeouts_total: u64,
    /// Answers that went out compressed.
    pub compressed_total: u64,
    /// Answers that went out as they were because too many others were being compressed.
    pub compressions_skipped_total: u64,
    /// Scripts that were killed because they ran on past their time.
    pub overrun_kills_total: u64,
    /// Of the rejected requests, how many for which reason.
    pub rejected_reasons: BTreeMap<String, u64>,
    /// Connections that were turned away.
    pub connections_refused_total: u64,
    /// Idle connections that were closed to make room for new ones.
    #[serde(default)]
    pub connections_reclaimed_total: u64,
    /// Requests run again because a worker died.
    pub retries_total: u64,
    /// Requests whose call graph was to be taken down, and that went to the workers that do so.
    #[serde(default)]
    pub traced_total: u64,
    /// Those that found these workers busy, or not there.
    #[serde(default)]
    pub not_traced_total: u64,
    /// Requests that a bug of the server has ended.
    pub panics_total: u64,
    /// Requests that came by FastCGI.
    pub fastcgi_requests_total: u64,
    /// Of these, how many the web server took back.
    pub fastcgi_aborted_total: u64,
    /// FastCGI connections that were closed for what came, by reason.
    pub fastcgi_refused_reasons: BTreeMap<String, u64>,
    /// Requests that went to the php-fpm of a location.
    #[serde(default)]
    pub fastcgi_passes_total: u64,
    /// Connections to such a php-fpm that are in use.
    #[serde(default)]
    pub fastcgi_passes_open: u64,
    /// Requests that wait for such a connection.
    #[serde(default)]
    pub fastcgi_passes_queued: u64,
    /// Requests that such a php-fpm did not answer, or not to the end, by reason.
    #[serde(default)]
    pub fastcgi_pass_troubles: BTreeMap<String, u64>,
}

/// What the application's boot came to, and what returning to it costs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageStatus {
    /// `shared`, `resident`, `worker` or `script`.
    pub mode: String,
    /// Its size.
    pub bytes: u64,
    /// Its ranges of memory.
    pub regions: u64,
    /// Whether all workers have the same.
    pub shared: bool,
    /// How long the boot took.
    pub boot_ms: f64,
    /// Of the worker with most.
    pub hot_pages: u32,
    /// Returns to the image.
    pub rollbacks_total: u64,
    /// How long they took together.
    pub rollback_us_total: f64,
    /// Rollbacks that searched memory for written pages.
    pub searches_total: u64,
    /// Half of them took no longer.
    pub rollback_us_p50: f64,
    /// 99 of 100 took no longer.
    pub rollback_us_p99: f64,
    /// Workers that left for a fresh one.
    pub refork_total: u64,
    /// Why they did.
    pub refork_reasons: BTreeMap<String, u64>,
    /// What the booted application takes beside whole scripts; `null` while too few ran so.
    pub saving: Option<SavingStatus>,
    /// What the boot has left open.
    pub findings: Vec<ImageFinding>,
}

/// Requests of the booted application beside those to the same routes that ran as whole scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavingStatus {
    /// CPU of one that was booted ahead, the mean.
    pub ahead_us: f64,
    /// What it would take as a whole script, the mean.
    pub script_us: f64,
    /// Scripts that this is known of.
    pub scripts: u64,
}

impl SavingStatus {
    /// The part of a script's CPU that a booted request takes.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.script_us > 0.0 { self.ahead_us / self.script_us } else { 0.0 }
    }
}

/// The libphp that the settings name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineStatus {
    /// Its file.
    pub file: String,
    /// Of which source package `make php-engine` made it; empty: it was made by others.
    pub source: String,
}

/// Whether PHP's code was linked anew in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkingStatus {
    /// `direct`, `off` or `refused`.
    pub state: String,
    /// Why not.
    pub why: String,
    /// Libraries whose code was changed.
    pub libraries: u64,
    /// Calls that are direct.
    pub calls: u64,
    /// Loads of an address that need no table.
    pub loads: u64,
    /// Calls that go by way of the table.
    pub left: u64,
}

/// What stands against sharing the booted application or rolling it back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageFinding {
    /// What kind of thing.
    pub kind: String,
    /// What the server does about it.
    pub action: String,
    /// The thing.
    pub what: String,
    /// The line that opened it.
    #[serde(rename = "where")]
    pub place: String,
    /// What a person can do about it.
    pub advice: String,
}

/// How many workers of a kind there are, and why.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScalingStatus {
    /// `any` or `scripts`.
    pub kind: String,
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
    /// How many there are to be now.
    pub workers: u64,
    /// Requests that wait for one of them.
    pub queued: u64,
    /// Why there are not more, or fewer: one word.
    pub reason: String,
    /// The same for people.
    pub text: String,
    /// Cores that the workers wanted when requests waited last.
    pub cores_wanted: f64,
    /// Cores that there are.
    pub cores: u64,
    /// Bytes of their own, estimated; 0: nobody has looked yet.
    pub own_bytes: u64,
}

/// One worker process of a generation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStatus {
    /// Whose worker it is; empty where there is one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Its process.
    pub pid: i32,
    /// Its place among the workers, which its successor has after it.
    pub cell: usize,
    /// `idle`, `busy`, `booting`, `starting`, `held`, `leaving`.
    pub state: String,
    /// How it runs requests.
    pub model: String,
    /// How many it has run.
    pub requests: u64,
    /// Returns to the image.
    pub rollbacks: u64,
    /// Pages that one of them copies.
    pub hot_pages: u32,
    /// Resident memory, shared pages included.
    pub rss_bytes: u64,
    /// CPU that the process has used, its boot or fork included.
    pub cpu_seconds: f64,
    /// Since its fork.
    pub age_seconds: f64,
    /// Which application it runs.
    pub generation: u64,
}

/// One process of a `[[console]]`, or the room that one has left.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsoleStatus {
    /// Whose it is; empty where there is one pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// As the settings call it.
    pub name: String,
    /// 0: there is no process.
    pub pid: i32,
    /// What it does.
    pub state: String,
    /// How often it was started again.
    pub restarts: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Since its start.
    pub age_seconds: f64,
}

/// What a status says of one pool's application and workers.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    /// The pool's name; empty where there is one.
    pub pool: &'a str,
    /// The booted application.
    pub image: Option<&'a ImageStatus>,
    /// How many workers there are, and why.
    pub scaling: &'a [ScalingStatus],
    /// PHP's version.
    pub php: &'a str,
    /// The libphp that the settings name.
    pub engine: Option<&'a EngineStatus>,
    /// How PHP's code calls its own functions.
    pub linking: Option<&'a LinkingStatus>,
    /// What workers share.
    pub shared: &'a SharedStatus,
}

impl Application<'_> {
    /// ` of pool export`; nothing where there is one pool.
    #[must_use]
    pub fn of_pool(&self) -> String {
        if self.pool.is_empty() { String::new() } else { format!(" of pool {}", self.pool) }
    }
}

impl Status {
    /// Of each pool, the default one first.
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
                shared: &pool.shared,
            }
        }
        // What an older server says of the others is no more than their line.
        let first = Application {
            pool: self.pools.first().map_or("", |pool| &pool.name),
            image: self.image.as_ref(),
            scaling: &self.scaling,
            php: &self.php,
            engine: self.engine.as_ref(),
            linking: self.linking.as_ref(),
            shared: &self.shared,
        };
        std::iter::once(first).chain(self.pools.iter().skip(1).map(of)).collect()
    }

    /// How many workers are in each state, in the order in which a worker goes through them.
    #[must_use]
    pub fn by_state(&self) -> Vec<(&str, u64)> {
        const ORDER: [&str; 6] = ["idle", "busy", "booting", "starting", "held", "leaving"];
        let mut states: Vec<(&str, u64)> = Vec::new();
        for worker in &self.workers {
            match states.iter_mut().find(|(state, _)| *state == worker.state) {
                Some((_, n)) => *n += 1,
                None => states.push((&worker.state, 1)),
            }
        }
        let place = |state: &str| ORDER.iter().position(|s| *s == state).unwrap_or(ORDER.len());
        states.sort_by_key(|(state, _)| place(state));
        states
    }

    /// Workers in one state.
    #[must_use]
    pub fn in_state(&self, state: &str) -> usize {
        self.workers.iter().filter(|w| w.state == state).count()
    }

    /// Of all workers together; what they share is counted for each of them.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.workers.iter().map(|w| w.rss_bytes).sum()
    }

    /// Lines of all logs that were lost.
    #[must_use]
    pub fn lines_lost(&self) -> u64 {
        self.log_lines_lost_total
            .saturating_add(self.access_log_lines_lost_total)
            .saturating_add(self.slow_log_lines_lost_total)
    }
}

#[cfg(test)]
mod tests {
    use super::Status;
    use serde_json::json;

    #[test]
    fn what_another_version_leaves_out_or_adds_does_no_harm() {
        let said = json!({"pid": 7, "in_flight": 3, "new": [],
            "workers": [{"state": "busy"}, {"state": "idle"}]});
        let status: Status = serde_json::from_value(said).unwrap();
        assert_eq!((status.pid, status.front.in_flight), (7, 3));
        assert_eq!(status.by_state(), [("idle", 1), ("busy", 1)]);
        assert!(status.image.is_none());
    }
}
