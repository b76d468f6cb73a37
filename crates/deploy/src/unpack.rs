//! An archive → files below one folder. The archive may be hostile: no entry may leave the folder.

use crate::error::Error;
use crate::picked::Picked;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};
use tar::{Archive, Entry, EntryType};

/// Maximum number of entries of an archive.
const ENTRIES_MAX: u64 = 2_000_000;
/// Maximum size of all files of an archive, bytes: 64 GiB.
const BYTES_MAX: u64 = 64 << 30;

/// Maximum size of the names and attributes of an entry, bytes: the library keeps them in memory.
const HEADERS_MAX: u64 = 1 << 20;
/// Maximum size of the zeros after the last entry, bytes.
const TAIL_MAX: u64 = 64 << 20;
/// Maximum length of a path in an error, characters.
const SHOWN_MAX: usize = 300;
/// Size of the buffer of a file, bytes.
const BUFFER: usize = 128 << 10;
/// Size of a block of an archive, bytes. An archive ends with a block of zeros.
const BLOCK: u64 = 512;

/// Progress in the archive since the end of the last entry's data.
#[derive(Default)]
struct Progress {
    /// Zeros at the end of the bytes so far.
    zeros: Cell<u64>,
    /// Number of bytes that may be read.
    budget: Cell<u64>,
}

/// The archive, whose reader may not go on for ever.
struct Limited<R> {
    input: R,
    progress: Rc<Progress>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Progress { zeros, budget } = &*self.progress;
        let limit = usize::try_from(budget.get()).unwrap_or(usize::MAX).min(buffer.len());
        if limit == 0 && !buffer.is_empty() {
            let why = "the names and attributes of an entry have more than 1 MiB";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let count = self.input.read(&mut buffer[..limit])?;
        let tail = buffer[..count].iter().rev().take_while(|byte| **byte == 0).count();
        zeros.set(if tail == count { zeros.get() + tail as u64 } else { tail as u64 });
        budget.set(budget.get() - count as u64);
        Ok(count)
    }
}

/// Unpacks the archive into the empty folder `to`. Returns the number of files.
pub(crate) fn unpack(archive: impl Read, to: &Path, picked: &Picked) -> Result<u64, Error> {
    let progress = Rc::new(Progress::default());
    let mut archive = Archive::new(Limited { input: archive, progress: Rc::clone(&progress) });
    let (mut entries, mut files, mut bytes) = (0u64, 0u64, 0u64);
    // A folder that the archive makes read-only must take files until the end.
    let mut folders: Vec<(PathBuf, u32)> = Vec::new();
    progress.budget.set(HEADERS_MAX);
    for entry in archive.entries().map_err(|error| broken(&error))? {
        let mut entry = entry.map_err(|error| broken(&error))?;
        progress.budget.set(entry.size().saturating_add(HEADERS_MAX));
        entries += 1;
        bytes = bytes.saturating_add(entry.size());
        if entries > ENTRIES_MAX || bytes > BYTES_MAX {
            return Err(Error::new(format!(
                "the archive has more than {ENTRIES_MAX} entries or more than {} GiB",
                BYTES_MAX >> 30
            )));
        }
        let kind = entry.header().entry_type();
        let path = wanted(&entry, picked)?.filter(|_| kind != EntryType::XGlobalHeader);
        let Some(path) = path else {
            finish(&mut entry, &progress)?;
            continue;
        };
        let target = to.join(&path);
        match kind {
            EntryType::Directory => {
                make_folder(to, &path)?;
                let mode = entry.header().mode().unwrap_or(0o755) & 0o777;
                folders.push((target, mode));
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                write(&mut entry, to, &path)?;
                files += 1;
            }
            EntryType::Symlink => {
                link(&entry, to, &path)?;
                files += 1;
            }
            EntryType::Link => {
                hard_link(&entry, to, &path, picked)?;
                files += 1;
            }
            _ => {
                return Err(Error::new(format!(
                    "the archive has the entry `{}`, which is neither a file nor a folder nor a \
                     link\nhint: leave it out with --exclude",
                    shown(&path)
                )));
            }
        }
        finish(&mut entry, &progress)?;
    }
    if progress.zeros.get() < BLOCK {
        return Err(broken(&io::Error::new(io::ErrorKind::UnexpectedEof, "it has no end")));
    }
    // This checks the checksum of a compressed file, and lets the sender write its last block.
    let rest = archive.into_inner().input.take(TAIL_MAX);
    io::copy(&mut { rest }, &mut io::sink()).map_err(|error| broken(&error))?;
    if files == 0 {
        return Err(Error::new(
            "the archive has no files\nhint: check --strip and --exclude, and that it is a .tar, \
             .tar.gz or .tar.zst file",
        ));
    }
    for (folder, mode) in folders.iter().rev() {
        // The owner can always write: another release must be able to replace this one.
        let mode = fs::Permissions::from_mode(mode | 0o700);
        fs::set_permissions(folder, mode)
            .map_err(|e| Error::file("set the mode of", folder, &e))?;
    }
    Ok(files)
}

/// Reads the rest of an entry's data, so that zeros after it belong to the archive.
fn finish<R: Read>(entry: &mut Entry<'_, R>, progress: &Progress) -> Result<(), Error> {
    io::copy(entry, &mut io::sink()).map_err(|error| broken(&error))?;
    progress.zeros.set(0);
    progress.budget.set(HEADERS_MAX);
    Ok(())
}

fn broken(error: &io::Error) -> Error {
    Error::new(format!(
        "cannot read the archive: {error}\nhint: check that it is complete, and that it is a .tar, \
         .tar.gz or .tar.zst file"
    ))
}

fn shown(path: &Path) -> String {
    let text = path.to_string_lossy().escape_debug().take(SHOWN_MAX).collect::<String>();
    if text.chars().count() == SHOWN_MAX { text + "…" } else { text }
}

/// Returns the path of an entry within the release; `None`: it is left out.
fn wanted<R: Read>(entry: &Entry<'_, R>, picked: &Picked) -> Result<Option<PathBuf>, Error> {
    let path = entry.path().map_err(|error| broken(&error))?;
    let path = within(&path)?;
    let path: PathBuf = path.components().skip(picked.strip).collect();
    let is_left_out = picked.exclude.iter().any(|excluded| path.starts_with(excluded));
    Ok(Some(path).filter(|path| !path.as_os_str().is_empty() && !is_left_out))
}

/// Returns the path without `.`; a path that would leave the release is an error.
fn within(path: &Path) -> Result<PathBuf, Error> {
    let mut inner = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inner.push(name),
            Component::CurDir => {}
            _ => {
                return Err(Error::new(format!(
                    "the archive has the entry `{}`, which is outside of the release",
                    shown(path)
                )));
            }
        }
    }
    Ok(inner)
}

/// Creates a folder and those above it. A link of the archive in place of one of them is an error,
/// because it may lead out of the release.
fn make_folder(to: &Path, path: &Path) -> Result<(), Error> {
    let mut folder = to.to_owned();
    for component in path.components() {
        folder.push(component);
        match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(Error::new(format!(
                    "the archive has entries below `{}`, which is not a folder",
                    shown(path)
                )));
            }
            Err(_) => {
                fs::create_dir(&folder).map_err(|e| Error::file("create", &folder, &e))?;
            }
        }
    }
    Ok(())
}

/// Creates the folders above an entry, and removes an earlier entry of the same name.
fn make_room(to: &Path, path: &Path) -> Result<PathBuf, Error> {
    make_folder(to, path.parent().unwrap_or(Path::new("")))?;
    let target = to.join(path);
    match fs::remove_file(&target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("replace", &target, &error))
        }
        _ => Ok(target),
    }
}

/// Writes a file with the time of its change, which opcache and ETags use.
fn write<R: Read>(entry: &mut Entry<'_, R>, to: &Path, path: &Path) -> Result<(), Error> {
    let target = make_room(to, path)?;
    let failed = |error: io::Error| Error::file("write", &target, &error);
    let mut file = File::create_new(&target).map_err(failed)?;
    let (mut buffer, mut done) = (vec![0; BUFFER], 0);
    loop {
        // An archive that cannot be read is another error than a full disk.
        let count = entry.read(&mut buffer).map_err(|error| broken(&error))?;
        if count == 0 {
            break;
        }
        file.write_all(&buffer[..count]).map_err(failed)?;
        done += count as u64;
    }
    if done < entry.size() {
        return Err(broken(&io::Error::new(io::ErrorKind::UnexpectedEof, "it has no end")));
    }
    let mode = entry.header().mode().unwrap_or(0o644) & 0o777;
    file.set_permissions(fs::Permissions::from_mode(mode | 0o600)).map_err(failed)?;
    let since = Duration::from_secs(entry.header().mtime().unwrap_or(0));
    if let Some(time) = UNIX_EPOCH.checked_add(since) {
        file.set_times(fs::FileTimes::new().set_modified(time)).map_err(failed)?;
    }
    Ok(())
}

fn target_of<R: Read>(entry: &Entry<'_, R>, path: &Path) -> Result<PathBuf, Error> {
    let name = entry.link_name().map_err(|error| broken(&error))?;
    name.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        Error::new(format!("the archive has the link `{}` without a target", shown(path)))
    })
}

/// A symbolic link may have any target: the server decides which files it serves. No entry of the
/// archive is written through it.
fn link<R: Read>(entry: &Entry<'_, R>, to: &Path, path: &Path) -> Result<(), Error> {
    let name = target_of(entry, path)?;
    let target = make_room(to, path)?;
    std::os::unix::fs::symlink(name, &target).map_err(|e| Error::file("create", &target, &e))
}

fn hard_link<R: Read>(
    entry: &Entry<'_, R>,
    to: &Path,
    path: &Path,
    picked: &Picked,
) -> Result<(), Error> {
    let from: PathBuf = within(&target_of(entry, path)?)?.components().skip(picked.strip).collect();
    let parent = from.parent().unwrap_or(Path::new(""));
    // The folders above it exist if its target is an earlier entry; a link among them is refused.
    make_folder(to, parent)?;
    let from = to.join(from);
    if !from.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Err(Error::new(format!(
            "the archive has the hard link `{}` to a file that is not in it",
            shown(path)
        )));
    }
    let target = make_room(to, path)?;
    fs::hard_link(&from, &target).map_err(|error| Error::file("create", &target, &error))
}
