//! Runs one test in its own process: its start, its output, its end, and the server processes that
//! it leaves running.

use crate::programs::{Program, Test};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use samovar_testkit::{family, kill};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A test that runs longer than this hangs. It is killed and has failed. The slowest test takes a
/// twentieth of this time.
const RUN_SECONDS_MAX: i64 = 1200;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The test passed.
    Passed,
    /// The test failed for this reason.
    Failed(String),
}

/// Result of one run of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// How the test ended.
    pub outcome: Outcome,
    /// Wall time.
    pub seconds: f64,
    /// CPU time of the process and of all children that it has waited for.
    pub cpu_seconds: f64,
    /// File with the test's output. `None`: the output was shown directly.
    pub log: Option<PathBuf>,
}

impl Ran {
    /// The test's output, if it was kept.
    pub fn output(&self) -> Vec<u8> {
        self.log.as_ref().and_then(|log| std::fs::read(log).ok()).unwrap_or_default()
    }

    /// Removes the output file. The output of a passed test is not needed.
    pub fn forget_log(&self) {
        if let Some(log) = &self.log {
            let _ = std::fs::remove_file(log);
        }
    }
}

/// Runs a test and waits for its end. Its output goes to a file in `logs`, or to the runner's own
/// output.
pub fn run(program: &Program, test: &Test, logs: Option<&Path>) -> io::Result<Ran> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let marker = format!("run-{}-{number}", std::process::id());
    let log = logs.map(|logs| logs.join(format!("{number:05}-{}.log", file_name(&test.id))));
    let begun = Instant::now();
    let mut child = start(program, test, &marker, log.as_deref())?;
    let (cpu_seconds, status) = wait(&mut child)?;
    let outcome = match (judge(status, test, log.as_deref()), left(&marker)) {
        (Outcome::Passed, Some(left)) => Outcome::Failed(left),
        (outcome, _) => outcome,
    };
    Ok(Ran { outcome, seconds: begun.elapsed().as_secs_f64(), cpu_seconds, log })
}

fn start(program: &Program, test: &Test, marker: &str, log: Option<&Path>) -> io::Result<Child> {
    let mut command = Command::new(&program.executable);
    command.args(&program.arguments);
    if let Some(name) = &test.name {
        // Unbuffered, so that the output of a killed test is kept, too.
        command.args(["--exact", name, "--nocapture", "--include-ignored"]);
    }
    command
        .env(family::RUN, marker)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .current_dir(&program.folder)
        .stdin(Stdio::null());
    if let Some(log) = log {
        let output = File::create(log)?;
        command.stdout(output.try_clone()?).stderr(output);
    }
    command.spawn()
}

/// Waits for the end of the process. Reads its CPU time while it is a zombie. `None`: it was killed
/// because it hung.
fn wait(child: &mut Child) -> io::Result<(f64, Option<ExitStatus>)> {
    let pid = child.id().cast_signed();
    let process = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    let end = pidfd_open(process, PidfdFlags::empty())?;
    let limit = Timespec { tv_sec: RUN_SECONDS_MAX, tv_nsec: 0 };
    // No signal can interrupt this call: the runner handles none.
    if poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&limit))? == 0 {
        child.kill()?;
        child.wait()?;
        return Ok((0.0, None));
    }
    let cpu_seconds = cpu_seconds(pid);
    Ok((cpu_seconds, Some(child.wait()?)))
}

/// User and system time, including children that were waited for: fields 14 to 17 of
/// `/proc/PID/stat`, in ticks of 10 ms.
fn cpu_seconds(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u32>().ok());
    ticks.map(f64::from).sum::<f64>() / 100.0
}

fn judge(status: Option<ExitStatus>, test: &Test, log: Option<&Path>) -> Outcome {
    let Some(status) = status else {
        return Outcome::Failed(format!("timeout after {RUN_SECONDS_MAX} s"));
    };
    if !status.success() {
        return Outcome::Failed(status.to_string());
    }
    let has_run = |log: &Path| {
        let output = std::fs::read(log).unwrap_or_default();
        String::from_utf8_lossy(&output).contains("test result: ok. 1 passed")
    };
    // A program also succeeds if it has no test of this name, and then runs none.
    if test.name.is_some() && log.is_some_and(|log| !has_run(log)) {
        return Outcome::Failed("the program ran no test with this name".to_owned());
    }
    Outcome::Passed
}

/// Finds server processes that the test has left running. They are killed here, so that they do not
/// disturb other tests.
fn left(marker: &str) -> Option<String> {
    let left = family::gone(family::RUN, marker).err()?;
    for process in &left {
        kill(process.pid, libc::SIGKILL);
    }
    let shown: Vec<String> = left.iter().map(ToString::to_string).collect();
    Some(format!("leftover server processes:\n  {}", shown.join("\n  ")))
}

fn file_name(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = id
        .replace("::", ".")
        .chars()
        .map(|c| if is_plain(c) || c == '.' { c } else { '-' })
        .collect();
    // A file name has at most 255 bytes.
    name.chars().take(200).collect()
}
