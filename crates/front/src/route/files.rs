//! The file system as routing sees it.

use samovar_log::Throttle;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a resolved document root is believed: a deploy that switches the symlink is seen after it.
const ROOT_TTL: Duration = Duration::from_secs(1);

/// What a path below the root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, or something that is neither file nor directory.
    Absent,
    /// A regular file, by its canonical path.
    File(PathBuf),
    /// A directory below the root.
    Directory,
    /// It lies outside the root.
    Outside,
}

/// The view of the file system that routing needs.
pub(crate) trait Files {
    /// What `below`, a decoded path with leading slash or nothing, is in the folder of this number: 0 is the root.
    fn look(&self, folder: usize, below: &[u8]) -> Found;

    /// The path, with leading slash, of a canonical `file` below the root, if it lies there.
    fn name_of(&self, file: &Path) -> Option<Vec<u8>>;

    /// Where a link below `folder` has led that `below` has come by: the paths by which the canonical `file` could have been
    /// asked for without that link, each below a folder. Nothing: there was none.
    fn places(&self, folder: usize, below: &[u8], file: &Path) -> Vec<(usize, Vec<u8>)>;

    /// The part of the canonical `file` below the folder that `below` leads to, if it lies there: with leading slash.
    fn part_below(&self, folder: usize, below: &[u8], file: &Path) -> Option<Vec<u8>>;
}

/// Whether a place below the root is hidden, wherever the request's path came from. Names that begin with two dots
/// are not meant: Kubernetes mounts a volume of files as links into such a folder.
fn is_hidden_place(below: &Path) -> bool {
    let mut names = below.iter().map(OsStrExt::as_bytes).peekable();
    names.next_if_eq(&b".well-known");
    names.any(|name| name.starts_with(b".") && !name.starts_with(b".."))
}

/// Where a path has led to, by the place of what it names.
enum Whereabouts {
    Inside,
    Hidden,
    Outside,
}

/// The files on the disk, as routing sees them.
#[derive(Debug)]
pub(crate) struct DiskFiles {
    /// The root, then those of aliases.
    folders: Vec<Folder>,
    link_targets: Vec<PathBuf>,
    outside: Throttle,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Nobody holds this while a disk is asked.
    resolved: Mutex<Option<(Instant, PathBuf)>>,
}

impl Folder {
    /// Where it leads to, as of a moment ago.
    fn resolve(&self) -> Option<PathBuf> {
        self.resolve_unless(ROOT_TTL)
    }

    /// The same, as of now: a link has been switched, and what is found lies where it leads now.
    fn resolve_now(&self) -> Option<PathBuf> {
        self.resolve_unless(Duration::ZERO)
    }

    /// It was resolved less than `age` ago.
    fn resolve_unless(&self, age: Duration) -> Option<PathBuf> {
        if let Some(path) = self.known(age) {
            return Some(path);
        }
        let found = self.path.canonicalize().ok();
        *self.resolved() = found.clone().map(|path| (Instant::now(), path));
        found
    }

    /// Where it led to less than `age` ago, if somebody has looked.
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
    /// The files below `folders`, the first of which is the root; symlinks may lead below `link_targets` too.
    pub(crate) fn new(
        folders: impl IntoIterator<Item = PathBuf>,
        link_targets: &[PathBuf],
    ) -> DiskFiles {
        let folders = folders.into_iter().map(|path| Folder { path, resolved: Mutex::default() });
        let link_targets = link_targets.iter().filter_map(|t| t.canonicalize().ok()).collect();
        DiskFiles { folders: folders.collect(), link_targets, outside: Throttle::default() }
    }

    /// The part of a file's absolute name that is below the root, by the root's own name or by where it leads.
    pub(super) fn below_root<'n>(&self, filename: &'n [u8]) -> Option<&'n [u8]> {
        let root = self.folders.first()?;
        below(&root.path, filename)
            .or_else(|| below(&root.resolve()?, filename))
            .or_else(|| below(&root.resolve_now()?, filename))
    }

    /// The same by what is known of the root, without asking the disk.
    pub(super) fn below_known_root<'n>(&self, filename: &'n [u8]) -> Option<&'n [u8]> {
        let root = self.folders.first()?;
        below(&root.path, filename).or_else(|| below(&root.known(ROOT_TTL)?, filename))
    }

    /// Where the canonical `path` lies: below its folder, or below a listed target that a symlink leads to.
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
                "a symlink leads out of the document root: 403 (hint: name the folder that it leads to in \
                 `link_targets`, if it is meant to be served)"
            );
        }
    }
}

/// The part of a file's absolute name that is below `root`, with leading slash.
fn below<'n>(root: &Path, filename: &'n [u8]) -> Option<&'n [u8]> {
    let root = root.as_os_str().as_bytes();
    let below = filename.strip_prefix(root.strip_suffix(b"/").unwrap_or(root))?;
    below.starts_with(b"/").then_some(below)
}

/// The name of a file below nothing that is known.
fn file_name(file: &Path) -> Vec<u8> {
    [b"/", file.file_name().unwrap_or_default().as_bytes()].concat()
}

impl Files for DiskFiles {
    fn look(&self, folder: usize, below: &[u8]) -> Found {
        let Some(folder) = self.folders.get(folder) else { return Found::Absent };
        let root = folder.path.as_os_str().as_bytes();
        let path = PathBuf::from(OsStr::from_bytes(&[root, below].concat()).to_owned());
        // One system call for what is not there, which is what most pretty URLs are.
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
        // A link to a folder elsewhere gives what lies in it a name, which may have rules: each folder on the way may
        // be one. There are no more of them than the path of a file that is there has slashes.
        for end in memchr::memchr_iter(b'/', below).skip(1) {
            let rest = self.part_below(folder, &below[..end], file);
            places.extend(rest.map(|rest| (folder, [&below[..end], &rest].concat())));
        }
        // It was reached by a link in any case.
        places.extend(places.is_empty().then(|| (folder, file_name(file))));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_deploy_that_switches_the_root_is_seen_with_the_first_file_of_it() {
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
    fn a_place_has_all_its_names() {
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
