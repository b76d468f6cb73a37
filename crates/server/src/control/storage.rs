//! Free space of the folders that the server writes to, for the health check. A thread measures it,
//! because the measurement can hang on a network file system.

use anyhow::Result;
use rustix::fs::{stat, statvfs};
use samovar_config::{LogTarget, Settings};
use samovar_wire::StorageStatus;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Time between two measurements.
const STEP: Duration = Duration::from_secs(5);

/// A folder, and the setting that names it.
type Folder = (&'static str, PathBuf);

/// Free space at the last measurement.
#[derive(Clone)]
pub(crate) struct Storage(Arc<Mutex<Vec<StorageStatus>>>);

impl Storage {
    /// Starts the thread. It ends when the last clone is dropped.
    pub(crate) fn start(settings: &Settings) -> Result<Storage> {
        let (measured, folders) = (Arc::default(), folders(settings));
        let weak = Arc::downgrade(&measured);
        std::thread::Builder::new().name("storage".into()).spawn(move || run(&weak, &folders))?;
        Ok(Storage(measured))
    }

    /// Returns one entry for each file system; none before the first measurement.
    pub(crate) fn status(&self) -> Vec<StorageStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn run(measured: &Weak<Mutex<Vec<StorageStatus>>>, folders: &[Folder]) {
    loop {
        let all = measure(folders);
        let Some(measured) = measured.upgrade() else { return };
        *measured.lock().unwrap_or_else(PoisonError::into_inner) = all;
        drop(measured);
        std::thread::sleep(STEP);
    }
}

fn folders(settings: &Settings) -> Vec<Folder> {
    let issued = !settings.acme.domains.is_empty();
    let mut folders = vec![("temp_dir", settings.temp_dir.clone())];
    folders.extend(issued.then(|| ("acme.folder", settings.acme.folder.clone())));
    let files = [
        ("jobs.store", has_store(settings).then_some(&*settings.jobs.store)),
        ("insight.store", settings.insight.store.as_deref()),
        ("log", file_of(&settings.log)),
        ("access_log", file_of(&settings.access_log)),
        ("insight.slow_log", file_of(&settings.insight.slow_log)),
    ];
    folders.extend(files.into_iter().filter_map(|(setting, file)| folder_of(setting, file)));
    folders
}

/// Whether there is a file of jobs.
fn has_store(settings: &Settings) -> bool {
    settings.jobs.redis.is_none() && settings.pools.iter().any(|pool| pool.queue.is_some())
}

fn folder_of(setting: &'static str, file: Option<&Path>) -> Option<Folder> {
    Some((setting, file?.parent()?.to_owned()))
}

fn file_of(log: &LogTarget) -> Option<&Path> {
    match log {
        LogTarget::File(file) => Some(file),
        _ => None,
    }
}

/// Measures each file system once. Folders that cannot be read are left out: their users report
/// the error.
fn measure(folders: &[Folder]) -> Vec<StorageStatus> {
    let (mut all, mut devices) = (Vec::new(), Vec::new());
    for (setting, folder) in folders {
        let (Ok(of), Ok(space)) = (stat(folder), statvfs(folder)) else { continue };
        if devices.contains(&of.st_dev) {
            continue;
        }
        devices.push(of.st_dev);
        all.push(StorageStatus {
            setting: (*setting).to_owned(),
            folder: folder.display().to_string(),
            bytes: space.f_blocks.saturating_mul(space.f_frsize),
            bytes_free: space.f_bavail.saturating_mul(space.f_frsize),
            files: space.f_files,
            files_free: space.f_favail,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_system_is_measured_once() {
        let folders = ["/tmp", "/tmp/", "/no/such/folder"];
        let all = measure(&folders.map(|folder| ("temp_dir", folder.into())));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].bytes > 0 && all[0].bytes_free <= all[0].bytes, "{all:?}");
    }

    #[test]
    fn folders_of_log_files_are_measured() {
        let log = LogTarget::File("/var/log/shop/access.log".into());
        let found = folder_of("access_log", file_of(&log));
        assert_eq!(found, Some(("access_log", "/var/log/shop".into())));
        assert_eq!(folder_of("log", file_of(&LogTarget::Stderr)), None);
    }
}
