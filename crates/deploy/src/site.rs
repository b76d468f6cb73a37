//! The folder of an application: its releases, its link, and the lock of a deploy.

use crate::disk::{remove_tree, sync};
use crate::error::Error;
use crate::state::{Release, State};
use rustix::fs::{FlockOperation, flock, syncfs};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Maximum length of a release's name, bytes.
const NAME_MAX: usize = 64;
/// Prefix of a folder that is being unpacked.
const PARTIAL: &str = ".partial-";
/// Prefix of a release that is being removed.
const REMOVED: &str = ".removed-";

/// Name of a release: up to 64 letters, digits, `.`, `_` and `-`; the first is a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// Returns the name of a release that has none: the time, such as `20261129T011530Z`.
    pub fn now() -> Name {
        Name(jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Name, Error> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_name = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
            && text.len() <= NAME_MAX
            && text.bytes().all(is_allowed);
        if is_name {
            return Ok(Name(text.to_owned()));
        }
        Err(Error::new(format!(
            "`{text}` cannot be the name of a release\nhint: use up to {NAME_MAX} letters, digits, \
             `.`, `_` and `-`; the first must be a letter or a digit"
        )))
    }
}

/// The folder of an application.
#[derive(Clone, Debug)]
pub struct Site {
    folder: PathBuf,
    /// Name of the link to the release that serves.
    link: String,
}

/// Lock of a site: one deploy at a time. It ends with the value, and with the process.
pub(crate) struct Lock(File);

impl Lock {
    /// Returns an input without content that holds the lock, too.
    pub(crate) fn input(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child between its fork and its exec has the same open file.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Site {
    /// Creates the value. `folder` is absolute; `link` is the name of the link to the release that
    /// serves.
    pub fn new(folder: PathBuf, link: &str) -> Result<Site, Error> {
        let is_plain =
            Path::new(link).file_name() == Some(OsStr::new(link)) && !link.starts_with('.');
        if !is_plain || ["releases", "shared"].contains(&link) {
            return Err(Error::new(format!(
                "`{link}` cannot be the name of the link\nhint: use a name without `/`, such as \
                 `current`"
            )));
        }
        Ok(Site { folder, link: link.to_owned() })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the link.
    pub fn link(&self) -> PathBuf {
        self.folder.join(&self.link)
    }

    /// Returns the folder of a release.
    pub fn release(&self, name: &Name) -> PathBuf {
        self.releases().join(&name.0)
    }

    pub(crate) fn shared(&self) -> PathBuf {
        self.folder.join("shared")
    }

    fn releases(&self) -> PathBuf {
        self.folder.join("releases")
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.releases().join(".state.json")
    }

    /// Returns the state of the releases whose folders exist, the oldest first.
    pub(crate) fn state(&self) -> Result<State, Error> {
        let mut state = State::read(&self.state_file())?;
        let mut seen = BTreeSet::new();
        state.releases.retain(|release| {
            seen.insert(release.name.clone())
                && release.name.parse::<Name>().is_ok_and(|name| self.release(&name).is_dir())
        });
        Ok(state)
    }

    /// Returns the releases, the newest deploy first.
    pub fn list(&self) -> Result<Vec<Release>, Error> {
        let current = self.current()?;
        let mut releases = self.state()?.releases;
        for release in &mut releases {
            release.is_current = current.as_ref().is_some_and(|name| name.0 == release.name);
        }
        releases.reverse();
        Ok(releases)
    }

    /// Creates the folders, and locks the site. Removes the remains of a killed deploy.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        let releases = self.releases();
        fs::create_dir_all(&releases).map_err(|e| Error::file("create", &releases, &e))?;
        let path = releases.join(".lock");
        // Readable, because it is the empty input of commands: these keep the lock after a kill.
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| Error::file("open", &path, &error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Error::new(format!(
                    "another deploy to `{}` is in progress\nhint: wait until it has ended",
                    self.folder.display()
                )));
            }
            Err(error) => return Err(Error::file("lock", &path, &error.into())),
        }
        let entries = fs::read_dir(&releases).map_err(|e| Error::file("read", &releases, &e))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PARTIAL) || name.starts_with(REMOVED) {
                // Files of PHP's user may stay: they must not stop a deploy or a rollback.
                let _ = remove_tree(&entry.path());
            }
        }
        Ok(Lock(file))
    }

    /// Creates the folder in which a release is unpacked.
    pub(crate) fn begin(&self, name: &Name) -> Result<PathBuf, Error> {
        let folder = self.release(name);
        if folder.symlink_metadata().is_ok() {
            return Err(Error::new(format!(
                "the release `{}` exists already\nhint: choose another --name, or run `samovar \
                 rollback {0}` to serve it",
                name.0
            )));
        }
        let partial = self.releases().join(format!("{PARTIAL}{}-{}", name.0, std::process::id()));
        fs::create_dir(&partial).map_err(|error| Error::file("create", &partial, &error))?;
        Ok(partial)
    }

    /// Gives an unpacked release its final name.
    pub(crate) fn finish(&self, partial: &Path, name: &Name) -> Result<PathBuf, Error> {
        // After a power loss, the link must not name empty files.
        let written = File::open(partial).and_then(|file| Ok(syncfs(&file)?));
        written.map_err(|error| Error::file("write to disk:", partial, &error))?;
        let folder = self.release(name);
        fs::rename(partial, &folder).map_err(|error| Error::file("rename", partial, &error))?;
        sync(&self.releases())?;
        Ok(folder)
    }

    /// Removes a release. A kill in between leaves a folder that the next deploy removes.
    pub(crate) fn remove(&self, name: &Name) -> Result<(), Error> {
        let folder = self.release(name);
        let removed = self.releases().join(format!("{REMOVED}{}-{}", name.0, std::process::id()));
        fs::rename(&folder, &removed).map_err(|error| Error::file("rename", &folder, &error))?;
        remove_tree(&removed)
    }

    /// Returns the target of the link; `None`: there is no link yet.
    pub(crate) fn target(&self) -> Result<Option<PathBuf>, Error> {
        let link = self.link();
        match fs::read_link(&link) {
            Ok(target) => Ok(Some(target)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Error::new(format!(
                "`{}` is not a symbolic link\nhint: move it away, or choose another name with \
                 --link",
                link.display()
            ))),
            Err(error) => Err(Error::file("read", &link, &error)),
        }
    }

    /// Returns the release that the link names.
    pub(crate) fn current(&self) -> Result<Option<Name>, Error> {
        let Some(target) = self.target()? else { return Ok(None) };
        let is_release = self.folder.join(&target).parent().is_some_and(|parent| {
            parent == self.releases()
                || parent.canonicalize().ok() == self.releases().canonicalize().ok()
        });
        let name = target.file_name().and_then(OsStr::to_str).and_then(|name| name.parse().ok());
        Ok(name.filter(|_| is_release))
    }

    /// Switches the link to a release, in one step.
    pub(crate) fn switch_to(&self, name: &Name) -> Result<(), Error> {
        self.switch(&Path::new("releases").join(&name.0))
    }

    /// Switches the link to this target, in one step.
    pub(crate) fn switch(&self, target: &Path) -> Result<(), Error> {
        let link = self.link();
        let new = self.folder.join(format!(".{}.new", self.link));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::file("remove", &new, &error));
            }
            _ => {}
        }
        symlink(target, &new).map_err(|error| Error::file("create", &new, &error))?;
        fs::rename(&new, &link).map_err(|error| Error::file("switch", &link, &error))?;
        sync(&self.folder)
    }

    /// Puts the link back to `before`, or removes it if there was none.
    pub(crate) fn restore(&self, before: Option<&Path>) -> Result<(), Error> {
        match before {
            Some(target) => self.switch(target),
            None => {
                fs::remove_file(self.link()).map_err(|e| Error::file("remove", &self.link(), &e))
            }
        }
    }
}
