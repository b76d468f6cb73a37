//! Folders on disk: written for good, and removed.

use crate::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use walkdir::WalkDir;

/// Writes the entries of a folder to disk, so that they are there after a power loss.
pub(crate) fn sync(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Error::file("write to disk:", folder, &error))
}

/// Removes a folder, also if an archive made folders in it read-only.
pub(crate) fn remove_tree(folder: &Path) -> Result<(), Error> {
    if fs::remove_dir_all(folder).is_ok() {
        return Ok(());
    }
    make_writable(folder);
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("remove", folder, &error))
        }
        _ => Ok(()),
    }
}

/// Gives the owner all rights on the folders of a tree. Errors are found by the removal.
fn make_writable(folder: &Path) {
    for entry in
        WalkDir::new(folder).follow_links(false).follow_root_links(false).into_iter().flatten()
    {
        if entry.file_type().is_dir() {
            let _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700));
        }
    }
}
