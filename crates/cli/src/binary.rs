//! Whether a binary that the settings name is a worker of this server, asked before it is told to be one.

use anyhow::{Result, anyhow, bail};
use samovar_config::{PhpBinary, Settings};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// What is wrong with one that does not say it.
const HINT: &str =
    "--php-binary takes a samovar-php that runs on this machine, or a version such as 8.2";
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(2);
/// What is read of its words, bytes: less than a pipe holds, so it never waits for the reader.
const WORDS_BYTES_MAX: u64 = 16 * 1024;

/// Asks a binary that was named by its path; what was found by its name is believed.
pub(crate) fn recognise(settings: &Settings, program: &Path) -> Result<()> {
    if matches!(settings.php_binary, Some(PhpBinary::Path(_))) {
        version(program)?;
    }
    Ok(())
}

/// The PHP version that a worker binary was built for.
pub(crate) fn version(program: &Path) -> Result<String> {
    let what = || format!("cannot use `{}` as worker", program.display());
    let said = ask(program, &["--version".into()], None, HINT)
        .map_err(|error| anyhow!("{}: {error}", what()))?;
    let Some((own, php)) = parse(&said) else {
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        bail!(
            "{}: it is no samovar-php; asked for its version it says: {first}\n\
             hint: --php-binary takes a samovar-php, which has PHP built in, or a version such as 8.2; not PHP's own program",
            what()
        );
    };
    if own != env!("CARGO_PKG_VERSION") {
        let ours = env!("CARGO_PKG_VERSION");
        bail!(
            "{}: it belongs to samovar {own}, this is samovar {ours}\n\
             hint: install both from the same release",
            what()
        );
    }
    Ok(php.to_owned())
}

/// Its version and PHP's: `samovar-php 0.1.0 (PHP 8.2.29)`.
fn parse(said: &str) -> Option<(&str, &str)> {
    let rest = said.trim().strip_prefix("samovar-php ")?;
    rest.strip_suffix(')')?.split_once(" (PHP ")
}

/// What it prints, asked with those words and with a variable of the environment beside the server's own.
pub(crate) fn ask(
    program: &Path,
    words: &[OsString],
    variable: Option<&(String, Option<String>)>,
    hint: &str,
) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some((name, Some(value))) = variable {
        command.env(name, value);
    }
    let mut child = command.spawn()?;
    let since = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if since.elapsed() > VERSION_LIMIT => {
                // Gone already is as good.
                let _ = child.kill();
                let _ = child.wait();
                bail!("it does not say its version within {} s", VERSION_LIMIT.as_secs());
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let said = output(&mut child);
    if !status.success() {
        let code =
            status.code().map_or("was killed".to_owned(), |c| format!("exited with status {c}"));
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        bail!("asked for its version it {code}: {last}\nhint: {hint}");
    }
    Ok(said)
}

/// What it has written, as far as it fits. Its children may hold the pipes, so the end is not waited for.
fn output(child: &mut Child) -> String {
    let mut text = Vec::new();
    if let Some(out) = &child.stdout {
        read_what_is_there(out, &mut text);
    }
    if let Some(out) = &child.stderr {
        read_what_is_there(out, &mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn read_what_is_there(pipe: &(impl std::os::fd::AsFd + ?Sized), text: &mut Vec<u8>) {
    let Ok(own) = pipe.as_fd().try_clone_to_owned() else { return };
    if rustix::fs::fcntl_setfl(&own, rustix::fs::OFlags::NONBLOCK).is_ok() {
        // A pipe that is empty and open says so: that is the end for us.
        let _ = std::fs::File::from(own).take(WORDS_BYTES_MAX).read_to_end(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_worker_is_told_from_other_programs() {
        assert_eq!(parse("samovar-php 0.1.0 (PHP 8.2.29)\n"), Some(("0.1.0", "8.2.29")));
        assert_eq!(parse("PHP 8.2.29 (cli) (built: now)"), None);
        let folder = std::env::temp_dir().join(format!("samovar-binary-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let own = env!("CARGO_PKG_VERSION");
        for (at, (script, expected)) in [
            (format!("echo 'samovar-php {own} (PHP 8.2.9)'"), Ok("8.2.9")),
            ("echo 'PHP 8.2.9 (cli)'".to_owned(), Err("it is no samovar-php")),
            ("echo 'samovar-php 0.0.1 (PHP 8.2.9)'".to_owned(), Err("it belongs to samovar 0.0.1")),
            ("echo why >&2; exit 3".to_owned(), Err("exited with status 3: why")),
            // A child of it keeps the pipe.
            (format!("sleep 5 & echo 'samovar-php {own} (PHP 8.2.9)'"), Ok("8.2.9")),
        ]
        .into_iter()
        .enumerate()
        {
            let file = folder.join(at.to_string());
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("our own folder");
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("our own");
            match (version(&file), expected) {
                (Ok(php), Ok(expected)) => assert_eq!(php, expected),
                (Err(error), Err(expected)) => {
                    assert!(format!("{error:#}").contains(expected), "{script}: {error:#}");
                }
                (got, _) => panic!("{script}: {got:?}"),
            }
        }
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
}
