//! The files to compile.

use anyhow::{Context, Result, bail};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, openat};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum number of files of one run.
pub const FILES_MAX: usize = 200_000;

/// A file to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path in reports.
    pub path: PathBuf,
    /// Where its text is.
    pub origin: Origin,
}

/// The place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file itself, below this folder if its path is relative.
    File(PathBuf),
    /// A text that is in no file: the next commit's, or standard input.
    Text(Vec<u8>),
}

impl Source {
    /// Opens the text from its start.
    pub(crate) fn open(&self) -> Result<OwnedFd> {
        match &self.origin {
            Origin::File(folder) => {
                let path = folder.join(&self.path);
                // A pipe or a device would block or never end.
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let file = openat(rustix::fs::CWD, &path, flags, Mode::empty())
                    .with_context(|| format!("cannot read `{}`", path.display()))?;
                let file = File::from(file);
                if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                    bail!("`{}` is no file", path.display());
                }
                Ok(file.into())
            }
            Origin::Text(text) => {
                let mut file = File::from(memfd_create("samovar-lint", MemfdFlags::CLOEXEC)?);
                file.write_all(text)?;
                file.rewind()?;
                Ok(file.into())
            }
        }
    }
}

/// Returns the text as a file of this path.
pub fn from_text(path: PathBuf, text: Vec<u8>) -> Source {
    Source { path, origin: Origin::Text(text) }
}

/// Finds the PHP files of paths: files as they are named, and those of folders by their endings,
/// without the folder `vendor` unless `has_vendor`.
///
/// # Errors
/// A path cannot be read, or there are more files than [`FILES_MAX`].
pub fn find_files(folder: &Path, paths: &[PathBuf], has_vendor: bool) -> Result<Vec<Source>> {
    let mut all = Vec::new();
    for path in paths {
        let found = samovar_migrate::php_files(&folder.join(path), has_vendor, FILES_MAX);
        if let Some((unreadable, why)) = found.unreadable.first() {
            bail!(
                "cannot read `{}`: {why}\nhint: pass files and folders that exist and that this \
                 user may read",
                unreadable.display()
            );
        }
        if found.is_truncated || all.len() + found.files.len() > FILES_MAX {
            bail!("there are more than {FILES_MAX} files\nhint: pass fewer folders");
        }
        all.extend(found.files.into_iter().map(|file| {
            let path = file.strip_prefix(folder).map_or(file.clone(), Path::to_owned);
            Source { path, origin: Origin::File(folder.to_owned()) }
        }));
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all.dedup_by(|a, b| a.path == b.path);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn names(sources: &[Source]) -> Vec<&str> {
        sources.iter().filter_map(|source| source.path.to_str()).collect()
    }

    #[test]
    fn folders_are_searched_for_php_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["a.php", "b.txt", "src/c.inc", "vendor/d.php", "bin/run", "php.ini"] {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "#!/usr/bin/env php\n").expect("a file");
        }
        let find = |paths: &[&str], has_vendor| {
            let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
            find_files(folder.path(), &paths, has_vendor).map_err(|error| error.to_string())
        };
        let all = find(&["."], false).expect("files");
        assert_eq!(names(&all), ["a.php", "bin/run", "src/c.inc"]);
        let all = find(&[".", "a.php", "b.txt"], true).expect("files");
        assert_eq!(names(&all), ["a.php", "b.txt", "bin/run", "src/c.inc", "vendor/d.php"]);
        let error = find(&["missing"], false).expect_err("no such file");
        assert!(error.contains("missing`: No such file"), "{error}");
    }

    #[test]
    fn sources_are_read_from_their_start_and_pipes_are_refused() {
        let mut text = String::new();
        let source = from_text("a.php".into(), b"<?php".to_vec());
        File::from(source.open().expect("a text")).read_to_string(&mut text).expect("a text");
        assert_eq!(text, "<?php");
        let pipe = Source { path: "/dev/null".into(), origin: Origin::File("/".into()) };
        assert_eq!(pipe.open().expect_err("no file").to_string(), "`/dev/null` is no file");
    }
}
