//! The folder into which workers write their censuses: nobody else's, and gone with this command.

use super::census::Census;
use super::holdings;
use crate::rights;
use anyhow::{Context, Result, bail};
use samovar_config::Settings;
use samovar_supervisor::identity::effective_uid;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A worker writes before it has finished its request; one that ends its answer early writes later.
const CENSUS_LIMIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Of a name: as report.c has it.
const NAME_BYTES_MAX: usize = 64;
/// The number of the command follows.
const PREFIX: &str = "samovar-leaks-";
/// Of the folder for temporary files.
const ENTRIES_MAX: usize = 10_000;

/// Removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(settings: &Settings) -> Result<Folder> {
        remove_abandoned();
        let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make the folder `{}`", path.display()))?;
        let folder = Folder(path);
        if let Some(user) = rights::identity(settings)? {
            chown(&folder.0, Some(user.uid), Some(user.gid)).with_context(|| {
                format!("cannot give `{}` to `{}`", folder.0.display(), user.name)
            })?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What the worker has written for a request, and removes it; `None`: nothing within the limit, or `is_over`.
    pub(super) fn take(
        &self,
        id: &str,
        mut is_over: impl FnMut() -> Result<bool>,
    ) -> Result<Option<Census>> {
        let file = self.0.join(format!("{}.census", file_name(id)));
        let begun = Instant::now();
        while !file.exists() {
            if begun.elapsed() > CENSUS_LIMIT || (is_over()? && !file.exists()) {
                return Ok(None);
            }
            sleep(LOOK_EVERY);
        }
        let mut census = Census::read(&file)?;
        holdings::group(&mut census);
        std::fs::remove_file(&file).context("cannot remove a census")?;
        Ok(Some(census))
    }

    /// What a worker has written before its first request.
    pub(super) fn image(&self, process: u32) -> Result<Census> {
        match self.take(&format!("begin-{process}"), || Ok(true))? {
            Some(census) => Ok(census),
            None => bail!("the worker {process} has not written what it began with"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in a folder for temporary files is somebody else's to tidy.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Those of commands that were killed, and are this user's.
fn remove_abandoned() {
    let all = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in all.take(ENTRIES_MAX) {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok());
        let is_ours =
            entry.metadata().is_ok_and(|info| info.is_dir() && info.uid() == effective_uid());
        if is_ours && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else may be about it.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn file_name(id: &str) -> String {
    let plain = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '-' };
    id.bytes().take(NAME_BYTES_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_path() {
        assert_eq!(file_name("../../etc/a b"), "------etc-a-b");
        assert_eq!(file_name(&"x".repeat(500)).len(), NAME_BYTES_MAX);
    }
}
