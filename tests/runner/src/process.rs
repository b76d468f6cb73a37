//! One test in a process of its own: its start, its output, its end, and the server processes that it leaves.

use crate::programs::{Program, Test};
use samovar_testkit::{family, kill};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A test that runs longer hangs: it is killed, and has failed. The slowest takes a twentieth of it.
const RUN_MAX: Duration = Duration::from_mins(20);

/// How often a running test is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// For this reason.
    Failed(String),
}

/// What one run of a test came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time.
    pub seconds: f64,
    /// CPU time of the process and of all that it has waited for.
    pub cpu_seconds: f64,
    /// Everything that it printed.
    pub log: PathBuf,
}

/// Runs a test and waits for its end. Its output goes to a file in `logs`.
pub fn run(program: &Program, test: &Test, logs: &Path) -> io::Result<Ran> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let marker = format!("run-{}-{number}", std::process::id());
    let log = logs.join(format!("{number:05}-{}.log", file_name(&test.id)));
    let begun = Instant::now();
    let mut child = start(program, test, &marker, &log)?;
    let (cpu_seconds, status) = wait(&mut child, begun)?;
    let outcome = match (judge(status, test, &log), left(&marker)) {
        (Outcome::Passed, Some(left)) => Outcome::Failed(left),
        (outcome, _) => outcome,
    };
    Ok(Ran { outcome, seconds: begun.elapsed().as_secs_f64(), cpu_seconds, log })
}

fn start(program: &Program, test: &Test, marker: &str, log: &Path) -> io::Result<Child> {
    let output = File::create(log)?;
    let mut command = Command::new(&program.executable);
    if let Some(name) = &test.name {
        // Unbuffered: what a killed test printed is kept, too.
        command.args(["--exact", name, "--nocapture", "--include-ignored"]);
    }
    command
        .env(family::RUN, marker)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .current_dir(&program.folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    command.spawn()
}

/// Waits for the end. The CPU time is read while the process is a zombie. `None`: it was killed because it hung.
fn wait(child: &mut Child, begun: Instant) -> io::Result<(f64, Option<ExitStatus>)> {
    let pid = child.id().cast_signed();
    while !samovar_testkit::has_ended(pid) {
        if begun.elapsed() > RUN_MAX {
            child.kill()?;
            child.wait()?;
            return Ok((0.0, None));
        }
        std::thread::sleep(LOOK);
    }
    let cpu_seconds = cpu_seconds(pid);
    Ok((cpu_seconds, Some(child.wait()?)))
}

/// User and system time, also of children that were waited for: fields 14 to 17 of `/proc/PID/stat`, in ticks of 10 ms.
fn cpu_seconds(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u32>().ok());
    ticks.map(f64::from).sum::<f64>() / 100.0
}

fn judge(status: Option<ExitStatus>, test: &Test, log: &Path) -> Outcome {
    let Some(status) = status else {
        return Outcome::Failed(format!("it did not end within {} s", RUN_MAX.as_secs()));
    };
    if !status.success() {
        return Outcome::Failed(status.to_string());
    }
    let has_run = || {
        let text = std::fs::read(log).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("test result: ok. 1 passed")
    };
    // A name that the program does not know passes as well, with no test run.
    if test.name.is_some() && !has_run() {
        return Outcome::Failed("the program ran no test of this name".to_owned());
    }
    Outcome::Passed
}

/// Server processes that the test has not ended. They are killed here, so that they disturb no other test.
fn left(marker: &str) -> Option<String> {
    let left = family::gone(family::RUN, marker).err()?;
    for process in &left {
        kill(process.pid, libc::SIGKILL);
    }
    let shown: Vec<String> = left.iter().map(ToString::to_string).collect();
    Some(format!("server processes were left:\n  {}", shown.join("\n  ")))
}

fn file_name(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = id.replace("::", ".").chars().map(|c| if is_plain(c) || c == '.' { c } else { '-' }).collect();
    // A file's name has 255 bytes at most.
    name.chars().take(200).collect()
}
