//! The resolved settings: every setting with its type, checked, ready for the front and the
//! supervisor.

use crate::schema::address::Listen;
use crate::schema::binary::PhpBinary;
use crate::schema::compression::Compression;
use crate::schema::console::ConsoleCommand;
use crate::schema::intake::Intake;
use crate::schema::listener::Listener;
use crate::schema::location::Location;
use crate::schema::log_target::LogTarget;
use crate::schema::macros::Blank;
use crate::schema::queue::Queue;
use crate::schema::redis::Redis;
use crate::schema::schedule::Schedule;
use crate::schema::secret::AdminToken;
use crate::schema::send_folder::SendFolder;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

mod logs;
mod measured;
mod scheduling;
mod secure;

pub use logs::{AccessLogFormat, LogFormat, LogLevel};
pub use measured::{Insight, Otlp, OtlpHistograms, Profile, Push, TraceFrom};
pub use scheduling::Scheduling;
pub use secure::{Acme, AcmeChallenge, ClientCertificates, Tls, TlsVersion};

sheet! {
/// All settings, resolved: paths are absolute, `auto` is a number.
pub struct Settings {
    /// Document root: absolute, canonical, an existing folder.
    pub root: PathBuf,
    /// Absolute path of the script for requests that match no file; below `root`.
    pub front_controller: Option<PathBuf>,
    /// Addresses to listen on, at least one.
    pub listen: Vec<Listener>,
    /// Maximum number of connections waiting in the kernel, 1 to 2²⁰.
    pub listen_backlog: usize,
    /// Number of threads that serve connections, 1 to 16.
    pub front_threads: usize,
    /// User to switch to, by name or number; not looked up yet.
    pub user: Option<String>,
    /// Group to switch to, by name or number; only if there is a user.
    pub group: Option<String>,
    /// Whether PHP may run as root.
    pub allow_root: bool,
    /// Whether programs started by PHP are prevented from having more privileges than PHP.
    pub no_new_privileges: bool,
    /// Whether PHP's processes may send commands to the server.
    pub control_from_php: bool,
    /// Parts of the file system that PHP may access.
    pub sandbox: Sandbox,
    /// Target of the request that a reload's new workers must answer; `None`: no such request.
    pub reload_probe: Option<String>,
    /// Label of the application's release.
    pub release: Option<String>,
    /// File with the label; it is read at each start and reload.
    pub release_file: Option<PathBuf>,
    /// `SERVER_SOFTWARE`: printable ASCII.
    pub server_software: String,
    /// `PHP_SAPI`: lower-case letters, digits, `-` and `_`.
    pub sapi_name: String,
    /// `SERVER_NAME` of a request without a `Host` header.
    pub server_name: Option<String>,
    /// Whether files that are not PHP are served.
    pub static_files: bool,
    /// Patterns of files that are not served.
    pub deny_files: Vec<String>,
    /// Patterns of files that are served although their names are denied by default.
    pub allow_files: Vec<String>,
    /// Folders whose files scripts can have the server send. The key is the folder's path in
    /// `X-Accel-Redirect`, with a slash at both ends.
    pub sendfile: BTreeMap<String, SendFolder>,
    /// Compression of responses.
    pub compression: Compression,
    /// Whether a request's body is read completely before the request goes to a worker.
    pub request_buffering: bool,
    /// Peers whose `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether peers on unix sockets are trusted in the same way.
    pub trusts_unix: bool,
    /// Whether HTTP/2 is enabled.
    pub http2: bool,
    /// Certificates that an authority issues automatically.
    pub acme: Acme,
    /// Certificates of the server and of clients.
    pub tls: Tls,
    /// FastCGI with web servers and with php-fpm.
    pub fastcgi: FastCgi,
    /// Clients that receive interim responses (103 Early Hints).
    pub early_hints: EarlyHints,
    /// Folders outside `root` that symlinks below it may lead to; absolute.
    pub link_targets: Vec<PathBuf>,
    /// Folder for data that does not fit into memory: absolute, exists.
    pub temp_dir: PathBuf,
    /// Socket for `samovar status`, `reload` and `stop`; `None`: [`crate::control_path`].
    pub control: Option<PathBuf>,
    /// Worker processes.
    pub workers: Workers,
    /// Selection of the worker binary; `None`: the `samovar-php` that [`crate::locate_php`] finds.
    pub php_binary: Option<PhpBinary>,
    /// An ini file in place of the system's: absolute, exists.
    pub php_ini: Option<PathBuf>,
    /// Directives that override the ini files; the values have no control characters.
    pub php: BTreeMap<String, String>,
    /// File whose first inclusion by the front controller ends with a checkpoint: absolute, exists.
    pub checkpoint_after: Option<PathBuf>,
    /// File that each request after a checkpoint includes first: absolute, exists.
    pub checkpoint_resume: Option<PathBuf>,
    /// Targets of the requests that are made before the image is taken; each begins with `/`.
    pub warmup: Vec<String>,
    /// Whether the application is booted once for its caches before the boot that is kept.
    pub prewarm_boot: bool,
    /// The libphp to use in place of the installed one, as a path that the dynamic linker accepts
    /// unchanged.
    pub php_engine: Option<PathBuf>,
    /// Whether libphp's calls to its own functions are made direct.
    pub relink: bool,
    /// Whether the application is never booted in advance: each request runs the whole script.
    pub disable_checkpoint: bool,
    /// Number of requests after which a `FrankenPHP` worker script is rolled back; 0: never.
    pub rollback_every: usize,
    /// Treatment of database connections that were opened above the checkpoint.
    pub checkpoint_connections: KeptConnections,
    /// Function sets of other products that the application calls.
    pub compat: Vec<Compat>,
    /// Request data that the boot reads on purpose: names as in the finding, or ends of the paths
    /// of files that read it.
    pub boot_reads: Vec<String>,
    /// Kinds of findings that end the server in place of a fallback: words of [`FINDING_KINDS`], or
    /// `all`.
    pub image_errors: Vec<String>,
    /// Console commands that run in addition to HTTP.
    pub consoles: Vec<ConsoleCommand>,
    /// Settings for some paths or hosts, in the order of the file.
    pub locations: Vec<Location>,
    /// Further applications, in the order of the file.
    pub pools: Vec<Pool>,
    /// Requests that are stored as jobs, in the order of the file.
    pub intakes: Vec<Intake>,
    /// Commands and jobs that run at certain times, in the order of the file.
    pub schedules: Vec<Schedule>,
    /// Limits on the resources that clients and PHP can use.
    pub limits: Limits,
    /// Time limits for waiting.
    pub timeouts: Timeouts,
    /// Memory shared by all workers.
    pub shared: SharedMemory,
    /// Store of jobs.
    pub jobs: Jobs,
    /// Destination of the server's own log.
    pub log: LogTarget,
    /// Destination of the access log.
    pub access_log: LogTarget,
    /// Format of the access log.
    pub access_log_format: AccessLogFormat,
    /// Verbosity of the server's own log.
    pub log_level: LogLevel,
    /// Format of the server's own log.
    pub log_format: LogFormat,
    /// The file that was read, if any, as it was named.
    pub config_file: Option<PathBuf>,
    /// Addresses of the admin listener.
    pub admin: Vec<Listen>,
    /// Token that operators must send; at least 16 characters.
    pub admin_token: AdminToken,
    /// File of a generated token: absolute.
    pub admin_token_file: PathBuf,
    /// Host names that the admin listener accepts.
    pub admin_hosts: Vec<String>,
    /// Measurements of requests.
    pub insight: Insight,
    /// Profiling of workers.
    pub profile: Profile,
}
}

impl Settings {
    /// Returns the keys that differ, as written in the file.
    pub fn changed(&self, other: &Settings) -> Vec<String> {
        let mut keys = Vec::new();
        for name in self.differing(other) {
            let within = match name {
                "limits" => self.limits.differing(&other.limits),
                "timeouts" => self.timeouts.differing(&other.timeouts),
                "insight" => self.insight.differing(&other.insight),
                "profile" => self.profile.differing(&other.profile),
                "shared" => self.shared.differing(&other.shared),
                "jobs" => self.jobs.differing(&other.jobs),
                "acme" => self.acme.differing(&other.acme),
                "tls" => self.tls.differing(&other.tls),
                "fastcgi" => self.fastcgi.differing(&other.fastcgi),
                "workers" => self.workers.differing(&other.workers),
                "sandbox" => self.sandbox.differing(&other.sandbox),
                "trusts_unix" => {
                    keys.push("trusted_proxies".to_owned());
                    continue;
                }
                "pools" | "locations" | "consoles" | "schedules" | "intakes" => {
                    // Keys of tables are in the singular.
                    keys.push(name.trim_end_matches('s').to_owned());
                    continue;
                }
                _ => {
                    keys.push(name.to_owned());
                    continue;
                }
            };
            for inner in within {
                match (name, inner) {
                    ("insight", "otlp") => {
                        let inner = self.insight.otlp.differing(&other.insight.otlp);
                        let key = |inner: &str| match inner {
                            "endpoint" => "insight.otlp".to_owned(),
                            _ => format!("insight.otlp_{inner}"),
                        };
                        keys.extend(inner.into_iter().map(key));
                    }
                    ("profile", "push") => {
                        let inner = self.profile.push.differing(&other.profile.push);
                        let key = |inner: &str| match inner {
                            "endpoint" => "profile.push".to_owned(),
                            _ => format!("profile.push_{inner}"),
                        };
                        keys.extend(inner.into_iter().map(key));
                    }
                    ("profile", "trace_ppm") => keys.push("profile.trace".to_owned()),
                    ("workers", "min" | "max") => keys.push("workers".to_owned()),
                    ("insight", "trace_share_ppm") => keys.push("insight.trace_share".to_owned()),
                    ("insight", "script_share_ppm") => {
                        keys.push("insight.script_share".to_owned());
                    }
                    _ => keys.push(format!("{name}.{inner}")),
                }
            }
        }
        // Two fields can have the same key.
        keys.dedup();
        keys
    }
}

/// One `[[pool]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name for log lines, status and metrics; unique.
    pub name: String,
    /// Line of the file at which the table begins.
    pub line: usize,
    /// Path patterns, one of which must match; empty: every path.
    pub paths: Vec<String>,
    /// Host patterns, one of which must match: lower case, without port. Empty: every host.
    pub hosts: Vec<String>,
    /// Settings for its requests; they contain no further pools.
    pub settings: Settings,
    /// The queue whose jobs it runs. Then no request matches it.
    pub queue: Option<Queue>,
}

sheet! {
/// Files and memory of other processes that PHP's processes may access. If both lists are empty,
/// files are limited only by the user's permissions.
pub struct Sandbox {
    /// Paths below which PHP may write; it may write nowhere else. Empty: anywhere.
    pub write: Vec<PathBuf>,
    /// Paths below which PHP may read, in addition to those that every program needs; empty:
    /// anywhere.
    pub read: Vec<PathBuf>,
    /// Whether PHP is prevented from tracing processes outside its pool even if both lists are
    /// empty.
    pub isolate_processes: bool,
}
}

sheet! {
/// Limits on the resources that clients and PHP can use.
pub struct Limits {
    /// Maximum bytes of a request line and its headers, 4096 to 65536.
    pub head_bytes_max: u64,
    /// Maximum number of header lines of a request, 1 to 1000.
    pub headers_max: usize,
    /// Maximum bytes of a request's body.
    pub body_bytes_max: u64,
    /// Minimum bytes per second of a request's body after `timeouts.body` is used up; 0: no
    /// minimum.
    pub body_rate_min: u64,
    /// Maximum number of open client connections.
    pub connections_max: usize,
    /// Maximum number of requests queued or in flight, which is the ring's number of slots; 16 to
    /// 4096.
    pub queue_max: usize,
    /// Number of requests after which a worker is replaced; 0: never.
    pub requests_max: usize,
    /// Age after which a worker is replaced; zero: never.
    pub age_max: Duration,
    /// Private memory of an idle worker, in bytes, above which it is replaced; 0: never.
    pub memory_max: u64,
    /// Maximum bytes of private memory of a PHP process; 0: no limit.
    pub memory_ceiling: u64,
    /// Maximum number of file descriptors of a PHP process; 0: the limit that the server was
    /// started with.
    pub open_files: usize,
    /// Maximum number of processes of the server's user, above which PHP starts none; 0: the
    /// server's limit.
    pub processes: usize,
    /// Maximum bytes of a file that PHP writes; 0: the server's limit.
    pub file_bytes: u64,
    /// Maximum bytes of a core dump; use [`Limits::core_bytes`] to read it.
    pub core_bytes: u64,
    /// Value added to the niceness of PHP's processes, 0 to 19.
    pub nice: usize,
    /// Kernel scheduling policy for PHP's processes.
    pub scheduling: Scheduling,
    /// Maximum share of the request slots for one client, in percent, 1 to 100; 100: no limit.
    pub client_share: usize,
    /// Maximum number of open connections of one client; use [`Limits::client_connections_max`] to
    /// read it.
    pub client_connections_max: usize,
    /// Patterns of paths whose requests are rejected last; each begins with `/`.
    pub priority_paths: Vec<String>,
    /// Maximum number of further attempts for a request whose worker died before it responded, 0 to
    /// 10.
    pub retries_max: usize,
    /// Maximum bytes of a response held in memory for a slow client.
    pub response_memory_bytes_max: u64,
    /// Maximum bytes of such a response held in a spill file.
    pub response_spill_bytes_max: u64,
    /// Maximum bytes of all responses in memory that clients have not read; 0: no limit.
    pub buffered_bytes_max: u64,
    /// Maximum bytes of all request bodies and responses in temporary files; 0: no limit.
    pub spooled_bytes_max: u64,
    /// Maximum share of one client in these two, in percent, 1 to 100; 100: no limit.
    pub buffer_share: usize,
    /// Growth of a worker's PHP heap, in bytes, after which `Samovar\serve` with a `rollbackEvery`
    /// rolls back.
    pub growth_bytes_max: u64,
    /// Maximum number of tasks of one request in flight, 1 to 1024.
    pub tasks_max: usize,
    /// Stack size of a task, in bytes.
    pub task_stack_bytes: u64,
}
}

impl Limits {
    /// The number of connections per client is derived from `connections_max`.
    pub(crate) const CLIENT_CONNECTIONS_DERIVED: usize = usize::MAX;
    /// Part of all connections that one client may have by default, and the lowest default.
    const CLIENT_CONNECTIONS_PART: usize = 4;
    const CLIENT_CONNECTIONS_MIN: usize = 64;

    /// Maximum number of open connections of one client. `None`: no limit. The default does not
    /// limit clients on this host: they may be proxies.
    pub fn client_connections_max(&self, is_local: bool) -> Option<usize> {
        match self.client_connections_max {
            0 => None,
            Self::CLIENT_CONNECTIONS_DERIVED if is_local => None,
            Self::CLIENT_CONNECTIONS_DERIVED => {
                let part = self.connections_max / Self::CLIENT_CONNECTIONS_PART;
                Some(part.max(Self::CLIENT_CONNECTIONS_MIN))
            }
            most => Some(most),
        }
    }

    /// Marks a core dump limit that is not set.
    pub(crate) const CORE_AS_IT_IS: u64 = u64::MAX;

    /// Returns the maximum bytes of a core dump; `None`: the limit that the server was started
    /// with.
    #[must_use]
    pub fn core_bytes(&self) -> Option<u64> {
        Some(self.core_bytes).filter(|bytes| *bytes != Self::CORE_AS_IT_IS)
    }
}

/// Kinds of findings in the preflight of a booted application
/// (crates/worker/csrc/outside/preflight.c).
pub const FINDING_KINDS: &[&str] = &[
    "connection",
    "tls",
    "pipe",
    "child",
    "lock",
    "session",
    "thread",
    "timer",
    "signal",
    "kernel-object",
    "image",
    "request",
];

sheet! {
/// Number of worker processes, and of those that run at the same time.
pub struct Workers {
    /// Minimum number of workers, 1 to 1024.
    pub min: usize,
    /// Maximum number of workers: not below the minimum, at most 1024.
    pub max: usize,
    /// Total private memory of all workers, in bytes, above which no more are added; 0: limited by
    /// the machine's memory.
    pub memory_max: u64,
    /// Time without a request after which a worker above the minimum exits.
    pub idle_max: Duration,
    /// Maximum number of workers that run a request at the same time. Workers that wait for
    /// something else do not count.
    pub running_max: usize,
    /// Whether they run only on CPUs that are otherwise idle: workers of a queue whose `priority`
    /// is `idle`.
    pub is_idle: bool,
}
}

sheet! {
/// Store of jobs, used if there is a `[[queue]]`.
pub struct Jobs {
    /// File of the store: absolute.
    pub store: PathBuf,
    /// Maximum bytes of all jobs.
    pub bytes_max: u64,
    /// A Redis that several machines share; `None`: the file.
    pub redis: Option<Redis>,
    /// Prefix of all keys in the Redis.
    pub redis_prefix: String,
    /// Certificates that TLS to the Redis trusts; empty: those of the system.
    pub redis_roots: PathBuf,
    /// Time after which the jobs of a server without heartbeats run elsewhere.
    pub lease: Duration,
}
}

sheet! {
/// Memory shared by all workers, except that for requests.
pub struct SharedMemory {
    /// Maximum bytes of all tables and caches together.
    pub bytes_max: u64,
    /// Size of the cache of `apcu_fetch()` and the other APCu functions.
    pub apcu_bytes: u64,
    /// Maximum bytes of all published values, including replaced ones that are still read.
    pub published_bytes_max: u64,
    /// Maximum bytes of one published value.
    pub published_value_bytes_max: u64,
    /// Maximum number of published values.
    pub published_names_max: usize,
    /// Files that are published: names and paths.
    pub publish: BTreeMap<String, PathBuf>,
}
}

sheet! {
/// FastCGI with web servers and with php-fpm.
pub struct FastCgi {
    /// Maximum number of parameters of a request.
    pub params_max: usize,
    /// Maximum time between two requests on a connection; zero: no limit.
    pub idle_timeout: Duration,
    /// Path of php-fpm's status page.
    pub status_path: Option<String>,
    /// Path of the health check (ping).
    pub ping_path: Option<String>,
    /// Response to the health check.
    pub ping_response: String,
    /// Timeout for connecting to a location's php-fpm.
    pub connect_timeout: Duration,
    /// Maximum number of connections to each php-fpm of locations.
    pub connections_max: usize,
    /// Maximum number of requests that wait for such a connection.
    pub queue_max: usize,
    /// Maximum number of connections kept open between two requests.
    pub idle_connections_max: usize,
}
}

sheet! {
/// Time limits for waiting. The description says where zero is allowed.
pub struct Timeouts {
    /// From the first byte of a request to the end of its head.
    pub header: Duration,
    /// Between two requests on a connection.
    pub idle: Duration,
    /// Between two reads of a request's body.
    pub body: Duration,
    /// While the client accepts no byte of the response.
    pub write: Duration,
    /// Wait for a worker.
    pub queue: Duration,
    /// While the worker sends no byte of the response; zero: no limit.
    pub response: Duration,
    /// Time of a request in its worker; zero: no limit.
    pub request: Duration,
    /// Path patterns with the time that replaces `request` and `response` there; zero: no limit.
    pub path: BTreeMap<String, Duration>,
    /// Time in its worker for a request that extends its deadline; zero: no extension.
    pub extended: Duration,
    /// From the timeout of a script until its worker is killed; zero: immediately.
    pub grace: Duration,
    /// Run time of a script after its response is sent, or after its client has disconnected; zero:
    /// no limit.
    pub post_response: Duration,
    /// Watchdog timeout for idle processes; zero: no watchdog.
    pub watchdog: Duration,
    /// From SIGTERM or a reload until requests in flight are aborted.
    pub drain: Duration,
    /// From the start of a worker until it accepts requests.
    pub boot: Duration,
}
}

words! {
/// Function sets that applications call in addition to Samovar's own.
pub enum Compat {
    /// Detect from the script's text and the environment.
    #[default]
    Auto = "auto",
    /// The front controller calls `frankenphp_handle_request`.
    FrankenPhp = "frankenphp",
    /// The functions of the apcu extension are available without it.
    Apcu = "apcu",
}
}

words! {
/// Treatment of database connections that were opened above the checkpoint.
pub enum KeptConnections {
    /// Kept if every statement is proven to leave the session unchanged; else reset, or the worker
    /// leaves.
    #[default]
    Prove = "prove",
    /// Reset after each request that used them.
    Reset = "reset",
    /// A request that used one ends its worker.
    Leave = "leave",
}
}

words! {
/// Clients that receive interim responses of scripts (103 Early Hints).
pub enum EarlyHints {
    /// Clients that are not proxies, judged by their address and headers.
    #[default]
    Auto = "auto",
    /// All clients that speak HTTP/1.1.
    On = "on",
    /// No clients.
    Off = "off",
}
}
