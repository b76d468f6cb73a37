//! Commands of the application: caches, migrations, messages to a chat.

use crate::error::Error;
use crate::site::Lock;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::time::Duration;

/// Environment of a command.
pub(crate) struct Environment<'a> {
    /// Folder in which it runs.
    pub(crate) folder: &'a Path,
    /// Name of the release.
    pub(crate) release: &'a str,
    /// Name of the release that served before; empty: none.
    pub(crate) previous: &'a str,
    /// The lock, whose empty file is the input: a command that outlives the deploy keeps it.
    pub(crate) lock: &'a Lock,
}

/// Runs a command line with `sh -c`. It has no input; its output goes to the terminal. After
/// `limit`, its process group is killed.
pub(crate) fn run(line: &str, of: &Environment<'_>, limit: Duration) -> Result<(), Error> {
    let failed = |why: String| {
        let hint = format!("it ran in `{}`", of.folder.display());
        Error::new(format!("the command `{}` {why}\nhint: {hint}", line.escape_debug()))
    };
    let input = of.lock.input().map_err(|error| failed(format!("has no input: {error}")))?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .current_dir(of.folder)
        .env("SAMOVAR_RELEASE", of.release)
        .env("SAMOVAR_PREVIOUS_RELEASE", of.previous)
        .stdin(input)
        .process_group(0)
        .spawn()
        .map_err(|error| failed(format!("did not start: {error}")))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (ended, end) = mpsc::channel::<()>();
    // The child is reaped only after this thread has ended, so its number cannot be another's.
    let watch = std::thread::spawn(move || {
        let is_late = end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if let Some(group) = group.filter(|_| is_late) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        is_late
    });
    let status = wait(&mut child);
    drop(ended);
    let is_late = watch.join().unwrap_or(false);
    let status = status.and_then(|()| child.wait());
    let status = status.map_err(|error| failed(format!("cannot be awaited: {error}")))?;
    if is_late {
        return Err(failed(format!(
            "was killed after {} s, its limit (--command-limit)",
            limit.as_secs()
        )));
    }
    if status.success() { Ok(()) } else { Err(failed(how(status))) }
}

/// Waits for the end of a child without reaping it.
fn wait(child: &mut std::process::Child) -> std::io::Result<()> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = waitid(WaitId::Pid(pid), options) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    Ok(())
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "failed".to_owned(),
    }
}
