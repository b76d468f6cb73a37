//! Patterns of paths and hosts.

use crate::route::private::{glob, literal_folder};

/// A path or a file name with `*`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: Vec<u8>,
    /// The same text, processed by [`fold`].
    folded: Vec<u8>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Pattern {
        Pattern { text: text.into(), folded: fold(text.as_bytes()) }
    }

    /// Whether the pattern matches a decoded, normalized path.
    pub(crate) fn fits(&self, path: &[u8]) -> bool {
        fits(&self.text, path)
    }

    /// Whether the pattern matches a path processed by [`fold`].
    pub(crate) fn fits_folded(&self, folded: &[u8]) -> bool {
        fits(&self.folded, folded)
    }

    /// Returns the text that the pattern's only `*` matches, if the pattern matches `path`.
    pub(super) fn star<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        if !self.fits(path) {
            return None;
        }
        let star = self.text.iter().position(|byte| *byte == b'*')?;
        let (before, after) = (&self.text[..star], &self.text[star + 1..]);
        let path = if before.first() == Some(&b'/') { path } else { last(path) };
        // `/a/*` also matches `/a`.
        Some(path.get(before.len()..path.len().saturating_sub(after.len())).unwrap_or_default())
    }

    /// The folders before the first wildcard: `/a/b` for `/a/b/c*.php`. `None` if there are none.
    pub(super) fn literal_folder(&self) -> Option<&[u8]> {
        literal_folder(&self.text)
    }

    /// The folder of a pattern that ends with `/*`: `/a` for `/a/*`.
    pub(super) fn folder(&self) -> &[u8] {
        &self.text[..self.folder_bytes()]
    }

    /// Length of [`Self::folder`].
    pub(super) fn folder_bytes(&self) -> usize {
        self.text.len().saturating_sub(FOLDER.len())
    }
}

/// End of a pattern that matches a folder and everything in it.
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

/// Normalizes `path` for the least strict file systems: lower case, without dots and spaces at the
/// end of names.
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

/// `host` is as sent by the client, without port.
pub(crate) fn hosts_fit(patterns: &[Vec<u8>], host: &[u8]) -> bool {
    if patterns.is_empty() {
        return true;
    }
    let host = host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase();
    patterns.iter().any(|pattern| glob(pattern, &host))
}
