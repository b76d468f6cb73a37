//! Account and certificates as files: private to the server, and never partially written.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Maximum bytes read of a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Size of a trial file: room for a certificate with its chain and key.
const TRIAL_BYTES: usize = 32 * 1024;
/// Maximum length of the name of an authority's folder.
const SLUG_BYTES_MAX: usize = 120;

const ACCOUNT: &str = "account.json";

/// Identifies a version of a file: inode, size and modification time.
pub(crate) type Stamp = Option<(u64, u64, i64, i64)>;

/// Files of one authority.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

/// Creates the folder with access only for its owner, if it does not exist. Missing parent folders
/// are created with mode 0755.
///
/// # Errors
/// The folder cannot be created, or the path is not a folder.
pub fn prepare(folder: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    if folder.metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    }
    DirBuilder::new().mode(0o700).create(folder)?;
    match owner {
        Some((user, group)) => chown(folder, Some(user), Some(group)),
        None => Ok(()),
    }
}

impl Store {
    /// Each authority has its own folder. A change of the authority orders all certificates again,
    /// and the old ones remain for a change back.
    pub(crate) fn new(folder: &Path, directory: &str) -> Store {
        Store { folder: folder.join(slug(directory)) }
    }

    /// Uses the folder itself.
    pub(crate) fn at(folder: &Path) -> Store {
        Store { folder: folder.to_owned() }
    }

    /// Returns the path of a certificate's file.
    pub(crate) fn path(&self, domain: &str) -> PathBuf {
        self.folder.join(file_of(domain))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes this process the only one that orders. Returns `None` if another process holds the
    /// lock. Closing the file releases it.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        self.prepare()?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.custom_flags(no_follow()).open(self.folder.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn prepare(&self) -> io::Result<()> {
        if let Some(above) = self.folder.parent() {
            prepare(above, None)?;
        }
        prepare(&self.folder, None)
    }

    /// Checks that a certificate could be stored. Without this check, certificates would be ordered
    /// that are lost at the next start.
    pub(crate) fn try_out(&self) -> io::Result<()> {
        self.prepare()?;
        self.write("trial", &vec![b'x'; TRIAL_BYTES])?;
        fs::remove_file(self.folder.join("trial"))
    }

    pub(crate) fn account(&self) -> io::Result<Option<Vec<u8>>> {
        self.read(ACCOUNT)
    }

    pub(crate) fn keep_account(&self, bytes: &[u8]) -> io::Result<()> {
        self.write(ACCOUNT, bytes)
    }

    /// Renames the file of an account that cannot be used.
    pub(crate) fn put_account_aside(&self) -> io::Result<()> {
        fs::rename(self.folder.join(ACCOUNT), self.folder.join("account.unusable"))
    }

    /// Returns PEM. Chain and key are in one file, so that they always belong to the same order.
    pub(crate) fn certificate(&self, domain: &str) -> io::Result<Option<Vec<u8>>> {
        self.read(&file_of(domain))
    }

    pub(crate) fn keep_certificate(&self, domain: &str, pem: &[u8]) -> io::Result<()> {
        self.write(&file_of(domain), pem)
    }

    pub(crate) fn stamp(&self, domain: &str) -> Stamp {
        let found = fs::metadata(self.folder.join(file_of(domain))).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.folder.join(name);
        match fs::metadata(&path) {
            // Opening a named pipe would block.
            Ok(found) if !found.is_file() || found.len() > FILE_BYTES_MAX => {
                return Err(io::Error::other("it is not a regular file, or too large"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Writes atomically: the file has either its old or its complete new content, also after a
    /// crash.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.prepare()?;
        let unfinished = self.folder.join(format!(".{name}.{}", std::process::id()));
        // A killed process with the same id may have left this file.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = Self::write_to(&unfinished, bytes).and_then(|()| {
            fs::rename(&unfinished, self.folder.join(name))?;
            File::open(&self.folder)?.sync_all()
        });
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write_to(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).custom_flags(no_follow());
        let mut file = options.open(path)?;
        // Set explicitly: `mode` above is subject to the umask.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.sync_all()
    }
}

fn no_follow() -> i32 {
    // Both types have the same values in the kernel's interface; its flags are positive.
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

fn file_of(domain: &str) -> String {
    format!("{domain}.pem")
}

/// Converts `https://ca.example/acme/dir` to `at-ca.example-acme-dir`: a folder name that cannot
/// escape from the parent folder.
fn slug(directory: &str) -> String {
    let rest = directory.split_once("://").map_or(directory, |(_, rest)| rest);
    let plain = |c: char| match c {
        'a'..='z' | '0'..='9' | '.' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '-',
    };
    let name: String = rest.chars().map(plain).take(SLUG_BYTES_MAX).collect();
    format!("at-{}", name.trim_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_of_directory_is_a_safe_folder_name() {
        for (directory, expected) in [
            ("https://ca.example/directory", "at-ca.example-directory"),
            ("https://CA.example:14000/a/../b?c=/d/", "at-ca.example-14000-a-..-b-c--d"),
            ("https://../..", "at-..-.."),
            ("https:///", "at-"),
        ] {
            assert_eq!(slug(directory), expected);
        }
        assert!(slug(&format!("https://{}", "a".repeat(1000))).len() < 128);
    }

    #[test]
    fn store_files_are_complete_and_private() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let folder = above.path().join("a/b/acme");
        let store = Store::new(&folder, "https://ca.example/dir");
        assert_eq!(store.certificate("a.example").expect("nothing is no error"), None);
        assert_eq!(store.stamp("a.example"), None);
        store.try_out().expect("it can be written");
        store.keep_certificate("a.example", b"one").expect("it is written");
        let before = store.stamp("a.example");
        store.keep_certificate("a.example", b"two").expect("it is written again");
        assert_ne!(store.stamp("a.example"), before);
        assert_eq!(
            store.certificate("a.example").expect("it is read").as_deref(),
            Some(&b"two"[..])
        );
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&store.folder.join("a.example.pem")), 0o600);
        assert_eq!((mode(&folder), mode(&store.folder)), (0o700, 0o700));
        let names = fs::read_dir(&store.folder).expect("a folder").count();
        assert_eq!(names, 1, "nothing unfinished is left");
    }

    #[test]
    fn lock_is_held_by_one_process() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::new(folder.path(), "https://ca.example/dir");
        let held = store.lock().expect("a lock").expect("no process holds it");
        assert!(store.lock().expect("no error").is_none());
        drop(held);
        assert!(store.lock().expect("no error").is_some());
    }

    #[test]
    fn path_that_is_not_a_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::new(folder.path(), "https://ca.example/dir");
        fs::create_dir_all(store.folder.join("a.example.pem")).expect("our own folder");
        assert!(store.certificate("a.example").is_err());
        assert!(store.keep_certificate("a.example", b"x").is_err());
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").expect("our own file");
        assert!(Store::new(&blocked, "https://ca.example/dir").try_out().is_err());
    }
}
