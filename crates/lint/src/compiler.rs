//! The process of one PHP, which compiles file after file. Its other half is
//! `crates/worker/src/compile_only.rs`.

use crate::source::Source;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use samovar_channel::{
    Heard, LINT_FLAG, LintClientEnd, LintCompilerEnd, LintEvent, LintFinding, LintOrder, LintStart,
    WorkerOptions, pair,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum time for the start of PHP.
const START_LIMIT: Duration = Duration::from_mins(1);
/// Maximum time for one file.
const FILE_LIMIT: Duration = Duration::from_secs(20);
/// PHP's memory limit: a file of the maximum size needs less.
const MEMORY_LIMIT: &str = "2G";
/// Maximum length of a file's name for PHP, bytes: `PATH_MAX` of Linux.
const NAME_BYTES_MAX: usize = 4096;
/// Files are compiled, not run: opcache would run the file of `opcache.preload`.
const FORCED: [(&str, &str); 2] = [("opcache.enable", "0"), ("opcache.preload", "")];
/// End of the output of a process that failed, bytes.
const OUTPUT_BYTES_MAX: i64 = 4096;
/// No other thread starts a process while descriptors are inheritable.
static START: Mutex<()> = Mutex::new(());

/// The settings of PHP that a user can choose.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhpSettings {
    pub(crate) php_ini: Option<PathBuf>,
    pub(crate) define: BTreeMap<String, String>,
}

/// The process.
pub(crate) struct Compiler {
    channel: LintClientEnd,
    child: Child,
    output: File,
    /// PHP's version.
    pub(crate) php: String,
}

impl Compiler {
    /// Starts PHP and waits for it.
    pub(crate) fn start(worker: &Path, settings: &PhpSettings) -> Result<Compiler> {
        let (channel, theirs): (LintClientEnd, LintCompilerEnd) = pair()?;
        let mut define = BTreeMap::from([("memory_limit".to_owned(), MEMORY_LIMIT.to_owned())]);
        define.extend(settings.define.clone());
        define.extend(FORCED.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let bare = WorkerOptions::bare(PathBuf::from("/"));
        let start = LintStart {
            parent: std::process::id().cast_signed(),
            channel: theirs.as_raw_fd(),
            options: WorkerOptions { define, php_ini: settings.php_ini.clone(), ..bare },
        };
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let output = File::from(rustix::fs::memfd_create("samovar-lint", flags)?);
        let child = {
            let _alone = START.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let file = start.seal()?;
            fcntl_setfd(&theirs, FdFlags::empty())?;
            fcntl_setfd(&file, FdFlags::empty())?;
            Command::new(worker)
                .arg(LINT_FLAG)
                .arg(file.as_raw_fd().to_string())
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output.try_clone()?)
                // A signal from the terminal ends only the command, and then the channel.
                .process_group(0)
                .spawn()
                .with_context(|| format!("cannot start `{}`", worker.display()))?
        };
        drop(theirs);
        let mut compiler = Compiler { channel, child, output, php: String::new() };
        match compiler.next(Instant::now() + START_LIMIT)? {
            Some(LintEvent::Ready { php }) => compiler.php = php,
            Some(_) => bail!("`{}` sent a message before it was ready", worker.display()),
            None => {
                let (worker, how) = (worker.display(), compiler.end());
                bail!("PHP did not start in `{worker}`: {how}\nhint: run `{worker} --engine`");
            }
        }
        Ok(compiler)
    }

    /// Compiles a file. `Err`: the process can compile no more; the text says why.
    pub(crate) fn compile(&mut self, source: &Source) -> Result<Compiled> {
        let file = match source.open() {
            Ok(file) => file,
            Err(error) => return Ok(Compiled::Unread(format!("{error:#}"))),
        };
        let name = source.path.as_os_str().as_bytes();
        let name = name[..name.len().min(NAME_BYTES_MAX)].to_vec();
        let until = Instant::now() + FILE_LIMIT;
        if self.channel.send_now(&LintOrder { name }, Some(file.as_fd())).is_err() {
            bail!("{}", self.end());
        }
        let mut findings = Vec::new();
        loop {
            match self.next(until)? {
                Some(LintEvent::Found(finding)) => findings.push(finding),
                Some(LintEvent::Done { error }) if error.is_empty() => {
                    return Ok(Compiled::Findings(findings));
                }
                Some(LintEvent::Done { error }) => return Ok(Compiled::Unread(error)),
                Some(LintEvent::Ready { .. }) => bail!("it started again"),
                None if Instant::now() >= until => {
                    let _ = self.child.kill();
                    bail!("it took more than {} s", FILE_LIMIT.as_secs());
                }
                None => bail!("{}", self.end()),
            }
        }
    }

    /// Waits for an event; `None`: the time is over, or the process has ended.
    fn next(&mut self, until: Instant) -> Result<Option<LintEvent>> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut polled = [PollFd::new(&self.channel, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut polled, Some(&timeout)))? == 0 {
            return Ok(None);
        }
        match self.channel.hear()? {
            Heard::Message(event, _) => Ok(Some(event)),
            Heard::Garbled(garbled) => bail!("it sent {garbled}"),
            Heard::End => Ok(None),
        }
    }

    /// Describes the end of the process, and causes it.
    fn end(&mut self) -> String {
        // It has closed its channel, so it ends or has ended.
        let _ = self.child.kill();
        let status = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
        let length = self.output.metadata().map_or(0, |metadata| metadata.len());
        let start = length.saturating_sub(OUTPUT_BYTES_MAX.unsigned_abs());
        let mut output = Vec::new();
        let _ = self.output.seek(SeekFrom::Start(start));
        let _ = self.output.read_to_end(&mut output);
        let output = String::from_utf8_lossy(&output);
        let output = output.trim();
        if output.is_empty() { status } else { format!("{status}; its output:\n{output}") }
    }
}

/// The end of a file.
pub(crate) enum Compiled {
    /// Messages of PHP.
    Findings(Vec<LintFinding>),
    /// It could not be read, for this reason.
    Unread(String),
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
