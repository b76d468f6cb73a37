//! The versions of an upgrade: flags, composer.json, the installed PHP.

use crate::usage_error::Early;
use samovar_migrate::{Version, composer_minimum};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum size of a composer.json.
const COMPOSER_BYTES_MAX: u64 = 16 << 20;

/// Converts the value of a flag.
pub(super) fn version(value: Option<&String>, flag: &str) -> Result<Option<Version>, Early> {
    let parsed = value.map(|value| value.parse::<Version>()).transpose();
    parsed.map_err(|error| Early::Wrong(format!("samovar: --{flag}: {error}")))
}

/// Version of the code without `--from`, and where it is from.
pub(super) fn current(paths: &[PathBuf]) -> (Version, String) {
    let folders = paths.iter().filter(|path| path.is_dir()).map(PathBuf::as_path);
    for folder in folders.chain([Path::new(".")]) {
        let file = folder.join("composer.json");
        let is_small = file.metadata().is_ok_and(|data| data.len() <= COMPOSER_BYTES_MAX);
        if let Some(text) = is_small.then(|| std::fs::read(&file).ok()).flatten()
            && let Some((version, constraint)) = composer_minimum(&text)
        {
            return (version, format!("{} requires PHP {constraint}", file.display()));
        }
    }
    match installed() {
        Some(version) => (version, "the command php has this version".to_owned()),
        None => (Version::oldest(), "neither composer.json nor the command php says it".to_owned()),
    }
}

/// Version of the command `php`.
fn installed() -> Option<Version> {
    let mut php = Command::new("php");
    php.args(["-n", "-r", "echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;"]);
    let output = php.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}
