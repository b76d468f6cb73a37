//! Runs a program and watches it from its start: `samovar spy -- php script.php`.

use anyhow::{Context, Result, anyhow, bail};
use samovar_spy::{Error, Watch};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

/// Interval of the attempts to read the program while it starts; each is twice as long.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const LOOK_EVERY_MAX: Duration = Duration::from_millis(20);
/// Exit codes of shells: a program that a signal has ended.
const SIGNALLED: i32 = 128;

/// Starts the program and waits until it can be read. Its input and output are those of this
/// command.
pub(super) fn start(words: &[OsString]) -> Result<(Child, Watch)> {
    let Some((program, arguments)) = words.split_first() else { bail!("no program is named") };
    let shown = program.to_string_lossy();
    let mut child = Command::new(program).args(arguments).spawn().with_context(|| {
        format!("cannot run `{shown}`\nhint: name a program of this machine, such as `php`")
    })?;
    let mut pause = LOOK_EVERY;
    loop {
        // The libraries of a program that starts are not mapped yet.
        let error = match Watch::of(&[child.id()]) {
            Ok(watch) => return Ok((child, watch)),
            Err(error) => error,
        };
        if let Error::Denied { .. } = error {
            let _ = child.kill();
            let _ = child.wait();
            return Err(anyhow!("{error}"));
        }
        if let Some(status) = child.try_wait()? {
            if let Error::Unknown { .. } = error {
                return Err(anyhow!("{error}"));
            }
            bail!(
                "`{shown}` ended ({status}) before it ran PHP code\n\
                 hint: name the PHP program itself, not a shell or a script that starts it"
            );
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_EVERY_MAX);
    }
}

/// Waits for the program's end. Returns its exit code, or that of the command if it is 0.
pub(super) fn finish(mut child: Child, own: ExitCode) -> Result<ExitCode> {
    let status = child.wait().context("cannot wait for the program")?;
    Ok(if status.success() { own } else { ExitCode::from(code(status)) })
}

fn code(status: ExitStatus) -> u8 {
    let signalled = || status.signal().map(|signal| SIGNALLED + signal);
    status.code().or_else(signalled).and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
