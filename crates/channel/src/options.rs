//! How a template is started: its descriptors and the settings of its workers, in a sealed memory file.

use crate::encoding::lossless;
use rustix::fs::{MemfdFlags, SealFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use thiserror::Error;

/// The flag that names the descriptor of the memory file; a word for people follows.
pub const START_FLAG: &str = "--template";

/// Longest memory file, bytes: what Linux allows all arguments of a program together.
pub const START_BYTES_MAX: u64 = 2 << 20;

/// The settings that PHP's processes have need of, resolved.
#[allow(clippy::struct_excessive_bools)] // Settings that are on or off, and have nothing to do with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerOptions {
    /// The document root.
    #[serde(with = "lossless")]
    pub root: PathBuf,
    /// The front controller, if there is one.
    #[serde(with = "lossless")]
    pub app: Option<PathBuf>,
    /// The file whose first inclusion ends in a checkpoint.
    #[serde(with = "lossless")]
    pub checkpoint_after: Option<PathBuf>,
    /// The file that each request below a checkpoint includes first.
    #[serde(with = "lossless")]
    pub checkpoint_resume: Option<PathBuf>,
    /// Targets of the requests that are made before the image is taken.
    pub warmup: Vec<String>,
    /// How often an application is booted ahead that says it can be.
    pub boots: Boots,
    /// The libphp that the template was started with; `None`: the one that the dynamic linker finds.
    #[serde(with = "lossless")]
    pub engine: Option<PathBuf>,
    /// Calls of libphp's own functions are made direct.
    pub relink: bool,
    /// Growth of PHP's heap after which a resident worker rolls back, bytes.
    pub growth_bytes_max: u64,
    /// Tasks of one request in flight at once.
    pub tasks_max: usize,
    /// Stack of a task, bytes.
    pub task_stack_bytes: u64,
    /// Requests after which a `FrankenPHP` worker script rolls back, 0: never.
    pub rollback_every: usize,
    /// A folder for censuses of what requests leave behind: none are taken without it.
    #[serde(with = "lossless")]
    pub census: Option<PathBuf>,
    /// Call graphs of requests are taken down, all of them: this template's workers have lanes of their own.
    pub traces: bool,
    /// There are such workers: a request may ask for them.
    pub may_trace: bool,
    /// The front controller is told to be a worker script for `FrankenPHP`; otherwise its text says so or not.
    pub frankenphp: bool,
    /// Size of the cache behind `apcu_fetch()` and its like, bytes; 0: there are none.
    pub apcu_bytes: u64,
    /// php.ini instead of the built-in one.
    #[serde(with = "lossless")]
    pub php_ini: Option<PathBuf>,
    /// Directives stronger than php.ini.
    pub define: BTreeMap<String, String>,
    /// What PHP calls itself: `PHP_SAPI`.
    pub sapi_name: String,
    /// What `$_SERVER` calls the server: `SERVER_SOFTWARE`.
    pub server_software: String,
    /// What log lines call the pool; empty: there is one.
    pub pool: String,
    /// Log lines are JSON.
    pub json_log: bool,
    /// What `frankenphp_log` is told for debugging is logged.
    pub debug_log: bool,
}

/// How often an application is booted ahead that says it can be.
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
    /// What tests begin with: no application, nothing set. A server's come from the table of settings.
    pub fn bare(root: PathBuf) -> WorkerOptions {
        WorkerOptions {
            root,
            app: None,
            checkpoint_after: None,
            checkpoint_resume: None,
            warmup: Vec::new(),
            boots: Boots::Rehearsed,
            engine: None,
            relink: true,
            growth_bytes_max: 32 << 20,
            tasks_max: 256,
            task_stack_bytes: 512 << 10,
            rollback_every: 0,
            census: None,
            traces: false,
            may_trace: false,
            frankenphp: false,
            apcu_bytes: 0,
            php_ini: None,
            define: BTreeMap::new(),
            sapi_name: "fpm-fcgi".to_owned(),
            server_software: "Samovar".to_owned(),
            pool: String::new(),
            json_log: false,
            debug_log: false,
        }
    }
}

/// Everything that a template is told before it has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The supervisor's process, without which there is nothing to do.
    pub parent: i32,
    /// The inherited socket to the supervisor.
    pub channel: RawFd,
    /// The inherited memory file of the ring.
    pub ring: RawFd,
    /// The inherited eventfds that wake the fronts, one for each.
    pub bells: Vec<RawFd>,
    /// The inherited memory file of what workers share beside requests.
    pub shared: RawFd,
    /// The inherited memory file of what is published.
    pub published: RawFd,
    /// The inherited socket on which the server is asked to publish.
    pub publishing: RawFd,
    /// The inherited socket that call graphs go to, of a template that traces.
    pub traces: Option<RawFd>,
    /// The inherited socket on which is told what was loaded, if somebody listens.
    pub loads: Option<RawFd>,
    /// The settings of PHP's processes.
    pub options: WorkerOptions,
}

/// Why there is no [`Start`] in a descriptor.
#[derive(Debug, Error)]
pub enum NoStart {
    /// It cannot be read.
    #[error("its memory file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is longer than [`START_BYTES_MAX`].
    #[error("its memory file has {0} bytes; at most {START_BYTES_MAX} can be read")]
    TooLong(u64),
    /// It is not understood, as one of another version may not be.
    #[error("its memory file is not understood: {0}")]
    Garbled(#[from] serde_json::Error),
}

impl Start {
    /// A memory file that says all this, and can be changed by nobody.
    pub fn seal(&self) -> io::Result<OwnedFd> {
        let bytes = serde_json::to_vec(self)?;
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

    /// What the memory file says.
    pub fn read(file: OwnedFd) -> Result<Start, NoStart> {
        let file = File::from(file);
        let bytes = file.metadata()?.len();
        if bytes > START_BYTES_MAX {
            return Err(NoStart::TooLong(bytes));
        }
        // At a position of its own: the writer's stands at the end, and is shared.
        let mut text = vec![0; usize::try_from(bytes).unwrap_or(0)];
        file.read_exact_at(&mut text, 0)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// The template's arguments. The last is for whoever looks at a list of processes.
    pub fn arguments(&self, file: &OwnedFd) -> [OsString; 3] {
        let served = self.options.app.as_ref().unwrap_or(&self.options.root);
        [START_FLAG.into(), file.as_raw_fd().to_string().into(), served.into()]
    }
}
