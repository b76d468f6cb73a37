//! A folder as a release: copied, or packed for another machine; and its links to shared files.

use crate::disk::remove_tree;
use crate::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// Folders of version control. A document root with one of them would publish the history.
const HISTORY: [&str; 3] = [".git", ".hg", ".svn"];

/// Returns the entries of a release below `from`, with their paths within it; each folder comes
/// before its contents.
fn entries<'a>(
    from: &'a Path,
    exclude: &'a [PathBuf],
) -> impl Iterator<Item = Result<(DirEntry, PathBuf), Error>> + 'a {
    let is_wanted = move |entry: &DirEntry| {
        let path = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
        let is_history = HISTORY.iter().any(|name| entry.file_name() == OsStr::new(name));
        !is_history && !exclude.iter().any(|excluded| path.starts_with(excluded))
    };
    let walk = WalkDir::new(from).follow_links(false).min_depth(1).sort_by_file_name();
    walk.into_iter().filter_entry(is_wanted).map(move |entry| {
        let entry =
            entry.map_err(|error| Error::new(format!("cannot read the folder: {error}")))?;
        let path = entry.path().strip_prefix(from).unwrap_or(Path::new("")).to_owned();
        Ok((entry, path))
    })
}

/// Copies a folder into the empty folder `to`: files with their modes and times, links as links.
/// Returns the number of files.
pub(crate) fn copy(from: &Path, to: &Path, exclude: &[PathBuf]) -> Result<u64, Error> {
    let own = to.canonicalize().map_err(|error| Error::file("read", to, &error))?;
    if own.starts_with(from) {
        return Err(Error::new(format!(
            "the folder `{}` contains the releases themselves\nhint: deploy from another folder, \
             or choose another one for the releases with --folder",
            from.display()
        )));
    }
    let mut files = 0;
    for entry in entries(from, exclude) {
        let (entry, path) = entry?;
        let target = to.join(&path);
        let kind = entry.file_type();
        if kind.is_dir() {
            fs::create_dir(&target).map_err(|error| Error::file("create", &target, &error))?;
            let mode = entry.metadata().map_or(0o755, |found| found.permissions().mode());
            let mode = fs::Permissions::from_mode(mode & 0o777 | 0o700);
            fs::set_permissions(&target, mode)
                .map_err(|error| Error::file("set the mode of", &target, &error))?;
            continue;
        }
        if kind.is_symlink() {
            let linked = fs::read_link(entry.path());
            let linked = linked.map_err(|error| Error::file("read", entry.path(), &error))?;
            symlink(linked, &target).map_err(|error| Error::file("create", &target, &error))?;
        } else if kind.is_file() {
            copy_file(entry.path(), &target)?;
        } else {
            return Err(special(&path));
        }
        files += 1;
    }
    if files == 0 {
        return Err(Error::new(format!("the folder `{}` has no files", from.display())));
    }
    Ok(files)
}

fn special(path: &Path) -> Error {
    Error::new(format!(
        "`{}` is neither a file nor a folder nor a link\nhint: leave it out with --exclude",
        path.display()
    ))
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => Error::file("read", from, &error),
        _ => Error::file("write", to, &error),
    };
    let found = from.metadata().map_err(|error| Error::file("read", from, &error))?;
    fs::copy(from, to).map_err(failed)?;
    let mode = fs::Permissions::from_mode(found.permissions().mode() & 0o777 | 0o600);
    fs::set_permissions(to, mode).map_err(failed)?;
    let times = fs::FileTimes::new().set_modified(found.modified().map_err(failed)?);
    let file = fs::File::options().write(true).open(to).map_err(failed)?;
    file.set_times(times).map_err(failed)
}

/// Writes the folder as a tar file to `output`.
pub(crate) fn pack(from: &Path, output: impl io::Write, exclude: &[PathBuf]) -> Result<(), Error> {
    // A dropped builder would write the end of the archive: the host would serve a part of it.
    let mut archive = ManuallyDrop::new(tar::Builder::new(output));
    archive.follow_symlinks(false);
    for entry in entries(from, exclude) {
        let (entry, path) = entry?;
        let kind = entry.file_type();
        if !(kind.is_dir() || kind.is_symlink() || kind.is_file()) {
            return Err(special(&path));
        }
        archive
            .append_path_with_name(entry.path(), &path)
            .map_err(|error| Error::file("send", entry.path(), &error))?;
    }
    archive.finish().map_err(|error| Error::new(format!("cannot send the release: {error}")))
}

/// Returns a path within a release: relative, without `..`.
pub(crate) fn inner(path: &Path) -> Result<PathBuf, Error> {
    let inner: PathBuf = path.components().filter(|c| *c != Component::CurDir).collect();
    let is_inner = inner.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inner && !inner.as_os_str().is_empty() {
        return Ok(inner);
    }
    Err(Error::new(format!(
        "`{}` is not a path within a release\nhint: use a relative path without `..`, such as \
         `var/log`",
        path.display()
    )))
}

/// Replaces `path` of the release by a link to the same path in the folder of shared files. The
/// first release brings the shared file or folder; without one, an empty folder is created.
pub(crate) fn share(release: &Path, shared: &Path, path: &Path) -> Result<(), Error> {
    let (own, kept) = (release.join(path), shared.join(path));
    for above in [own.parent(), kept.parent()].into_iter().flatten() {
        fs::create_dir_all(above).map_err(|error| Error::file("create", above, &error))?;
    }
    let root = release.canonicalize().map_err(|error| Error::file("read", release, &error))?;
    let parent = own.parent().and_then(|parent| parent.canonicalize().ok());
    if !parent.is_some_and(|parent| parent.starts_with(&root)) {
        return Err(Error::new(format!(
            "a link in the release leads `{}` out of it\nhint: choose another path with --share",
            path.display()
        )));
    }
    let is_there = own.symlink_metadata().is_ok();
    if kept.symlink_metadata().is_err() {
        if own.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return Err(Error::new(format!(
                "`{}` is a link in the release, and cannot become the shared path\nhint: move its \
                 target to `{}`",
                path.display(),
                kept.display()
            )));
        }
        if is_there {
            move_tree(&own, &kept)?;
        } else {
            fs::create_dir(&kept).map_err(|error| Error::file("create", &kept, &error))?;
        }
    } else if is_there {
        remove_tree(&own).or_else(|_| {
            fs::remove_file(&own).map_err(|error| Error::file("remove", &own, &error))
        })?;
    }
    symlink(&kept, &own).map_err(|error| Error::file("create", &own, &error))
}

fn move_tree(from: &Path, to: &Path) -> Result<(), Error> {
    // Both are below the same folder; a mount in between needs the operator.
    fs::rename(from, to).map_err(|error| Error::file("move", from, &error))
}
