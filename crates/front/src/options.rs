//! What the binary tells the front before it starts.
//!
//! The front has no configuration file of its own: the binary resolves its settings into these structs.

use std::path::PathBuf;
use std::time::Duration;

/// Everything the front can be told.
#[derive(Clone, Debug)]
pub struct FrontOptions {
    /// The document root, absolute. May be a symlink: deploys switch it.
    pub root: PathBuf,
    /// The script that answers for every path without an existing file. `None`: `index.php` of the root, if there
    /// is one, with nginx's `try_files $uri $uri/ /index.php` around it.
    pub front_controller: Option<PathBuf>,
    /// Directories outside the root into which symlinks below the root may lead. Distributions that split an
    /// application over `/usr/share`, `/var/lib` and `/etc` need it. Empty: none.
    pub link_targets: Vec<PathBuf>,
    /// Serve existing files that are no PHP; false: only scripts.
    pub static_files: bool,
    /// Read the whole request body before a worker gets the request; false: pass it on as it comes.
    pub request_buffering: bool,
    /// Peers whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// Who gets interim answers (1xx) of scripts.
    pub early_hints: EarlyHints,
    /// Where bodies that do not fit in memory wait.
    pub temp_dir: PathBuf,
    /// `SERVER_NAME` where the request names no host.
    pub server_name: Option<String>,
    /// Caps.
    pub limits: Limits,
    /// Spans.
    pub timeouts: Timeouts,
    /// Where requests are logged.
    pub access_log: AccessLog,
    /// How requests are logged.
    pub access_log_format: AccessLogFormat,
}

impl FrontOptions {
    /// The defaults for an application in `root`.
    pub fn new(root: impl Into<PathBuf>) -> FrontOptions {
        FrontOptions {
            root: root.into(),
            front_controller: None,
            link_targets: Vec::new(),
            static_files: true,
            request_buffering: true,
            trusted_proxies: Vec::new(),
            early_hints: EarlyHints::Auto,
            temp_dir: std::env::temp_dir(),
            server_name: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            access_log: AccessLog::Off,
            access_log_format: AccessLogFormat::Combined,
        }
    }
}

/// Caps on what clients can make the front hold.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Request line and headers, bytes; beyond: 431. At most 64 KiB, which is what a slot takes.
    pub head_bytes_max: usize,
    /// Header lines of a request; beyond: 431.
    pub headers_max: usize,
    /// Request body, bytes; beyond: 413.
    pub body_bytes_max: u64,
    /// Open connections; beyond, the kernel's backlog holds them.
    pub connections_max: usize,
    /// Requests that wait for a worker; beyond: 503 at once.
    pub queue_max: usize,
    /// How often a request whose worker died is run again.
    pub retries_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_bytes_max: 64 * 1024,
            headers_max: 100,
            body_bytes_max: 64 * 1024 * 1024,
            connections_max: 10_000,
            queue_max: 4096,
            retries_max: 2,
        }
    }
}

/// How long the front waits; zero means for ever. Checked every [`SWEEP`](crate::SWEEP), so that much late.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// From a head's first byte to its last; then 408.
    pub header: Duration,
    /// Between the requests of a connection.
    pub idle: Duration,
    /// Between two pieces of a request body; then 408.
    pub body: Duration,
    /// While the client takes no byte of the answer; then the connection is cut.
    pub write: Duration,
    /// Until a worker takes the request; then 503.
    pub queue: Duration,
    /// While the worker gives no byte; then it is killed and the client gets 504.
    pub answer: Duration,
    /// For what is in flight when the server drains.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            header: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            body: Duration::from_secs(30),
            write: Duration::from_secs(30),
            queue: Duration::from_secs(30),
            answer: Duration::from_mins(1),
            drain: Duration::from_secs(30),
        }
    }
}

/// Who gets interim answers (1xx) of scripts, of those that speak HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyHints {
    /// Clients that are no proxy, as far as their address and headers tell: some proxies take them for the answer.
    Auto,
    /// Everybody.
    On,
    /// Nobody.
    Off,
}

/// Where requests are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// One line each on stdout.
    Stdout,
    /// Appended to a file, which is opened again on `FrontHandle::reopen_logs`.
    File(PathBuf),
}

/// How requests are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// The combined format of Apache and nginx.
    Combined,
    /// One JSON object a line, with time, CPU, memory and request id.
    Json,
}
