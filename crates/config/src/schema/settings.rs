//! What comes out: every setting with its type, checked, ready for the front and the supervisor.

use crate::schema::address::Listen;
use crate::schema::binary::PhpBinary;
use crate::schema::compression::Compression;
use crate::schema::console::ConsoleCommand;
use crate::schema::listener::Listener;
use crate::schema::location::Location;
use crate::schema::log_target::LogTarget;
use crate::schema::send_folder::SendFolder;
use crate::schema::sheet::Blank;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

mod logs;
mod measured;
mod scheduling;
mod secure;

pub use logs::{AccessLogFormat, LogFormat, LogLevel};
pub use measured::{Insight, Otlp, Profile, Push, TraceFrom};
pub use scheduling::Scheduling;
pub use secure::{Acme, AcmeChallenge, ClientCertificates, Tls, TlsVersion};

sheet! {
/// Everything that can be set, resolved: paths are absolute, `auto` is a number.
pub struct Settings {
    /// Document root: absolute, canonical, an existing folder.
    pub root: PathBuf,
    /// Absolute path of the script that answers what no file answers; below `root`.
    pub front_controller: Option<PathBuf>,
    /// Addresses to listen on, at least one.
    pub listen: Vec<Listener>,
    /// Connections that may wait in the kernel, 1 to 2²⁰.
    pub listen_backlog: usize,
    /// Threads that serve connections, 1 to 16.
    pub front_threads: usize,
    /// User to become, by name or number; not looked up yet.
    pub user: Option<String>,
    /// Group to go with it, likewise; only where there is a user.
    pub group: Option<String>,
    /// Whether PHP may run as root.
    pub allow_root: bool,
    /// Whether no program that PHP starts may have other rights than it.
    pub no_new_privileges: bool,
    /// Whether PHP's processes may give the server orders.
    pub control_from_php: bool,
    /// What of the file system PHP may touch.
    pub sandbox: Sandbox,
    /// Target of the request that a reload's new workers must answer; `None`: there is none.
    pub reload_probe: Option<String>,
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
    /// Patterns of files that are served although their names speak against it.
    pub allow_files: Vec<String>,
    /// Folders that scripts may have files sent from, by the path that `X-Accel-Redirect` has for each: with a slash at
    /// both ends.
    pub sendfile: BTreeMap<String, SendFolder>,
    /// Which answers are packed.
    pub compression: Compression,
    /// Whether a request's body is read completely before a worker is given the request.
    pub request_buffering: bool,
    /// Peers whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether peers on unix sockets are such, too.
    pub trusts_unix: bool,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Certificates that an authority issues by itself.
    pub acme: Acme,
    /// Certificates and who may show one.
    pub tls: Tls,
    /// What web servers may send by FastCGI.
    pub fastcgi: FastCgi,
    /// Who gets interim answers (103 Early Hints).
    pub early_hints: EarlyHints,
    /// Folders outside `root` that symlinks below it may lead to; absolute.
    pub link_targets: Vec<PathBuf>,
    /// Folder for what does not fit into memory: absolute, exists.
    pub temp_dir: PathBuf,
    /// Socket for `samovar status`, `reload` and `stop`; `None`: [`crate::default_control_path`].
    pub control: Option<PathBuf>,
    /// Worker processes.
    pub workers: Workers,
    /// Which worker binary; `None`: the `samovar-php` that [`crate::locate_php`] finds.
    pub php_binary: Option<PhpBinary>,
    /// An ini file instead of the system's: absolute, exists.
    pub php_ini: Option<PathBuf>,
    /// Directives that override the ini files; no value holds a control character.
    pub php: BTreeMap<String, String>,
    /// The file whose first inclusion by the front controller ends in a checkpoint: absolute, exists.
    pub checkpoint_after: Option<PathBuf>,
    /// The file that each request below a checkpoint includes first: absolute, exists.
    pub checkpoint_resume: Option<PathBuf>,
    /// Targets of the requests that are made before the image is taken; each begins with `/`.
    pub warmup: Vec<String>,
    /// Whether the application is booted once for its caches before the boot that is kept.
    pub rehearse: bool,
    /// The libphp to use instead of the installed one; a path that the dynamic linker takes as it is.
    pub php_engine: Option<PathBuf>,
    /// Whether libphp's calls of its own functions are made direct.
    pub relink: bool,
    /// Whether nothing is booted ahead: each request runs the whole script.
    pub whole_scripts: bool,
    /// Requests after which a `FrankenPHP` worker script rolls back, 0: never.
    pub rollback_every: usize,
    /// Whose functions the application calls.
    pub compat: Vec<Compat>,
    /// Kinds of findings that end the server instead of a fall-back: words of [`FINDING_KINDS`], or `all`.
    pub image_errors: Vec<String>,
    /// Console commands that run beside HTTP.
    pub consoles: Vec<ConsoleCommand>,
    /// What holds for some paths or hosts, in the order of the file.
    pub locations: Vec<Location>,
    /// Applications beside this one, in the order of the file.
    pub pools: Vec<Pool>,
    /// Caps on what clients can make the server hold.
    pub limits: Limits,
    /// Spans of time after which the server gives up waiting.
    pub timeouts: Timeouts,
    /// What all workers share.
    pub shared: SharedMemory,
    /// Where the server's own log goes.
    pub log: LogTarget,
    /// Where each request is logged.
    pub access_log: LogTarget,
    /// How each request is logged.
    pub access_log_format: AccessLogFormat,
    /// What the server says about itself on stderr.
    pub log_level: LogLevel,
    /// How the server says it.
    pub log_format: LogFormat,
    /// The file that was read, if any, as it was named.
    pub config_file: Option<PathBuf>,
    /// Addresses for operators.
    pub admin: Vec<Listen>,
    /// What operators must send; at least 16 characters.
    pub admin_token: Option<String>,
    /// Names by which operators may ask.
    pub admin_hosts: Vec<String>,
    /// What is measured of requests.
    pub insight: Insight,
    /// What is seen of workers.
    pub profile: Profile,
}
}

impl Settings {
    /// The keys in which the two differ, as the file has them.
    pub fn changed(&self, other: &Settings) -> Vec<String> {
        let mut keys = Vec::new();
        for name in self.differing(other) {
            let within = match name {
                "limits" => self.limits.differing(&other.limits),
                "timeouts" => self.timeouts.differing(&other.timeouts),
                "insight" => self.insight.differing(&other.insight),
                "profile" => self.profile.differing(&other.profile),
                "shared" => self.shared.differing(&other.shared),
                "acme" => self.acme.differing(&other.acme),
                "tls" => self.tls.differing(&other.tls),
                "fastcgi" => self.fastcgi.differing(&other.fastcgi),
                "workers" => self.workers.differing(&other.workers),
                "sandbox" => self.sandbox.differing(&other.sandbox),
                "trusts_unix" => {
                    keys.push("trusted_proxies".to_owned());
                    continue;
                }
                "pools" | "locations" | "consoles" => {
                    // Tables, which have their key in the singular.
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
        // One key may stand for two fields.
        keys.dedup();
        keys
    }
}

/// One `[[pool]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// For log lines, status and figures; unique.
    pub name: String,
    /// The line of the file that it begins in.
    pub line: usize,
    /// Patterns of paths, one of which has to fit; none: every path.
    pub paths: Vec<String>,
    /// Likewise for hosts: lower case, without port.
    pub hosts: Vec<String>,
    /// By which its requests are answered. It has no pools.
    pub settings: Settings,
}

sheet! {
/// What of the file system PHP's processes may touch, and of others' memory. Both lists empty: of files whatever their user may.
pub struct Sandbox {
    /// Below these they may write, and nowhere else.
    pub write: Vec<PathBuf>,
    /// Below these they may read, besides what every program needs; empty: anywhere.
    pub read: Vec<PathBuf>,
    /// Whether they are kept from tracing processes outside where both are empty, too.
    pub apart: bool,
}
}

sheet! {
/// Caps on what clients can make the server hold.
pub struct Limits {
    /// Request line and headers, bytes; 4096 to 65536.
    pub head_bytes_max: u64,
    /// Header lines of a request, 1 to 200.
    pub headers_max: usize,
    /// Bytes of a request's body.
    pub body_bytes_max: u64,
    /// Bytes a second of a request's body, once `timeouts.body` is used up; 0: any.
    pub body_rate_min: u64,
    /// How many client connections may be open.
    pub connections_max: usize,
    /// Requests queued or in flight, which is the ring's number of slots; 16 to 4096.
    pub queue_max: usize,
    /// Requests after which a worker is replaced; 0: never.
    pub requests_max: usize,
    /// Age after which it is; zero: never.
    pub age_max: Duration,
    /// Bytes of an idle worker's own after which it is; 0: never.
    pub memory_max: u64,
    /// Bytes that a process of PHP may have for itself; 0: any.
    pub memory_ceiling: u64,
    /// Descriptors that a process of PHP may have; 0: as many as the server was started with.
    pub open_files: usize,
    /// Processes of the server's user beyond which PHP starts none; 0: as the server.
    pub processes: usize,
    /// Bytes of a file that PHP writes; 0: as the server.
    pub file_bytes: u64,
    /// Bytes of a memory dump; [`Limits::core_bytes`] says what it means.
    pub core_bytes: u64,
    /// Added to the niceness of PHP's processes, 0 to 19.
    pub nice: usize,
    /// How the kernel schedules PHP's processes.
    pub scheduling: Scheduling,
    /// Of the places for requests, for one client, percent; 1 to 100: no limit.
    pub client_share: usize,
    /// Open connections of one client; 0: no limit.
    pub client_connections_max: usize,
    /// Patterns of paths whose requests are refused last; each begins with `/`.
    pub priority_paths: Vec<String>,
    /// Further attempts for a request whose worker died before it answered, 0 to 10.
    pub retries_max: usize,
    /// Bytes of an answer that wait in memory for a slow client.
    pub answer_memory_bytes_max: u64,
    /// Bytes of such an answer that wait in a temporary file.
    pub answer_file_bytes_max: u64,
    /// Growth of a worker's PHP heap after which `Samovar\serve` with a `rollbackEvery` rolls back, bytes.
    pub growth_bytes_max: u64,
    /// Tasks of one request in flight at once, 1 to 1024.
    pub tasks_max: usize,
    /// Stack of a task, bytes.
    pub task_stack_bytes: u64,
}
}

impl Limits {
    /// What stands for a limit of memory dumps that nobody has set.
    pub(crate) const CORE_AS_IT_IS: u64 = u64::MAX;

    /// Most bytes of a memory dump; `None`: what the server was started with.
    #[must_use]
    pub fn core_bytes(&self) -> Option<u64> {
        Some(self.core_bytes).filter(|bytes| *bytes != Self::CORE_AS_IT_IS)
    }
}

/// What the preflight of a booted application can find (crates/worker/csrc/outside/preflight.c).
pub const FINDING_KINDS: &[&str] =
    &["connection", "tls", "pipe", "child", "lock", "thread", "timer", "kernel-object", "image"];

sheet! {
/// How many worker processes there are, and how many of them run at once.
pub struct Workers {
    /// The least, 1 to 1,024.
    pub min: usize,
    /// The most: no less than the least, at most 1,024.
    pub max: usize,
    /// Memory of their own that all together may have before no more are added, bytes; 0: as the machine has.
    pub memory_max: u64,
    /// After how long without a request one above the least goes.
    pub idle_max: Duration,
    /// How many may run a request at once, those that wait for something else not counted.
    pub running_max: usize,
}
}

sheet! {
/// What all workers share beside requests.
pub struct SharedMemory {
    /// Most bytes of all tables and caches together.
    pub bytes_max: u64,
    /// Size of the cache behind `apcu_fetch()` and its like.
    pub apcu_bytes: u64,
    /// Most bytes of all published values, and of replaced ones that are still read.
    pub published_bytes_max: u64,
    /// Most bytes of a published value.
    pub published_value_bytes_max: u64,
    /// Most published values.
    pub published_names_max: usize,
    /// Files that are published: names, and where they are.
    pub publish: BTreeMap<String, PathBuf>,
}
}

sheet! {
/// What web servers may send by FastCGI.
pub struct FastCgi {
    /// Most parameters of a request.
    pub params_max: usize,
    /// Between two requests on a connection; zero: for ever.
    pub idle_timeout: Duration,
    /// By which path php-fpm's status page is asked for.
    pub status_path: Option<String>,
    /// By which path is asked whether anybody is there.
    pub ping_path: Option<String>,
    /// The answer to that.
    pub ping_response: String,
    /// Until there is a connection to the php-fpm of a location.
    pub connect_timeout: Duration,
    /// Most connections to each php-fpm of locations.
    pub connections_max: usize,
    /// Most requests that wait for one of them.
    pub queue_max: usize,
    /// Most of them that are kept between two requests.
    pub kept_max: usize,
}
}

sheet! {
/// Spans of time after which the server gives up waiting. Those that may be zero say so.
pub struct Timeouts {
    /// From the first byte of a request to the end of its head.
    pub header: Duration,
    /// Between two requests on a connection.
    pub idle: Duration,
    /// Between two reads of a request's body.
    pub body: Duration,
    /// Without the client taking a byte of the answer.
    pub write: Duration,
    /// Waiting for a worker.
    pub queue: Duration,
    /// Without the worker giving a byte of the answer; zero: never.
    pub answer: Duration,
    /// For a request in its worker; zero: for ever.
    pub request: Duration,
    /// Patterns of paths and the time that holds there instead of `request` and `answer`; zero: for ever.
    pub path: BTreeMap<String, Duration>,
    /// For a request in its worker that asks for more time; zero: it gets none.
    pub extended: Duration,
    /// From the end of a script's time until its worker is killed; zero: at once.
    pub grace: Duration,
    /// For a script to go on after its client has the answer, or has gone; zero: for ever.
    pub after: Duration,
    /// For an idle process to give a sign of life; zero: for ever.
    pub watchdog: Duration,
    /// From SIGTERM, or from a reload, until requests in flight are cut off.
    pub drain: Duration,
    /// From the start of a worker until it takes requests.
    pub boot: Duration,
}
}

words! {
/// Whose functions applications call, beside Samovar's own.
pub enum Compat {
    /// What the script's text and the environment say.
    #[default]
    Auto = "auto",
    /// The front controller calls `frankenphp_handle_request`.
    FrankenPhp = "frankenphp",
    /// The functions of the apcu extension are there without it.
    Apcu = "apcu",
}
}

words! {
/// To whom interim answers of scripts (103 Early Hints) are sent.
pub enum EarlyHints {
    /// To clients that are no proxy, as far as their address and headers tell.
    #[default]
    Auto = "auto",
    /// To every client that speaks HTTP/1.1.
    On = "on",
    /// To nobody at all.
    Off = "off",
}
}
