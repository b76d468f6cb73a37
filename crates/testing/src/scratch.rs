//! Files of a run, in a folder that is removed at its end.

use anyhow::{Context, Result};
use samovar_channel::TEST_FILES_PREFIX;
use std::fs::{DirBuilder, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of entries of the folder of temporary files that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// Maximum length of a file with results, bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The folder.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Scratch> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{TEST_FILES_PREFIX}{}-{now}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        remove_old(&std::env::temp_dir());
        // Only this user may read the output of the tests. An existing folder is an error.
        DirBuilder::new().mode(0o700).create(&folder).with_context(|| {
            format!("cannot create the folder `{}`\nhint: set TMPDIR", folder.display())
        })?;
        // The driver compares paths of files that are in it.
        Ok(Scratch(folder.canonicalize().unwrap_or(folder)))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &[u8]) -> Result<PathBuf> {
        let file = self.file(name);
        std::fs::write(&file, text)
            .with_context(|| format!("cannot write `{}`\nhint: set TMPDIR", file.display()))?;
        Ok(file)
    }
}

/// Removes the folders of this user's runs that were killed.
fn remove_old(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten().take(ENTRIES_MAX) {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(TEST_FILES_PREFIX))
            .and_then(|rest| rest.split_once('-').and_then(|(pid, _)| pid.parse::<u32>().ok()));
        let is_over = pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        let is_own = |about: std::fs::Metadata| about.is_dir() && about.uid() == own;
        if is_over && entry.metadata().is_ok_and(is_own) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays is in the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads a file that a unit has written.
pub(crate) fn read(file: &Path) -> Result<String> {
    let bytes = file.metadata()?.len();
    anyhow::ensure!(
        bytes <= FILE_BYTES_MAX,
        "the file has {bytes} bytes; the maximum is {FILE_BYTES_MAX}"
    );
    Ok(String::from_utf8_lossy(&std::fs::read(file)?).into_owned())
}

/// Reads the last bytes of a file, as text.
pub(crate) fn tail(file: &Path, bytes_max: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(bytes_max)))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
