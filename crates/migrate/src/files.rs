//! The files of a folder.

use foldhash::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum depth of folders.
const DEPTH_MAX: usize = 256;
/// Bytes of a file that are read to find `php` in its first line.
const SHEBANG_BYTES: usize = 64;
/// Folders that contain no code of the application.
const SKIPPED_FOLDERS: [&str; 5] = [".git", ".hg", ".svn", "node_modules", ".idea"];
/// Ends of the names of PHP files.
pub(crate) const ENDINGS: [&str; 12] = [
    "php", "inc", "phtml", "php3", "php4", "php5", "php7", "module", "install", "theme", "engine",
    "profile",
];

/// A pattern of `--exclude`, in the form of a line of .gitignore.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: Vec<u8>,
    is_anchored: bool,
    is_folder_only: bool,
    is_negative: bool,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let (is_negative, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (is_folder_only, text) = match text.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let is_anchored = text.contains('/');
        let text = text.strip_prefix('/').unwrap_or(text).as_bytes().to_vec();
        Self { text, is_anchored, is_folder_only, is_negative }
    }

    /// `path` is relative to the scanned folder.
    fn matches(&self, path: &Path, is_folder: bool) -> bool {
        if self.is_folder_only && !is_folder {
            return false;
        }
        let path = path.as_os_str().as_encoded_bytes();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        glob(&self.text, if self.is_anchored { path } else { name })
    }
}

/// Whether the last pattern that matches excludes the path.
pub(crate) fn is_excluded(patterns: &[Pattern], path: &Path, is_folder: bool) -> bool {
    let last = patterns.iter().rfind(|pattern| pattern.matches(path, is_folder));
    last.is_some_and(|pattern| !pattern.is_negative)
}

/// `*` and `?` match no slash, `**` matches any text.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    // Positions to return to: the pattern after a star, the text, and whether slashes match.
    let mut back: Option<(usize, usize, bool)> = None;
    let (mut at, mut of) = (0, 0);
    loop {
        if pattern[at..].starts_with(b"**") {
            let rest = if pattern.get(at + 2) == Some(&b'/') { at + 3 } else { at + 2 };
            back = Some((rest, of, true));
            at = rest;
        } else if pattern.get(at) == Some(&b'*') {
            // A single star keeps the way back to a double one only without a further star.
            if back.is_none_or(|(_, _, is_double)| !is_double) {
                back = Some((at + 1, of, false));
            } else if glob_star(&pattern[at + 1..], &text[of..]) {
                return true;
            }
            at += 1;
        } else if of < text.len()
            && pattern.get(at).is_some_and(|p| *p == text[of] || (*p == b'?' && text[of] != b'/'))
        {
            at += 1;
            of += 1;
        } else if at == pattern.len() && of == text.len() {
            return true;
        } else {
            match back {
                Some((rest, from, is_double))
                    if from < text.len() && (is_double || text[from] != b'/') =>
                {
                    back = Some((rest, from + 1, is_double));
                    at = rest;
                    of = from + 1;
                }
                _ => return false,
            }
        }
    }
}

/// A single star after a double one.
fn glob_star(rest: &[u8], text: &[u8]) -> bool {
    let end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
    (0..=end).any(|skip| glob(rest, &text[skip..]))
}

/// The files to check, in the order of their names.
#[derive(Debug, Default)]
pub struct Found {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Paths that cannot be read, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Whether there are more files than the limit.
    pub is_truncated: bool,
}

/// How to search.
pub(crate) struct Search<'a> {
    pub(crate) exclude: &'a [Pattern],
    pub(crate) has_vendor: bool,
    /// With the files of settings, such as `php.ini`.
    pub(crate) has_settings: bool,
    pub(crate) files_max: usize,
}

/// Finds at most `files_max` PHP files below a path, without those of `vendor` unless
/// `has_vendor`. A path that is no folder is found as it is.
pub fn php_files(path: &Path, has_vendor: bool, files_max: usize) -> Found {
    let search = Search { exclude: &[], has_vendor, has_settings: false, files_max };
    let mut found = Found::default();
    find(path, &search, &mut found);
    found
}

/// Whether a file has the name, or else the first line, of a PHP file. `text` is used only if the
/// name has no ending; `None`: the file at `path`.
pub fn is_php(path: &Path, text: Option<&[u8]>) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if crate::ini::is_settings(&name) {
        return false;
    }
    has_ending_of_php(&name).unwrap_or_else(|| match text {
        Some(text) => is_start_of_php(&text[..text.len().min(SHEBANG_BYTES)]),
        None => starts_php(path),
    })
}

/// Finds the PHP files below a path. Symbolic links within it are not followed.
pub(crate) fn find(path: &Path, search: &Search<'_>, found: &mut Found) {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            found.unreadable.push((path.to_owned(), error.to_string()));
            return;
        }
    };
    if !metadata.is_dir() {
        found.files.push(path.to_owned());
        return;
    }
    let mut seen = HashSet::default();
    seen.insert((metadata.dev(), metadata.ino()));
    // Files come before the folders next to them; both in the order of their names.
    let mut open = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let mut names: Vec<_> = match fs::read_dir(&folder) {
            Ok(entries) => entries.flatten().collect(),
            Err(error) => {
                found.unreadable.push((folder, error.to_string()));
                continue;
            }
        };
        names.sort_by_key(fs::DirEntry::file_name);
        let mut folders = Vec::new();
        for entry in names {
            let Ok(kind) = entry.file_type() else { continue };
            let entry_path = entry.path();
            let relative = entry_path.strip_prefix(path).unwrap_or(&entry_path);
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_excluded(search.exclude, relative, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                let is_skipped = SKIPPED_FOLDERS.contains(&name.as_ref())
                    || (name == "vendor" && !search.has_vendor);
                let is_new =
                    entry.metadata().is_ok_and(|data| seen.insert((data.dev(), data.ino())));
                if !is_skipped && is_new && depth < DEPTH_MAX {
                    folders.push((entry_path, depth + 1));
                }
            } else if kind.is_file() && is_wanted(&name, &entry_path, search.has_settings) {
                if found.files.len() >= search.files_max {
                    found.is_truncated = true;
                    return;
                }
                found.files.push(entry_path);
            }
        }
        open.extend(folders.into_iter().rev());
    }
}

fn is_wanted(name: &str, path: &Path, has_settings: bool) -> bool {
    if crate::ini::is_settings(name) {
        return has_settings;
    }
    has_ending_of_php(name).unwrap_or_else(|| starts_php(path))
}

/// `None`: the name has no ending.
fn has_ending_of_php(name: &str) -> Option<bool> {
    let (_, ending) = name.rsplit_once('.').filter(|(start, _)| !start.is_empty())?;
    Some(ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Whether the first line is `#!…php`.
fn starts_php(path: &Path) -> bool {
    let mut first = Vec::new();
    let is_read = File::open(path)
        .and_then(|file| file.take(SHEBANG_BYTES as u64).read_to_end(&mut first))
        .is_ok();
    is_read && is_start_of_php(&first)
}

fn is_start_of_php(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"#!") && memchr::memmem::find(line, b"php").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_gitignore() {
        let cases = [
            ("*.inc.php", "a/b.inc.php", false, true),
            ("*.inc.php", "a/b.php", false, false),
            ("cache/", "app/cache", true, true),
            ("cache/", "app/cache", false, false),
            ("/cache", "app/cache", true, false),
            ("/cache", "cache", true, true),
            ("app/*/x.php", "app/b/x.php", false, true),
            ("app/*/x.php", "app/b/c/x.php", false, false),
            ("app/**/x.php", "app/b/c/x.php", false, true),
            ("app/**/x.php", "app/x.php", false, true),
            ("**/test?/*.php", "a/b/tests/c.php", false, true),
            ("**/test?/*.php", "a/tests/b/c.php", false, false),
            ("lib", "lib", true, true),
        ];
        for (pattern, path, is_folder, expected) in cases {
            let patterns = [Pattern::new(pattern)];
            let found = is_excluded(&patterns, Path::new(path), is_folder);
            assert_eq!(found, expected, "{pattern} {path}");
        }
        let patterns = [Pattern::new("*.php"), Pattern::new("!keep.php")];
        assert!(is_excluded(&patterns, Path::new("a.php"), false));
        assert!(!is_excluded(&patterns, Path::new("keep.php"), false));
    }
}
