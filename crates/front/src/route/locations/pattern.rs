//! Patterns of paths and hosts.

use crate::route::private::{glob, literal_folder};

/// A path, or a file's name, with `*`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: Vec<u8>,
    /// The same where neither case counts nor dots and spaces at the end of a name.
    folded: Vec<u8>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Pattern {
        Pattern { text: text.into(), folded: fold(text.as_bytes()) }
    }

    /// Whether it fits a decoded, normal path.
    pub(crate) fn fits(&self, path: &[u8]) -> bool {
        fits(&self.text, path)
    }

    /// Likewise, for a path of [`fold`].
    pub(crate) fn fits_folded(&self, folded: &[u8]) -> bool {
        fits(&self.folded, folded)
    }

    /// What its one `*` stands for, if it fits.
    pub(super) fn star<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        if !self.fits(path) {
            return None;
        }
        let star = self.text.iter().position(|byte| *byte == b'*')?;
        let (before, after) = (&self.text[..star], &self.text[star + 1..]);
        let path = if before.first() == Some(&b'/') { path } else { last(path) };
        // `/a/*` fits `/a`, too.
        Some(path.get(before.len()..path.len().saturating_sub(after.len())).unwrap_or_default())
    }

    /// The folders that stand before what is any text: of `/a/b/c*.php` `/a/b`. `None`: there is none.
    pub(super) fn literal_folder(&self) -> Option<&[u8]> {
        literal_folder(&self.text)
    }

    /// Of `/a/*`: `/a`.
    pub(super) fn folder(&self) -> &[u8] {
        &self.text[..self.folder_bytes()]
    }

    /// Likewise: how long that is.
    pub(super) fn folder_bytes(&self) -> usize {
        self.text.len().saturating_sub(FOLDER.len())
    }
}

/// How a pattern ends that means a folder with all that is in it.
const FOLDER: &[u8] = b"/*";

fn fits(pattern: &[u8], path: &[u8]) -> bool {
    if pattern.first() != Some(&b'/') {
        return glob(pattern, last(path));
    }
    let folder = pattern.strip_suffix(FOLDER);
    folder.is_some_and(|folder| folder == path) || glob(pattern, path)
}

fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// `path` as the least exact file system sees it.
pub(crate) fn fold(path: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(path.len());
    for (number, name) in path.split(|byte| *byte == b'/').enumerate() {
        if number > 0 {
            folded.push(b'/');
        }
        let kept =
            name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
        folded.extend(name[..kept].iter().map(u8::to_ascii_lowercase));
    }
    folded
}

/// `host`: as the client wrote it, without port.
pub(crate) fn hosts_fit(patterns: &[Vec<u8>], host: &[u8]) -> bool {
    if patterns.is_empty() {
        return true;
    }
    let host = host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase();
    patterns.iter().any(|pattern| glob(pattern, &host))
}
