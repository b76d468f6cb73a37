//! Small files, whole.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a fleet file, and of a file of holidays.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// First character of some editors' files; it belongs to no line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the content of a small file, without a byte order mark.
pub(super) fn text_of(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| unreadable(path))?;
    let read = file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.with_context(|| unreadable(path))? as u64 > TEXT_BYTES_MAX {
        bail!(
            "`{}` is larger than {TEXT_BYTES_MAX} bytes\nhint: check that it is the right file",
            path.display()
        );
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        let path = path.display();
        anyhow!("`{path}` is not a text in UTF-8\nhint: check that it is the right file")
    })?;
    Ok(without_mark(text))
}

fn without_mark(text: String) -> String {
    text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text)
}

/// Returns the first part of an error.
pub(super) fn unreadable(path: &Path) -> String {
    format!("cannot read `{}`\nhint: check path and permissions", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_mark_is_removed() {
        for (text, expected) in
            [("", ""), ("/a", "/a"), ("\u{feff}/a", "/a"), ("/\u{feff}", "/\u{feff}")]
        {
            assert_eq!(without_mark(text.to_owned()), expected, "{text:?}");
        }
    }
}
