//! Start data of a template: its descriptors and the settings of its workers, in a sealed memory
//! file.

use crate::lossless;
use rustix::fs::{MemfdFlags, SealFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use thiserror::Error;

/// The flag that names the descriptor of the memory file. A word for people follows.
pub const START_FLAG: &str = "--template";

/// Maximum length of the memory file, bytes: Linux's limit for all arguments of a program together.
pub const START_BYTES_MAX: u64 = 2 << 20;

/// The settings that PHP processes need, resolved.
#[allow(clippy::struct_excessive_bools)] // Independent settings that are on or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerOptions {
    /// The document root.
    #[serde(with = "lossless")]
    pub root: PathBuf,
    /// The front controller, if there is one.
    #[serde(with = "lossless")]
    pub app: Option<PathBuf>,
    /// The file whose first inclusion ends with a checkpoint.
    #[serde(with = "lossless")]
    pub checkpoint_after: Option<PathBuf>,
    /// The file that each request below a checkpoint includes first.
    #[serde(with = "lossless")]
    pub checkpoint_resume: Option<PathBuf>,
    /// Request data that the boot reads on purpose.
    pub boot_reads: Vec<String>,
    /// Targets of the requests that are made before the image is taken.
    pub warmup: Vec<String>,
    /// Number of boots ahead, for an application that supports them.
    pub boots: Boots,
    /// The libphp that the template was started with; `None`: the one found by the dynamic linker.
    #[serde(with = "lossless")]
    pub engine: Option<PathBuf>,
    /// Whether calls of libphp's own functions are made direct.
    pub relink: bool,
    /// Growth of PHP's heap after which a resident worker rolls back, bytes.
    pub growth_bytes_max: u64,
    /// Maximum number of tasks of one request in flight.
    pub tasks_max: usize,
    /// Stack of a task, bytes.
    pub task_stack_bytes: u64,
    /// Number of requests after which a `FrankenPHP` worker script rolls back; 0: never.
    pub rollback_every: usize,
    /// Treatment of database connections that were opened above the checkpoint: `prove`, `reset` or
    /// `leave`.
    pub checkpoint_connections: String,
    /// Folder for heap walks of objects that requests leave; without it there are none.
    #[serde(with = "lossless")]
    pub heap_walk: Option<PathBuf>,
    /// One out of this number of requests that run whole scripts reports the files that it
    /// includes; 0: none.
    pub loads_every: u64,
    /// Whether the call graphs of all requests are recorded: this template's workers have their own
    /// lanes.
    pub traces: bool,
    /// Whether there are such workers, so that a request may select them.
    pub may_trace: bool,
    /// Whether the settings declare the front controller as a worker script for `FrankenPHP`;
    /// otherwise its text decides.
    pub frankenphp: bool,
    /// Whether tests may replace functions, methods and constants; `None`: these are no tests.
    pub mocks: Option<bool>,
    /// Size of the cache for `apcu_fetch()` and the related functions, bytes; 0: these functions do
    /// not exist.
    pub apcu_bytes: u64,
    /// php.ini to use instead of the built-in one.
    #[serde(with = "lossless")]
    pub php_ini: Option<PathBuf>,
    /// Directives that override php.ini.
    pub define: BTreeMap<String, String>,
    /// PHP's name for its SAPI: `PHP_SAPI`.
    pub sapi_name: String,
    /// Name of the server in `$_SERVER`: `SERVER_SOFTWARE`.
    pub server_software: String,
    /// Name of the pool in log lines; empty if there is only one.
    pub pool: String,
    /// Whether log lines are JSON.
    pub json_log: bool,
    /// Whether debug messages of `frankenphp_log` are logged.
    pub debug_log: bool,
    /// Whether workers run only on CPUs that are otherwise idle.
    pub is_idle: bool,
}

/// Number of boots ahead, for an application that supports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Boots {
    /// Once for the caches, then for good.
    Rehearsed,
    /// Once, for good.
    Once,
    /// Never: each request runs the whole script.
    Never,
}

impl WorkerOptions {
    /// Options that tests start from: no application, nothing set. A server's options come from the
    /// table of settings.
    pub fn bare(root: PathBuf) -> WorkerOptions {
        WorkerOptions {
            root,
            app: None,
            checkpoint_after: None,
            checkpoint_resume: None,
            boot_reads: Vec::new(),
            warmup: Vec::new(),
            boots: Boots::Rehearsed,
            engine: None,
            relink: true,
            growth_bytes_max: 32 << 20,
            tasks_max: 256,
            task_stack_bytes: 512 << 10,
            rollback_every: 0,
            checkpoint_connections: "prove".to_owned(),
            heap_walk: None,
            loads_every: 0,
            traces: false,
            may_trace: false,
            frankenphp: false,
            mocks: None,
            apcu_bytes: 0,
            php_ini: None,
            define: BTreeMap::new(),
            sapi_name: "fpm-fcgi".to_owned(),
            server_software: "Samovar".to_owned(),
            pool: String::new(),
            json_log: false,
            debug_log: false,
            is_idle: false,
        }
    }
}

/// All data that a template receives before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Process id of the supervisor. The template does not run without it.
    pub parent: i32,
    /// The inherited socket to the supervisor.
    pub channel: RawFd,
    /// The inherited memory file of the ring.
    pub ring: RawFd,
    /// The inherited eventfds that wake the fronts, one each.
    pub notifiers: Vec<RawFd>,
    /// The inherited memory file of the data that workers share apart from requests.
    pub shared: RawFd,
    /// The inherited memory file of the published values.
    pub published: RawFd,
    /// The inherited socket for requests to publish a value.
    pub publishing: RawFd,
    /// The inherited socket for call graphs, of a template that traces.
    pub traces: Option<RawFd>,
    /// The inherited socket for reports of loaded files, if there is a reader.
    pub loads: Option<RawFd>,
    /// The inherited socket for pushes of jobs, if there are queues.
    pub jobs: Option<RawFd>,
    /// The settings of the PHP processes.
    pub options: WorkerOptions,
}

/// Why a descriptor holds no [`Start`].
#[derive(Debug, Error)]
pub enum NoStart {
    /// It cannot be read.
    #[error("its memory file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is longer than [`START_BYTES_MAX`].
    #[error("its memory file has {0} bytes; the maximum is {START_BYTES_MAX}")]
    TooLong(u64),
    /// It is not understood; for example, because it is from another version.
    #[error("its memory file cannot be parsed: {0}")]
    Garbled(#[from] serde_json::Error),
}

impl Start {
    /// Writes this to a sealed memory file, which no process can change.
    pub fn seal(&self) -> io::Result<OwnedFd> {
        seal(self)
    }

    /// Reads the memory file.
    pub fn read(file: OwnedFd) -> Result<Start, NoStart> {
        unseal(file)
    }

    /// The template's arguments. The last one is for people who read a list of processes.
    pub fn arguments(&self, file: &OwnedFd) -> [OsString; 3] {
        let served = self.options.app.as_ref().unwrap_or(&self.options.root);
        [START_FLAG.into(), file.as_raw_fd().to_string().into(), served.into()]
    }
}

/// Writes start data to a sealed memory file.
pub(crate) fn seal(start: &impl Serialize) -> io::Result<OwnedFd> {
    let bytes = serde_json::to_vec(start)?;
    if bytes.len() as u64 > START_BYTES_MAX {
        let error = NoStart::TooLong(bytes.len() as u64);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("samovar-start", flags)?);
    file.write_all(&bytes)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Reads such a memory file.
pub(crate) fn unseal<T: DeserializeOwned>(file: OwnedFd) -> Result<T, NoStart> {
    let file = File::from(file);
    let bytes = file.metadata()?.len();
    if bytes > START_BYTES_MAX {
        return Err(NoStart::TooLong(bytes));
    }
    // Reads at an explicit position: the file's own position is shared with the writer, and is at
    // the end.
    let mut text = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read_exact_at(&mut text, 0)?;
    Ok(serde_json::from_slice(&text)?)
}
