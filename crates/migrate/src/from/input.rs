//! Files of other servers: their kinds, and their text with a size limit.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum size of a file.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Nginx,
    Fpm,
    RoadRunner,
    Caddy,
    Octane,
    Htaccess,
}

/// A file that cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum FromError {
    /// It cannot be read.
    #[error(
        "cannot read `{}`: {error}\nhint: pass files that exist and that you may read",
        file.display()
    )]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// It is too large.
    #[error(
        "`{}` is larger than {} MiB\nhint: pass the configuration, not a log or data",
        file.display(),
        FILE_BYTES_MAX >> 20
    )]
    Large {
        /// The file.
        file: PathBuf,
    },
    /// It is not text.
    #[error("{}:{line}: {byte}\nhint: save the file as UTF-8 text", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// Line of the first wrong byte.
        line: u32,
        /// Description of the byte.
        byte: &'static str,
    },
    /// Its format is unknown.
    #[error("cannot infer the format of `{}`\nhint: pass {EXPECTED}", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
    },
    /// It has a syntax error, or exceeds a limit.
    #[error("{}:{line}: {error}\nhint: {hint}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Line of the error.
        line: u32,
        /// Description of the error.
        error: String,
        /// Action to take.
        hint: &'static str,
    },
}

const EXPECTED: &str =
    "nginx.conf, a pool of php-fpm, .rr.yaml, Caddyfile, octane.php or .htaccess";

impl FromError {
    pub(crate) fn syntax(
        file: &Path,
        line: u32,
        error: impl Into<String>,
        hint: &'static str,
    ) -> FromError {
        FromError::Syntax { file: file.to_owned(), line, error: error.into(), hint }
    }
}

/// Reads a file as text.
pub(crate) fn read(file: &Path) -> Result<String, FromError> {
    let unreadable = |error| FromError::Unreadable { file: file.to_owned(), error };
    // A device or a pipe may never end.
    let data = std::fs::metadata(file).map_err(unreadable)?;
    if !data.is_file() {
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    if data.len() > FILE_BYTES_MAX {
        return Err(FromError::Large { file: file.to_owned() });
    }
    let mut bytes = Vec::new();
    let open = std::fs::File::open(file).map_err(unreadable)?;
    open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(FromError::Large { file: file.to_owned() });
    }
    let not_text = |at: usize, byte| {
        let before = bytes.get(..at).unwrap_or_default();
        let line = 1 + memchr::memchr_iter(b'\n', before).count() as u32;
        Err(FromError::NotText { file: file.to_owned(), line, byte })
    };
    if let Some(at) = memchr::memchr(0, &bytes) {
        return not_text(at, "a NUL byte");
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Err(error) => not_text(error.valid_up_to(), "a byte that is not UTF-8"),
    }
}

/// Infers the kind from the name, else from the text.
pub(crate) fn kind(file: &Path, text: &str) -> Option<FileKind> {
    let name = file.file_name()?.to_string_lossy().to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if name.ends_with(".htaccess") || name == "htaccess" {
        return Some(FileKind::Htaccess);
    }
    if name.starts_with("caddyfile") || matches!(extension, "caddyfile" | "caddy") {
        return Some(FileKind::Caddy);
    }
    match extension {
        "yaml" | "yml" => return Some(FileKind::RoadRunner),
        "php" => return Some(FileKind::Octane),
        "htaccess" => return Some(FileKind::Htaccess),
        _ => {}
    }
    if name.starts_with("nginx.conf") {
        return Some(FileKind::Nginx);
    }
    let mut lines = text.lines().map(str::trim);
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    let first = lines.find(is_code)?;
    if first.starts_with('[') {
        return Some(FileKind::Fpm);
    }
    if first.starts_with("<?php") {
        return Some(FileKind::Octane);
    }
    let mut lines = std::iter::once(first).chain(lines.filter(is_code));
    lines.any(|line| line.ends_with([';', '{'])).then_some(FileKind::Nginx)
}

/// Maximum number of files of a folder that are compared with a pattern.
const FOLDER_FILES_MAX: usize = 10_000;

/// Folder of included files if the main file is elsewhere.
const NGINX: &str = "/etc/nginx";

/// Files of an `include`. A relative path starts at the folder of the main file, at the folder
/// above, or at nginx's.
pub(crate) fn matching(main: &Path, pattern: &str) -> Vec<PathBuf> {
    let folder = main.parent().unwrap_or(Path::new("")).to_owned();
    let above = folder.parent().map(Path::to_owned);
    let bases = [Some(folder), above, Some(PathBuf::from(NGINX))];
    for base in bases.into_iter().flatten() {
        let path = base.join(pattern);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let name = name.to_string_lossy();
        if !name.contains(['*', '?']) {
            if path.is_file() {
                return vec![path];
            }
            continue;
        }
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let mut files: Vec<PathBuf> = entries
            .take(FOLDER_FILES_MAX)
            .flatten()
            .filter(|entry| fits(name.as_bytes(), entry.file_name().as_encoded_bytes()))
            .map(|entry| folder.join(entry.file_name()))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        return files;
    }
    Vec::new()
}

/// Whether a pattern with `*` and `?` matches a file name. Hidden files need a literal dot.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    (p, n) = (at + 1, from + 1);
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
