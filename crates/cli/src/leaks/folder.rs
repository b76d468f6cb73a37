//! Folder for the workers' censuses: private, and removed at the end of the command.

use super::heap_walk::HeapWalk;
use super::holdings;
use anyhow::{Context, Result, bail};
use samovar_config::Settings;
use samovar_server::rights;
use samovar_supervisor::identity::effective_uid;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Timeout for a heap walk. A worker writes it before it finishes its request; after an early end
/// of the response it writes it later.
const HEAP_WALK_LIMIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Time without a heap walk after which the server is asked whether the worker is gone. Mostly the
/// file is there earlier, and the question takes more CPU time than a look at a file.
const ASK_AFTER: Duration = Duration::from_millis(50);
/// Maximum bytes of a file name, as in report.c.
const NAME_BYTES_MAX: usize = 64;
/// Prefix of the folder's name; the command's process id follows.
const PREFIX: &str = "samovar-leaks-";
/// Maximum number of entries checked in the folder for temporary files.
const ENTRIES_MAX: usize = 10_000;

/// Removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(settings: &Settings) -> Result<Folder> {
        remove_abandoned();
        let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot create the folder `{}`", path.display()))?;
        let folder = Folder(path);
        if let Some(user) = rights::identity(settings)? {
            chown(&folder.0, Some(user.uid), Some(user.gid)).with_context(|| {
                format!("cannot change the owner of `{}` to `{}`", folder.0.display(), user.name)
            })?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads and removes the heap walk of a request. Returns `None` if there is none within the
    /// timeout, or when `is_over` returns true.
    pub(super) fn take(
        &self,
        id: &str,
        is_over: impl FnMut() -> Result<bool>,
    ) -> Result<Option<HeapWalk>> {
        let Some(file) = self.wait(id, is_over)? else { return Ok(None) };
        let mut heap_walk = HeapWalk::read(&file)?;
        holdings::group(&mut heap_walk);
        std::fs::remove_file(&file).context("cannot remove a heap walk")?;
        Ok(Some(heap_walk))
    }

    /// Removes the heap walk of a request. Returns `false` if there is none, as for `take`.
    pub(super) fn skip(&self, id: &str, is_over: impl FnMut() -> Result<bool>) -> Result<bool> {
        let Some(file) = self.wait(id, is_over)? else { return Ok(false) };
        std::fs::remove_file(&file).context("cannot remove a heap walk")?;
        Ok(true)
    }

    /// Waits for the heap walk of a request, and returns its file.
    fn wait(&self, id: &str, mut is_over: impl FnMut() -> Result<bool>) -> Result<Option<PathBuf>> {
        let file = self.0.join(format!("{}.census", file_name(id)));
        let begun = Instant::now();
        while !file.exists() {
            let waited = begun.elapsed();
            if waited > HEAP_WALK_LIMIT {
                return Ok(None);
            }
            if waited > ASK_AFTER && is_over()? && !file.exists() {
                return Ok(None);
            }
            sleep(LOOK_EVERY);
        }
        Ok(Some(file))
    }

    /// Reads the heap walk that a worker wrote before its first request.
    pub(super) fn image(&self, process: u32) -> Result<HeapWalk> {
        match self.take(&format!("begin-{process}"), || Ok(true))? {
            Some(heap_walk) => Ok(heap_walk),
            None => bail!("the worker {process} wrote no heap walk before its first request"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes folders of this user's commands that were killed.
fn remove_abandoned() {
    let all = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in all.take(ENTRIES_MAX) {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok());
        let is_ours =
            entry.metadata().is_ok_and(|info| info.is_dir() && info.uid() == effective_uid());
        if is_ours && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Another command may be removing it.
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
    fn request_id_cannot_form_a_path() {
        assert_eq!(file_name("../../etc/a b"), "------etc-a-b");
        assert_eq!(file_name(&"x".repeat(500)).len(), NAME_BYTES_MAX);
    }
}
