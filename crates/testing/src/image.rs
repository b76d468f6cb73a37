//! The process that PHP, the framework and the application are booted in, and that units are forked
//! from. Its other half is `crates/worker/src/test_image.rs`.

use crate::options::Options;
use crate::scratch::{self, Scratch};
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use samovar_channel::{
    Heard, TEST_FLAG, TestEvent, TestImageEnd, TestOrder, TestRunnerEnd, TestStart, WorkerOptions,
    pair,
};
use serde::Serialize;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The PHP half of this file.
const DRIVER: &str = include_str!("driver.php");
/// End of the output of a boot that failed, bytes.
const TAIL_BYTES_MAX: u64 = 4096;
/// Maximum time for the end of the process after the end of its channel.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Directives for a run of tests that php.ini and the user may not have thought of. Tests write
/// PHP files and include them at once, so each include looks for a newer file.
const DIRECTIVES: [(&str, &str); 2] =
    [("opcache.validate_timestamps", "1"), ("opcache.revalidate_freq", "0")];

/// Directives for a run whose tests may replace code. Opcache's classes and constants are in memory
/// that no process may change, and its optimizer and compiler would pass replaced code by.
const MOCK_DIRECTIVES: [(&str, &str); 2] = [("opcache.enable", "0"), ("opcache.jit", "disable")];

/// The driver's settings.
#[derive(Serialize)]
struct Plan<'a> {
    script: &'a Path,
    configuration: Option<&'a Path>,
    autoload: Vec<PathBuf>,
    bootstrap: Option<&'a Path>,
    boot: Option<&'a Path>,
    preload: bool,
    /// The start of the paths of libraries.
    vendor: PathBuf,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

/// The process.
pub(crate) struct Image {
    channel: TestRunnerEnd,
    child: Child,
    log: PathBuf,
    /// PHP's version.
    pub(crate) php: String,
}

impl Image {
    /// Starts the process and waits until it has booted, which may take the time of a unit.
    pub(crate) fn boot(options: &Options, scratch: &Scratch) -> Result<Image> {
        let framework = &options.framework;
        let plan = Plan {
            script: &framework.script,
            configuration: framework.configuration.as_deref(),
            autoload: framework.autoloaders(&options.folder),
            bootstrap: framework.bootstrap.as_deref(),
            boot: options.boot.as_deref(),
            preload: options.preload,
            vendor: options.folder.join("vendor/"),
            before: options.before.as_deref(),
            after: options.after.as_deref(),
        };
        let plan = serde_json::to_vec(&plan).context("a path is not UTF-8")?;
        scratch.write("plan.json", &plan)?;
        let driver = scratch.write("driver.php", DRIVER.as_bytes())?;
        let own = DIRECTIVES.map(|(name, value)| (name.to_owned(), value.to_owned()));
        // Opcache removes lines that have no effect, which would change the coverage.
        let coverage = framework.coverage.is_wanted();
        let coverage = coverage.then(|| ("opcache.optimization_level".to_owned(), "0".to_owned()));
        let mocks = options.mocks.then_some(MOCK_DIRECTIVES).into_iter().flatten();
        let mocks = mocks.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let define = own.into_iter().chain(coverage).chain(options.define.clone());
        let define = define.chain(mocks).collect();
        let bare = WorkerOptions::bare(options.folder.clone());
        let (channel, theirs): (TestRunnerEnd, TestImageEnd) = pair()?;
        let start = TestStart {
            parent: std::process::id().cast_signed(),
            channel: theirs.as_raw_fd(),
            driver,
            script: framework.script.clone(),
            options: WorkerOptions {
                define,
                php_ini: options.php_ini.clone(),
                mocks: Some(options.mocks),
                ..bare
            },
        };
        let file = start.seal()?;
        let log = scratch.file("boot.log");
        let output = File::create(&log)?;
        // No other thread starts a process, so these reach only this one.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        fcntl_setfd(&file, FdFlags::empty())?;
        let child = Command::new(&options.worker)
            .arg(TEST_FLAG)
            .arg(file.as_raw_fd().to_string())
            .current_dir(&options.folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // A signal from the terminal ends only the command, and then the channel.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start `{}`", options.worker.display()))?;
        let mut image = Image { channel, child, log, php: String::new() };
        drop((theirs, file));
        match image.next(Some(options.time_limit))? {
            Some(TestEvent::Ready { php }) => image.php = php,
            Some(_) => bail!("{}", image.ended("while it booted the tests")),
            None => {
                image.kill();
                bail!(
                    "PHP took more than {} s to boot the tests, and was killed; its output:\n{}\n\
                     hint: mend the bootstrap of the tests or the file of --boot, or raise \
                     --time-limit",
                    options.time_limit.as_secs_f64(),
                    image.shown_output()
                );
            }
        }
        Ok(image)
    }

    /// Returns the output of the boot.
    pub(crate) fn output(&self) -> String {
        scratch::tail(&self.log, TAIL_BYTES_MAX)
    }

    fn shown_output(&self) -> String {
        let output = self.output();
        if output.is_empty() { "no output".to_owned() } else { output }
    }

    pub(crate) fn send(&self, order: &TestOrder) -> Result<()> {
        self.channel.send(order).context("the process that runs the tests accepts no order")
    }

    /// Waits for an event; `None`: the time is over.
    pub(crate) fn next(&mut self, limit: Option<Duration>) -> Result<Option<TestEvent>> {
        let timeout = limit.map(|limit| Timespec::try_from(limit).unwrap_or_default());
        let mut polled = [PollFd::new(&self.channel, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut polled, timeout.as_ref()))? == 0 {
            return Ok(None);
        }
        match self.channel.hear()? {
            Heard::Message(event, _) => Ok(Some(event)),
            Heard::Garbled(garbled) => bail!("the process that runs the tests sent {garbled}"),
            Heard::End => bail!("{}", self.ended("unexpectedly")),
        }
    }

    /// Kills the process with the programs that it has started; its units die with it.
    fn kill(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // The child is not waited for yet, so the number is its own.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Describes the end of the process.
    fn ended(&mut self, when: &str) -> String {
        let hint = if self.php.is_empty() {
            "mend the bootstrap of the tests, or the file of --boot"
        } else {
            "a test may have killed it: run the last units alone, with --jobs 1"
        };
        let status = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
        let output = self.shown_output();
        format!("PHP ended {when} ({status}); its output:\n{output}\nhint: {hint}")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = self.channel.send(&TestOrder::End);
        // The end of the channel ends it, with all units. A handler of the application may keep it
        // alive.
        let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let end = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let limit = Timespec::try_from(END_LIMIT).unwrap_or_default();
        let has_ended = end.is_some_and(|end| {
            let mut polled = [PollFd::new(&end, PollFlags::IN)];
            retry_on_intr(|| poll(&mut polled, Some(&limit))).is_ok_and(|ready| ready > 0)
        });
        if !has_ended {
            self.kill();
        }
        let _ = self.child.wait();
    }
}
