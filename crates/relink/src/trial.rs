//! A child computes the new texts and uses them first.
//!
//! In any case, the process that continues is unchanged: it only sees how the child ended.

use crate::apply::{self, Change};
use crate::texts::{self, Texts};
use crate::{object, rule};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_parent_process_death_signal,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Time after which a child is considered stuck.
const SECONDS_MAX: i64 = 20;
const EXIT_CAME_THROUGH: i32 = 0;
/// The reason is in the file.
const EXIT_REFUSED: i32 = 3;

///
/// As [`apply::write`], for libphp and its callers.
pub(crate) unsafe fn try_in_child(code: u64, probe: fn()) -> Result<Texts, String> {
    let said = |error: io::Error| format!("cannot run the trial in a child process: {error}");
    let file = texts::file().map_err(said)?;
    // SAFETY: the process has one thread (the caller guarantees this), so the child may continue as
    // an ordinary process.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // No process waits for it then. Fails only for an invalid signal.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        // SAFETY: the child also has one thread.
        let status = match unsafe { try_here(code, probe, &file) } {
            Ok(()) => EXIT_CAME_THROUGH,
            Err(reason) => {
                // Earlier content may be incomplete. Without a reason, the exit status alone says
                // less.
                let _ = file.set_len(0).and_then(|()| file.write_all_at(reason.as_bytes(), 0));
                EXIT_REFUSED
            }
        };
        // SAFETY: ends the child without running exit handlers, which belong to the parent.
        unsafe { libc::_exit(status) }
    }
    if pid < 0 {
        return Err(said(io::Error::last_os_error()));
    }
    let child = Pid::from_raw(pid).ok_or_else(|| said(io::ErrorKind::NotFound.into()))?;
    outcome(child, &file)?;
    Texts::of(&file).map_err(said)
}

/// # Safety
///
/// As [`try_in_child`].
unsafe fn try_here(code: u64, probe: fn(), file: &File) -> Result<(), String> {
    let plans = rule::plans(&object::loaded(), code)?;
    let changes: Vec<_> = plans
        .iter()
        .map(|planned| Change {
            range: planned.range.clone(),
            text: &planned.plan.text,
            calls: planned.plan.calls,
            loads: planned.plan.loads,
            left: planned.plan.left,
        })
        .collect();
    // SAFETY: passed on to the caller; the plans were made from the objects loaded here.
    unsafe { apply::write(&changes) }
        .map_err(|broken| format!("the kernel does not allow changes of code: {}", broken.error))?;
    probe();
    texts::put(file, &plans).map_err(|error| format!("cannot write the memory file: {error}"))
}

fn outcome(child: Pid, file: &File) -> Result<(), String> {
    let limit = Timespec { tv_sec: SECONDS_MAX, tv_nsec: 0 };
    let ended = pidfd_open(child, PidfdFlags::empty())
        .and_then(|end| poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&limit)));
    if !ended.is_ok_and(|ready| ready > 0) {
        // It may have ended in the meantime.
        let _ = kill_process(child, Signal::KILL);
    }
    loop {
        match waitpid(unistd::Pid::from_raw(child.as_raw_pid()), None) {
            Ok(WaitStatus::Exited(_, EXIT_CAME_THROUGH)) => return Ok(()),
            Ok(WaitStatus::Exited(_, EXIT_REFUSED)) => return Err(texts::reason(file)),
            Err(nix::Error::EINTR) => {}
            Ok(status) => return Err(format!("the trial in a child process failed: {status:?}")),
            Err(error) => return Err(format!("the trial in a child process failed: {error}")),
        }
    }
}
