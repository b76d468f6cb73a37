//! Check whether a binary from the settings is a worker of this server, before it is used as one.

use anyhow::{Result, anyhow, bail};
use samovar_config::{PhpBinary, Settings};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for the binary to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Hint for a binary that does not print it.
const HINT: &str =
    "--php-binary takes a samovar-php that runs on this machine, or a version such as 8.2";
/// Interval at which the process's end is checked.
const LOOK: Duration = Duration::from_millis(2);
/// Maximum bytes read of its output: less than a pipe's capacity, so the process never blocks on
/// the reader.
const WORDS_BYTES_MAX: u64 = 16 * 1024;

/// Checks a binary that the settings name by its path. A binary found by name is not checked.
pub(crate) fn recognise(settings: &Settings, program: &Path) -> Result<()> {
    if matches!(settings.php_binary, Some(PhpBinary::Path(_))) {
        version(program)?;
    }
    Ok(())
}

/// Returns the PHP version that a worker binary was built for.
pub(crate) fn version(program: &Path) -> Result<String> {
    let what = || format!("cannot use `{}` as a worker", program.display());
    let said = ask(program, &["--version".into()], None, HINT)
        .map_err(|error| anyhow!("{}: {error}", what()))?;
    let Some((own, php)) = parse(&said) else {
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        bail!(
            "{}: it is not a samovar-php; its response to --version: {first}\nhint: --php-binary \
             takes a samovar-php, which includes PHP, or a version such as 8.2; PHP's own binary \
             does not work",
            what()
        );
    };
    if own != env!("CARGO_PKG_VERSION") {
        let ours = env!("CARGO_PKG_VERSION");
        bail!(
            "{}: its version is samovar {own}, this is samovar {ours}\nhint: install both from \
             the same release",
            what()
        );
    }
    Ok(php.to_owned())
}

/// Parses its version and PHP's version: `samovar-php 0.1.0 (PHP 8.2.29)`.
fn parse(said: &str) -> Option<(&str, &str)> {
    let rest = said.trim().strip_prefix("samovar-php ")?;
    rest.strip_suffix(')')?.split_once(" (PHP ")
}

/// Runs the program with these arguments and an additional environment variable. Returns its
/// output.
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
                // The process may have ended already; the error is ignored.
                let _ = child.kill();
                let _ = child.wait();
                bail!("it did not print its version within {} s", VERSION_LIMIT.as_secs());
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let said = output(&mut child);
    if !status.success() {
        let code =
            status.code().map_or("was killed".to_owned(), |c| format!("exited with status {c}"));
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        bail!("it {code} when called with --version: {last}\nhint: {hint}");
    }
    Ok(said)
}

/// Reads the process's output, up to the limit. Its children may keep the pipes open, so the
/// function does not wait for their end.
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
        // An empty, open pipe returns an error, which ends the read.
        let _ = std::fs::File::from(own).take(WORDS_BYTES_MAX).read_to_end(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn version_accepts_only_worker_binaries() {
        assert_eq!(parse("samovar-php 0.1.0 (PHP 8.2.29)\n"), Some(("0.1.0", "8.2.29")));
        assert_eq!(parse("PHP 8.2.29 (cli) (built: now)"), None);
        let folder = std::env::temp_dir().join(format!("samovar-binary-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let own = env!("CARGO_PKG_VERSION");
        for (at, (script, expected)) in [
            (format!("echo 'samovar-php {own} (PHP 8.2.9)'"), Ok("8.2.9")),
            ("echo 'PHP 8.2.9 (cli)'".to_owned(), Err("it is not a samovar-php")),
            (
                "echo 'samovar-php 0.0.1 (PHP 8.2.9)'".to_owned(),
                Err("its version is samovar 0.0.1"),
            ),
            (
                "echo why >&2; exit 3".to_owned(),
                Err("it exited with status 3 when called with --version: why"),
            ),
            // A child process keeps the pipe open.
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
