//! inotify → changed files, in batches: an editor or a checkout changes several files at once.

use super::changes::{Change, Kind, is_watched, kind};
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum number of watched folders.
const FOLDERS_MAX: usize = 20_000;
/// Maximum depth of a watched folder below the project.
const DEPTH_MAX: usize = 32;
/// Time without a further change after which a batch is complete.
const QUIET: Duration = Duration::from_millis(20);
/// Maximum time in which a batch is collected.
const BATCH_LIMIT: Duration = Duration::from_millis(250);
/// Maximum number of files in a batch: of more changes, only these are reported.
pub const BATCH_FILES_MAX: usize = 1_000;
const BUFFER_BYTES: usize = 64 * 1024;

/// Watched folders of a project.
pub struct Watch {
    inotify: OwnedFd,
    project: PathBuf,
    ignored: Vec<String>,
    folders: HashMap<i32, PathBuf>,
    warning: Option<String>,
    is_full: bool,
    buffer: Box<[MaybeUninit<u8>]>,
}

impl Watch {
    /// Starts to watch the project, without folders of these names and the usual ones of
    /// dependencies, caches and logs.
    ///
    /// # Errors
    /// The user has too many watches.
    pub fn open(project: &Path, ignored: &[String]) -> Result<Watch> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).context(
            "cannot watch the project\nhint: raise fs.inotify.max_user_instances with sysctl",
        )?;
        let mut watch = Watch {
            inotify,
            project: project.to_owned(),
            ignored: ignored.to_vec(),
            folders: HashMap::new(),
            warning: None,
            is_full: false,
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES].into(),
        };
        watch.add(project, &mut Vec::new());
        Ok(watch)
    }

    /// Returns the number of watched folders.
    pub fn folders(&self) -> usize {
        self.folders.len()
    }

    /// Returns a warning that was not returned before.
    pub fn warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// Waits for changes that matter. Each file is reported once.
    ///
    /// # Errors
    /// The system reports no more changes.
    pub fn wait(&mut self) -> rustix::io::Result<Vec<Change>> {
        let mut changed = Vec::new();
        let mut begun = None;
        loop {
            let limit =
                begun.map(|begun: Instant| QUIET.min(BATCH_LIMIT.saturating_sub(begun.elapsed())));
            if !self.poll(limit)? {
                return Ok(changed);
            }
            self.read(&mut changed)?;
            if begun.is_none() && !changed.is_empty() {
                begun = Some(Instant::now());
            }
            if begun.is_some_and(|begun| begun.elapsed() >= BATCH_LIMIT) {
                return Ok(changed);
            }
        }
    }

    /// Waits for events; returns false if there are none within the limit.
    fn poll(&self, limit: Option<Duration>) -> rustix::io::Result<bool> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        loop {
            match poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], limit.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read(&mut self, changed: &mut Vec<Change>) -> rustix::io::Result<()> {
        let mut new = Vec::new();
        let mut is_incomplete = false;
        let mut reader = Reader::new(&self.inotify, &mut self.buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                is_incomplete = true;
                continue;
            }
            if what.contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
                continue;
            }
            let Some(folder) = self.folders.get(&event.wd()) else { continue };
            let Some(name) = event.file_name() else { continue };
            let name = OsStr::from_bytes(name.to_bytes());
            let path = folder.join(name);
            if !what.contains(ReadFlags::ISDIR) {
                note(changed, path);
            } else if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
                && is_watched(name, &self.ignored)
            {
                new.push(path);
            }
        }
        for folder in new {
            // Its files may have been written before it was watched.
            let mut files = Vec::new();
            self.add(&folder, &mut files);
            for file in files {
                note(changed, file);
            }
        }
        if is_incomplete {
            let project = self.project.clone();
            self.add(&project, &mut Vec::new());
            changed.push(Change { path: project, kind: Kind::Code });
        }
        Ok(())
    }

    /// Watches a folder and all folders in it. Adds the files that are already there.
    fn add(&mut self, folder: &Path, files: &mut Vec<PathBuf>) {
        let mut open = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = open.pop() {
            if !self.add_one(&folder) {
                return;
            }
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                // Links are not followed: they may form a circle.
                let Ok(is) = entry.file_type() else { continue };
                let path = entry.path();
                if is.is_dir() && depth < DEPTH_MAX && is_watched(&entry.file_name(), &self.ignored)
                {
                    open.push((path, depth + 1));
                } else if is.is_file() && files.len() < BATCH_FILES_MAX {
                    files.push(path);
                }
            }
        }
    }

    /// Watches one folder; returns false if there is no room for any more.
    fn add_one(&mut self, folder: &Path) -> bool {
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        if self.folders.len() >= FOLDERS_MAX {
            self.fills_up(
                &format!("{FOLDERS_MAX} folders"),
                "pass --ignore NAME for folders that \
                 need not be watched, or start samovar dev in a smaller folder",
            );
            return false;
        }
        match inotify::add_watch(&self.inotify, folder, flags) {
            Ok(watch) => {
                self.folders.insert(watch, folder.to_owned());
                true
            }
            Err(Errno::NOSPC) => {
                self.fills_up(
                    "the kernel's limit",
                    "sysctl fs.inotify.max_user_watches=524288 \
                     raises it; --ignore NAME leaves out folders that need not be watched",
                );
                false
            }
            // It was removed meanwhile, or is not readable.
            Err(_) => true,
        }
    }

    fn fills_up(&mut self, limit: &str, hint: &str) {
        if !std::mem::replace(&mut self.is_full, true) {
            let watched = self.folders.len();
            self.warning = Some(format!(
                "only {watched} folders are watched, because of {limit}: changes elsewhere are not \
                 noticed\nhint: {hint}"
            ));
        }
    }
}

/// Adds a file to a batch if it matters.
fn note(changed: &mut Vec<Change>, path: PathBuf) {
    if changed.len() < BATCH_FILES_MAX
        && let Some(kind) = kind(&path)
        && !changed.iter().any(|change| change.path == path)
    {
        changed.push(Change { path, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(changed: Vec<Change>, folder: &Path) -> Vec<String> {
        let name =
            |change: Change| change.path.strip_prefix(folder).expect("below").display().to_string();
        let mut names: Vec<_> = changed.into_iter().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn changes_are_reported_once_also_in_new_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path();
        std::fs::create_dir_all(project.join("vendor/a")).expect("our folder");
        std::fs::create_dir(project.join("src")).expect("our folder");
        let mut watch = Watch::open(project, &[]).expect("inotify");
        assert_eq!(watch.folders(), 2);
        let write = |name: &str| std::fs::write(project.join(name), "<?php").expect("our folder");
        write("vendor/a/a.php");
        write("src/a.txt");
        write("src/a.php");
        write("src/a.php");
        assert_eq!(names(watch.wait().expect("events"), project), ["src/a.php"]);
        std::fs::create_dir_all(project.join("src/new/deep")).expect("our folder");
        write("src/new/deep/b.php");
        assert_eq!(names(watch.wait().expect("events"), project), ["src/new/deep/b.php"]);
        write("src/.c.php.tmp");
        std::fs::rename(project.join("src/.c.php.tmp"), project.join("src/c.php"))
            .expect("our folder");
        assert_eq!(names(watch.wait().expect("events"), project), ["src/c.php"]);
        std::fs::remove_file(project.join("src/c.php")).expect("our folder");
        assert_eq!(names(watch.wait().expect("events"), project), ["src/c.php"]);
        assert_eq!(watch.warning(), None);
    }
}
