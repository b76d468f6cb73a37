//! What comes out: every setting with its type, checked, ready for the front and the supervisor.

use crate::consoles::Console;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The sheet onto which the table's defaults are laid.
///
/// Not `Default`: a blank sheet (0 workers, no time-outs) is no set of defaults, and nobody outside
/// this crate should get hold of one.
pub(crate) trait Blank {
    fn blank() -> Self;
}

impl<T: Default> Blank for T {
    fn blank() -> T {
        T::default()
    }
}

/// Declares a struct of settings that can be [`Blank`].
macro_rules! sheet {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Blank for $name {
            fn blank() -> $name {
                $name { $($field: Blank::blank(),)* }
            }
        }
    };
}

/// Declares an enum whose variants are words in flags and files.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            pub(crate) const WORDS: &[&str] = &[$($word),*];
            pub(crate) const ALL: &[$name] = &[$($name::$variant),*];

            /// The word that is typed for it.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}

sheet! {
/// Everything that can be set, resolved: paths are absolute, `auto` is a number.
pub struct Settings {
    /// Document root: absolute, canonical, an existing folder.
    pub root: PathBuf,
    /// Absolute path of the script that answers what no file answers; below `root`.
    pub front_controller: Option<PathBuf>,
    /// Addresses to listen on, at least one.
    pub listen: Vec<Listen>,
    /// `SERVER_NAME` of a request without a `Host` header.
    pub server_name: Option<String>,
    /// Whether files that are not PHP are served.
    pub static_files: bool,
    /// Whether a request's body is read completely before a worker is given the request.
    pub request_buffering: bool,
    /// Peers whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Who gets interim answers (103 Early Hints).
    pub early_hints: EarlyHints,
    /// Folders outside `root` that symlinks below it may lead to; absolute.
    pub link_targets: Vec<PathBuf>,
    /// Folder for what does not fit into memory: absolute, exists.
    pub temp_dir: PathBuf,
    /// Socket for `samovar status`, `reload` and `stop`; `None`: [`crate::default_control_path`].
    pub control: Option<PathBuf>,
    /// Worker processes, 1 to 256.
    pub workers: usize,
    /// Which worker binary; `None`: the `samovar-php` that [`crate::locate_php`] finds.
    pub php: Option<Php>,
    /// An ini file instead of the system's: absolute, exists.
    pub php_ini: Option<PathBuf>,
    /// Directives that override the ini files; no value holds a control character.
    pub define: BTreeMap<String, String>,
    /// The file whose first inclusion by the front controller ends in a checkpoint: absolute, exists.
    pub checkpoint_after: Option<PathBuf>,
    /// Targets of the requests that are made before the image is taken; each begins with `/`.
    pub warmup: Vec<String>,
    /// Whether the application is booted once for its caches before the boot that is kept.
    pub rehearse: bool,
    /// Requests after which a `FrankenPHP` worker script rolls back, 0: never.
    pub rollback_every: usize,
    /// Whose worker script the front controller is.
    pub compat: Compat,
    /// Kinds of findings that end the server instead of a fall-back: words of [`FINDING_KINDS`], or `all`.
    pub image_errors: Vec<String>,
    /// Console commands that run beside HTTP.
    pub consoles: Vec<Console>,
    /// Caps.
    pub limits: Limits,
    /// Spans of time.
    pub timeouts: Timeouts,
    /// Where each request is logged.
    pub access_log: AccessLog,
    /// How each request is logged.
    pub access_log_format: AccessLogFormat,
    /// What the server says about itself on stderr.
    pub log_level: LogLevel,
    /// How the server says it.
    pub log_format: LogFormat,
    /// The file that was read, if any, as it was named.
    pub config_file: Option<PathBuf>,
}
}

sheet! {
/// Caps on what clients can make the server hold.
pub struct Limits {
    /// Request line and headers, bytes; 4096 to 65536.
    pub head_bytes_max: u64,
    /// Header lines of a request, 1 to 200.
    pub headers_max: usize,
    /// Request body, bytes.
    pub body_bytes_max: u64,
    /// Open client connections.
    pub connections_max: usize,
    /// Requests queued or in flight, which is the ring's number of slots; 16 to 4096.
    pub queue_max: usize,
    /// Further attempts for a request whose worker died before it answered, 0 to 10.
    pub retries_max: usize,
    /// Growth of a worker's PHP heap after which `Samovar\serve` with a `rollbackEvery` rolls back, bytes.
    pub growth_bytes_max: u64,
}
}

/// What the survey of a booted application can find (crates/worker/csrc/survey.c).
pub const FINDING_KINDS: &[&str] =
    &["connection", "tls", "pipe", "child", "lock", "thread", "timer", "kernel-object", "image"];

sheet! {
/// Spans of time after which the server gives up waiting. Only `answer` may be zero.
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
    /// From SIGTERM, or from a reload, until requests in flight are cut off.
    pub drain: Duration,
    /// From the start of a worker until it takes requests.
    pub boot: Duration,
}
}

/// An address to listen on: what `TcpListener::bind((host, port))` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An IP address without brackets, or a host name that is not resolved yet.
    pub host: String,
    /// Port; 0: any free one.
    pub port: u16,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Which worker binary to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Php {
    /// This one; absolute.
    Path(PathBuf),
    /// `samovar-php` with this suffix, such as `8.2`.
    Version(String),
}

/// Where each request is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    #[default]
    Off,
    /// On stdout.
    Stdout,
    /// Appended to this file; absolute.
    File(PathBuf),
}

words! {
/// How each request is logged.
pub enum AccessLogFormat {
    /// The combined format of Apache and nginx.
    #[default]
    Combined = "combined",
    /// One JSON object per line, with time, CPU and memory.
    Json = "json",
}
}

words! {
/// What the server says about itself.
pub enum LogLevel {
    /// What failed.
    Error = "error",
    /// Also what needs attention.
    #[default]
    Warn = "warn",
    /// Also what the server does.
    Info = "info",
    /// Also what each request does.
    Debug = "debug",
    /// Everything.
    Trace = "trace",
}
}

words! {
/// Which other server's worker scripts the front controller is one of.
pub enum Compat {
    /// Found out by the script's text and the environment.
    #[default]
    Auto = "auto",
    /// It calls `frankenphp_handle_request`.
    FrankenPhp = "frankenphp",
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
    /// To nobody.
    Off = "off",
}
}

words! {
/// How the server's own log lines look.
pub enum LogFormat {
    /// For people.
    #[default]
    Text = "text",
    /// One JSON object per line.
    Json = "json",
}
}
