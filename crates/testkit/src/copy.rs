//! Copies of applications, so that each side writes to its own files.

use std::path::Path;
use tempfile::TempDir;

/// A copy of a folder, with symlinks resolved and modification times kept (ETags derive from them).
/// Unreadable entries are left out.
pub fn copy_of(folder: &Path) -> TempDir {
    let copy = TempDir::with_prefix("samovar-app-").expect("a temporary folder");
    copy_tree(folder, copy.path());
    copy
}

/// Copies the contents of a folder into another.
pub fn copy_tree(from: &Path, to: &Path) {
    let hint = "hint: `make setup-test` installs the applications";
    let entries = std::fs::read_dir(from)
        .unwrap_or_else(|e| panic!("cannot read `{}`: {e}\n{hint}", from.display()));
    std::fs::create_dir_all(to).expect("our own folder");
    for entry in entries {
        let entry = entry.expect("an entry");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        // `metadata` follows symlinks. A symlink to nothing, or to root's files, is left out.
        let Ok(metadata) = std::fs::metadata(&source) else { continue };
        if metadata.is_dir() {
            copy_tree(&source, &target);
        } else {
            copy_file(&source, &target, &metadata);
        }
    }
}

fn copy_file(source: &Path, target: &Path, metadata: &std::fs::Metadata) {
    std::fs::copy(source, target).unwrap_or_else(|e| panic!("copy `{}`: {e}", source.display()));
    let file = std::fs::File::options().write(true).open(target).expect("our own file");
    let modified = metadata.modified().expect("Linux knows it");
    file.set_modified(modified).expect("our own file");
}
