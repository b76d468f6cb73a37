//! Commands of the application: caches, migrations, messages to a chat.

use crate::error::Error;
use crate::interrupt::{self, Awaited, Interrupts, Mask};
use crate::site::Lock;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Pause between two looks for processes of a command.
const LOOK: Duration = Duration::from_millis(50);
/// Time that a command has to end after a signal to the deploy.
const GRACE: Duration = Duration::from_secs(10);

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
/// `limit`, its process group is killed. The signals that end the deploy end the command, too: the
/// group gets SIGTERM, and SIGKILL after 10 s.
pub(crate) fn run(line: &str, of: &Environment<'_>, limit: Duration) -> Result<(), Error> {
    let failed = |why: String| {
        let hint = format!("it ran in `{}`", of.folder.display());
        Error::new(format!("the command `{}` {why}\nhint: {hint}", line.escape_debug()))
    };
    let input = of.lock.input().map_err(|error| failed(format!("has no input: {error}")))?;
    let (end, ended) =
        std::io::pipe().map_err(|error| failed(format!("has no pipe for its end: {error}")))?;
    // If the signals cannot be blocked, they end the deploy as before. The mask is the previous one
    // again when the command has ended.
    let (signals, mask) = Interrupts::block().unzip();
    let own_mask = mask.as_ref().map(Mask::before);
    let mut command = Command::new("/bin/sh");
    // SAFETY: between fork and exec the closure only sets the signal mask, which is safe there
    // (signal-safety(7)). It has no memory of its own to free.
    unsafe {
        command.pre_exec(move || own_mask.map_or(Ok(()), |mask| Ok(mask.thread_set_mask()?)));
    }
    let mut child = command
        .args(["-c", line])
        .current_dir(of.folder)
        .env("SAMOVAR_RELEASE", of.release)
        .env("SAMOVAR_PREVIOUS_RELEASE", of.previous)
        .stdin(input)
        .process_group(0)
        .spawn()
        .map_err(|error| failed(format!("did not start: {error}")))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // The child is reaped only after this thread has ended, so its number cannot be another's.
    let watch = std::thread::spawn(move || watch(signals.as_ref(), &end, limit, group));
    let status = wait(&mut child);
    drop(ended);
    let cause = watch.join().unwrap_or_default();
    let status = status.and_then(|()| child.wait());
    let status = status.map_err(|error| failed(format!("cannot be awaited: {error}")))?;
    match cause {
        Some(Cause::Limit) => Err(failed(format!(
            "was killed after {} s, its limit (--command-limit)",
            limit.as_secs()
        ))),
        Some(Cause::Signal(name)) => {
            Err(failed(format!("was ended, because the deploy received {name}")))
        }
        None if status.success() => Ok(()),
        None => Err(failed(how(status))),
    }
}

/// Reason to end a command.
enum Cause {
    Limit,
    /// The deploy received the signal of this name.
    Signal(&'static str),
}

/// Ends the group at its time limit or at a signal. Returns when the command has ended.
fn watch(
    signals: Option<&Interrupts>,
    end: &std::io::PipeReader,
    limit: Duration,
    group: Option<Pid>,
) -> Option<Cause> {
    let send = |signal| {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    };
    let begun = Instant::now();
    match interrupt::wait(signals, end, limit) {
        Awaited::End => None,
        Awaited::Nothing => {
            send(Signal::KILL);
            Some(Cause::Limit)
        }
        Awaited::Signal(name) => {
            send(Signal::TERM);
            let until = Instant::now() + GRACE.min(limit.saturating_sub(begun.elapsed()));
            let left = || until.saturating_duration_since(Instant::now());
            let mut is_over = !matches!(interrupt::wait(signals, end, left()), Awaited::End);
            // The shell may end before the programs that it has started.
            while !is_over && group.is_some_and(has_members) {
                std::thread::sleep(LOOK.min(left()));
                is_over = left().is_zero();
            }
            if is_over {
                send(Signal::KILL);
            }
            Some(Cause::Signal(name))
        }
    }
}

/// Whether a process of the group runs. Its leader may have ended without being reaped.
/// Source: `proc_pid_stat(5)`: after the name in parentheses come state, parent and group.
fn has_members(group: Pid) -> bool {
    let group = group.as_raw_nonzero().to_string();
    let runs = |stat: String| {
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        let state = fields.next();
        !matches!(state, None | Some("Z" | "X")) && fields.nth(1) == Some(&group)
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut stats =
        processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.any(runs)
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
