//! The file system as used by routing.

use samovar_log::Throttle;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which a resolved document root is valid. A deploy that switches the symlink is noticed
/// after it.
const ROOT_TTL: Duration = Duration::from_secs(1);

/// Kind of the file at a path below the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, or something that is neither a regular file nor a directory.
    Absent,
    /// A regular file, with its canonical path.
    File(PathBuf),
    /// A directory below the root.
    Directory,
    /// A file or directory outside the root.
    Outside,
}

/// The view of the file system that routing needs.
pub(crate) trait Files {
    /// Looks up `below` in the folder with this number (0 is the root). `below` is a decoded path
    /// with leading slash, or empty.
    fn look(&self, folder: usize, below: &[u8]) -> Found;

    /// Returns the path, with leading slash, of a canonical `file`, if it is below the root.
    fn name_of(&self, file: &Path) -> Option<Vec<u8>>;

    /// Returns other names of the canonical `file` if `below` leads through a symlink below
    /// `folder`. These are the paths by which it could be requested without that link, each with
    /// its folder. Empty if there is no link.
    fn places(&self, folder: usize, below: &[u8], file: &Path) -> Vec<(usize, Vec<u8>)>;

    /// Returns the part of the canonical `file` below the folder that `below` resolves to, with
    /// leading slash. `None` if the file is not in that folder.
    fn part_below(&self, folder: usize, below: &[u8], file: &Path) -> Option<Vec<u8>>;
}

/// Whether a place below the root is hidden, independent of the requested path. Names that begin
/// with two dots do not count: Kubernetes mounts a volume of files as links into such a folder.
fn is_hidden_place(below: &Path) -> bool {
    let mut names = below.iter().map(OsStrExt::as_bytes).peekable();
    names.next_if_eq(&b".well-known");
    names.any(|name| name.starts_with(b".") && !name.starts_with(b".."))
}

/// Location of the file that a path resolves to.
enum Whereabouts {
    Inside,
    Hidden,
    Outside,
}

/// The files on the disk.
#[derive(Debug)]
pub(crate) struct DiskFiles {
    /// The root, followed by the folders of aliases.
    folders: Vec<Folder>,
    link_targets: Vec<PathBuf>,
    outside: Throttle,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Not locked during an access to the disk.
    resolved: Mutex<Option<(Instant, PathBuf)>>,
}

impl Folder {
    /// Returns the resolved path, which may be [`ROOT_TTL`] old.
    fn resolve(&self) -> Option<PathBuf> {
        self.resolve_unless(ROOT_TTL)
    }

    /// Resolves the path now: a link may have been switched, and files are then found below its new
    /// target.
    fn resolve_now(&self) -> Option<PathBuf> {
        self.resolve_unless(Duration::ZERO)
    }

    /// Resolves the path, unless this was done less than `age` ago.
    fn resolve_unless(&self, age: Duration) -> Option<PathBuf> {
        if let Some(path) = self.known(age) {
            return Some(path);
        }
        let found = self.path.canonicalize().ok();
        *self.resolved() = found.clone().map(|path| (Instant::now(), path));
        found
    }

    /// Returns the path that was resolved less than `age` ago, if any.
    fn known(&self, age: Duration) -> Option<PathBuf> {
        let resolved = self.resolved();
        let (at, path) = resolved.as_ref()?;
        (at.elapsed() < age).then(|| path.clone())
    }

    fn resolved(&self) -> MutexGuard<'_, Option<(Instant, PathBuf)>> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFiles {
    /// Creates a view of the files below `folders`, the first of which is the root. Symlinks may
    /// also lead below `link_targets`.
    pub(crate) fn new(
        folders: impl IntoIterator<Item = PathBuf>,
        link_targets: &[PathBuf],
    ) -> DiskFiles {
        let folders = folders.into_iter().map(|path| Folder { path, resolved: Mutex::default() });
        let link_targets = link_targets.iter().filter_map(|t| t.canonicalize().ok()).collect();
        DiskFiles { folders: folders.collect(), link_targets, outside: Throttle::default() }
    }

    /// Returns the part of a file's absolute name below the root. The name may contain the root as
    /// configured or as resolved.
    pub(super) fn below_root<'n>(&self, filename: &'n [u8]) -> Option<&'n [u8]> {
        let root = self.folders.first()?;
        below(&root.path, filename)
            .or_else(|| below(&root.resolve()?, filename))
            .or_else(|| below(&root.resolve_now()?, filename))
    }

    /// Does the same with the cached path of the root, without an access to the disk.
    pub(super) fn below_known_root<'n>(&self, filename: &'n [u8]) -> Option<&'n [u8]> {
        let root = self.folders.first()?;
        below(&root.path, filename).or_else(|| below(&root.known(ROOT_TTL)?, filename))
    }

    /// Returns the location of the canonical `path`: below its folder, or below a listed target of
    /// symlinks.
    fn whereabouts(&self, folder: &Folder, path: &Path) -> Whereabouts {
        let resolved = folder.resolve();
        let bases = resolved.iter().chain(&self.link_targets);
        let mut places = bases.filter_map(|base| path.strip_prefix(base).ok()).peekable();
        if places.peek().is_none() {
            Whereabouts::Outside
        } else if places.all(is_hidden_place) {
            Whereabouts::Hidden
        } else {
            Whereabouts::Inside
        }
    }

    fn report_outside(&self, link: &Path, target: &Path) {
        if let Some(suppressed) = self.outside.pass() {
            tracing::warn!(
                link = %link.display(),
                target = %target.display(),
                suppressed,
                "a symbolic link leads out of the document root: 403 (hint: to serve its target, \
                 add the target's folder to `link_targets`)"
            );
        }
    }
}

/// Returns the part of a file's absolute name below `root`, with leading slash.
fn below<'n>(root: &Path, filename: &'n [u8]) -> Option<&'n [u8]> {
    let root = root.as_os_str().as_bytes();
    let below = filename.strip_prefix(root.strip_suffix(b"/").unwrap_or(root))?;
    below.starts_with(b"/").then_some(below)
}

/// Name of a file that is below no known folder.
fn file_name(file: &Path) -> Vec<u8> {
    [b"/", file.file_name().unwrap_or_default().as_bytes()].concat()
}

impl Files for DiskFiles {
    fn look(&self, folder: usize, below: &[u8]) -> Found {
        let Some(folder) = self.folders.get(folder) else { return Found::Absent };
        let root = folder.path.as_os_str().as_bytes();
        let path = PathBuf::from(OsStr::from_bytes(&[root, below].concat()).to_owned());
        // A missing file costs one system call; most pretty URLs name no file.
        let Ok(metadata) = path.metadata() else { return Found::Absent };
        if !metadata.is_file() && !metadata.is_dir() {
            return Found::Absent;
        }
        let Ok(canonical) = path.canonicalize() else { return Found::Absent };
        let mut whereabouts = self.whereabouts(folder, &canonical);
        if matches!(whereabouts, Whereabouts::Outside) {
            folder.resolve_now();
            whereabouts = self.whereabouts(folder, &canonical);
        }
        match whereabouts {
            Whereabouts::Outside => {
                self.report_outside(&path, &canonical);
                return Found::Outside;
            }
            Whereabouts::Hidden => return Found::Absent,
            Whereabouts::Inside => {}
        }
        if metadata.is_dir() { Found::Directory } else { Found::File(canonical) }
    }

    fn name_of(&self, file: &Path) -> Option<Vec<u8>> {
        let root = self.folders.first()?.resolve()?;
        let below = file.strip_prefix(root).ok()?;
        Some([b"/", below.as_os_str().as_bytes()].concat())
    }

    fn part_below(&self, folder: usize, below: &[u8], file: &Path) -> Option<Vec<u8>> {
        let path = [self.folders.get(folder)?.path.as_os_str().as_bytes(), below].concat();
        let base = Path::new(OsStr::from_bytes(&path)).canonicalize().ok()?;
        let rest = file.strip_prefix(base).ok()?;
        Some([b"/", rest.as_os_str().as_bytes()].concat())
    }

    fn places(&self, folder: usize, below: &[u8], file: &Path) -> Vec<(usize, Vec<u8>)> {
        let under = |base: &Path| {
            let rest = file.strip_prefix(base).ok()?;
            Some([b"/", rest.as_os_str().as_bytes()].concat())
        };
        let Some(asked) = self.folders.get(folder) else { return Vec::new() };
        let plain = asked.resolve().and_then(|base| under(&base));
        if plain.as_deref() == Some(below) {
            return Vec::new();
        }
        let folders = self.folders.iter().enumerate();
        let mut places: Vec<_> =
            folders.filter_map(|(at, base)| Some((at, under(&base.resolve()?)?))).collect();
        // Each folder on the path may be a link to another folder. It gives the files there a name,
        // and rules may apply to that name. Their number is limited by the number of slashes in the
        // path of an existing file.
        for end in memchr::memchr_iter(b'/', below).skip(1) {
            let rest = self.part_below(folder, &below[..end], file);
            places.extend(rest.map(|rest| (folder, [&below[..end], &rest].concat())));
        }
        // The file was reached through a link, so the result must not be empty.
        places.extend(places.is_empty().then(|| (folder, file_name(file))));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn switched_root_link_is_noticed_at_first_new_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        for release in ["1", "2"] {
            std::fs::create_dir(path(release)).expect("our own folder");
            std::fs::write(path(release).join("index.php"), "").expect("our own folder");
        }
        symlink("1", path("current")).expect("our own folder");
        let files = DiskFiles::new([path("current")], &[]);
        let (first, second) = (path("1/index.php"), path("2/index.php"));
        assert_eq!(files.look(0, b"/index.php"), Found::File(first.clone()));
        assert_eq!(files.below_root(first.as_os_str().as_bytes()), Some(&b"/index.php"[..]));
        symlink("2", path("next")).expect("our own folder");
        std::fs::rename(path("next"), path("current")).expect("our own folder");
        assert_eq!(files.below_root(second.as_os_str().as_bytes()), Some(&b"/index.php"[..]));
        assert_eq!(files.look(0, b"/index.php"), Found::File(second));
        assert_eq!(files.below_root(b"/etc/passwd"), None);
    }

    #[test]
    fn linked_file_has_all_its_other_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().canonicalize().expect("it is there");
        let path = |name: &str| base.join(name);
        for name in ["site/a", "tool/in", "tool/deep", "kept/closed"] {
            std::fs::create_dir_all(path(name)).expect("our own folder");
        }
        for name in ["site/a/x", "tool/in/x", "tool/x", "kept/closed/x"] {
            std::fs::write(path(name), "").expect("our own folder");
        }
        for (to, at) in [
            ("a/x", "site/link"),
            ("../tool", "site/tool"),
            ("../kept", "site/kept"),
            ("../kept/closed/x", "site/short"),
            ("../in/x", "tool/deep/link"),
        ] {
            symlink(to, path(at)).expect("our own folder");
        }
        let files = DiskFiles::new([path("site"), path("tool")], std::slice::from_ref(&base));
        for (at, below, expected) in [
            (0, "/a/x", &[][..]),
            (1, "/in/x", &[]),
            (0, "/link", &[(0, "/a/x")]),
            (0, "/tool/x", &[(1, "/x"), (0, "/tool/x")]),
            (0, "/tool/deep/link", &[(1, "/in/x"), (0, "/tool/in/x")]),
            (0, "/kept/closed/x", &[(0, "/kept/closed/x"), (0, "/kept/closed/x")]),
            (0, "/short", &[(0, "/x")]),
            (1, "/deep/link", &[(1, "/in/x")]),
        ] {
            let Found::File(file) = files.look(at, below.as_bytes()) else { panic!("{below}") };
            let found = files.places(at, below.as_bytes(), &file);
            let text = |(at, name): &(usize, Vec<u8>)| (*at, String::from_utf8_lossy(name).into());
            let found: Vec<(usize, String)> = found.iter().map(text).collect();
            let expected: Vec<_> = expected.iter().map(|(at, n)| (*at, (*n).to_owned())).collect();
            assert_eq!(found, expected, "{at} {below}");
        }
        let closed = path("kept/closed/x");
        let part = |below: &str| files.part_below(0, below.as_bytes(), &closed);
        assert_eq!(part("/kept/closed").as_deref(), Some(&b"/x"[..]));
        assert_eq!(part("/kept").as_deref(), Some(&b"/closed/x"[..]));
        assert_eq!((part("/tool"), part("/none")), (None, None));
    }
}
